// What changes, as the server tells of it: one stream for the page that is looked at. While
// there is none, pages ask.
import { signal } from "@preact/signals";
import { v1 } from "./api";

// streaming is true while the server tells of changes by itself.
export const streaming = signal(false);

// A kind of event is told with all of what it is about; commits tells that anything has changed.
export type Kind = "overview" | "queue" | "subscription" | "jobs" | "commits";

const kinds: Kind[] = ["overview", "queue", "subscription", "jobs", "commits"];

type Heard = (data: never) => void;

interface Wish {
  kind: Kind;
  arn: string;
  heard: Heard;
}

const wishes = new Set<Wish>();

let source: EventSource | null = null;
let of = ""; // the address of source
let timer: ReturnType<typeof setTimeout> | undefined;
let failures = 0;

// address is that of a stream of all that is wished for.
function address(): string {
  const query = new URLSearchParams();
  for (const w of wishes) {
    if (w.arn && !query.has("arn")) query.set("arn", w.arn);
    if (w.kind === "jobs" || w.kind === "commits") query.set(w.kind, "true");
  }
  query.sort();
  return v1 + "events" + (query.size ? "?" + query : "");
}

// A browser has six connections to a server, and people have many tabs: only the one that is
// looked at has a stream.
function turn() {
  clearTimeout(timer);
  const wanted = address();
  const needed = wishes.size > 0 && !document.hidden;
  if (source && needed && of === wanted && source.readyState !== EventSource.CLOSED) return;
  source?.close();
  source = null;
  streaming.value = false;
  if (!needed) return;
  of = wanted;
  const mine = (source = new EventSource(wanted));
  mine.onopen = () => {
    failures = 0;
    streaming.value = true;
  };
  mine.onerror = () => {
    if (mine !== source) return;
    streaming.value = false; // pages ask meanwhile
    if (mine.readyState === EventSource.CLOSED) again();
  };
  mine.addEventListener("gone", () => { // it may not be seen any more, or is deleted: asking tells which
    if (mine !== source) return;
    mine.close();
    streaming.value = false;
    again();
  });
  for (const kind of kinds) {
    mine.addEventListener(kind, (e) => {
      if (mine !== source) return;
      const data = (JSON.parse((e as MessageEvent<string>).data) as Record<string, never>)[kind];
      for (const w of wishes) if (w.kind === kind) w.heard(data);
    });
  }
}

// again tries later, and later each time.
function again() {
  clearTimeout(timer);
  timer = setTimeout(turn, Math.min(2000 * 2 ** failures++, 60_000));
}

// soon lets a page that is left and one that is come to ask for one stream.
const soon = () => {
  clearTimeout(timer);
  timer = setTimeout(turn, 0);
};

document.addEventListener("visibilitychange", soon);

// watch has f told of each event of a kind, about an ARN if one is given, until the
// function that it returns is called.
export function watch<T>(kind: Kind, arn: string, heard: (data: T) => void): () => void {
  const wish: Wish = { kind, arn, heard: heard as Heard };
  wishes.add(wish);
  soon();
  return () => {
    wishes.delete(wish);
    soon();
  };
}

// follow reads a stream of what comes to a topic, a queue or a log group, as long as the page is
// looked at. Begun is called whenever it begins, anew, too: what came before that is to be
// asked for. Failed is called once it cannot be had; it is tried again.
export function follow<T>(at: string, kind: string, { begun, heard, failed }: { begun: () => void; heard: (data: T) => void; failed: () => void }): () => void {
  let own: EventSource | null = null;
  let later: ReturnType<typeof setTimeout> | undefined;
  let tried = 0;
  const open = () => {
    clearTimeout(later);
    own?.close();
    own = null;
    if (document.hidden) return;
    const mine = (own = new EventSource(at));
    mine.onopen = () => {
      tried = 0;
      begun();
    };
    const over = () => {
      if (mine !== own) return;
      failed();
      if (mine.readyState === EventSource.CLOSED) later = setTimeout(open, Math.min(2000 * 2 ** tried++, 60_000));
    };
    mine.onerror = over;
    mine.addEventListener("gone", () => {
      mine.close();
      over();
    });
    mine.addEventListener(kind, (e) => {
      if (mine === own) heard((JSON.parse((e as MessageEvent<string>).data) as Record<string, T>)[kind]);
    });
  };
  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", open);
    clearTimeout(later);
    own?.close();
    own = null;
  };
}
