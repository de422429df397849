import { h, Fragment } from "preact";
import { useData } from "../api";
import { A, Arn, Choice, Empty, Facts, Filter, List, Named, nameOf, Page, Pager, Section, Shown, State, Table } from "../components";
import { place } from "../router";
import { Safe, span, Time } from "../text";
import { Plots } from "./metrics";

interface Alarm {
  arn: string;
  name: string;
  description: string;
  state: string;
  reason: string;
  since: string;
  namespace: string;
  metric: string;
  dimensions: { name: string; value: string }[];
  statistic: string;
  expression: string;
  queries: { id: string; label: string; expression: string; namespace: string; metric: string; dimensions: { name: string; value: string }[]; statistic: string }[];
  periodSeconds: number;
  periods: number;
  datapoints: number;
  comparison: string;
  threshold: number;
  missing: string;
  rule: string;
  suppressed: string;
  actionsEnabled: boolean;
}

interface AlarmDetail extends Alarm {
  configuredAt: string;
  alarmActions: string[];
  okActions: string[];
  insufficientDataActions: string[];
  tags: Record<string, string>;
  history: { at: string; kind: string; summary: string }[];
}

const signs: Record<string, string> = {
  GreaterThanThreshold: ">", GreaterThanOrEqualToThreshold: "≥", LessThanThreshold: "<", LessThanOrEqualToThreshold: "≤",
};

export function AlarmsPage() {
  const p = place.value.params;
  const alarms = useData<{ alarms: Alarm[]; next: string | null }>("alarms", { state: p.state, search: p.search, cursor: p.cursor, limit: 100 }, 5000);
  return (
    <Page title="Alarms">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Filter name="search" label="Name contains" />
        <Choice name="state" label="State" options={[["", "any"], ["ALARM", "ALARM"], ["OK", "OK"], ["INSUFFICIENT_DATA", "INSUFFICIENT_DATA"]]} />
      </form>
      <Shown of={alarms}>
        {(data) => data.alarms?.length ? (
          <>
            <Table caption="Alarms" rows={data.alarms} keyOf={(a) => a.arn} columns={[
              { name: "name", cell: (a) => <Arn arn={a.arn} short /> },
              { name: "state", cell: (a) => <State of={a.state} /> },
              { name: "since", cell: (a) => <Time at={a.since} /> },
              { name: "metric", cell: (a) => <Safe text={a.metric ? `${a.namespace} ${a.metric}` : a.expression || a.rule || "–"} max={200} /> },
              { name: "threshold", number: true, cell: (a) => (a.rule ? "" : `${signs[a.comparison] ?? ""} ${a.threshold}`) },
              { name: "why", cell: (a) => <Safe text={a.reason} max={300} /> },
              { name: "actions", cell: (a) => (!a.actionsEnabled ? "off" : a.suppressed ? "suppressed" : "on") },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty>{p.state || p.search ? <p>No alarm is like that. <A page="alarms">Show all alarms.</A></p> : <p>There are no alarms. An alarm on ApproximateAgeOfOldestMessage tells when a queue falls behind: <code>aws cloudwatch put-metric-alarm</code>.</p>}</Empty>}
      </Shown>
    </Page>
  );
}

export function AlarmPage() {
  const arn = place.value.params.arn ?? "";
  const alarm = useData<AlarmDetail>("alarm", { arn }, 5000);
  const a = alarm.data;
  return (
    <Page what="Alarm" title={<Safe text={nameOf(arn)} />} actions={<A class="button" page="alarms">All alarms</A>}>
      <Shown of={alarm}>
        {(a) => (
          <>
            <Section title="State">
              <Facts of={[
                ["state", <State of={a.state} />],
                ["since", <Time at={a.since} />],
                ["why", <Safe text={a.reason} max={2000} />],
              ]} />
            </Section>
            <Section title="About">
              <Facts of={[
                ["ARN", <Safe text={a.arn} />],
                ["description", a.description ? <Safe text={a.description} max={2000} /> : null],
                ["metric", a.metric ? <Safe text={`${a.namespace} ${a.metric}`} /> : null],
                ["expression", a.expression ? <Safe text={a.expression} max={2048} /> : null],
                ["rule", a.rule ? <Safe text={a.rule} max={10240} /> : null],
                ["of", a.dimensions?.length ? <Safe text={a.dimensions.map((d) => d.name + "=" + d.value).join(", ")} /> : null],
                ["condition", a.rule ? null : <Safe text={`${a.expression ? "its value" : a.statistic} ${signs[a.comparison] ?? a.comparison} ${a.threshold} in ${a.datapoints} of ${a.periods} periods of ${span(a.periodSeconds)}`} />],
                ["without data", a.missing || null],
                ["changed", <Time at={a.configuredAt} />],
                ["actions", !a.actionsEnabled ? "off: nobody is told" : a.suppressed ? `suppressed by ${a.suppressed}: nobody is told` : "on"],
                ["when ALARM", a.alarmActions?.length ? <List arns={a.alarmActions} /> : null],
                ["when OK", a.okActions?.length ? <List arns={a.okActions} /> : null],
                ["without data", a.insufficientDataActions?.length ? <List arns={a.insufficientDataActions} /> : null],
              ]} />
              {a.expression ? (
                <Table caption="Queries" rows={a.queries} keyOf={(q) => q.id} columns={[
                  { name: "id", cell: (q) => q.id },
                  { name: "what", cell: (q) => <Safe text={q.expression || `${q.statistic} of ${q.namespace} ${q.metric}`} max={2048} /> },
                  { name: "of", cell: (q) => <Safe text={q.dimensions.map((d) => d.name + "=" + d.value).join(", ")} max={500} /> },
                  { name: "label", cell: (q) => <Safe text={q.label} max={200} /> },
                ]} />
              ) : null}
              <Named of={a.tags} title="Tags" />
            </Section>
          </>
        )}
      </Shown>
      {a && !a.rule ? <Plots arn={arn} hours="3" threshold={a.threshold} /> : null}
      {a ? (
        <Section title="What became of it">
          {a.history?.length ? (
            <Table caption="History" rows={a.history} keyOf={(e) => e.at + e.kind + e.summary} columns={[
              { name: "at", cell: (e) => <Time at={e.at} /> },
              { name: "kind", cell: (e) => e.kind },
              { name: "what", cell: (e) => <Safe text={e.summary} max={500} /> },
            ]} />
          ) : <Empty><p>Nothing has happened to it yet.</p></Empty>}
        </Section>
      ) : null}
    </Page>
  );
}
