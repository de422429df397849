// What all pages are made of.
import { h, Fragment, type ComponentChildren, type JSX } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Loaded, Refused } from "./api";
import { go, href, place, refine } from "./router";
import { bytes, cell, count, save, Safe, visible } from "./text";

type Children = { children?: ComponentChildren };

// A is a link to a page of the console. The browser follows it as any link: in a new tab,
// where that is asked for.
export function A({ page, params, children, class: name, label, current }: Children & { page: string; params?: Record<string, string | undefined | null>; class?: string; label?: string; current?: "page" | "true" }) {
  const to = href(page, params);
  const follow = (e: MouseEvent) => {
    if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(to);
  };
  return <a href={to} onClick={follow} class={name} aria-label={label} aria-current={current}>{children}</a>;
}

// pageOf is the page on what an ARN names; empty: there is none.
export function pageOf(arn: string): string {
  const part = arn.split(":");
  if (part[0] !== "arn") return "";
  switch (part[2]) {
    case "sqs": return "queue";
    case "sns": return part.length === 7 ? "subscription" : part.length === 6 && !part[5].includes("/") ? "topic" : "";
    case "lambda": return part[5] === "function" ? "function" : "";
    case "cloudwatch": return part[5] === "alarm" ? "alarm" : "";
    case "logs": return part[5] === "log-group" ? "logs" : "";
    case "iam": return "identity";
    default: return "";
  }
}

// nameOf is the last part of an ARN, which is what people call it.
export function nameOf(arn: string): string {
  const part = arn.split(":");
  if (part[2] === "sns" && part.length === 7) return part[5] + ":" + part[6].slice(0, 8);
  if (part[0] !== "arn" || part.length < 6) return arn;
  if (part[5] === "alarm") return part.slice(6).join(":") || arn; // which may have colons
  return part[part.length - 1] || arn;
}

// Arn is an ARN as a link.
export function Arn({ arn, short }: { arn: string | undefined | null; short?: boolean }) {
  if (!arn) return <>–</>;
  const page = pageOf(arn);
  const shown = <Safe text={short ? nameOf(arn) : arn} />;
  if (!page) return <span class="arn" title={visible(arn)}>{shown}</span>;
  return <span class="arn" title={visible(arn)}><A page={page} params={{ arn }}>{shown}</A></span>;
}

const tones: Record<string, string> = {
  active: "good", ok: "good", OK: "good", success: "good", delivered: "good", completed: "good", taken: "good", Active: "good", Enabled: "good",
  failing: "bad", critical: "bad", ALARM: "bad", "server-error": "bad", "client-error": "bad", dropped: "bad", failed: "bad", Failed: "bad",
  paused: "warn", warning: "warn", "no target": "warn", "dead-letter": "warn", cancelled: "warn", "not taken": "warn", cancelling: "warn", "completed in part": "warn", expired: "warn", INSUFFICIENT_DATA: "warn", "pending-confirmation": "warn",
};
const marks: Record<string, string> = { good: "✓", bad: "✕", warn: "!" };

// State is a word with a colour and a mark: the colour alone says nothing.
export function State({ of }: { of: string | undefined | null }) {
  if (!of) return <>–</>;
  const tone = tones[of] ?? "plain";
  return <span class={"state " + tone}><span aria-hidden="true">{marks[tone] ?? "·"}</span> {of}</span>;
}

export function Page({ title, children, what, actions }: Children & { title: ComponentChildren; what?: string; actions?: ComponentChildren }) {
  return (
    <>
      <header class="page-head">
        <div>
          {what ? <p class="what">{what}</p> : null}
          <h1 tabIndex={-1}>{title}</h1>
        </div>
        {actions ? <div class="actions">{actions}</div> : null}
      </header>
      {children}
    </>
  );
}

export function Section({ title, children, actions, hint }: Children & { title: string; actions?: ComponentChildren; hint?: ComponentChildren }) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id} tabIndex={-1}>{title}</h2>
        {actions ? <div class="actions">{actions}</div> : null}
      </div>
      {hint ? <p class="hint">{hint}</p> : null}
      {children}
    </section>
  );
}

// Empty says that there is nothing, and what to do next.
export function Empty({ children }: Children) {
  return <div class="empty">{children}</div>;
}

// advice tells what can be done about a refusal.
function advice(status: number): string {
  switch (status) {
    case 0: return "Is the server running, and can this machine reach it? It is asked again every few seconds.";
    case 401: return "Sign in to go on.";
    case 403: return "Ask who manages this server for a policy that allows it (godwit:Read, godwit:Operate, godwit:PeekMessages).";
    case 404: return "It may have been deleted, or this server does not have it. The lists in the menu show what there is.";
    case 409: return "Something else is under way with it. Look at it again, then try again.";
    case 413: return "It is too large to be shown at once.";
    case 503: return "The server is busy or short of something. The overview says what is wrong.";
    default: return status >= 500 ? "This is a defect of the server: its log says more." : "Change what was asked for, and try again.";
  }
}

export function Trouble({ error }: { error: Refused | Error | null | undefined }) {
  if (!error) return null;
  const status = (error as Refused).status ?? -1;
  return (
    <div class="trouble" role="alert">
      <p><strong><Safe text={error.message} max={1000} /></strong></p>
      <p>{advice(status)}</p>
    </div>
  );
}

// Shown shows what was loaded; before, that it is asked for; and what went wrong.
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      <Trouble error={of.error} />
      {of.data !== undefined ? children(of.data) : of.loading ? <p class="hint" aria-busy="true">Loading…</p> : null}
    </>
  );
}

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
  number?: boolean;
  sort?: string; // what the server sorts by for it
}

// toHeading moves the focus to the heading of what a control is in, where the control may not be
// there any more once what it asked for has come.
export function toHeading(from: Element) {
  const heading = from.closest("section")?.querySelector("h2") ?? document.querySelector("h1");
  heading?.focus({ preventScroll: true });
  if (heading?.tagName === "H2") heading.scrollIntoView();
  else scrollTo(0, 0);
}

// leave gives the focus of a control that is taken away to the heading of what it was in.
function leave(control: HTMLElement | null) {
  if (!control || document.activeElement !== control) return;
  const heading = control.closest("section")?.querySelector("h2");
  queueMicrotask(() => {
    if (document.activeElement !== document.body) return; // something has taken it
    (heading?.isConnected ? heading : document.querySelector("h1"))?.focus({ preventScroll: true });
  });
}

// sorting is the column that was sorted by last: its button, which is made anew with the table,
// gets the focus back.
let sorting = "";

const refocus = (column: string) => (button: HTMLButtonElement | null) => {
  if (!button || sorting !== column || document.activeElement !== document.body) return;
  sorting = "";
  button.focus();
};

// Table is a table that scrolls in its own box, so that the page never does sideways.
export function Table<T>({ caption, columns, rows, keyOf, sorted, onSort }: {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  sorted?: string;
  onSort?: (by: string) => void;
}) {
  return (
    <div class="scroll" role="group" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((c) => (
              <th scope="col" class={c.number ? "number" : undefined} aria-sort={c.sort && c.sort === sorted ? (c.sort === "name" ? "ascending" : "descending") : undefined}>
                {c.sort && onSort ? <button type="button" class="link" ref={refocus(caption + c.sort)} onClick={() => { sorting = caption + c.sort; onSort(c.sort!); }}>{c.name}{c.sort === sorted ? (c.sort === "name" ? " ↑" : " ↓") : ""}</button> : c.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((c) => <td class={c.number ? "number" : undefined}>{c.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Field is a label with its control.
export function Field({ label, children, hint }: { label: string; hint?: ComponentChildren; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint ? <p class="hint">{hint}</p> : null}
    </div>
  );
}

// Filter is a text field whose value stands in the address. A new one begins at the first page of
// all that pagers lead through.
export function Filter({ name, label, placeholder, pagers = ["cursor"] }: { name: string; label: string; placeholder?: string; pagers?: string[] }) {
  const now = place.value.params[name] ?? "";
  const [text, setText] = useState(now);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useLayoutEffect(() => setText(now), [now]); // a frame later it would undo what was typed meanwhile
  const left = useRef(false); // the page; a browser tells of a change also when the field is taken away
  useLayoutEffect(() => () => {
    left.current = true;
    clearTimeout(timer.current);
  }, []);
  const say = (value: string) => {
    clearTimeout(timer.current);
    if (!left.current && value !== (place.value.params[name] ?? "")) refine({ ...Object.fromEntries(pagers.map((pager) => [pager, ""])), [name]: value });
  };
  return (
    <Field label={label}>
      {(id) => (
        <input id={id} type="search" value={text} placeholder={placeholder} autocomplete="off" spellcheck={false}
          onInput={(e) => {
            const value = e.currentTarget.value;
            setText(value);
            clearTimeout(timer.current);
            timer.current = setTimeout(() => say(value), 250);
          }}
          onChange={(e) => say(e.currentTarget.value)} // before the form is submitted
        />
      )}
    </Field>
  );
}

// Choice is a list of choices whose value stands in the address.
export function Choice({ name, label, options }: { name: string; label: string; options: [value: string, shown: string][] }) {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={place.value.params[name] ?? ""} onChange={(e) => refine({ [name]: e.currentTarget.value, cursor: "" })}>
          {options.map(([value, shown]) => <option value={value}>{shown}</option>)}
        </select>
      )}
    </Field>
  );
}

// Pager leads to the next page of a list, and back to the first.
export function Pager({ next, name = "cursor" }: { next: string | null | undefined; name?: string }) {
  const at = place.value.params[name];
  if (!next && !at) return null;
  return (
    <nav class="pager" aria-label="pages">
      {at ? <button type="button" onClick={(e) => { toHeading(e.currentTarget); refine({ [name]: "" }, false); }}>First page</button> : null}
      {next ? <button type="button" onClick={(e) => { toHeading(e.currentTarget); refine({ [name]: next }, false); }}>Next page</button> : null}
    </nav>
  );
}

// notice is what the last command did. It is read out.
export const notice = signal<{ text: string; bad: boolean; n: number } | null>(null);

let told = 0; // notices so far: the same text is read out again

export function tell(text: string, bad = false) {
  notice.value = { text, bad, n: ++told };
}

// Act is a button that carries out a command, once at a time, and tells what came of it. It keeps
// the focus meanwhile, which a disabled one would lose; where it goes with what it was about, as the
// last button of a row does, the heading above has it.
export function Act({ children, run, confirm, kind, disabled }: Children & { run: () => Promise<string | void>; confirm?: string; kind?: "danger" | "main"; disabled?: boolean }) {
  const [busy, setBusy] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => () => leave(button.current), []);
  const click = async () => {
    if (busy) return;
    if (confirm && !window.confirm(confirm)) return;
    setBusy(true);
    try {
      const said = await run();
      if (said) tell(said);
    } catch (err) {
      tell((err as Error).message, true);
    } finally {
      setBusy(false);
    }
  };
  return <button ref={button} type="button" class={kind} disabled={disabled && !busy} aria-disabled={busy || undefined} aria-busy={busy} onClick={click}>{children}</button>;
}

// Sure asks for the name of what is to be changed for good, before it is.
export function Sure({ title, name, verb, children, run, onClose }: Children & { title: string; name: string; verb: string; run: () => Promise<void>; onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  const id = useId();
  const submit = async (e: Event) => {
    e.preventDefault();
    if (typed !== name || busy) return;
    setBusy(true);
    try {
      await run();
      box.current?.close(); // which gives the focus back
    } catch (err) {
      setError(err as Error);
      setBusy(false);
    }
  };
  return (
    <dialog ref={box} aria-labelledby={id} onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id={id}>{title}</h2>
        {children}
        <Trouble error={error} />
        <Field label={`Type ${name} to confirm`}>
          {(field) => <input id={field} value={typed} autocomplete="off" spellcheck={false} onInput={(e) => setTyped(e.currentTarget.value)} />}
        </Field>
        <div class="actions">
          <button type="button" onClick={() => box.current?.close()}>Cancel</button>
          <button type="submit" class="danger" disabled={typed !== name || busy}>{verb}</button>
        </div>
      </form>
    </dialog>
  );
}

// Facts is a list of names and what they are.
export function Facts({ of }: { of: [name: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => (
        <div><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}

// List is some ARNs as links.
export function List({ arns }: { arns: string[] }) {
  return <ul class="plain">{arns.slice(0, 50).map((a) => <li key={a}><Arn arn={a} short /></li>)}{arns.length > 50 ? <li>and {count(arns.length - 50)} more</li> : null}</ul>;
}

// Named shows names with their values, folded.
export function Named({ of, title }: { of: Record<string, string> | undefined | null; title: string }) {
  const entries = Object.entries(of ?? {});
  if (entries.length === 0) return null;
  return (
    <details>
      <summary>{title} ({entries.length})</summary>
      <Facts of={entries.map(([k, v]) => [k, /^arn:[^\s]+$/.test(v) ? <Arn arn={v} /> : <Safe text={String(v)} max={2000} />])} />
    </details>
  );
}

// Tiles are the few numbers that count.
export function Tiles({ of }: { of: [name: string, value: ComponentChildren, link?: JSX.Element | null][] }) {
  return (
    <dl class="tiles">
      {of.map(([name, value, link]) => <div><dt>{name}</dt><dd>{value}{link ? <> {link}</> : null}</dd></div>)}
    </dl>
  );
}

const shownBytes = 16 << 10;

// written reports whether a text may be base64: what clients send in it, compressed or pickled,
// says nothing to people.
const written = (text: string) => text.length >= 16 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);

// decoded is what base64 is of: text, where it is some, or else its bytes.
function decoded(base64: string): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
    return laid(text) ?? text;
  } catch {
    return dump(base64);
  }
}

// laid is JSON laid out; null: it is none.
function laid(text: string): string | null {
  try {
    return /^\s*[[{]/.test(text) ? JSON.stringify(JSON.parse(text), null, 2) : null;
  } catch {
    return null;
  }
}

// Body shows the body of a message: as JSON laid out, where it is some; binary as bytes; and as
// it was sent.
export function Body({ body, encoding, truncated, name }: { body: string; encoding?: string; truncated?: boolean; name: string }) {
  const [all, setAll] = useState(false);
  const [raw, setRaw] = useState(false);
  const [decode, setDecode] = useState(false);
  const binary = encoding === "base64";
  const small = !truncated && body.length < 1 << 20;
  const json = !binary && small ? laid(body) : null;
  const packed = !binary && small && written(body);
  const text = binary ? (raw ? body : dump(body)) : decode ? decoded(body) : raw ? body : json ?? body;
  const long = text.length > shownBytes;
  return (
    <div class="body">
      <pre tabIndex={0} dir="auto" aria-label="body"><Safe bare text={all ? text : text.slice(0, shownBytes)} /></pre>
      <div class="actions">
        {binary ? <span class="hint">binary</span> : null}
        {truncated ? <span class="hint">only its beginning</span> : null}
        {json !== null ? <button type="button" aria-pressed={raw} onClick={() => setRaw(!raw)}>As it was sent</button> : null}
        {binary ? <button type="button" aria-pressed={raw} onClick={() => setRaw(!raw)}>As base64</button> : null}
        {packed ? <button type="button" aria-pressed={decode} onClick={() => setDecode(!decode)}>What the base64 is of</button> : null}
        {long && !all ? <button type="button" onClick={() => setAll(true)}>Show all {bytes(text.length)}</button> : null}
        <button type="button" onClick={() => save(name + ".txt", body)}>Save{binary ? " as base64" : ""}</button>
      </div>
    </div>
  );
}

// dump writes base64 as lines of bytes.
function dump(base64: string): string {
  let data: string;
  try {
    data = atob(base64);
  } catch {
    return base64;
  }
  const lines: string[] = [];
  for (let at = 0; at < Math.min(data.length, 4096); at += 16) {
    const row = [...data.slice(at, at + 16)];
    const hex = row.map((c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
    lines.push(at.toString(16).padStart(6, "0") + "  " + hex.padEnd(48) + " " + row.map((c) => (c >= " " && c <= "~" ? c : ".")).join(""));
  }
  if (data.length > 4096) lines.push(`… ${count(data.length - 4096)} more bytes`);
  return lines.join("\n");
}

// Progress is how far something is.
export function Progress({ done, of, label }: { done: number; of: number; label: string }) {
  return (
    <div class="progress">
      <progress value={done} max={Math.max(of, 1)} aria-label={label} />
      <span>{count(done)} of {count(of)}</span>
    </div>
  );
}

// table makes a file for a spreadsheet.
export function exportTable(name: string, head: string[], rows: (string | number | null | undefined)[][]) {
  const lines = [head, ...rows].map((row) => row.map((v) => cell(v === null || v === undefined ? "" : String(v))).join(","));
  save(name + ".csv", lines.join("\r\n") + "\r\n", "text/csv");
}
