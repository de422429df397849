// What changes, as the server tells of it: one stream for the page that is looked at. While
// there is none, pages ask.
import { signal } from "@preact/signals";
import { v1 } from "./api";

// streaming is true while the server tells of changes by itself.
export const streaming = signal(false);

type Heard = (data: never) => void;

const heard = new Map<string, Set<Heard>>(); // by the kind of event
const wanted = new Map<string, number>(); // how often an ARN is looked at

let source: EventSource | null = null;
let of = ""; // the ARN of source
let timer: ReturnType<typeof setTimeout> | undefined;
let failures = 0;

// A browser has six connections to a server, and people have many tabs: only the one that is
// looked at has a stream.
function turn() {
  clearTimeout(timer);
  const arn = [...wanted.keys()].find((a) => a) ?? "";
  const needed = wanted.size > 0 && !document.hidden;
  if (source && needed && of === arn && source.readyState !== EventSource.CLOSED) return;
  source?.close();
  source = null;
  streaming.value = false;
  if (!needed) return;
  of = arn;
  const mine = (source = new EventSource(v1 + "events" + (arn ? "?arn=" + encodeURIComponent(arn) : "")));
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
  for (const kind of ["overview", "queue", "subscription"]) {
    mine.addEventListener(kind, (e) => {
      if (mine !== source) return;
      const data = (JSON.parse((e as MessageEvent<string>).data) as Record<string, never>)[kind];
      for (const f of heard.get(kind) ?? []) f(data);
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
export function watch<T>(kind: string, arn: string, f: (data: T) => void): () => void {
  const all = heard.get(kind) ?? new Set();
  heard.set(kind, all.add(f as Heard));
  wanted.set(arn, (wanted.get(arn) ?? 0) + 1);
  soon();
  return () => {
    all.delete(f as Heard);
    const left = wanted.get(arn)! - 1;
    if (left) wanted.set(arn, left);
    else wanted.delete(arn);
    soon();
  };
}
