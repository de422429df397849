import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, useData } from "../api";
import { Act, Arn, Field, nameOf, Progress, Section, State, Sure, tell, Trouble } from "../components";
import { count, Safe, span, Time } from "../text";
import type { MessagePage, Redrive as Task } from "../types";

// Redrives are the message move tasks of SQS, which programs begin, and this page where the
// server has no jobs.
export function Redrives({ queue }: { queue: string }) {
  const redrives = useData<{ redrives: Task[] }>("redrives", { arn: queue }, 1000);
  const [first] = redrives.data?.redrives ?? [];
  if (!first) return null;
  const running = first.state === "running" || first.state === "cancelling";
  return (
    <Section title="Redrive of all">
      <div class="job">
        <p><State of={first.state} /> begun <Time at={first.startedAt} />{first.to ? <>, to <Arn arn={first.to} short /></> : ", each to where it came from"}{first.perSecond ? `, at most ${first.perSecond} a second` : ""}.</p>
        <Progress done={first.done} of={Math.max(first.total, first.done)} label="redriven" />
        {first.error ? <p class="trouble"><Safe text={first.error} max={1000} /></p> : null}
        {running ? <Act run={async () => { await post("redrive/cancel", { arn: queue, id: first.id }); redrives.reload(); return "It stops; what was moved stays moved."; }}>Stop</Act> : null}
      </div>
    </Section>
  );
}

interface Where {
  cause?: string;
  from?: string;
  search?: string;
}

interface Handled {
  done: number;
  results: { position: string; done: boolean; error: string | null }[];
}

const atOnce = 100; // positions in one call
const bound = 20_000; // positions that this page carries

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

// Redrive counts what it would move or delete, and then does that to those messages: never
// to more than were counted. All of a queue is moved by the server; a selection, or what a
// condition is true of, by this page, step by step.
export function Redrive({ queue, where, selected, onDone }: { queue: string; where: Where; selected: string[]; onDone: () => void }) {
  const [kind, setKind] = useState<"redrive" | "delete">("redrive");
  const [to, setTo] = useState("");
  const [other, setOther] = useState("");
  const [perSecond, setPerSecond] = useState("10");
  const [preview, setPreview] = useState<{ of: string; positions: string[] | null; matches: number; done: boolean } | null>(null);
  const [progress, setProgress] = useState<{ done: number; failed: number; of: number; over: boolean; error?: string } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [asking, setAsking] = useState(false);
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  const some = selected.length > 0;
  const narrowed = some || !!(where.cause || where.from || where.search);
  const all = !narrowed && kind === "redrive";
  const key = JSON.stringify([kind, selected]);
  const counted = preview?.of === key ? preview : null;
  const rate = Math.max(Math.floor(Number(perSecond)) || 1, 1);
  const busy = !!progress && !progress.over;

  const look = async () => {
    abort.current.abort();
    const mine = (abort.current = new AbortController());
    setError(null);
    setProgress(null);
    try {
      if (some) {
        setPreview({ of: key, positions: selected, matches: selected.length, done: true });
        return;
      }
      if (all) {
        const q = await get<{ messages: number }>("queue", { arn: queue }, mine.signal);
        setPreview({ of: key, positions: null, matches: q.messages, done: true });
        return;
      }
      const positions: string[] = [];
      let cursor: string | null = null;
      do {
        const page: MessagePage = await get<MessagePage>("messages", { arn: queue, ...where, cursor, limit: 100, bodyBytes: 0 }, mine.signal);
        positions.push(...(page.messages ?? []).map((m) => m.position));
        cursor = page.next;
        setPreview({ of: key, positions: [...positions], matches: positions.length, done: !cursor || positions.length >= bound });
      } while (cursor && positions.length < bound);
    } catch (err) {
      if (!mine.signal.aborted) setError(err as Error);
    }
  };

  const start = async () => {
    const target = to === "other" ? other.trim() : "";
    const positions = counted?.positions;
    if (!positions) {
      await post<Task>("redrive", { arn: queue, perSecond: Math.min(rate, 500), ...(target ? { to: target } : {}) });
      setPreview(null);
      tell("The server redrives them.");
      return;
    }
    const mine = (abort.current = new AbortController());
    const step = Math.min(rate, atOnce);
    let done = 0, failed = 0, why = "";
    setPreview(null);
    void (async () => {
      for (let at = 0; at < positions.length && !mine.signal.aborted; at += step) {
        const began = performance.now();
        try {
          const handled = await post<Handled>(kind === "redrive" ? "messages/redrive" : "messages/delete", {
            arn: queue, positions: positions.slice(at, at + step), ...(kind === "redrive" && target ? { to: target } : {}),
          });
          done += handled.done;
          for (const r of handled.results ?? []) {
            if (!r.done) {
              failed++;
              why = r.error ?? why;
            }
          }
        } catch (err) {
          failed += positions.length - at;
          why = (err as Error).message;
          at = positions.length;
        }
        setProgress({ done, failed, of: positions.length, over: false, error: why });
        if (at + step < positions.length) await wait(Math.max((step / rate) * 1000 - (performance.now() - began), 0));
      }
      setProgress({ done, failed, of: positions.length, over: true, error: why });
      onDone();
    })();
  };
  const run = async () => {
    try {
      setError(null);
      await start();
    } catch (err) {
      setError(err as Error);
    }
  };
  const what = some ? `the ${selected.length} selected` : where.cause ? "all of this cause" : where.search ? "all that match" : "all";
  const ready = !!counted?.done && counted.matches > 0 && !busy && (to !== "other" || !!other.trim());
  return (
    <Section title="Redrive or delete" hint={all ? "The server does it: it goes on when this page is closed, and after a restart." : "This page does it, step by step: keep it open until it is done. What is done stays done."}>
      <form class="filters" onSubmit={(e) => { e.preventDefault(); void look(); }}>
        <Field label="Do">{(id) => (
          <select id={id} value={kind} onChange={(e) => setKind(e.currentTarget.value as "redrive" | "delete")}>
            <option value="redrive">redrive</option><option value="delete">delete for good</option>
          </select>
        )}</Field>
        {kind === "redrive" ? (
          <Field label="To">{(id) => (
            <select id={id} value={to} onChange={(e) => setTo(e.currentTarget.value)}>
              <option value="">where each came from</option><option value="other">another queue</option>
            </select>
          )}</Field>
        ) : null}
        {kind === "redrive" && to === "other" ? <Field label="ARN of the queue">{(id) => <input id={id} value={other} required spellcheck={false} onInput={(e) => setOther(e.currentTarget.value)} />}</Field> : null}
        <Field label="At most a second">{(id) => <input id={id} type="number" min="1" max="500" value={perSecond} onInput={(e) => setPerSecond(e.currentTarget.value)} />}</Field>
        <button type="submit" disabled={busy}>Preview {what}</button>
      </form>
      <p class="hint">Where it came from is a queue, or the subscription, whose own endpoint is then tried anew.</p>
      <Trouble error={error} />
      <div aria-live="polite">
        {counted ? <p><strong>{count(counted.matches)}</strong> dead letters{counted.done ? counted.matches >= bound ? `, which is as many as this page does at once` : "" : " so far…"}.{counted.done && counted.matches ? ` That takes about ${span(Math.ceil(counted.matches / rate))}.` : ""}</p> : null}
        {progress ? (
          <div class="job">
            <p><State of={!progress.over ? "running" : progress.failed ? "failed" : progress.done < progress.of ? "cancelled" : "completed"} /> {progress.failed ? <>{count(progress.failed)} failed: <Safe text={progress.error} max={300} /></> : null}</p>
            <Progress done={progress.done} of={progress.of} label={kind === "redrive" ? "redriven" : "deleted"} />
            {progress.over ? null : <button type="button" onClick={() => abort.current.abort()}>Stop</button>}
          </div>
        ) : null}
      </div>
      {kind === "delete"
        ? <button type="button" class="danger" disabled={!ready} onClick={() => setAsking(true)}>Delete {counted ? count(counted.matches) : ""} for good</button>
        : <button type="button" class="main" disabled={!ready} onClick={run}>Redrive {counted ? count(counted.matches) : ""}</button>}
      {asking && counted ? (
        <Sure title={`Delete ${count(counted.matches)} dead letters?`} name={nameOf(queue)} verb="Delete for good" run={start} onClose={() => setAsking(false)}>
          <p>They are gone then: nothing brings them back.</p>
        </Sure>
      ) : null}
    </Section>
  );
}
