import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { post, useData, type Loaded } from "../api";
import { A, Act, Arn, Choice, Empty, Field, nameOf, Page, Progress, Section, Shown, State, Sure, Table, tell, Trouble } from "../components";
import { place } from "../router";
import { count, Safe, span, Time } from "../text";
import type { Job, JobKind } from "../types";

const verbs: Record<JobKind, [does: string, done: string, long: string]> = {
  redrive: ["Redrive", "redriven", "redrive"],
  delete: ["Delete", "deleted", "delete for good"],
  retry: ["Retry", "retried", "retry now"],
  drop: ["Give up", "given up", "give up for good"],
};

const runs = (job: Job) => job.state === "running" || job.state === "cancelling";

// stood is how a job stands: what was done to a part is no success.
const stood = (job: Job) => (job.state === "completed" && job.skipped ? "completed in part" : job.state);

// About says what a job is about.
function About({ job }: { job: Job }) {
  const w = job.where;
  const parts = [w.ids ? count(w.ids) + " selected" : "", w.cause ? "of the cause " + w.cause : "", w.from ? "from " + nameOf(w.from) : "", w.search ? "with " + w.search : "",
    w.since ? "since " + w.since : "", w.until ? "until " + w.until : ""].filter((p) => p);
  return <Safe text={parts.join(", ") || "all"} max={300} />;
}

function JobCard({ job, changed }: { job: Job; changed: () => void }) {
  const of = runs(job) ? Math.max(job.total, job.scanned) : job.matched;
  return (
    <div class="job">
      <p>
        <State of={stood(job)} /> <strong>{verbs[job.kind]?.[2] ?? job.kind}</strong>: <About job={job} />
        {job.to ? <>, to <Arn arn={job.to} short /></> : null}{job.perSecond ? `, at most ${count(job.perSecond)} a second` : ""}
        <span class="hint"> begun <Time at={job.createdAt} />{job.by ? <> by <Arn arn={job.by} short /></> : null}</span>
      </p>
      <Progress done={runs(job) ? job.scanned : job.done} of={of} label={runs(job) ? "looked at" : verbs[job.kind]?.[1] ?? "done"} />
      <p>
        {count(job.done)} {verbs[job.kind]?.[1]}{job.skipped ? `, ${count(job.skipped)} skipped` : ""}
        {runs(job) && job.etaSeconds !== null ? `, about ${span(job.etaSeconds)} to go` : ""}
      </p>
      {job.error ? <p class={job.state === "failed" ? "trouble" : "hint"}><Safe text={job.error} max={1000} /></p> : null}
      {job.state === "running" ? <Act run={async () => { await post("jobs/cancel", { id: job.id }); changed(); return "It stops; what is done stays done."; }}>Stop</Act> : null}
    </div>
  );
}

interface JobList {
  jobs: Job[];
}

// useJobs are the latest jobs, those of an ARN or in a state if one is given. Events tell of the
// latest of all.
function useJobs(limit: number, arn?: string, state?: string): Loaded<JobList> {
  return useData<JobList>("jobs", { arn, state, limit }, 2000, "jobs", (told, known) => {
    const fresh = new Set(told.jobs.map((j) => j.id));
    const fit = told.jobs.filter((j) => (!arn || j.arn === arn) && (!state || j.state === state));
    return { jobs: [...fit, ...(known?.jobs ?? []).filter((j) => !fresh.has(j.id))].slice(0, limit) };
  });
}

// became is what became of a job, in a line.
function became(job: Job): string {
  const did = `${count(job.done)} ${verbs[job.kind]?.[1] ?? "done"}${job.skipped ? `, ${count(job.skipped)} skipped` : ""}`;
  if (job.state === "failed") return `The job has failed: ${did}. ${job.error ?? ""}`;
  return `The job ${job.state === "cancelled" ? "was stopped" : "has ended"}: ${did}.`;
}

// Jobs shows the latest jobs on a queue or a subscription, and calls onDone with those that
// have ended since.
export function Jobs({ arn, onDone, version }: { arn: string; onDone: (ended: Job[]) => void; version: number }) {
  const jobs = useJobs(3, arn);
  const over = useRef<Set<string> | null>(null); // those that have ended, as far as is known; null: nothing is
  useEffect(() => {
    if (version) jobs.reload();
  }, [version]);
  useEffect(() => {
    if (!jobs.data) return;
    const now = (jobs.data.jobs ?? []).filter((j) => !runs(j));
    const ended = over.current ? now.filter((j) => !over.current!.has(j.id)) : []; // a short one is never seen to run
    over.current = new Set(now.map((j) => j.id));
    if (!ended.length) return;
    tell(ended.map(became).join(" "), ended.some((j) => j.state === "failed"));
    onDone(ended);
  }, [jobs.data]);
  if (jobs.error) return <Trouble error={jobs.error} />;
  if (!jobs.data?.jobs?.length) return null;
  return (
    <Section title="Jobs" hint="The server carries them out: they go on when this page is closed, and after a restart." actions={<A page="jobs">All jobs</A>}>
      {jobs.data.jobs.map((job) => <JobCard key={job.id} job={job} changed={jobs.reload} />)}
    </Section>
  );
}

export interface Where {
  cause?: string;
  from?: string;
  search?: string;
}

interface Preview {
  matches: number;
  scanned: number;
  total: number;
  sample: string[];
  next: string | null;
}

const mostSelected = 1000;

// Work has something done to all that meet a condition, or to what is selected, after it has
// counted what that is.
export function Work({ arn, kinds, thing, where = {}, selected = [], redirect, version, onStart }: {
  arn: string; kinds: JobKind[]; thing: string; where?: Where; selected?: string[]; redirect?: boolean; version?: number; onStart: (job: Job, ids: string[]) => void;
}) {
  const [kind, setKind] = useState(kinds[0]);
  const [to, setTo] = useState("");
  const [other, setOther] = useState("");
  const [cause, setCause] = useState("");
  const [perSecond, setPerSecond] = useState("10");
  const [preview, setPreview] = useState<{ of: string; matches: number; scanned: number; total: number; done: boolean } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [asking, setAsking] = useState<{ of: string; spec: object; ids: string[]; matches: number } | null>(null); // what is to be confirmed
  const form = useRef<HTMLFormElement>(null);
  const turn = useRef(0);
  useEffect(() => () => void turn.current++, []);
  const some = selected.length > 0;
  const deliveries = kinds.includes("retry");
  const spec = {
    kind, arn, ...(kind === "redrive" && to === "other" ? { to: other.trim() } : {}),
    where: some ? { ids: selected } : Object.fromEntries(Object.entries({ ...where, ...(deliveries ? { cause } : {}) }).filter(([, value]) => value)),
  };
  const key = JSON.stringify([spec, version]);
  const scope = JSON.stringify([kind, to, other, some || [where, cause]]); // what is selected may change while one confirms: what was counted is done
  const counted = preview?.of === key ? preview : null;
  const rate = Math.max(Math.floor(Number(perSecond)) || 1, 1);
  const what = some ? `the ${selected.length} selected` : where.cause || cause ? "all of this cause" : where.search ? "all that match" : "all";

  const look = async () => {
    const mine = ++turn.current;
    setError(null);
    let matches = 0, scanned = 0, cursor: string | null = null;
    try {
      do {
        const page: Preview = await post<Preview>("jobs/preview", { ...spec, ...(cursor ? { cursor } : {}) });
        if (mine !== turn.current) return;
        matches += page.matches;
        scanned += page.scanned;
        cursor = page.next;
        setPreview({ of: key, matches, scanned, total: page.total, done: !cursor });
      } while (cursor);
    } catch (err) {
      if (mine === turn.current) setError(err as Error);
    }
  };
  const start = async (what: object, ids: string[]) => {
    const job = await post<Job>("jobs", { ...what, perSecond: rate });
    setPreview(null);
    tell("The server does it.");
    onStart(job, ids);
  };
  // The button that began it cannot be pressed any more.
  const refocus = () => {
    if (document.activeElement === document.body || document.activeElement?.tagName === "BUTTON") form.current?.querySelector<HTMLElement>("button[type=submit]")?.focus();
  };
  const ready = !!counted?.done && counted.matches > 0 && (to !== "other" || !!other.trim()) && selected.length <= mostSelected;
  const [does, , long] = verbs[kind];
  const dangerous = kind === "delete" || kind === "drop";
  return (
    <Section title={kinds.map((k, i) => (i ? verbs[k][0].toLowerCase() : verbs[k][0])).join(" or ")} hint="The server does it: it goes on when this page is closed, and after a restart. What is done stays done.">
      <form ref={form} class="filters" onSubmit={(e) => { e.preventDefault(); void look(); }}>
        <Field label="Do">{(id) => (
          <select id={id} value={kind} onChange={(e) => setKind(e.currentTarget.value as JobKind)}>
            {kinds.map((k) => <option value={k}>{verbs[k][2]}</option>)}
          </select>
        )}</Field>
        {redirect && kind === "redrive" ? (
          <Field label="To">{(id) => (
            <select id={id} value={to} onChange={(e) => setTo(e.currentTarget.value)}>
              <option value="">where each came from</option><option value="other">another queue</option>
            </select>
          )}</Field>
        ) : null}
        {kind === "redrive" && to === "other" ? <Field label="ARN of the queue">{(id) => <input id={id} value={other} required spellcheck={false} onInput={(e) => setOther(e.currentTarget.value)} />}</Field> : null}
        {deliveries && !some ? <Field label="Last answer contains">{(id) => <input id={id} type="search" value={cause} autocomplete="off" onInput={(e) => setCause(e.currentTarget.value)} />}</Field> : null}
        <Field label="At most a second">{(id) => <input id={id} type="number" min="1" max="10000" value={perSecond} onInput={(e) => setPerSecond(e.currentTarget.value)} />}</Field>
        <button type="submit">Preview {what}</button>
      </form>
      {kinds.includes("redrive") ? <p class="hint">Where it came from is a queue, or the subscription, whose own endpoint is then tried anew.</p> : null}
      {selected.length > mostSelected ? <p class="trouble">At most {count(mostSelected)} can be selected: choose a cause or a search instead.</p> : null}
      <Trouble error={error} />
      <p aria-live="polite">
        {counted ? (
          <>
            <strong>{count(counted.matches)}</strong> {thing}{counted.done ? "" : ` so far; looked at ${count(counted.scanned)} of ${count(counted.total)}`}.
            {counted.done && counted.matches ? ` That takes about ${span(Math.ceil(counted.matches / rate))}.` : ""}
          </>
        ) : null}
      </p>
      {counted && !counted.done ? <button type="button" onClick={() => { turn.current++; setPreview(null); }}>Stop counting</button> : null}
      {dangerous
        ? <button type="button" class="danger" disabled={!ready} onClick={() => setAsking({ of: scope, spec, ids: selected, matches: counted!.matches })}>{does} {counted ? count(counted.matches) : ""} {kind === "delete" ? "for good" : ""}</button>
        : <Act kind="main" disabled={!ready} run={async () => { await start(spec, selected); refocus(); }}>{does} {counted ? count(counted.matches) : ""}</Act>}
      {asking?.of === scope ? (
        <Sure title={`${does} ${count(asking.matches)} ${thing}?`} name={nameOf(arn)} verb={long} run={() => start(asking.spec, asking.ids)}
          onClose={() => { setAsking(null); if (document.activeElement === document.body) refocus(); }}>
          <p>{kind === "delete" ? "They are gone then: nothing brings them back." : "They become dead letters, or are lost where there is no dead-letter queue."}{asking.ids.length ? "" : " That includes any that came since they were counted."}</p>
        </Sure>
      ) : null}
    </Section>
  );
}

export function JobsPage() {
  const p = place.value.params;
  const jobs = useJobs(200, p.arn, p.state);
  return (
    <Page title="Jobs">
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <Choice name="state" label="State" options={[["", "any"], ["running", "running"], ["completed", "completed"], ["cancelled", "cancelled"], ["failed", "failed"]]} />
        {p.arn ? <p>On <Arn arn={p.arn} short /> <A page="jobs">Show all</A></p> : null}
      </form>
      <Shown of={jobs}>
        {(data) => data.jobs?.length ? (
          <Table caption="Jobs" rows={data.jobs} keyOf={(j) => j.id} columns={[
            { name: "state", cell: (j) => <State of={stood(j)} /> },
            { name: "what", cell: (j) => <>{verbs[j.kind]?.[2] ?? j.kind}: <About job={j} />{j.error ? <p class="hint"><Safe text={j.error} max={300} /></p> : null}</> },
            { name: "on", cell: (j) => <Arn arn={j.arn} short /> },
            { name: "to", cell: (j) => (j.kind !== "redrive" ? null : j.to ? <Arn arn={j.to} short /> : "each its own") },
            { name: "looked at", number: true, cell: (j) => `${count(j.scanned)} of ${count(j.total)}` },
            { name: "done", number: true, cell: (j) => count(j.done) },
            { name: "skipped", number: true, cell: (j) => count(j.skipped) },
            { name: "begun", cell: (j) => <><Time at={j.createdAt} />{j.by ? <p class="hint">by <Arn arn={j.by} short /></p> : null}</> },
            { name: "commands", cell: (j) => (j.state === "running" ? <Act run={async () => { await post("jobs/cancel", { id: j.id }); jobs.reload(); return "It stops; what is done stays done."; }}>Stop</Act> : null) },
          ]} />
        ) : <Empty>{p.state || p.arn ? <p>No job is like that. <A page="jobs">Show all jobs.</A></p> : <p>There are no jobs. A dead-letter queue's workbench redrives or deletes; a subscription's page retries or gives up.</p>}</Empty>}
      </Shown>
    </Page>
  );
}
