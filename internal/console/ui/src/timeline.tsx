// A delivery's attempts, made and to come, on an axis of time. The axis is logarithmic from
// the publish on: the first seconds and the last weeks of a schedule both have room.
import { h } from "preact";
import { clock, span } from "./text";
import type { Ahead, Attempt } from "./types";

const width = 900, height = 130, left = 12, right = 18, line = 78;

const steps: [seconds: number, name: string][] = [
  [0, "0"], [1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [6 * 3600, "6 h"], [86400, "1 d"], [7 * 86400, "7 d"], [23 * 86400, "23 d"], [60 * 86400, "60 d"],
];

export interface Timed {
  publishedAt: string;
  attempts: Attempt[];
  ahead: Ahead[];
  aheadTotal: number;
  endsAt: string | null;
  expiresAt: string | null;
  now: string;
}

const seconds = (at: string) => new Date(at).getTime() / 1000;

export function Timeline({ of }: { of: Timed }) {
  const from = seconds(of.publishedAt);
  const since = (at: string) => Math.max(seconds(at) - from, 0);
  const now = since(of.now);
  const known = [...of.attempts.map((a) => since(a.at)), ...of.ahead.map((a) => since(a.at)), now];
  for (const end of [of.endsAt, of.expiresAt]) if (end) known.push(since(end));
  const last = Math.max(...known, 10) * 1.05;
  const x = (s: number) => left + ((width - left - right) * Math.log1p(s)) / Math.log1p(last);
  const bands: { phase: string; from: number; to: number }[] = [];
  for (const a of of.ahead) {
    const at = since(a.at), band = bands[bands.length - 1];
    if (band && band.phase === a.phase) band.to = at;
    else bands.push({ phase: a.phase, from: Math.max(at - a.delaySeconds, now), to: at });
  }
  const tail = bands[bands.length - 1];
  if (tail && of.endsAt && of.aheadTotal > of.ahead.length) tail.to = since(of.endsAt);
  const failed = of.attempts.filter((a) => a.outcome !== "success").length;
  const what = `${of.attempts.length} attempts made, ${failed} failed; ${of.aheadTotal} to come` + (of.endsAt ? `, the last in ${span(since(of.endsAt) - now)}` : "");
  let used = -100;
  return (
    <svg class="drawing" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={what}>
      {bands.map((b, i) => (
        <g key={b.phase + i}>
          <rect class={i % 2 ? "band odd" : "band"} x={x(b.from)} y={24} width={Math.max(x(b.to) - x(b.from), 1)} height={line - 24} />
          {x(b.to) - x(b.from) > b.phase.length * 6 ? <text x={x(b.from) + 3} y={36}>{b.phase}</text> : null}
        </g>
      ))}
      <line class="axis" x1={left} x2={width - right} y1={line} y2={line} />
      {steps.filter(([s]) => s <= last).map(([s, name]) => {
        const at = x(s), room = at - used > 38;
        if (room) used = at;
        return (
          <g key={name}>
            <line class="axis" x1={at} x2={at} y1={line} y2={line + 5} />
            {room ? <text x={at} y={line + 18} text-anchor="middle">{name}</text> : null}
          </g>
        );
      })}
      {of.expiresAt ? <Mark at={x(since(of.expiresAt))} name="expires" kind="end" /> : null}
      {of.endsAt ? <Mark at={x(since(of.endsAt))} name="given up" kind="end" low /> : null}
      <Mark at={x(now)} name="now" kind="now" />
      {of.ahead.map((a, i) => (
        <circle key={"a" + a.attempt} class="next" cx={x(since(a.at))} cy={line} r={i === 0 ? 6 : 4}>
          <title>{`attempt ${a.attempt}, ${a.phase}: ${clock(new Date(a.at))}, in ${span(since(a.at) - now)}`}</title>
        </circle>
      ))}
      {of.attempts.map((a, i) => {
        const at = x(since(a.at)), title = <title>{`attempt ${i + 1}: ${a.outcome} ${a.status || ""} at ${clock(new Date(a.at))}`}</title>;
        return a.outcome === "success"
          ? <circle key={i} class="made good" cx={at} cy={line} r={6}>{title}</circle>
          : <path key={i} class="made" d={`M${at - 6} ${line}L${at} ${line - 6}L${at + 6} ${line}L${at} ${line + 6}Z`}>{title}</path>;
      })}
      <text x={left} y={height - 8}>time since the publish</text>
    </svg>
  );
}

function Mark({ at, name, kind, low }: { at: number; name: string; kind: string; low?: boolean }) {
  const late = at > width - 70;
  return (
    <g>
      <line class={kind} x1={at} x2={at} y1={low ? 30 : 16} y2={line + 8} />
      <text class="strong" x={late ? at - 4 : at + 4} y={low ? 50 : 14} text-anchor={late ? "end" : "start"}>{name}</text>
    </g>
  );
}
