import { h, Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { get } from "../api";
import { call, useCalls } from "../aws";
import { A, Arn, Choice, Empty, Page, Pager, Section, Shown, State, Table } from "../components";
import { place } from "../router";
import { clock, Safe, Time } from "../text";

interface Series {
  name: string;
  from: number; // what is asked for, in epoch seconds
  to: number;
  unit: string;
  points: [at: number, value: number][];
}

// dimension is what the metrics of a resource are kept by.
function dimension(arn: string): { namespace: string; name: string; value: string } | null {
  const part = arn.split(":");
  switch (part[2]) {
    case "sqs": return { namespace: "AWS/SQS", name: "QueueName", value: part[5] };
    case "sns": return { namespace: "AWS/SNS", name: "TopicName", value: part[5] }; // of a subscription, too
    case "lambda": return { namespace: "AWS/Lambda", name: "FunctionName", value: part[6] };
    default: return null;
  }
}

// stat is how values of a metric are put together.
function stat(metric: string): string {
  if (/^Approximate|Concurrent|Age/.test(metric)) return "Maximum";
  return /Size|Duration|Latency/.test(metric) ? "Average" : "Sum";
}

interface Metric {
  Namespace: string;
  MetricName: string;
  Dimensions: { Name: string; Value: string }[];
}

async function load(arn: string, hours: number): Promise<Series[]> {
  const of = dimension(arn);
  if (!of) return [];
  const { Metrics } = await call<{ Metrics: Metric[] }>("monitoring", "ListMetrics", { Namespace: of.namespace, Dimensions: [{ Name: of.name, Value: of.value }] }, arn);
  const found = (Metrics ?? []).filter((m) => m.Dimensions.length === 1).slice(0, 20);
  if (found.length === 0) return [];
  const { now } = await get<{ now: string }>("/_godwit/clock");
  const end = Math.ceil(Date.parse(now) / 60_000) * 60;
  const { MetricDataResults } = await call<{ MetricDataResults: { Id: string; Timestamps: number[]; Values: number[] }[] }>("monitoring", "GetMetricData", {
    StartTime: end - hours * 3600, EndTime: end, ScanBy: "TimestampAscending",
    MetricDataQueries: found.map((m, i) => ({ Id: "m" + i, MetricStat: { Metric: m, Period: hours > 24 ? 3600 : hours > 3 ? 300 : 60, Stat: stat(m.MetricName) } })),
  }, arn);
  return (MetricDataResults ?? []).map((r) => {
    const name = found[Number(r.Id.slice(1))].MetricName;
    return { name, from: end - hours * 3600, to: end, unit: stat(name).toLowerCase(), points: (r.Timestamps ?? []).map((t, i): [number, number] => [t, r.Values[i]]) };
  });
}

export function MetricsPage() {
  const p = place.value.params;
  const hours = Number(p.hours) || 1;
  const metrics = useCalls<Series[]>((p.arn ?? "") + " " + hours, () => load(p.arn ?? "", hours), 15_000);
  return (
    <Page title="Metrics">
      {p.arn ? (
        <>
          <form class="filters" onSubmit={(e) => e.preventDefault()}>
            <p>Of <Arn arn={p.arn} /></p>
            <Choice name="hours" label="Of the last" options={[["", "hour"], ["3", "3 hours"], ["24", "day"], ["168", "week"]]} />
          </form>
          <Shown of={metrics}>
            {(all) => {
              const some = all.filter((s) => s.points.length);
              return some.length ? some.map((s) => (
                <Section title={s.name} key={s.name}>
                  <Plot of={s} />
                  <details>
                    <summary>As a table</summary>
                    <Table caption={s.name} rows={s.points.slice(-60).reverse()} keyOf={(x) => String(x[0])} columns={[
                      { name: "at", cell: (x) => <Time at={new Date(x[0] * 1000).toISOString()} /> },
                      { name: s.unit || "value", number: true, cell: (x) => x[1].toLocaleString("en-US") },
                    ]} />
                  </details>
                </Section>
              )) : <Empty><p>Nothing was measured in this time. What happens shows up within a minute or two.</p></Empty>;
            }}
          </Shown>
        </>
      ) : (
        <Empty><p>Choose what to look at: a <A page="queues">queue</A>, a <A page="topics">topic</A>, a <A page="subscriptions">subscription</A> or a <A page="functions">function</A>, and press <em>Metrics</em> there. Prometheus has all of them at <code>/metrics</code>.</p></Empty>
      )}
    </Page>
  );
}

// colour is what a variable of the style sheet is now: a canvas knows no variables.
function colour(of: Element, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  of.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function Plot({ of }: { of: Series }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const span = useRef<[number, number]>([of.from, of.to]);
  span.current = [of.from, of.to];
  const data: uPlot.AlignedData = [of.points.map((x) => x[0]), of.points.map((x) => x[1])];
  useEffect(() => {
    const at = box.current!;
    const line = colour(at, "--main"), text = colour(at, "--faint"), grid = { stroke: colour(at, "--line"), width: 1 };
    const made = new uPlot({
      width: at.clientWidth || 600, height: 170,
      scales: { x: { range: () => span.current }, y: { range: (_, low, high) => [Math.min(low ?? 0, 0), high ? high * 1.1 : 1] } },
      axes: [{ stroke: text, grid, values: (_, ticks) => ticks.map((t) => clock(new Date(t * 1000)).slice(11, 16)) }, { stroke: text, grid, size: 60 }],
      series: [{ value: (_, t) => (t === null ? "" : clock(new Date(t * 1000))) }, { label: of.unit || "value", stroke: line, width: 2, points: { show: of.points.length < 60 } }],
    }, data, at);
    plot.current = made;
    const size = new ResizeObserver(() => made.setSize({ width: at.clientWidth, height: 170 }));
    size.observe(at);
    return () => {
      size.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [of.name, of.unit]);
  useEffect(() => plot.current?.setData(data), [of.points]);
  const last = of.points[of.points.length - 1];
  return <div ref={box} role="img" aria-label={`${of.name}: ${last ? last[1] : "nothing"} at the end`} />;
}

interface Alarm {
  AlarmArn: string;
  AlarmName: string;
  StateValue: string;
  StateReason: string;
  StateUpdatedTimestamp?: number;
  Namespace?: string;
  MetricName?: string;
  Threshold?: number;
  ActionsEnabled?: boolean;
}

export function AlarmsPage() {
  const p = place.value.params;
  const alarms = useCalls<{ MetricAlarms?: Alarm[]; NextToken?: string }>(`${p.state} ${p.cursor}`, () => call("monitoring", "DescribeAlarms", {
    MaxRecords: 100, ...(p.state ? { StateValue: p.state } : {}), ...(p.cursor ? { NextToken: p.cursor } : {}),
  }), 5000);
  return (
    <Page title="Alarms">
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <Choice name="state" label="State" options={[["", "any"], ["ALARM", "ALARM"], ["OK", "OK"], ["INSUFFICIENT_DATA", "INSUFFICIENT_DATA"]]} />
      </form>
      <Shown of={alarms}>
        {(data) => data.MetricAlarms?.length ? (
          <>
            <Table caption="Alarms" rows={data.MetricAlarms} keyOf={(a) => a.AlarmArn} columns={[
              { name: "name", cell: (a) => <Safe text={a.AlarmName} /> },
              { name: "state", cell: (a) => <State of={a.StateValue} /> },
              { name: "since", cell: (a) => <Time at={a.StateUpdatedTimestamp ? new Date(a.StateUpdatedTimestamp * 1000).toISOString() : null} /> },
              { name: "metric", cell: (a) => <Safe text={a.MetricName ? `${a.Namespace} ${a.MetricName}` : "–"} /> },
              { name: "threshold", number: true, cell: (a) => a.Threshold ?? "–" },
              { name: "why", cell: (a) => <Safe text={a.StateReason} max={400} /> },
              { name: "actions", cell: (a) => (a.ActionsEnabled ? "on" : "off") },
            ]} />
            <Pager next={data.NextToken} />
          </>
        ) : <Empty><p>{p.state ? "No alarm is in that state." : "There are no alarms. An alarm on ApproximateAgeOfOldestMessage tells when a queue falls behind."}</p></Empty>}
      </Shown>
    </Page>
  );
}
