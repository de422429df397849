import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, useData } from "../api";
import { A, Empty, exportTable, Field, Filter, Named, nameOf, Page, Pager, Shown, Table, Trouble } from "../components";
import { place, refine } from "../router";
import { bytes, Safe, Time } from "../text";

export interface Group {
  arn: string;
  name: string;
  createdAt: string;
  storedBytes: number;
  retentionDays: number | null;
  tags: Record<string, string>;
}

export interface Line {
  id: string;
  at: string;
  stream: string;
  message: string;
}

export interface Lines {
  events: Line[];
  next: string | null;
}

export function LogsPage() {
  const { arn } = place.value.params;
  return arn ? <Events arn={arn} /> : <Groups />;
}

function Groups() {
  const p = place.value.params;
  const groups = useData<{ groups: Group[]; next: string | null }>("log-groups", { search: p.search, cursor: p.cursor, limit: 100 }, 10_000);
  return (
    <Page title="Logs">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Name contains" /></form>
      <Shown of={groups}>
        {(data) => data.groups?.length ? (
          <>
            <Table caption="Log groups" rows={data.groups} keyOf={(g) => g.arn} columns={[
              { name: "log group", cell: (g) => <A page="logs" params={{ arn: g.arn }}><Safe text={g.name} /></A> },
              { name: "size", number: true, cell: (g) => bytes(g.storedBytes) },
              { name: "kept for", number: true, cell: (g) => (g.retentionDays ? g.retentionDays + " d" : "ever") },
              { name: "since", cell: (g) => <Time at={g.createdAt} /> },
              { name: "tags", cell: (g) => <Named of={g.tags} title="Tags" /> },
              { name: "follow", cell: (g) => <A page="tail" params={{ arn: g.arn }} label={"live tail of " + g.name}>live</A> },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty>{p.search ? <p>No log group is called like that. <A page="logs">Show all log groups.</A></p> : <p>There are no log groups. Functions write to theirs when they run; deliveries do where a topic has feedback roles.</p>}</Empty>}
      </Shown>
    </Page>
  );
}

// pattern looks for a text as it is written.
export const pattern = (text: string | undefined) => (text ? '"' + text.replace(/["\\]/g, "\\$&") + '"' : undefined);

// moment is a time as the API takes it, from one of the reader's own zone.
const moment = (text: string | undefined) => {
  const at = text ? new Date(text) : null;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined;
};

function Events({ arn }: { arn: string }) {
  const p = place.value.params;
  const [text, setText] = useState(p.search ?? "");
  const [from, setFrom] = useState(p.from ?? "");
  const [lines, setLines] = useState<Line[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const turn = useRef(0); // of the questions: only the latest is answered
  const load = async (cursor: string | null) => {
    const mine = ++turn.current;
    try {
      setError(null);
      const page = await get<Lines>("log-events", { arn, pattern: pattern(p.search), stream: p.stream, from: moment(p.from), cursor, limit: 200 });
      if (mine !== turn.current) return;
      setLines((old) => (cursor && old ? [...old, ...(page.events ?? [])] : page.events ?? []));
      setNext(page.next ?? null);
    } catch (err) {
      if (mine === turn.current) setError(err as Error);
    }
  };
  useEffect(() => {
    setLines(null); // they are of another filter, as is where they go on
    setNext(null);
    void load(null);
  }, [arn, p.search, p.stream, p.from]);
  const submit = (e: Event) => {
    e.preventDefault();
    if (text === (p.search ?? "") && from === (p.from ?? "")) void load(null);
    else refine({ search: text, from });
  };
  return (
    <Page what="Log group" title={<Safe text={nameOf(arn.replace(/:\*$/, ""))} />} actions={
      <>
        <A class="button" page="tail" params={{ arn, search: p.search, stream: p.stream }}>Follow live</A>
        <A class="button" page="logs">All log groups</A>
      </>
    }>
      <form class="filters" role="search" onSubmit={submit}>
        <Field label="Contains">{(id) => <input id={id} type="search" value={text} autocomplete="off" onInput={(e) => setText(e.currentTarget.value)} />}</Field>
        <Field label="Not before">{(id) => <input id={id} type="datetime-local" value={from} onInput={(e) => setFrom(e.currentTarget.value)} />}</Field>
        <button type="submit">Search</button>
      </form>
      {p.stream ? <p class="hint">Only of <Safe text={p.stream} />. <button type="button" class="link" onClick={() => refine({ stream: "" })}>Show all streams</button></p> : null}
      <Trouble error={error} />
      {lines ? lines.length ? (
        <>
          <LineTable lines={lines} />
          <div class="actions"><button type="button" onClick={() => exportTable(nameOf(arn), ["at", "stream", "message"], lines.map((l) => [l.at, l.stream, l.message]))}>Save as table</button></div>
        </>
      ) : <Empty><p>{next ? "Nothing found so far." : "Nothing is logged here that is like that."}</p></Empty> : error ? null : <p class="hint" aria-busy="true">Loading…</p>}
      {next ? <button type="button" onClick={() => load(next)}>Read on</button> : null}
    </Page>
  );
}

export function LineTable({ lines }: { lines: Line[] }) {
  return (
    <Table caption="Events" rows={lines} keyOf={(l) => l.id} columns={[
      { name: "at", cell: (l) => <Time at={l.at} /> },
      { name: "message", cell: (l) => <code class="log"><Safe text={l.message} max={8000} /></code> },
      { name: "stream", cell: (l) => <button type="button" class="link" onClick={() => refine({ stream: l.stream })}><Safe text={l.stream} max={40} /></button> },
    ]} />
  );
}
