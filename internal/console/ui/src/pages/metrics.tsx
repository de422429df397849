import { h, Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useData } from "../api";
import { A, Arn, Choice, Empty, Page, Pager, Section, Shown, State, Table } from "../components";
import { place } from "../router";
import { clock, Safe, Time } from "../text";

interface Series {
  name: string;
  unit: string;
  points: [at: number, value: number][];
}

export function MetricsPage() {
  const p = place.value.params;
  const metrics = useData<{ series: Series[]; periodSeconds: number }>(p.arn ? "metrics" : null, { arn: p.arn, hours: p.hours || 1 }, 15_000);
  return (
    <Page title="Metrics" what={p.arn ? undefined : "Metrics"}>
      {p.arn ? (
        <>
          <form class="filters" onSubmit={(e) => e.preventDefault()}>
            <p>Of <Arn arn={p.arn} /></p>
            <Choice name="hours" label="Of the last" options={[["", "hour"], ["3", "3 hours"], ["24", "day"], ["168", "week"]]} />
          </form>
          <Shown of={metrics}>
            {(m) => {
              const some = (m.series ?? []).filter((s) => s.points?.length);
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
  const data: uPlot.AlignedData = [of.points.map((x) => x[0]), of.points.map((x) => x[1])];
  useEffect(() => {
    const at = box.current!;
    const line = colour(at, "--main"), text = colour(at, "--faint"), grid = { stroke: colour(at, "--line"), width: 1 };
    const made = new uPlot({
      width: at.clientWidth || 600, height: 170,
      scales: { y: { range: (_, low, high) => [Math.min(low ?? 0, 0), high ? high * 1.1 : 1] } },
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
  arn: string;
  name: string;
  state: string;
  reason: string;
  since: string | null;
  metric: string;
  threshold: string | number | null;
  actionsEnabled: boolean;
}

export function AlarmsPage() {
  const p = place.value.params;
  const alarms = useData<{ alarms: Alarm[]; next: string | null }>("alarms", { state: p.state, cursor: p.cursor }, 5000);
  return (
    <Page title="Alarms">
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <Choice name="state" label="State" options={[["", "any"], ["ALARM", "ALARM"], ["OK", "OK"], ["INSUFFICIENT_DATA", "INSUFFICIENT_DATA"]]} />
      </form>
      <Shown of={alarms}>
        {(data) => data.alarms?.length ? (
          <>
            <Table caption="Alarms" rows={data.alarms} keyOf={(a) => a.arn} columns={[
              { name: "name", cell: (a) => <Safe text={a.name} /> },
              { name: "state", cell: (a) => <State of={a.state} /> },
              { name: "since", cell: (a) => <Time at={a.since} /> },
              { name: "metric", cell: (a) => <Safe text={a.metric} /> },
              { name: "threshold", number: true, cell: (a) => a.threshold ?? "–" },
              { name: "why", cell: (a) => <Safe text={a.reason} max={400} /> },
              { name: "actions", cell: (a) => (a.actionsEnabled ? "on" : "off") },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty><p>{p.state ? "No alarm is in that state." : "There are no alarms. An alarm on ApproximateAgeOfOldestMessage tells when a queue falls behind."}</p></Empty>}
      </Shown>
    </Page>
  );
}
