import { h, Fragment } from "preact";
import { post, useData } from "../api";
import { A, Act, Arn, Choice, Empty, Facts, Page, Pager, Progress, Shown, State, Table } from "../components";
import { place, refine } from "../router";
import { count, Safe, span, Time } from "../text";
import type { Job } from "../types";

const over = (j: Job) => j.state !== "running" && j.state !== "cancelling";

// JobPanel shows how far a job is, and stops it.
export function JobPanel({ id }: { id: string }) {
  const job = useData<Job>("job", { id }, 1000);
  return (
    <div class="job" role="group" aria-label="job">
      <Shown of={job}>
        {(j) => (
          <>
            <p><strong>{j.kind}</strong> <State of={j.state} /> {j.failed ? <>{count(j.failed)} failed. </> : null}{j.etaSeconds && !over(j) ? <>About {span(j.etaSeconds)} to go.</> : null}</p>
            <Progress done={over(j) && j.state === "completed" ? j.matched || j.done : j.done} of={over(j) && j.state === "completed" ? j.matched || j.done : Math.max(j.matched || j.total, j.done)} label={j.kind} />
            {j.error ? <p class="trouble"><Safe text={j.error} max={1000} /></p> : null}
            <div class="actions">
              {over(j) ? <button type="button" onClick={() => refine({ job: "" })}>Close</button> : <Act run={async () => { await post("job/cancel", { id }); job.reload(); return "The job stops; what is done stays done."; }}>Stop</Act>}
              <A page="job" params={{ id }}>Details</A>
            </div>
          </>
        )}
      </Shown>
    </div>
  );
}

export function JobPage() {
  const id = place.value.params.id ?? "";
  const job = useData<Job>("job", { id }, 1000);
  return (
    <Page what="Job" title={<Safe text={id} />}>
      <JobPanel id={id} />
      <Shown of={job}>
        {(j) => (
          <section aria-label="details">
            <Facts of={[
              ["kind", j.kind],
              ["of", <Arn arn={j.subscription ?? j.queue} />],
              ["to", j.to ? j.to.startsWith("arn:") ? <Arn arn={j.to} /> : j.to : null],
              ["where", j.where ? <code><Safe text={JSON.stringify(j.where)} max={2000} /></code> : "everything"],
              ["at most a second", j.perSecond ?? "as fast as it goes"],
              ["by", j.by ? <Safe text={j.by} /> : null],
              ["began", <Time at={j.createdAt} />],
              ["ended", j.finishedAt ? <Time at={j.finishedAt} /> : null],
              ["looked at", <>{count(j.scanned)} of {count(j.total)}</>],
            ]} />
          </section>
        )}
      </Shown>
    </Page>
  );
}

export function JobsPage() {
  const p = place.value.params;
  const jobs = useData<{ jobs: Job[]; next: string | null }>("jobs", { state: p.state, cursor: p.cursor, limit: 100 }, 2000);
  return (
    <Page title="Jobs">
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <Choice name="state" label="State" options={[["", "any"], ["running", "running"], ["completed", "completed"], ["cancelled", "cancelled"], ["failed", "failed"]]} />
      </form>
      <Shown of={jobs}>
        {(data) => data.jobs?.length ? (
          <>
            <Table caption="Jobs" rows={data.jobs} keyOf={(j) => j.id} columns={[
              { name: "job", cell: (j) => <A page="job" params={{ id: j.id }}>{j.kind}</A> },
              { name: "of", cell: (j) => <Arn arn={j.subscription ?? j.queue} short /> },
              { name: "state", cell: (j) => <State of={j.state} /> },
              { name: "done", number: true, cell: (j) => count(j.done) },
              { name: "failed", number: true, cell: (j) => count(j.failed) },
              { name: "by", cell: (j) => <Safe text={j.by} /> },
              { name: "began", cell: (j) => <Time at={j.createdAt} /> },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty><p>No jobs. They are begun in the <A page="dead-letters">dead-letter workbench</A>, and at a subscription.</p></Empty>}
      </Shown>
    </Page>
  );
}
