import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { useData } from "../api";
import { A, Arn, Choice, Empty, nameOf, Page, pageOf, Section, Shown, State, Table } from "../components";
import { go, href, place } from "../router";
import { count, rate, Safe, visible } from "../text";
import type { Topology } from "../types";

// drawn is how many nodes a drawing still helps with.
const drawn = 150;

export function TopologyPage() {
  const { root, path } = place.value.params;
  const topology = useData<Topology>("topology", { root, limit: 2000 }, 3000);
  return (
    <Page title="Topology" actions={root ? <A class="button" page="topology">All of it</A> : null}>
      {root ? <p class="hint">What is within reach of <Arn arn={root} short />.</p> : null}
      <Shown of={topology}>
        {(t) => t.nodes?.length ? (
          <>
            <form class="filters" onSubmit={(e) => e.preventDefault()}>
              <Choice name="path" label="Path of" options={[["", "nothing: all of it"], ...t.nodes.slice(0, 500).map((n): [string, string] => [n.arn, visible(`${n.name || nameOf(n.arn)} (${n.kind})`)])]} />
            </form>
            {t.truncated ? <p class="trouble" role="alert">There is more than can be shown. Open a topic or a queue, and look at its own topology.</p> : null}
            <Section title="Picture" hint="What one points at, or moves to with Tab, shows its path; that of what is chosen stays, and is in the address. Dashed: dead letters.">
              {t.nodes.length <= drawn ? <Picture of={t} path={path} /> : <Empty><p>{count(t.nodes.length)} things are too many for a picture. The table has them; a topic's or a queue's own topology is smaller.</p></Empty>}
            </Section>
            <Section title="Links" hint={path ? <>Of the path of <Arn arn={path} short />.</> : undefined}>
              <Table caption="Links" rows={along(path, t.edges ?? []).slice(0, 500)} keyOf={(e) => e.from + e.to + e.kind + e.arn} columns={[
                { name: "from", cell: (e) => <Arn arn={e.from} short /> },
                { name: "to", cell: (e) => <Arn arn={e.to} short /> },
                { name: "by", cell: (e) => e.arn && pageOf(e.arn) ? <A page={pageOf(e.arn)} params={{ arn: e.arn }}>{e.kind}</A> : e.kind },
                { name: "state", cell: (e) => <State of={e.state} /> },
                { name: "rate", number: true, cell: (e) => rate(e.rate) },
                { name: "owed", number: true, cell: (e) => count(e.owed) },
              ]} />
            </Section>
          </>
        ) : <Empty><p>There is nothing to draw yet: no topic has a subscription, no queue has a dead-letter queue or a function that reads it.</p></Empty>}
      </Shown>
    </Page>
  );
}

const boxWidth = 190, boxHeight = 42, gapX = 90, gapY = 18;

// layers gives each node its column: the longest way to it, without going in circles.
function layers(t: Topology): Map<string, number> {
  const out = new Map<string, string[]>();
  for (const e of t.edges ?? []) out.set(e.from, [...(out.get(e.from) ?? []), e.to]);
  const column = new Map<string, number>(t.nodes.map((n) => [n.arn, 0]));
  const open = new Set<string>();
  const done = new Set<string>();
  const order: string[] = [];
  const cyclic = new Set<string>();
  const visit = (arn: string) => {
    if (done.has(arn)) return;
    open.add(arn);
    for (const to of out.get(arn) ?? []) {
      if (open.has(to)) cyclic.add(arn + " " + to);
      else visit(to);
    }
    open.delete(arn);
    done.add(arn);
    order.unshift(arn);
  };
  for (const n of t.nodes) visit(n.arn);
  for (const arn of order) {
    for (const to of out.get(arn) ?? []) {
      if (!cyclic.has(arn + " " + to) && column.has(to)) column.set(to, Math.max(column.get(to)!, (column.get(arn) ?? 0) + 1));
    }
  }
  return column;
}

function Picture({ of, path: chosen }: { of: Topology; path?: string }) {
  const [pointed, setLit] = useState("");
  const lit = pointed || (of.nodes.some((n) => n.arn === chosen) ? chosen! : "");
  const column = layers(of);
  const rows = new Map<number, string[]>();
  for (const n of of.nodes) {
    const at = column.get(n.arn) ?? 0;
    rows.set(at, [...(rows.get(at) ?? []), n.arn]);
  }
  const at = new Map<string, [x: number, y: number]>();
  const edges = of.edges ?? [];
  for (const c of [...rows.keys()].sort((a, b) => a - b)) {
    const pull = (arn: string) => {
      const from = edges.filter((e) => e.to === arn && at.has(e.from)).map((e) => at.get(e.from)![1]);
      return from.length ? from.reduce((a, b) => a + b, 0) / from.length : Infinity;
    };
    const pulls = new Map(rows.get(c)!.map((arn) => [arn, pull(arn)]));
    const sorted = rows.get(c)!.sort((a, b) => pulls.get(a)! - pulls.get(b)! || (a < b ? -1 : 1));
    sorted.forEach((arn, i) => at.set(arn, [8 + c * (boxWidth + gapX), 8 + i * (boxHeight + gapY)]));
  }
  const width = Math.max(...[...at.values()].map(([x]) => x)) + boxWidth + 8;
  const height = Math.max(...[...at.values()].map(([, y]) => y)) + boxHeight + 8;
  const path = lit ? within(lit, edges) : null;
  const worst = new Map<string, string>(); // of what leads to a node
  for (const e of edges) if (e.state === "failing" || (e.state === "paused" && !worst.has(e.to))) worst.set(e.to, e.state);
  return (
    <div class="scroll" role="group" aria-label="picture of the topology" tabIndex={0}>
      <svg class="drawing" viewBox={`0 0 ${width} ${height}`} style={{ width: Math.max(width, 300) + "px", maxWidth: "none" }} role="group" aria-label={`${of.nodes.length} things, ${edges.length} links`}>
        {edges.map((e) => {
          const a = at.get(e.from), b = at.get(e.to);
          if (!a || !b) return null;
          const x1 = a[0] + boxWidth, y1 = a[1] + boxHeight / 2, x2 = b[0], y2 = b[1] + boxHeight / 2;
          const on = path?.has(e.from) && path.has(e.to);
          return (
            <g key={e.from + e.to + e.kind + e.arn} class={path && !on ? "dim" : undefined}>
              <path class={"edge " + e.state + (e.kind === "dead-letter" ? " dashed" : "") + (on ? " lit" : "")} d={`M${x1} ${y1}C${x1 + gapX / 2} ${y1} ${x2 - gapX / 2} ${y2} ${x2} ${y2}`} />
              {e.rate ? <text x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 4} text-anchor="middle">{rate(e.rate)}</text> : null}
            </g>
          );
        })}
        {of.nodes.map((n) => {
          const [x, y] = at.get(n.arn)!;
          const page = pageOf(n.arn);
          const to = page ? href(page, { arn: n.arn }) : undefined;
          const name = visible(n.name || nameOf(n.arn));
          const inside = (
            <>
              <rect class={"node " + (worst.get(n.arn) ?? "")} x={x} y={y} width={boxWidth} height={boxHeight} rx={6} />
              <text class="strong" x={x + 9} y={y + 18}>{name.length > 27 ? name.slice(0, 26) + "…" : name}</text>
              <text x={x + 9} y={y + 33}>{n.kind}{n.messages !== null && n.messages !== undefined ? `, ${count(n.messages)} messages` : ""}</text>
              <title>{visible(n.arn)}</title>
            </>
          );
          const events = { onMouseEnter: () => setLit(n.arn), onMouseLeave: () => setLit(""), onFocus: () => setLit(n.arn), onBlur: () => setLit("") };
          const faded = path && !path.has(n.arn) ? "dim" : undefined;
          return to
            ? <a key={n.arn} href={to} class={faded} {...events} onClick={(e: MouseEvent) => { if (!e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); go(to); } }}>{inside}</a>
            : <g key={n.arn} class={faded} {...events}>{inside}</g>;
        })}
      </svg>
      <p class="unseen" aria-live="polite">{lit ? <Safe text={nameOf(lit)} /> : ""}</p>
    </div>
  );
}

// along are the links of a path, or all of them.
function along<T extends { from: string; to: string }>(path: string | undefined, edges: T[]): T[] {
  if (!path) return edges;
  const on = within(path, edges);
  return edges.filter((e) => on.has(e.from) && on.has(e.to));
}

// within are the nodes from which one is reached, and those that it reaches.
function within(arn: string, edges: { from: string; to: string }[]): Set<string> {
  const found = new Set([arn]);
  for (const [from, to] of [["from", "to"], ["to", "from"]] as const) {
    const todo = [arn];
    const seen = new Set(todo);
    while (todo.length) {
      const next = todo.pop()!;
      for (const e of edges) {
        if (e[from] === next && !seen.has(e[to])) {
          seen.add(e[to]);
          found.add(e[to]);
          todo.push(e[to]);
        }
      }
    }
  }
  return found;
}
