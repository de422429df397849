import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, useData } from "../api";
import { A, Arn, Empty, Field, nameOf, Page, Pager, Section, Shown, Table, Trouble } from "../components";
import { place, refine } from "../router";
import { count, Safe, span, Time } from "../text";
import type { DeadGroup, MessagePage, Queue } from "../types";
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

// Listed is what is shown of the messages that a filter selects. It names its filter, so that
// nothing has to clear it when the filter changes: an effect that did ran a frame later, and
// could take away what had been asked for since.
interface Listed {
  of: string; // the filter
  page: MessagePage | null;
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
  const select = (positions: Iterable<string>) => setListed({ of: filter, page, error, selected: new Set(positions) });
  const turn = useRef(0); // of the looks: only the latest is answered
  const look = async (cursor?: string | null) => {
    const mine = ++turn.current;
    setListed({ of: filter, page, error: null, selected });
    const answer = (found: Partial<Listed>) => setListed((now) => (now.of === filter && mine === turn.current ? { ...now, ...found } : now));
    try {
      answer({ page: await get<MessagePage>("messages", { arn: queue, ...where, cursor, limit: 100 }) });
    } catch (err) {
      answer({ error: err as Error });
    }
  };
  const changed = () => {
    setListed(nothing(filter));
    groups.again();
  };
  return (
    <Page what="Dead-letter workbench" title={<Safe text={nameOf(queue)} />} actions={<><A class="button" page="queue" params={{ arn: queue }}>The queue</A><button type="button" onClick={changed}>Look again</button></>}>
      <Redrives queue={queue} />
      <Jobs arn={queue} version={version} onDone={changed} />
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
        {page ? (
          <>
            {page.messages?.length ? (
              <>
                <MessageList queue={queue} messages={page.messages} selected={selected} onSelect={(position, on) => {
                  const next = new Set(selected);
                  if (on) next.add(position);
                  else next.delete(position);
                  select(next);
                }} />
                <div class="actions">
                  <button type="button" onClick={() => select([...selected, ...page.messages.map((m) => m.position)])}>Select these {count(page.messages.length)}</button>
                  {selected.size ? <button type="button" onClick={() => select([])}>Select none</button> : null}
                  <button type="button" onClick={() => exportMessages(nameOf(queue), page.messages)}>Save as table</button>
                </div>
              </>
            ) : <Empty><p>{page.next ? "Nothing found so far." : "None is like that."}</p></Empty>}
            {page.next ? <button type="button" onClick={() => look(page.next)}>{page.messages?.length ? "Next page" : "Search on"}</button> : null}
          </>
        ) : null}
      </Section>
      <Work arn={queue} kinds={["redrive", "delete"]} thing="dead letters" where={where} selected={[...selected]} redirect version={version} onStart={() => setVersion(version + 1)} />
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
