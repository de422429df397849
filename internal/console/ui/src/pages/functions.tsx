import { h, Fragment } from "preact";
import { has, useData } from "../api";
import { A, Arn, Empty, Facts, Filter, Named, nameOf, Page, Pager, Section, Shown, State, Table, Tiles } from "../components";
import { place } from "../router";
import { count, Safe, span, Time } from "../text";
import type { Fn } from "../types";

export function FunctionsPage() {
  const p = place.value.params;
  const functions = useData<{ functions: Fn[]; next: string | null }>("functions", { search: p.search, cursor: p.cursor, limit: 100 });
  return (
    <Page title="Functions">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}><Filter name="search" label="Name contains" /></form>
      <Shown of={functions}>
        {(data) => data.functions?.length ? (
          <>
            <Table caption="Functions" rows={data.functions} keyOf={(f) => f.arn} columns={[
              { name: "name", cell: (f) => <Arn arn={f.arn} short /> },
              { name: "runtime", cell: (f) => <Safe text={f.runtime} /> },
              { name: "state", cell: (f) => <State of={f.state} /> },
              { name: "events that wait", number: true, cell: (f) => count(f.events) },
              { name: "in flight", number: true, cell: (f) => count(f.inFlight) },
              { name: "memory", number: true, cell: (f) => f.memoryMB + " MB" },
              { name: "timeout", number: true, cell: (f) => span(f.timeoutSeconds) },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty>{p.search ? <p>No function is called like that. <A page="functions">Show all functions.</A></p> : <p>There are no functions. Make one with <code>aws lambda create-function</code>.</p>}</Empty>}
      </Shown>
    </Page>
  );
}

interface FnDetail extends Fn {
  handler?: string;
  role?: string;
  description?: string;
  environment?: string[];
  tags?: Record<string, string>;
  versions?: number;
  aliases?: { name: string; version: string }[];
  sources?: { id: string; source: string; state: string; batchSize: number }[];
  logGroup?: string;
  deadLetter?: string | null;
  onFailure?: string | null;
  onSuccess?: string | null;
}

// logsOf is the ARN of a function's log group.
function logsOf(arn: string, group: string | undefined): string {
  const [, partition, , region, account] = arn.split(":");
  return ["arn", partition, "logs", region, account, "log-group", group || "/aws/lambda/" + nameOf(arn)].join(":");
}

export function FunctionPage() {
  const arn = place.value.params.arn ?? "";
  const fn = useData<FnDetail>("function", { arn }, 2000);
  return (
    <Page what="Function" title={<Safe text={nameOf(arn)} />} actions={
      <>
        {has("log-events") ? <A class="button" page="logs" params={{ arn: logsOf(arn, fn.data?.logGroup) }}>Logs</A> : null}
        {has("metrics") ? <A class="button" page="metrics" params={{ arn }}>Metrics</A> : null}
        <A class="button" page="topology" params={{ root: arn }}>Topology</A>
      </>
    }>
      <Shown of={fn}>
        {(f) => (
          <>
            <Tiles of={[["events that wait", count(f.events)], ["due", count(f.due)], ["waiting", count(f.waiting)], ["in flight", count(f.inFlight)], ["oldest", span(f.oldestAgeSeconds)]]} />
            <Section title="About">
              <Facts of={[
                ["ARN", <Safe text={f.arn} />],
                ["state", <State of={f.state} />],
                ["description", f.description ? <Safe text={f.description} /> : null],
                ["runtime", f.runtime ? <Safe text={f.runtime} /> : "none: it runs elsewhere, and is called by HTTP"],
                ["handler", f.handler ? <Safe text={f.handler} /> : null],
                ["role", f.role ? <Arn arn={f.role} /> : null],
                ["memory", f.memoryMB + " MB"],
                ["timeout", span(f.timeoutSeconds)],
                ["reserved concurrency", f.reserved ?? null],
                ["versions", f.versions ?? null],
                ["aliases", f.aliases?.length ? f.aliases.map((a) => `${a.name} → ${a.version}`).join(", ") : null],
                ["environment", f.environment?.length ? <Safe text={f.environment.join(", ")} /> : null],
                ["changed", <Time at={f.modifiedAt} />],
                ["dead letters go to", f.deadLetter ? <Arn arn={f.deadLetter} /> : null],
                ["on failure", f.onFailure ? <Arn arn={f.onFailure} /> : null],
                ["on success", f.onSuccess ? <Arn arn={f.onSuccess} /> : null],
              ]} />
              <Named of={f.tags} title="Tags" />
            </Section>
            <Section title="Reads from">
              {f.sources?.length ? (
                <Table caption="Event sources" rows={f.sources} keyOf={(m) => m.id} columns={[
                  { name: "source", cell: (m) => <Arn arn={m.source} short /> },
                  { name: "state", cell: (m) => <State of={m.state} /> },
                  { name: "batch", number: true, cell: (m) => count(m.batchSize) },
                ]} />
              ) : <Empty><p>No queue: it runs when it is invoked, or when a topic delivers to it.</p></Empty>}
            </Section>
          </>
        )}
      </Shown>
    </Page>
  );
}
