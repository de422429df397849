// The operator API, which is all that the console knows of the server.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { streaming, watch, type Kind } from "./live";
import type { Params } from "./router";

// Refused is an answer that is none: what the server says of it, and its status; 0 where
// the server could not be reached.
export class Refused extends Error {
  status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface Session {
  required: boolean; // whether a session is needed at all
  user?: string; // who is signed in
  csrf?: string;
  over?: boolean; // it has ended, though nobody signed out
  expiresAt?: string; // if nobody uses it before
  now?: string;
  provider?: string; // who vouches for people, beside their access keys
  providerPath?: string;
}

// last is who was signed in last, and did not sign out.
export const last = { user: "" };

// session is null until the server has said who asks.
export const session = signal<Session | null>(null);

// reached is false while the server does not answer.
export const reached = signal(true);

type Value = string | number | boolean | undefined | null;

export async function ask<T>(method: string, path: string, params: Record<string, Value> = {}, body?: unknown, abort?: AbortSignal): Promise<T> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) query.set(name, String(value));
  }
  const headers: Record<string, string> = { Accept: "application/json" };
  if (method !== "GET") headers["X-Godwit-CSRF"] = session.value?.csrf ?? "";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(path + (query.size ? "?" + query : ""), {
      method, headers, signal: abort, credentials: "same-origin", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (err) {
    if ((err as Error).name === "AbortError") throw err;
    reached.value = false;
    throw new Refused(0, "The server does not answer.");
  }
  reached.value = true;
  const text = await answer.text();
  let said: unknown;
  try {
    said = text ? JSON.parse(text) : undefined;
  } catch {
    said = undefined;
  }
  if (answer.ok) return said as T;
  if (answer.status === 401 && session.value?.required) session.value = { ...session.value, user: undefined, csrf: undefined, over: !!last.user };
  const why = (said as { error?: unknown } | undefined)?.error;
  throw new Refused(answer.status, typeof why === "string" ? why : `The server answered ${answer.status}.`);
}

export const v1 = "/_godwit/v1/";

// at is the address of a path of the API.
const at = (path: string) => (path.startsWith("/") ? path : v1 + path);

export function get<T>(path: string, params: Record<string, Value> = {}, abort?: AbortSignal): Promise<T> {
  return ask<T>("GET", at(path), params, undefined, abort);
}

export function post<T>(path: string, body: unknown): Promise<T> {
  return ask<T>("POST", at(path), {}, body);
}

// offered are the paths that the server's own document of the API has; null until it is read.
const offered = signal<Set<string> | null>(null);

// has reports whether the server offers a path of the API: what it does not is not shown.
export function has(path: string): boolean {
  return offered.value === null || offered.value.has(at(path));
}

// discover reads what the server offers.
export async function discover() {
  try {
    const document = await get<{ paths?: Record<string, unknown> }>("openapi.json");
    if (document?.paths) offered.value = new Set(Object.keys(document.paths));
  } catch {
    offered.value = null; // each page tells of what it lacks
  }
}

export async function openSession() {
  const found = await ask<Session>("GET", "/_godwit/ui/session");
  if (found.user) last.user = found.user;
  session.value = found.user ? found : { ...found, over: !!last.user };
}

export interface Loaded<T> {
  data?: T;
  error?: Refused;
  loading: boolean;
  reload: () => void;
}

// atRest is how often, in milliseconds, what no event tells of is asked for where nothing
// changes: messages grow old all the same, and rates come to rest.
const atRest = 15_000;

// useData asks for path, again when its parameters change and when the server tells that
// something has: at most every so many milliseconds, and only while the page is looked at.
// An event of the kind live has the data with it, which merge adds to what is known; commits
// has not, and so it is asked again. Where the server cannot tell, it is asked as often. A null
// path asks for nothing; every 0 asks until there is an answer. What was known stays shown while it is asked again,
// unless it is of something else.
export function useData<T>(path: string | null, params: Record<string, Value> = {}, every = 3000, live: Kind = "commits", merge?: (told: T, known: T | undefined) => T): Loaded<T> {
  const key = path === null ? "" : path + "?" + JSON.stringify(params);
  const [state, setState] = useState<{ key: string; data?: T; error?: Refused }>({ key: "" });
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let busy = false;
    let stale = false; // something has changed since it was asked
    let unanswered = false;
    let asked = 0;
    let since: T[] = []; // what events told since then: the answer may be older
    const load = async () => {
      clearTimeout(timer);
      if (busy || document.hidden) {
        stale = true;
        return;
      }
      busy = true;
      stale = false;
      asked = performance.now();
      since = [];
      try {
        const data = await get<T>(path, params, abort.signal);
        unanswered = false;
        setState({ key, data: since.reduce(add, data) });
      } catch (err) {
        if (abort.signal.aborted) return;
        const error = err instanceof Refused ? err : new Refused(0, String(err));
        unanswered = error.status === 0 || error.status >= 500;
        setState((old) => ({ key, error, data: old.key === key ? old.data : undefined }));
      } finally {
        busy = false;
        next();
      }
    };
    // next has it asked when that is due.
    const next = () => {
      clearTimeout(timer);
      if (abort.signal.aborted || busy || document.hidden) return;
      if (every === 0) { // until the server has answered
        if (unanswered) timer = setTimeout(load, 3000);
        return;
      }
      const told = streaming.value && !stale;
      if (told && live !== "commits") return;
      timer = setTimeout(load, Math.max((told ? Math.max(every, atRest) : every) - (performance.now() - asked), 0));
    };
    const add = (known: T | undefined, told: T) => (merge ? merge(told, known) : told);
    const tell = (told: T) => {
      if (busy) since.push(told);
      setState((old) => ({ key, data: add(old.key === key ? old.data : undefined, told) }));
    };
    const changed = () => {
      stale = true;
      next();
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : void load());
    again.current = () => void load();
    document.addEventListener("visibilitychange", seen);
    void load();
    const leave = every === 0 ? [] : [
      live === "commits" ? watch(live, "", changed) : watch<T>(live, live === "jobs" ? "" : String(params.arn ?? ""), tell),
      streaming.subscribe(next),
    ];
    return () => {
      for (const f of leave) f();
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, every]);
  const current = state.key === key;
  return {
    data: current ? state.data : undefined,
    error: current ? state.error : undefined,
    loading: key !== "" && !current,
    reload: () => again.current(),
  };
}

export interface Asked<T> {
  data?: T;
  error?: Error;
  look: (cursor?: string | null) => Promise<void>;
}

// useAsked asks for path only when somebody looks. What was found belongs to the parameters
// that it was asked for with, and is not shown with others. The latest look counts: an answer
// to an earlier one may come after its own.
export function useAsked<T>(path: string, params: Record<string, Value>): Asked<T> {
  const key = path + "?" + JSON.stringify(params);
  const [state, setState] = useState<{ key: string; data?: T; error?: Error }>({ key });
  const turn = useRef(0);
  const { data, error }: typeof state = state.key === key ? state : { key };
  const look = async (cursor?: string | null) => {
    const mine = ++turn.current;
    setState({ key, data });
    try {
      const found = await get<T>(path, { ...params, cursor });
      if (mine === turn.current) setState({ key, data: found });
    } catch (err) {
      if (mine === turn.current) setState({ key, data, error: err as Error });
    }
  };
  return { data, error, look };
}

export interface Reading {
  clock: string; // system or virtual
  now: string;
  next: string | null; // when the next timer of a virtual one is due
}

// useClock is the server's clock. That of the machine goes on by itself.
export function useClock(): Loaded<Reading> {
  const read = useData<Reading>("clock", {}, 2000);
  const since = useRef<{ of?: Reading; at: number }>({ at: 0 });
  const [, tick] = useState(0);
  if (since.current.of !== read.data) since.current = { of: read.data, at: performance.now() };
  const goes = read.data?.clock === "system";
  useEffect(() => {
    if (!goes) return;
    const timer = setInterval(() => document.hidden || tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [goes]);
  if (!read.data || !goes) return read;
  return { ...read, data: { ...read.data, now: new Date(Date.parse(read.data.now) + performance.now() - since.current.at).toISOString() } };
}

export type { Params };
