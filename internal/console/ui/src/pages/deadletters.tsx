import { h, Fragment, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, useData } from "../api";
import { A, Arn, Empty, Field, nameOf, Page, Pager, Section, Shown, Sure, Table, Trouble } from "../components";
import { place, refine } from "../router";
import { count, Safe, span, Time } from "../text";
import type { DeadGroup, Job, Message, Queue } from "../types";
import { JobPanel } from "./jobs";
import { exportMessages, MessageList } from "./queues";

export function DeadLettersPage() {
  const queue = place.value.params.queue;
  return queue ? <Workbench key={queue} queue={queue} /> : <Choose />;
}

function Choose() {
  const p = place.value.params;
  const queues = useData<{ queues: Queue[]; next: string | null }>("queues", { kind: "dead-letter", sort: "messages", cursor: p.cursor, limit: 100 });
  return (
    <Page title="Dead letters">
      <Shown of={queues}>
        {(data) => data.queues?.length ? (
          <>
            <Table caption="Dead-letter queues" rows={data.queues} keyOf={(q) => q.arn} columns={[
              { name: "queue", cell: (q) => <A page="dead-letters" params={{ queue: q.arn }}><Safe text={q.name} /></A> },
              { name: "dead letters", number: true, cell: (q) => count(q.messages) },
              { name: "oldest", number: true, cell: (q) => span(q.oldestAgeSeconds) },
              { name: "queues it serves", number: true, cell: (q) => count(q.deadLetterSources) },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty><p>No queue takes dead letters. Give a queue or a subscription a <em>RedrivePolicy</em>, so that what cannot be delivered is not lost.</p></Empty>}
      </Shown>
    </Page>
  );
}

interface Groups {
  groups: DeadGroup[];
  scanned: number;
  total: number;
  next: string | null;
}

// useGroups goes through all dead letters, page by page, and adds up what belongs together.
// It stops when the page is left.
function useGroups(queue: string): { groups: DeadGroup[]; scanned: number; total: number; done: boolean; error: Error | null; again: () => void } {
  const [state, setState] = useState<{ groups: DeadGroup[]; scanned: number; total: number; done: boolean; error: Error | null }>({ groups: [], scanned: 0, total: 0, done: false, error: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const found = new Map<string, DeadGroup>();
    void (async () => {
      let cursor: string | null | undefined;
      let scanned = 0;
      try {
        do {
          const page: Groups = await get<Groups>("dead-letters", { arn: queue, cursor, limit: 1000 }, abort.signal);
          for (const g of page.groups ?? []) {
            const known = found.get(g.key);
            if (!known) {
              found.set(g.key, { ...g });
              continue;
            }
            known.count += g.count;
            if (g.oldestAt && (!known.oldestAt || g.oldestAt < known.oldestAt)) known.oldestAt = g.oldestAt;
            if (g.newestAt && (!known.newestAt || g.newestAt > known.newestAt)) known.newestAt = g.newestAt;
          }
          scanned = page.scanned;
          cursor = page.next;
          setState({ groups: [...found.values()].sort((a, b) => b.count - a.count), scanned, total: page.total, done: !cursor, error: null });
        } while (cursor);
      } catch (err) {
        if (!abort.signal.aborted) setState((old) => ({ ...old, done: true, error: err as Error }));
      }
    })();
    return () => abort.abort();
  }, [queue, round]);
  return { ...state, again: () => setRound((n) => n + 1) };
}

// Where is the condition that says which dead letters a job is about.
interface Where {
  cause?: string;
  from?: string;
  search?: string;
  ids?: string[];
}

function Workbench({ queue }: { queue: string }) {
  const p = place.value.params;
  const groups = useGroups(queue);
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [messages, setMessages] = useState<{ messages: Message[]; next: string | null } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const chosen = groups.groups.find((g) => g.key === p.cause);
  const where: Where = {};
  if (chosen) {
    where.cause = chosen.cause;
    if (chosen.from) where.from = chosen.from;
  }
  if (p.search) where.search = p.search;
  if (selected.size) where.ids = [...selected];
  useEffect(() => setSelected(new Set()), [p.cause, p.search]);

  const look = async (cursor?: string | null) => {
    try {
      setError(null);
      const page = await get<{ messages: Message[]; next: string | null }>("queue/messages", { arn: queue, search: p.search, cursor, limit: 100 });
      setMessages({ messages: (page.messages ?? []).filter((m) => !chosen || (m.deadLetter?.cause === chosen.cause && (!chosen.from || m.deadLetter?.from === chosen.from))), next: page.next });
    } catch (err) {
      setError(err as Error);
    }
  };
  useEffect(() => setMessages(null), [p.cause, p.search, queue]);

  return (
    <Page what="Dead-letter workbench" title={<Safe text={nameOf(queue)} />} actions={<><A class="button" page="queue" params={{ arn: queue }}>The queue</A><button type="button" onClick={groups.again}>Look again</button></>}>
      {p.job ? <section aria-label="job"><JobPanel id={p.job} /></section> : null}
      <Section title="Why they died" hint={groups.done ? <>{count(groups.scanned)} dead letters looked at. Looking changes nothing.</> : <span aria-busy="true">Looked at {count(groups.scanned)} of {count(groups.total)}…</span>}>
        <Trouble error={groups.error} />
        {groups.groups.length ? (
          <Table caption="Causes" rows={groups.groups} keyOf={(g) => g.key} columns={[
            { name: "cause", cell: (g) => <button type="button" class="link" aria-pressed={g.key === p.cause} onClick={() => refine({ cause: g.key === p.cause ? "" : g.key })}><Safe text={g.cause || "not known"} max={300} /></button> },
            { name: "from", cell: (g) => <Arn arn={g.from} short /> },
            { name: "dead letters", number: true, cell: (g) => count(g.count) },
            { name: "oldest", cell: (g) => <Time at={g.oldestAt} /> },
            { name: "newest", cell: (g) => <Time at={g.newestAt} /> },
          ]} />
        ) : groups.done && !groups.error ? <Empty><p>No dead letters: everything was delivered, or redriven. <A page="dead-letters">Other dead-letter queues</A></p></Empty> : null}
      </Section>
      <Section title={chosen ? "Dead letters of this cause" : "Dead letters"} actions={<button type="button" onClick={() => look()}>Show messages</button>}>
        {chosen ? <p>Chosen: <strong><Safe text={chosen.cause || "not known"} max={300} /></strong> <button type="button" class="link" onClick={() => refine({ cause: "" })}>Choose all causes</button></p> : null}
        <Search />
        <Trouble error={error} />
        {messages ? (
          <>
            {messages.messages.length ? (
              <>
                <MessageList queue={queue} messages={messages.messages} selected={selected} onSelect={(position, on) => {
                  const m = messages.messages.find((m) => m.position === position);
                  if (!m) return;
                  const next = new Set(selected);
                  if (on) next.add(m.position);
                  else next.delete(m.position);
                  setSelected(next);
                }} />
                <div class="actions">
                  <button type="button" onClick={() => setSelected(new Set(messages.messages.map((m) => m.position)))}>Select these {count(messages.messages.length)}</button>
                  {selected.size ? <button type="button" onClick={() => setSelected(new Set())}>Select none</button> : null}
                  <button type="button" onClick={() => exportMessages(nameOf(queue), messages.messages)}>Save as table</button>
                </div>
              </>
            ) : <Empty><p>None of these on this page.</p></Empty>}
            {messages.next ? <button type="button" onClick={() => look(messages.next)}>Next page</button> : null}
          </>
        ) : null}
      </Section>
      <Redrive queue={queue} where={where} what={selected.size ? `the ${selected.size} selected` : chosen ? "all of this cause" : p.search ? "all that match" : "all"} onStart={() => setSelected(new Set())} />
    </Page>
  );
}

function Search() {
  const [text, setText] = useState(place.value.params.search ?? "");
  return (
    <form class="filters" role="search" onSubmit={(e) => { e.preventDefault(); refine({ search: text }); }}>
      <Field label="Body or attributes contain">{(id) => <input id={id} type="search" value={text} autocomplete="off" onInput={(e) => setText(e.currentTarget.value)} />}</Field>
      <button type="submit">Search</button>
    </form>
  );
}

interface Preview {
  matches: number;
  scanned: number;
  total: number;
  next: string | null;
}

// Redrive counts what it would move, and then moves that: never more than was seen.
function Redrive({ queue, where, what, onStart }: { queue: string; where: Where; what: string; onStart: () => void }) {
  const [kind, setKind] = useState<"redrive" | "delete">("redrive");
  const [to, setTo] = useState("source");
  const [custom, setCustom] = useState("");
  const [perSecond, setPerSecond] = useState("10");
  const [preview, setPreview] = useState<(Preview & { of: string; done: boolean }) | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [asking, setAsking] = useState(false);
  const abort = useRef<AbortController | null>(null);
  const spec = () => ({
    kind, queue,
    ...(kind === "redrive" ? { to: to === "arn" ? custom : to } : {}),
    ...(Object.keys(where).length ? { where } : {}),
    ...(Number(perSecond) > 0 ? { perSecond: Number(perSecond) } : {}),
  });
  const key = JSON.stringify([kind, to, custom, where]);
  const current = preview?.of === key && preview.done ? preview : null;
  useEffect(() => () => abort.current?.abort(), []);

  const count1 = async () => {
    const mine = (abort.current = new AbortController());
    setError(null);
    let cursor: string | null = null;
    let matches = 0;
    try {
      do {
        const page: Preview = await post<Preview>("jobs/preview", { ...spec(), ...(cursor ? { cursor } : {}) });
        if (mine.signal.aborted) return;
        matches += page.matches;
        cursor = page.next;
        setPreview({ ...page, matches, of: key, done: !cursor });
      } while (cursor);
    } catch (err) {
      if (!mine.signal.aborted) setError(err as Error);
    }
  };
  const start = async () => {
    const job = await post<Job>("jobs", { ...spec(), expect: current?.matches });
    setPreview(null);
    onStart();
    refine({ job: job.id });
  };
  return (
    <Section title="Redrive or delete" hint="A job does it in the background, goes on after a restart, and can be stopped.">
      <form class="filters" onSubmit={(e) => { e.preventDefault(); void count1(); }}>
        <Field label="Do">{(id) => (
          <select id={id} value={kind} onChange={(e) => setKind(e.currentTarget.value as "redrive" | "delete")}>
            <option value="redrive">redrive</option><option value="delete">delete for good</option>
          </select>
        )}</Field>
        {kind === "redrive" ? (
          <Field label="To">{(id) => (
            <select id={id} value={to} onChange={(e) => setTo(e.currentTarget.value)}>
              <option value="source">where each came from</option><option value="subscription">the subscription's own endpoint</option><option value="arn">another queue</option>
            </select>
          )}</Field>
        ) : null}
        {kind === "redrive" && to === "arn" ? <Field label="ARN of the queue">{(id) => <input id={id} value={custom} required spellcheck={false} onInput={(e) => setCustom(e.currentTarget.value)} />}</Field> : null}
        <Field label="At most a second">{(id) => <input id={id} type="number" min="1" max="10000" value={perSecond} onInput={(e) => setPerSecond(e.currentTarget.value)} />}</Field>
        <button type="submit">Preview {what}</button>
      </form>
      <Trouble error={error} />
      <div aria-live="polite">
        {preview && preview.of === key ? <p><strong>{count(preview.matches)}</strong> dead letters{preview.done ? "" : ` so far: ${count(preview.scanned)} of ${count(preview.total)} looked at`}.{preview.done && kind === "redrive" && Number(perSecond) > 0 && preview.matches ? ` That takes about ${span(preview.matches / Number(perSecond))}.` : ""}</p> : null}
      </div>
      {kind === "delete"
        ? <button type="button" class="danger" disabled={!current?.matches} onClick={() => setAsking(true)}>Delete {current ? count(current.matches) : ""} for good</button>
        : <StartButton disabled={!current?.matches} start={start} onError={setError}>Redrive {current ? count(current.matches) : ""}</StartButton>}
      {asking && current ? (
        <Sure title={`Delete ${count(current.matches)} dead letters?`} name={nameOf(queue)} verb="Delete for good" run={start} onClose={() => setAsking(false)}>
          <p>They are gone then: nothing brings them back.</p>
        </Sure>
      ) : null}
    </Section>
  );
}

function StartButton({ disabled, start, onError, children }: { disabled: boolean; start: () => Promise<void>; onError: (err: Error | null) => void; children: ComponentChildren }) {
  const [busy, setBusy] = useState(false);
  return (
    <button type="button" class="main" disabled={disabled || busy} onClick={async () => {
      setBusy(true);
      onError(null);
      try {
        await start();
      } catch (err) {
        onError(err as Error);
      } finally {
        setBusy(false);
      }
    }}>{children}</button>
  );
}
