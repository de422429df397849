import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, useData } from "../api";
import { A, Arn, Empty, Field, nameOf, Page, Pager, Section, Shown, Table, toHeading, Trouble } from "../components";
import { place, refine } from "../router";
import { count, Safe, span, Time } from "../text";
import type { DeadGroup, Job, MessagePage, Queue } from "../types";
import { exportMessages, MessageList } from "./queues";
import { Jobs, Work } from "./jobs";
import { Redrives } from "./redrive";

export function DeadLettersPage() {
  const queue = place.value.params.queue;
  return queue ? <Workbench key={queue} queue={queue} /> : <Choose />;
}

function Choose() {
  const p = place.value.params;
  const queues = useData<{ queues: Queue[]; next: string | null }>("queues", { kind: "dead-letter", sort: "name", cursor: p.cursor, limit: 100 });
  return (
    <Page title="Dead letters">
      <Shown of={queues}>
        {(data) => data.queues?.length ? (
          <>
            <Table caption="Dead-letter queues" rows={data.queues} keyOf={(q) => q.arn} columns={[
              { name: "queue", cell: (q) => <A page="dead-letters" params={{ queue: q.arn }}><Safe text={q.name} /></A> },
              { name: "dead letters", number: true, cell: (q) => count(q.messages) },
              { name: "oldest", number: true, cell: (q) => span(q.oldestAgeSeconds) },
              { name: "of", cell: (q) => q.deadLetterSources ? count(q.deadLetterSources) + (q.deadLetterSources === 1 ? " queue" : " queues") : "subscriptions" },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty><p>No queue takes the dead letters of another, or of a subscription. Give both a <em>RedrivePolicy</em>, so that what cannot be handled is not lost.</p></Empty>}
      </Shown>
    </Page>
  );
}

// keyOf tells groups apart.
const keyOf = (g: { from: string; cause: string }) => g.from + " " + g.cause;

interface Grouped {
  groups: DeadGroup[];
  scanned: number;
  total: number;
  done: boolean;
  error: Error | null;
}

// useGroups goes through all dead letters, page by page, and adds up what belongs together.
// It stops when the page is left.
function useGroups(queue: string): Grouped & { again: () => void } {
  const [state, setState] = useState<Grouped>({ groups: [], scanned: 0, total: 0, done: false, error: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const found = new Map<string, DeadGroup>();
    void (async () => {
      let cursor: string | null = null;
      let scanned = 0;
      try {
        do {
          const page: { groups: DeadGroup[]; scanned: number; total: number; next: string | null } = await get("dead-letters", { arn: queue, cursor }, abort.signal);
          for (const g of page.groups ?? []) {
            const known = found.get(keyOf(g));
            if (!known) {
              found.set(keyOf(g), { ...g });
              continue;
            }
            known.count += g.count;
            if (g.oldestAt && (!known.oldestAt || g.oldestAt < known.oldestAt)) known.oldestAt = g.oldestAt;
            if (g.newestAt && (!known.newestAt || g.newestAt > known.newestAt)) known.newestAt = g.newestAt;
          }
          scanned += page.scanned;
          cursor = page.next;
          const groups = [...found.values()].sort((a, b) => b.count - a.count);
          const total = page.total, done = !cursor;
          setState((old) => ({ groups: round && !done ? old.groups : groups, scanned, total, done, error: null })); // what was known stays until all is counted anew
        } while (cursor);
      } catch (err) {
        if (!abort.signal.aborted) setState((old) => ({ ...old, done: true, error: err as Error }));
      }
    })();
    return () => abort.abort();
  }, [queue, round]);
  return { ...state, again: () => setRound((n) => n + 1) };
}

// Listed is what is shown of the messages that a filter selects. It names its filter, so that
// nothing has to clear it when the filter changes: an effect that did ran a frame later, and
// could take away what had been asked for since.
interface Listed {
  of: string; // the filter
  page: MessagePage | null;
  cursor?: string | null; // where the page begins
  error: Error | null;
  selected: Set<string>; // positions
}

const nothing = (of: string): Listed => ({ of, page: null, error: null, selected: new Set() });

function Workbench({ queue }: { queue: string }) {
  const p = place.value.params;
  const groups = useGroups(queue);
  const where = { cause: p.cause, from: p.from, search: p.search };
  const filter = JSON.stringify(where);
  const [listed, setListed] = useState<Listed>(nothing(filter));
  const { page, error, selected } = listed.of === filter ? listed : nothing(filter);
  const [version, setVersion] = useState(0); // of the jobs
  const begun = useRef(new Map<string, string[]>()); // jobs begun here, with the positions that were selected
  const change = (by: (now: Listed) => Listed) => setListed((now) => by(now.of === filter ? now : nothing(filter)));
  const select = (positions: (selected: Set<string>) => Iterable<string>) => change((now) => ({ ...now, selected: new Set(positions(now.selected)) }));
  const turn = useRef(0); // of the looks: only the latest is answered
  const latest = useRef<{ of: string; cursor?: string | null } | null>(null); // what was looked at last
  const look = async (cursor?: string | null, again = false) => {
    const mine = ++turn.current;
    latest.current = { of: filter, cursor };
    change((now) => ({ ...now, error: null }));
    const answer = (found: (now: Listed) => Listed) => setListed((now) => (now.of === filter && mine === turn.current ? found(now) : now));
    try {
      let page = await get<MessagePage>("messages", { arn: queue, ...where, cursor, limit: 100 });
      if (again && cursor && !page.messages?.length && !page.next) page = await get<MessagePage>("messages", { arn: queue, ...where, cursor: (cursor = null), limit: 100 });
      answer((now) => ({ ...now, page, cursor, selected: again ? still(now, page, !cursor && !page.next) : now.selected }));
    } catch (err) {
      answer((now) => ({ ...now, error: err as Error }));
    }
  };
  const changed = () => {
    latest.current = null;
    turn.current++;
    setListed(nothing(filter));
    groups.again();
  };
  // Others are still selected when a job has ended, and what was listed is so as far as it is there.
  const ended = (jobs: Job[]) => {
    groups.again();
    const gone = new Set(jobs.flatMap((j) => (j.state === "completed" && !j.skipped ? begun.current.get(j.id) ?? [] : [])));
    if (gone.size) select((selected) => [...selected].filter((position) => !gone.has(position)));
    if (latest.current?.of === filter) void look(latest.current.cursor, true);
  };
  return (
    <Page what="Dead-letter workbench" title={<Safe text={nameOf(queue)} />} actions={<><A class="button" page="queue" params={{ arn: queue }}>The queue</A><button type="button" onClick={changed}>Look again</button></>}>
      <Redrives queue={queue} />
      <Jobs arn={queue} version={version} onDone={ended} />
      <Section title="Why they died" hint={groups.done ? <>{count(groups.scanned)} dead letters looked at. Looking changes nothing.</> : <span aria-busy="true">Looked at {count(groups.scanned)} of {count(groups.total)}…</span>}>
        <Trouble error={groups.error} />
        {groups.groups.length ? (
          <Table caption="Causes" rows={groups.groups} keyOf={keyOf} columns={[
            { name: "cause", cell: (g) => {
              const on = g.cause === p.cause && g.from === (p.from ?? "");
              return <button type="button" class="link" aria-pressed={on} onClick={() => refine(on ? { cause: "", from: "" } : { cause: g.cause, from: g.from })}><Safe text={g.cause || "not known"} max={300} /></button>;
            } },
            { name: "from", cell: (g) => <Arn arn={g.from} short /> },
            { name: "dead letters", number: true, cell: (g) => count(g.count) },
            { name: "oldest", cell: (g) => <Time at={g.oldestAt} /> },
            { name: "newest", cell: (g) => <Time at={g.newestAt} /> },
          ]} />
        ) : groups.done && !groups.error ? <Empty><p>No dead letters: everything was delivered, or redriven. <A page="dead-letters">Other dead-letter queues</A></p></Empty> : null}
      </Section>
      <Section title={p.cause ? "Dead letters of this cause" : "Dead letters"} actions={<button type="button" onClick={() => look()}>Show messages</button>}>
        {p.cause ? <p>Chosen: <strong><Safe text={p.cause} max={300} /></strong> <button type="button" class="link" onClick={() => refine({ cause: "", from: "" })}>Choose all causes</button></p> : null}
        <Search />
        <Trouble error={error} />
        <p class="hint" aria-live="polite">{page ? <>{count(page.messages?.length ?? 0)} shown{selected.size ? `, ${count(selected.size)} selected` : ""}</> : null}</p>
        {page ? (
          <>
            {page.messages?.length ? (
              <>
                <MessageList queue={queue} messages={page.messages} selected={selected} onSelect={(position, on) => select((selected) => (on ? [...selected, position] : [...selected].filter((other) => other !== position)))} />
                <div class="actions">
                  <button type="button" onClick={() => select((selected) => [...selected, ...page.messages.map((m) => m.position)])}>Select these {count(page.messages.length)}</button>
                  {selected.size ? <button type="button" onClick={(e) => { (e.currentTarget.previousElementSibling as HTMLElement).focus(); select(() => []); }}>Select none</button> : null}
                  <button type="button" onClick={() => exportMessages(nameOf(queue), page.messages)}>Save as table</button>
                </div>
              </>
            ) : <Empty><p>{page.next ? "Nothing found so far." : "None is like that."}</p></Empty>}
            {page.next ? <button type="button" onClick={(e) => { toHeading(e.currentTarget); void look(page.next); }}>{page.messages?.length ? "Next page" : "Search on"}</button> : null}
          </>
        ) : null}
      </Section>
      <Work arn={queue} kinds={["redrive", "delete"]} thing="dead letters" where={where} selected={[...selected]} redirect version={version} onStart={(job, ids) => { begun.current.set(job.id, ids); setVersion(version + 1); }} />
    </Page>
  );
}

// still are those selected that are there yet, as far as a newer page tells: what it has not of
// what was listed is gone, and where it has all, so is everything else.
function still({ page: old, selected }: Listed, page: MessagePage, all: boolean): Set<string> {
  const there = new Set((page.messages ?? []).map((m) => m.position));
  const gone = new Set((old?.messages ?? []).map((m) => m.position).filter((position) => !there.has(position)));
  return new Set([...selected].filter((position) => (all ? there.has(position) : !gone.has(position))));
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
