import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, Refused, useData, v1 } from "../api";
import { A, Arn, Empty, Filter, Page, Section, Shown, Trouble } from "../components";
import { follow } from "../live";
import { place, refine } from "../router";
import { Safe } from "../text";
import type { Message, MessagePage, Queue, Topic } from "../types";
import { LineTable, pattern, type Group, type Line, type Lines } from "./logs";
import { MessageList } from "./queues";
import { PublishList, type Publish, type Publishes } from "./publishes";

// TailPage shows what is sent, published or logged as it comes, the latest at the top.
export function TailPage() {
  const { arn } = place.value.params;
  if (!arn) return <Choose />;
  switch (arn.split(":")[2]) {
    case "sqs": return <QueueTail key={arn} arn={arn} />;
    case "sns": return <TopicTail key={arn} arn={arn} />;
    default: return <LogTail key={arn} arn={arn} />;
  }
}

function Choose() {
  const groups = useData<{ groups: Group[] }>("log-groups", { limit: 200 }, 10_000);
  const topics = useData<{ topics: Topic[] }>("topics", { limit: 200 }, 10_000);
  const queues = useData<{ queues: Queue[] }>("queues", { sort: "name", limit: 200 }, 10_000);
  return (
    <Page title="Live tail">
      <Section title="What is published to a topic" hint="Each message, and which subscriptions take it, as it comes. It is recorded who looks.">
        <Shown of={topics}>
          {(data) => data.topics?.length
            ? <ul class="plain">{data.topics.map((t) => <li key={t.arn}><A page="tail" params={{ arn: t.arn }}><Safe text={t.name} /></A></li>)}</ul>
            : <Empty><p>There are no topics. Make one with <code>aws sns create-topic --name orders</code>.</p></Empty>}
        </Shown>
      </Section>
      <Section title="What is sent to a queue" hint={<>Each message as it comes; it stays in the queue as it is. A <A page="queues">queue</A>'s page leads here, too.</>}>
        <Shown of={queues}>
          {(data) => data.queues?.length
            ? <ul class="plain">{data.queues.map((q) => <li key={q.arn}><A page="tail" params={{ arn: q.arn }}><Safe text={q.name} /></A></li>)}</ul>
            : <Empty><p>There are no queues. Make one with <code>aws sqs create-queue --queue-name first</code>.</p></Empty>}
        </Shown>
      </Section>
      <Section title="What is logged" hint="Lines are shown as they are written.">
        <Shown of={groups}>
          {(data) => data.groups?.length
            ? <ul class="plain">{data.groups.map((g) => <li key={g.arn}><A page="tail" params={{ arn: g.arn }}><Safe text={g.name} /></A></li>)}</ul>
            : <Empty><p>There is no log group. Functions write to theirs when they run; deliveries do where a topic has feedback roles.</p></Empty>}
        </Shown>
      </Section>
    </Page>
  );
}

const pause = 2000; // between two questions where nothing tells, in milliseconds

// useTail keeps the latest things of a stream, up to most. Whatever was before the stream began,
// or comes while there is none, is asked for. When held it stands still.
function useTail<T>(at: string, kind: string, idOf: (one: T) => string, before: (abort: AbortSignal) => Promise<T[]>, held: boolean, most: number) {
  const [all, setAll] = useState<T[]>([]);
  const [error, setError] = useState<Error | null>(null);
  const cleared = useRef<string[]>([]); // ids of what is not shown again when it is asked for again
  useEffect(() => {
    setAll([]);
    cleared.current = [];
  }, [at]);
  useEffect(() => {
    if (held) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wait = pause;
    // add puts what is new, the earliest first, on top.
    const add = (some: T[]) => setAll((old) => {
      const known = new Set([...old.map(idOf), ...cleared.current]);
      const fresh = some.filter((one) => !known.has(idOf(one)));
      return fresh.length ? [...fresh.reverse(), ...old].slice(0, most) : old;
    });
    const ask = async (again: boolean) => {
      clearTimeout(timer);
      if (abort.signal.aborted || document.hidden) return;
      try {
        add(await before(abort.signal));
        setError(null);
        wait = pause;
      } catch (err) {
        if (abort.signal.aborted) return;
        setError(err as Error);
        wait = err instanceof Refused && err.status < 500 ? 60_000 : Math.min(wait * 2, 60_000);
      }
      if (again && !abort.signal.aborted) timer = setTimeout(() => void ask(true), wait);
    };
    const leave = follow<T[]>(at, kind, { begun: () => void ask(false), heard: add, failed: () => void ask(true) });
    return () => {
      leave();
      abort.abort();
      clearTimeout(timer);
    };
  }, [at, held]);
  const clear = () => {
    cleared.current = [...all.map(idOf), ...cleared.current].slice(0, most);
    setAll([]);
  };
  return { all, error, clear };
}

function Held({ held, setHeld, clear }: { held: boolean; setHeld: (on: boolean) => void; clear: () => void }) {
  return (
    <>
      <button type="button" class="main" aria-pressed={held} onClick={() => setHeld(!held)}>{held ? "Go on" : "Hold"}</button>
      <button type="button" onClick={clear}>Clear</button>
      <A class="button" page="tail">Follow another</A>
    </>
  );
}

const query = (of: Record<string, string | undefined>) => new URLSearchParams(Object.entries(of).filter((e): e is [string, string] => !!e[1])).toString();

function LogTail({ arn }: { arn: string }) {
  const p = place.value.params;
  const [held, setHeld] = useState(false);
  const from = useRef<string | null>(null); // what was before that is known, or of no interest
  const narrowed = { arn, pattern: pattern(p.search) };
  useEffect(() => {
    from.current = null;
  }, [p.search]);
  const before = async (abort: AbortSignal) => {
    if (!from.current) { // the server's time, less what is of interest at first
      const { now } = await get<{ now: string }>("clock", {}, abort);
      from.current = new Date(Date.parse(now) - 60_000).toISOString();
    }
    const lines: Line[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages < 10; pages++) {
      const page: Lines = await get<Lines>("log-events", { ...narrowed, from: from.current, cursor, limit: 500 }, abort);
      lines.push(...(page.events ?? []));
      cursor = page.next;
      if (!cursor) break;
    }
    const last = lines[lines.length - 1]?.at;
    if (last && last > from.current) from.current = last;
    return lines;
  };
  const { all, error, clear } = useTail<Line>(v1 + "tail?" + query(narrowed), "lines", (l) => l.id, before, held, 500);
  const lines = p.stream ? all.filter((l) => l.stream === p.stream) : all;
  return (
    <Page what="Live tail" title={<Arn arn={arn} short />} actions={<Held held={held} setHeld={setHeld} clear={clear} />}>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Contains" /></form>
      {p.stream ? <p class="hint">Only of <Safe text={p.stream} />. <button type="button" class="link" onClick={() => refine({ stream: "" })}>Show all streams</button></p> : null}
      <Trouble error={error} />
      <p class="unseen" role="status">{held ? "Held." : "Following."}</p>
      {lines.length ? <LineTable lines={lines} /> : error ? null : <Empty><p>Nothing was logged in the last minute. What comes is shown here by itself.</p></Empty>}
    </Page>
  );
}

function QueueTail({ arn }: { arn: string }) {
  const p = place.value.params;
  const [held, setHeld] = useState(false);
  const narrowed = { arn, search: p.search };
  const before = async (abort: AbortSignal) => { // what is there is on the queue's page; but it may not be shown, or not be there any more
    await get<MessagePage>("messages", { arn, limit: 1, bodyBytes: 0 }, abort);
    return [];
  };
  const { all, error, clear } = useTail<Message>(v1 + "tail?" + query(narrowed), "messages", (m) => m.messageId, before, held, 200);
  return (
    <Page what="Live tail" title={<Arn arn={arn} short />} actions={<Held held={held} setHeld={setHeld} clear={clear} />}>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Body or attributes contain" /></form>
      <Trouble error={error} />
      <p class="unseen" role="status">{held ? "Held." : "Following."}</p>
      {all.length ? <MessageList queue={arn} messages={all} /> : error ? null : <Empty><p>Nothing has come yet. What is sent from now on is shown here by itself, and stays in the queue as it is. What is there already is on the queue's page.</p></Empty>}
    </Page>
  );
}

function TopicTail({ arn }: { arn: string }) {
  const p = place.value.params;
  const [held, setHeld] = useState(false);
  const narrowed = { arn, search: p.search };
  const before = async (abort: AbortSignal) => {
    const { publishes } = await get<Publishes>("publishes", { ...narrowed, limit: 100 }, abort);
    return (publishes ?? []).reverse();
  };
  const { all, error, clear } = useTail<Publish>(v1 + "tail?" + query(narrowed), "publishes", (one) => one.messageId, before, held, 200);
  return (
    <Page what="Live tail" title={<Arn arn={arn} short />} actions={<Held held={held} setHeld={setHeld} clear={clear} />}>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Body, subject or attributes contain" /></form>
      <Trouble error={error} />
      <p class="unseen" role="status">{held ? "Held." : "Following."}</p>
      {all.length ? <PublishList publishes={all} /> : error ? null : <Empty><p>Nothing was published of late. What comes is shown here by itself.</p></Empty>}
    </Page>
  );
}
