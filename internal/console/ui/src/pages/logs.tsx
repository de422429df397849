import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, useData, v1 } from "../api";
import { A, Arn, Empty, Field, Filter, Page, Pager, Section, Shown, State, Table, Trouble } from "../components";
import { place, refine } from "../router";
import { bytes, Safe, Time } from "../text";

export function LogsPage() {
  return place.value.params.group ? <Events group={place.value.params.group} /> : <Groups />;
}

function Groups() {
  const p = place.value.params;
  const groups = useData<{ groups: { name: string; bytes: number; retentionDays: number | null }[]; next: string | null }>("log-groups", { search: p.search, cursor: p.cursor }, 10_000);
  return (
    <Page title="Logs">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Name contains" /></form>
      <Shown of={groups}>
        {(data) => data.groups?.length ? (
          <>
            <Table caption="Log groups" rows={data.groups} keyOf={(g) => g.name} columns={[
              { name: "log group", cell: (g) => <A page="logs" params={{ group: g.name }}><Safe text={g.name} /></A> },
              { name: "kept", number: true, cell: (g) => bytes(g.bytes) },
              { name: "for", number: true, cell: (g) => (g.retentionDays ? g.retentionDays + " d" : "ever") },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty><p>{p.search ? "No log group is called like that." : "There are no log groups. Functions write to theirs when they run; deliveries do where a topic has feedback roles."}</p></Empty>}
      </Shown>
    </Page>
  );
}

interface Line {
  at: string;
  stream: string;
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
      const page = await get<{ events: Line[]; next: string | null }>("log-events", { group, search: p.search, stream: p.stream, cursor, limit: 200 });
      setLines((old) => (cursor && old ? [...old, ...(page.events ?? [])] : page.events ?? []));
      setNext(page.next);
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
          <Table caption="Events" rows={lines} keyOf={(l) => l.at + l.stream + l.message} columns={[
            { name: "at", cell: (l) => <Time at={l.at} /> },
            { name: "message", cell: (l) => <code class="log"><Safe text={l.message} max={8000} /></code> },
            { name: "stream", cell: (l) => <button type="button" class="link" onClick={() => refine({ stream: p.stream ? "" : l.stream })}><Safe text={l.stream} max={40} /></button> },
          ]} />
        </>
      ) : <Empty><p>{next ? "Nothing found so far." : "Nothing is logged here that is like that."}</p></Empty> : null}
      {next ? <button type="button" onClick={() => load(next)}>Read on</button> : null}
    </Page>
  );
}

interface Happening {
  key: number;
  kind: string;
  data: Record<string, unknown>;
}

const kept = 300;

// TailPage shows what happens while it happens.
export function TailPage() {
  const [paused, setPaused] = useState(false);
  const [kinds, setKinds] = useState<Set<string>>(new Set(["publish", "delivery", "job"]));
  const [seen, setSeen] = useState<Happening[]>([]);
  const [open, setOpen] = useState(false);
  const serial = useRef(0);
  const list = [...kinds].sort().join(",");
  useEffect(() => {
    if (paused || !list) return;
    const source = new EventSource(v1 + "events?" + new URLSearchParams({ kinds: list }));
    source.onopen = () => setOpen(true);
    source.onerror = () => setOpen(false);
    let waiting: Happening[] = [];
    let frame = 0;
    const show = () => {
      frame = 0;
      const fresh = waiting.reverse();
      waiting = [];
      setSeen((old) => [...fresh, ...old].slice(0, kept));
    };
    for (const kind of list.split(",")) {
      source.addEventListener(kind, (e: MessageEvent<string>) => {
        try {
          waiting.push({ key: ++serial.current, kind, data: JSON.parse(e.data) as Record<string, unknown> });
        } catch {
          return;
        }
        if (waiting.length > kept) waiting.shift();
        if (!frame) frame = requestAnimationFrame(show);
      });
    }
    return () => {
      source.close();
      cancelAnimationFrame(frame);
      setOpen(false);
    };
  }, [paused, list]);
  const toggle = (kind: string) => {
    const next = new Set(kinds);
    if (!next.delete(kind)) next.add(kind);
    setKinds(next);
  };
  return (
    <Page title="Live tail" actions={<><button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>{paused ? "Go on" : "Hold"}</button><button type="button" onClick={() => setSeen([])}>Clear</button></>}>
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        {[["publish", "publishes"], ["delivery", "attempts"], ["job", "jobs"]].map(([kind, name]) => <label class="check" key={kind}><input type="checkbox" checked={kinds.has(kind)} onChange={() => toggle(kind)} /> {name}</label>)}
        <span class="hint" role="status">{paused ? "held" : open ? "connected" : "connecting…"}</span>
      </form>
      <Section title="What happens">
        {seen.length ? (
          <Table caption="What happens" rows={seen} keyOf={(s) => String(s.key)} columns={[
            { name: "what", cell: (s) => s.kind },
            { name: "of", cell: (s) => <Arn arn={String(s.data.subscription ?? s.data.topic ?? s.data.arn ?? s.data.queue ?? "")} short /> },
            { name: "outcome", cell: (s) => <State of={s.data.outcome || s.data.state ? String(s.data.outcome ?? s.data.state) : ""} /> },
            { name: "more", cell: (s) => <code><Safe text={JSON.stringify(s.data)} max={400} /></code> },
          ]} />
        ) : <Empty><p>Nothing yet. Publish a message, and it appears here.</p></Empty>}
      </Section>
    </Page>
  );
}
