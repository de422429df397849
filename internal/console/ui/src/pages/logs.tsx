import { h, Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, useCalls } from "../aws";
import { A, Empty, Field, Filter, Page, Pager, Shown, Table, Trouble } from "../components";
import { place, refine } from "../router";
import { bytes, Safe, Time } from "../text";

export function LogsPage() {
  return place.value.params.group ? <Events group={place.value.params.group} /> : <Groups />;
}

function Groups() {
  const p = place.value.params;
  const groups = useCalls<{ logGroups?: { logGroupName: string; storedBytes?: number; retentionInDays?: number }[]; nextToken?: string }>(`${p.search} ${p.cursor}`, () => call("logs", "DescribeLogGroups", {
    limit: 50, ...(p.search ? { logGroupNamePattern: p.search } : {}), ...(p.cursor ? { nextToken: p.cursor } : {}),
  }), 10_000);
  return (
    <Page title="Logs">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Name contains" /></form>
      <Shown of={groups}>
        {(data) => data.logGroups?.length ? (
          <>
            <Table caption="Log groups" rows={data.logGroups} keyOf={(g) => g.logGroupName} columns={[
              { name: "log group", cell: (g) => <A page="logs" params={{ group: g.logGroupName }}><Safe text={g.logGroupName} /></A> },
              { name: "kept", number: true, cell: (g) => bytes(g.storedBytes) },
              { name: "for", number: true, cell: (g) => (g.retentionInDays ? g.retentionInDays + " d" : "ever") },
            ]} />
            <Pager next={data.nextToken} />
          </>
        ) : <Empty><p>{p.search ? "No log group is called like that." : "There are no log groups. Functions write to theirs when they run; deliveries do where a topic has feedback roles."}</p></Empty>}
      </Shown>
    </Page>
  );
}

interface Line {
  eventId: string;
  timestamp: number;
  logStreamName: string;
  message: string;
}

function Events({ group }: { group: string }) {
  const p = place.value.params;
  const [text, setText] = useState(p.search ?? "");
  const [lines, setLines] = useState<Line[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const load = async (cursor: string | null) => {
    try {
      setError(null);
      const page = await call<{ events?: Line[]; nextToken?: string }>("logs", "FilterLogEvents", {
        logGroupName: group, limit: 200, ...(p.search ? { filterPattern: JSON.stringify(p.search) } : {}), ...(p.stream ? { logStreamNames: [p.stream] } : {}), ...(cursor ? { nextToken: cursor } : {}),
      });
      setLines((old) => (cursor && old ? [...old, ...(page.events ?? [])] : page.events ?? []));
      setNext(page.nextToken ?? null);
    } catch (err) {
      setError(err as Error);
    }
  };
  useEffect(() => void load(null), [group, p.search, p.stream]);
  return (
    <Page what="Log group" title={<Safe text={group} />} actions={<A class="button" page="logs">All log groups</A>}>
      <form class="filters" role="search" onSubmit={(e) => { e.preventDefault(); if (text === (p.search ?? "")) void load(null); else refine({ search: text }); }}>
        <Field label="Contains">{(id) => <input id={id} type="search" value={text} autocomplete="off" onInput={(e) => setText(e.currentTarget.value)} />}</Field>
        <button type="submit">Search</button>
      </form>
      <Trouble error={error} />
      {lines ? lines.length ? (
        <>
          <Table caption="Events" rows={lines} keyOf={(l) => l.eventId} columns={[
            { name: "at", cell: (l) => <Time at={new Date(l.timestamp).toISOString()} /> },
            { name: "message", cell: (l) => <code class="log"><Safe text={l.message} max={8000} /></code> },
            { name: "stream", cell: (l) => <button type="button" class="link" onClick={() => refine({ stream: p.stream ? "" : l.logStreamName })}><Safe text={l.logStreamName} max={40} /></button> },
          ]} />
        </>
      ) : <Empty><p>{next ? "Nothing found so far." : "Nothing is logged here that is like that."}</p></Empty> : null}
      {next ? <button type="button" onClick={() => load(next)}>Read on</button> : null}
    </Page>
  );
}
