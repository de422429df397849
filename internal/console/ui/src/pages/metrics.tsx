import { h, Fragment } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { useData } from "../api";
import { A, Arn, Choice, Empty, exportTable, nameOf, Page, Section, Shown, Table } from "../components";
import { painted } from "../paint";
import { place } from "../router";
import { clock, Time } from "../text";

interface Series {
  namespace: string;
  name: string;
  unit: string;
  statistic: string;
  points: [at: number, value: number][];
}

interface Metrics {
  series: Series[];
  from: string;
  to: string;
  periodSeconds: number;
}

// measured is what has metrics under the name of what an ARN is of: a subscription's are its
// topic's.
const measured = (arn: string) => {
  const part = arn.split(":");
  return part[2] === "sns" && part.length === 7 ? part.slice(0, 6).join(":") : arn;
};

export function MetricsPage() {
  const p = place.value.params;
  const arn = p.arn ? measured(p.arn) : "";
  return (
    <Page title="Metrics">
      {arn ? (
        <>
          <form class="filters" onSubmit={(e) => e.preventDefault()}>
            <p>Of <Arn arn={arn} /></p>
            <Choice name="hours" label="Of the last" options={[["", "hour"], ["3", "3 hours"], ["24", "day"], ["168", "week"], ["1440", "60 days"]]} />
          </form>
          <Plots arn={arn} hours={p.hours} />
        </>
      ) : (
        <Empty><p>Choose what to look at: a <A page="queues">queue</A>, a <A page="topics">topic</A>, a <A page="functions">function</A> or an <A page="alarms">alarm</A>, and press <em>Metrics</em> there. Prometheus has all of them at <code>/metrics</code>.</p></Empty>
      )}
    </Page>
  );
}

// Plots shows the metrics of a resource, or the one that an alarm looks at.
export function Plots({ arn, hours, threshold }: { arn: string; hours?: string; threshold?: number }) {
  const metrics = useData<Metrics>("metrics", { arn, hours }, 15_000);
  return (
    <Shown of={metrics}>
      {(all) => {
        const some = all.series?.filter((s) => s.points?.length) ?? [];
        const from = Date.parse(all.from) / 1000, to = Date.parse(all.to) / 1000;
        return some.length ? some.map((s) => (
          <Section title={s.name} key={s.namespace + s.name} actions={
            <button type="button" onClick={() => exportTable(nameOf(arn) + "-" + s.name, ["at", s.statistic], s.points.map(([at, v]) => [new Date(at * 1000).toISOString(), v]))}>Save as table</button>
          }>
            <Plot of={s} from={from} to={to} threshold={threshold} />
            <details>
              <summary>As a table</summary>
              <Table caption={s.name} rows={s.points.slice(-60).reverse()} keyOf={(x) => String(x[0])} columns={[
                { name: "at", cell: (x) => <Time at={new Date(x[0] * 1000).toISOString()} /> },
                { name: s.statistic + (s.unit && s.unit !== "None" ? ", " + s.unit : ""), number: true, cell: (x) => x[1].toLocaleString("en-US") },
              ]} />
            </details>
          </Section>
        )) : <Empty><p>Nothing was measured in this time. What happens shows up within a minute or two.</p></Empty>;
      }}
    </Shown>
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

// drawing is what plots are drawn by; null until one is to be.
const drawing = signal<typeof uPlot | null>(null);

function Plot({ of, from, to, threshold }: { of: Series; from: number; to: number; threshold?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const span = useRef<[number, number]>([from, to]);
  span.current = [from, to];
  const data: uPlot.AlignedData = [of.points.map((x) => x[0]), of.points.map((x) => x[1])];
  if (threshold !== undefined) data.push(of.points.map(() => threshold));
  const UPlot = drawing.value;
  useEffect(() => {
    if (!UPlot) {
      import("uplot").then((all) => (drawing.value = all.default), () => {}); // the table has the same
      return;
    }
    const at = box.current!;
    const line = colour(at, "--main"), text = colour(at, "--faint"), grid = { stroke: colour(at, "--line"), width: 1 };
    const made = new UPlot({
      width: at.clientWidth || 600, height: 170,
      scales: { x: { range: () => span.current }, y: { range: (_, low, high) => [Math.min(low ?? 0, 0), high ? high * 1.1 : 1] } },
      axes: [{ stroke: text, grid, values: (_, ticks) => ticks.map((t) => clock(new Date(t * 1000)).slice(11, 16)) }, { stroke: text, grid, size: 60 }],
      series: [{ value: (_, t) => (t === null ? "" : clock(new Date(t * 1000))) }, { label: of.statistic, stroke: line, width: 2, points: { show: of.points.length < 60 } },
        ...(threshold === undefined ? [] : [{ label: "threshold", stroke: colour(at, "--bad"), width: 1, dash: [6, 4], points: { show: false } }])],
    }, data, at);
    plot.current = made;
    const size = new ResizeObserver(() => made.setSize({ width: at.clientWidth, height: 170 }));
    size.observe(at);
    return () => {
      size.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [UPlot, of.name, threshold, painted.value]);
  useEffect(() => plot.current?.setData(data), [of.points]);
  const last = of.points[of.points.length - 1];
  return <div ref={box} role="img" aria-label={`${of.name}: ${last ? last[1] : "nothing"} at the end`} />;
}
