import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { has, post, useData } from "../api";
import { A, Act, Arn, Empty, Facts, Field, Page, Section, Table, Trouble } from "../components";
import { place } from "../router";
import { count, Safe, span } from "../text";
import { useTyped } from "../typed";
import type { EffectivePolicy, Plan, SubscriptionDetail, TopicDetail } from "../types";

// limit is the longest that SNS lets a policy of an HTTP/S endpoint go on, in seconds.
const limit = 3600;

interface Retry {
  numRetries: number;
  numNoDelayRetries: number;
  minDelayTarget: number;
  numMinDelayRetries: number;
  maxDelayTarget: number;
  numMaxDelayRetries: number;
  backoffFunction: string;
}

const standard: Retry = { numRetries: 3, numNoDelayRetries: 0, minDelayTarget: 20, numMinDelayRetries: 0, maxDelayTarget: 20, numMaxDelayRetries: 0, backoffFunction: "linear" };

const fields: [name: keyof Retry, label: string, max: number][] = [
  ["numRetries", "Retries in all", 100],
  ["numNoDelayRetries", "Immediate: retries", 100],
  ["numMinDelayRetries", "Pre-backoff: retries", 100],
  ["minDelayTarget", "Pre-backoff: delay, s", 3600],
  ["numMaxDelayRetries", "Post-backoff: retries", 100],
  ["maxDelayTarget", "Post-backoff: delay, s", 3600],
];

// parse takes the retry policy out of a delivery policy of a subscription or a topic.
function parse(text: string): { all: Record<string, unknown>; retry: Retry } | null {
  try {
    const all = JSON.parse(text || "{}") as Record<string, unknown>;
    const http = all.http as Record<string, unknown> | undefined;
    const own = (http ? http.defaultHealthyRetryPolicy : all.healthyRetryPolicy) as Partial<Retry> | undefined;
    return { all, retry: { ...standard, ...own } };
  } catch {
    return null;
  }
}

function withRetry(all: Record<string, unknown>, retry: Retry, ofTopic: boolean): string {
  const next = ofTopic ? { ...all, http: { ...(all.http as object | undefined), defaultHealthyRetryPolicy: retry } } : { ...all, healthyRetryPolicy: retry };
  return JSON.stringify(next, null, 2);
}

export function PolicyPage() {
  const { subscription, topic } = place.value.params;
  const sub = useData<SubscriptionDetail>(subscription ? "subscription" : null, { arn: subscription }, 0);
  const top = useData<TopicDetail>(topic && !subscription ? "topic" : null, { arn: topic }, 0);
  const ofTopic = !subscription && !!topic;
  const loaded = sub.data ?? top.data;
  const kept = sub.data?.deliveryPolicy ?? top.data?.deliveryPolicy ?? "";
  const effective = sub.data?.effectivePolicy;
  const wait = (subscription || topic) && !loaded;
  return (
    <Page what="Delivery policy" title={subscription || topic ? <Arn arn={subscription ?? topic} short /> : "A policy of your own"}>
      <Trouble error={sub.error ?? top.error} />
      {wait ? (sub.error ?? top.error ? null : <p class="hint" aria-busy="true">Loading…</p>) : (
        <Editor key={subscription ?? topic ?? ""} kept={kept} effective={effective} subscription={subscription} topic={topic} ofTopic={ofTopic} protocol={sub.data?.protocol ?? "https"}
          saved={() => { sub.reload(); top.reload(); }} />
      )}
    </Page>
  );
}

function begin(kept: string, effective: EffectivePolicy | null | undefined, ofTopic: boolean): string {
  if (kept) {
    try {
      return JSON.stringify(JSON.parse(kept), null, 2);
    } catch {
      return kept;
    }
  }
  if (!effective) return withRetry({}, standard, ofTopic);
  const { minDelaySeconds: minDelayTarget, maxDelaySeconds: maxDelayTarget, numRetries, numNoDelayRetries, numMinDelayRetries, numMaxDelayRetries, backoffFunction } = effective;
  return withRetry({}, { numRetries, numNoDelayRetries, minDelayTarget, numMinDelayRetries, maxDelayTarget, numMaxDelayRetries, backoffFunction }, ofTopic);
}

function Editor({ kept, effective, subscription, topic, ofTopic, protocol, saved }: {
  kept: string; effective: EffectivePolicy | null | undefined; subscription?: string; topic?: string; ofTopic: boolean; protocol: string; saved: () => void;
}) {
  const managed = protocol !== "http" && protocol !== "https";
  const [text, setText] = useTyped("policy", () => begin(kept, effective, ofTopic));
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const turn = useRef(0);
  useEffect(() => {
    const mine = ++turn.current;
    const timer = setTimeout(async () => {
      try {
        const made = await post<Plan>("policy-plan", { protocol, policy: managed ? "" : text, ...(subscription ? { subscription } : {}) });
        if (mine === turn.current) {
          setPlan(made);
          setError(null);
        }
      } catch (err) {
        if (mine === turn.current) setError(err as Error);
      }
    }, 150);
    return () => clearTimeout(timer);
  }, [text, protocol]);
  const parsed = parse(text);
  const change = (name: keyof Retry, value: number | string) => {
    if (parsed) setText(withRetry(parsed.all, { ...parsed.retry, [name]: value }, ofTopic));
  };
  const save = async () => {
    if (ofTopic) await post("topic/attribute", { topic, name: "DeliveryPolicy", value: text });
    else await post("subscription/attribute", { subscription, name: "DeliveryPolicy", value: text });
    saved();
    return "Saved. What waits already is tried by the new policy from its next failure on.";
  };
  return (
    <>
      <Section title="Policy" hint={managed ? `Deliveries by ${protocol} have a policy of their own, which nobody can change.` : "It is simulated while you type, and holds once it is saved."}>
        {managed ? null : (
          <>
            {parsed ? (
              <div class="fields">
                {fields.map(([name, label, max]) => (
                  <Field label={label} key={name}>
                    {(id) => <input id={id} type="number" min="0" max={max} value={parsed.retry[name]} onInput={(e) => change(name, Number(e.currentTarget.value))} />}
                  </Field>
                ))}
                <Field label="Backoff function">
                  {(id) => (
                    <select id={id} value={parsed.retry.backoffFunction} onChange={(e) => change("backoffFunction", e.currentTarget.value)}>
                      {["linear", "arithmetic", "geometric", "exponential"].map((f) => <option value={f}>{f}</option>)}
                    </select>
                  )}
                </Field>
              </div>
            ) : <p class="trouble" role="alert">This is not JSON yet.</p>}
            <details>
              <summary>As JSON</summary>
              <Field label="Delivery policy">{(id) => <textarea id={id} value={text} spellcheck={false} onInput={(e) => setText(e.currentTarget.value)} />}</Field>
            </details>
            {subscription || topic ? (
              <div class="actions">
                {ofTopic && !has("topic/attribute") ? null : <Act kind="main" disabled={!plan?.valid || text === kept} run={save}>Save policy</Act>}
                <A class="button" page={ofTopic ? "topic" : "subscription"} params={{ arn: subscription ?? topic }}>Back</A>
              </div>
            ) : null}
          </>
        )}
      </Section>
      <Section title="What it does">
        <Trouble error={error} />
        {plan ? plan.valid ? <Simulated plan={plan} http={!managed} /> : <p class="trouble" role="alert"><Safe text={plan.error ?? "This policy is not valid."} max={1000} /></p> : null}
      </Section>
    </>
  );
}

function Simulated({ plan, http }: { plan: Plan; http: boolean }) {
  const total = plan.policy?.totalSeconds ?? 0, retries = plan.policy?.numRetries ?? 0;
  const share = Math.min(total / limit, 1) * 100;
  return (
    <>
      <Facts of={[
        ["retries", <strong>{count(retries)}</strong>],
        ["given up after", <strong>{span(total)}</strong>],
        ["today's backlog", plan.backlog ? plan.backlog.owed ? <>{count(plan.backlog.owed)} messages, which cost at most {count(plan.backlog.attempts)} attempts if none succeeds{plan.backlog.secondsAtMax ? <>; one attempt at each takes {span(plan.backlog.secondsAtMax)} at {count(plan.maxPerSecond)} a second</> : null}</> : "nothing waits" : null],
      ]} />
      {http ? (
        <div>
          <p class="hint" id="budget">{count(Math.round(total))} of {count(limit)} seconds that a policy may take</p>
          <div class={total > limit ? "meter over" : "meter"} role="meter" aria-labelledby="budget" aria-valuemin={0} aria-valuemax={limit} aria-valuenow={Math.min(Math.round(total), limit)}><div style={{ width: share + "%" }} /></div>
        </div>
      ) : null}
      <Delays plan={plan} />
      <Table caption="Phases" rows={plan.phases ?? []} keyOf={(f) => f.name} columns={[
        { name: "phase", cell: (f) => f.name },
        { name: "retries", number: true, cell: (f) => count(f.retries) },
        { name: "delay", number: true, cell: (f) => f.retries === 0 ? "–" : f.shortestDelaySeconds === f.longestDelaySeconds ? span(f.shortestDelaySeconds) : `${span(f.shortestDelaySeconds)} to ${span(f.longestDelaySeconds)}` },
      ]} />
      <details>
        <summary>Each retry</summary>
        <Table caption="Retries" rows={plan.steps ?? []} keyOf={(a) => String(a.retry)} columns={[
          { name: "retry", number: true, cell: (a) => a.count > 1 ? `${count(a.retry)} to ${count(a.retry + a.count - 1)}` : count(a.retry) },
          { name: "phase", cell: (a) => a.phase },
          { name: "delay", number: true, cell: (a) => span(a.delaySeconds) },
          { name: "after the first attempt", number: true, cell: (a) => (a.count > 1 ? `${span(a.fromSeconds)} to ${span(a.untilSeconds)}` : span(a.fromSeconds)) },
        ]} />
      </details>
      {retries === 0 ? <Empty><p>There are no retries: whatever the first attempt says is final.</p></Empty> : null}
    </>
  );
}

const width = 900, height = 170, left = 46, bottom = 24;

// Delays draws the delay before each retry.
function Delays({ plan }: { plan: Plan }) {
  const runs = plan.steps ?? [];
  if (runs.length === 0) return null;
  const last = runs[runs.length - 1];
  const total = last.retry + last.count - 1;
  const high = Math.max(...runs.map((r) => r.delaySeconds), 1);
  const x = (retry: number) => left + ((width - left - 10) * (retry - 1)) / Math.max(total, 1);
  const y = (delay: number) => height - bottom - ((height - bottom - 16) * delay) / high;
  const path = runs.map((r, i) => `${i ? "L" : "M"}${x(r.retry).toFixed(1)} ${y(r.delaySeconds).toFixed(1)}H${x(r.retry + r.count).toFixed(1)}`).join("");
  const bands: { phase: string; from: number; to: number }[] = [];
  for (const r of runs) {
    const band = bands[bands.length - 1], to = r.retry + r.count;
    if (band?.phase === r.phase) band.to = to;
    else bands.push({ phase: r.phase, from: r.retry, to });
  }
  return (
    <svg class="drawing" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`delays before ${total} retries, at most ${span(high)}`}>
      {bands.map((b, i) => (
        <g key={i}>
          <rect class={i % 2 ? "band odd" : "band"} x={x(b.from)} y={10} width={Math.max(x(b.to) - x(b.from), 1)} height={height - bottom - 10} />
          {x(b.to) - x(b.from) > b.phase.length * 6 ? <text x={x(b.from) + 4} y={22}>{b.phase}</text> : null}
        </g>
      ))}
      <line class="axis" x1={left} x2={width - 10} y1={height - bottom} y2={height - bottom} />
      <text x={left - 6} y={y(high) + 4} text-anchor="end">{span(high)}</text>
      <text x={left - 6} y={y(0) + 4} text-anchor="end">0</text>
      <text x={left} y={height - 6}>retry 1</text>
      <text x={width - 10} y={height - 6} text-anchor="end">{count(total)}</text>
      <path class="line" d={path} />
    </svg>
  );
}
