import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { has, post, useClock, useData } from "../api";
import { A, Act, Arn, Choice, Empty, Facts, Filter, Named, nameOf, Page, Pager, Section, Shown, State, Table, Tiles } from "../components";
import { place, refine } from "../router";
import { count, Safe, span, Time } from "../text";
import type { Attempt, Delivery, DeliveryDetail, Subscription, SubscriptionDetail } from "../types";
import { Timeline } from "../timeline";
import { Jobs, Work } from "./jobs";

export interface Subscriptions {
  subscriptions: Subscription[];
  next: string | null;
}

// standing is the word for how a subscription stands: failing, too.
function standing(s: Subscription): string {
  if (s.state === "active" && s.lastAttempt && s.lastAttempt.outcome !== "success") return "failing";
  return s.state;
}

export function SubscriptionTable({ rows, sorted, onSort }: { rows: Subscription[]; sorted?: string; onSort?: (by: string) => void }) {
  return (
    <Table caption="Subscriptions" rows={rows} keyOf={(s) => s.arn} sorted={sorted} onSort={onSort} columns={[
      { name: "endpoint", sort: "name", cell: (s) => <A page="subscription" params={{ arn: s.arn }}><Safe text={s.endpointArn ? nameOf(s.endpointArn) : s.endpoint} max={120} /></A> },
      { name: "protocol", cell: (s) => s.protocol },
      { name: "state", cell: (s) => <State of={standing(s)} /> },
      { name: "owed", number: true, sort: "owed", cell: (s) => count(s.owed) },
      { name: "oldest", number: true, cell: (s) => span(s.oldestAgeSeconds) },
      { name: "last answer", cell: (s) => <Answer of={s.lastAttempt} /> },
      { name: "topic", cell: (s) => <Arn arn={s.topic} short /> },
      { name: "dead letters go to", cell: (s) => <Arn arn={s.deadLetterQueue} short /> },
    ]} />
  );
}

export function Answer({ of }: { of: Attempt | null | undefined }) {
  if (!of) return <>–</>;
  return <><State of={of.outcome} /> {of.status || ""} <Safe text={of.detail} max={80} /></>;
}

export function SubscriptionsPage() {
  const p = place.value.params;
  const found = useData<Subscriptions>("subscriptions", {
    search: p.search, topic: p.topic, endpoint: p.endpoint, protocol: p.protocol, state: p.state, sort: p.sort || "name", cursor: p.cursor, limit: 100,
  });
  return (
    <Page title="Subscriptions">
      {p.topic ? <p class="hint">Of the topic <Arn arn={p.topic} short />. <button type="button" class="link" onClick={() => refine({ topic: "", cursor: "" }, false)}>Show all</button></p> : null}
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Filter name="search" label="Endpoint contains" />
        <Choice name="state" label="State" options={[["", "any"], ["failing", "failing"], ["active", "active"], ["paused", "paused"], ["pending-confirmation", "not confirmed"]]} />
        <Choice name="protocol" label="Protocol" options={[["", "any"], ["https", "https"], ["http", "http"], ["sqs", "sqs"], ["lambda", "lambda"], ["firehose", "firehose"], ["email", "email"], ["sms", "sms"], ["application", "application"]]} />
      </form>
      <Shown of={found}>
        {(data) => data.subscriptions?.length ? (
          <>
            {p.sort === "owed" ? <p class="hint">Most owed first, without those that are owed nothing.</p> : null}
            <SubscriptionTable rows={data.subscriptions} sorted={p.sort || "name"} onSort={(by) => refine({ sort: by, cursor: "" })} />
            <Pager next={data.next} />
          </>
        ) : (
          <Empty>
            {p.search || p.state || p.protocol || p.topic ? <p>No subscription is like that. <A page="subscriptions">Show all subscriptions.</A></p> : <p>There are no subscriptions. Make one with <code>aws sns subscribe --topic-arn … --protocol https --notification-endpoint https://…</code>.</p>}
          </Empty>
        )}
      </Shown>
    </Page>
  );
}

export function SubscriptionPage() {
  const p = place.value.params;
  const arn = p.arn ?? "";
  const subscription = useData<SubscriptionDetail>("subscription", { arn }, 2000, "subscription");
  const deliveries = useData<{ deliveries: Delivery[]; next: string | null }>("deliveries", { subscription: arn, state: p.state, cursor: p.cursor, limit: 50 }, 2000);
  const [version, setVersion] = useState(0); // of the jobs
  const set = (verb: string, said: string) => async () => {
    await post("subscription/" + verb, { subscription: arn });
    subscription.reload();
    return said;
  };
  const s = subscription.data;
  const chosen = p.delivery || deliveries.data?.deliveries?.find((d) => d.id)?.id || "";
  return (
    <Page what="Subscription" title={<Safe text={s ? (s.endpointArn ? nameOf(s.endpointArn) : s.endpoint) : nameOf(arn)} />} actions={
      <>
        {s?.state === "paused"
          ? <Act kind="main" run={set("resume", "Deliveries go on.")}>Resume deliveries</Act>
          : <Act kind="main" disabled={!s} run={set("pause", "Paused: what is published waits, and uses up no retries.")}>Pause deliveries</Act>}
        {has("policy-plan") ? <A class="button" page="policy" params={{ subscription: arn }}>Delivery policy</A> : null}
        {has("filter-test") ? <A class="button" page="filter" params={{ subscription: arn, topic: s?.topic }}>Filter policy</A> : null}
        {has("metrics") ? <A class="button" page="metrics" params={{ arn }}>Metrics</A> : null}
      </>
    }>
      <Shown of={subscription}>
        {(s) => (
          <>
            <Tiles of={[
              ["state", <State of={standing(s)} />],
              ["due now", count(s.due)], ["waiting for a retry", count(s.waiting)], ["in flight", count(s.inFlight)],
              ["oldest", span(s.oldestAgeSeconds)],
            ]} />
            <Section title="Last answer">
              {s.lastAttempt ? (
                <Facts of={[
                  ["outcome", <State of={s.lastAttempt.outcome} />],
                  ["status", s.lastAttempt.status || "none"],
                  ["said", s.lastAttempt.detail ? <Safe text={s.lastAttempt.detail} max={4000} /> : "nothing"],
                  ["at", <Time at={s.lastAttempt.at} />],
                  ["took", s.lastAttempt.latencyMs + " ms"],
                ]} />
              ) : <Empty><p>No attempt has been made since the server began.</p></Empty>}
            </Section>
          </>
        )}
      </Shown>
      <Section title="Timeline" hint="What was tried, and what the server will try: the times to come are its own.">
        {chosen ? <DeliveryTimeline subscription={arn} id={chosen} dead={s?.deadLetterQueue} paused={s?.pausedAt} /> : <Empty><p>Nothing waits for this endpoint: there is no schedule ahead.</p></Empty>}
      </Section>
      <Section title="Deliveries" actions={
        <>
          {s?.deadLetterQueue ? <A class="button" page="dead-letters" params={{ queue: s.deadLetterQueue }}>Dead letters</A> : null}
        </>
      }>
        <form class="filters" onSubmit={(e) => e.preventDefault()}>
          <Choice name="state" label="State" options={[["", "any"], ["waiting", "not ended"], ["pending", "pending"], ["in-flight", "in flight"], ["finished", "ended"]]} />
        </form>
        <Shown of={deliveries}>
          {(data) => data.deliveries?.length ? (
            <>
              <Table caption="Deliveries" rows={data.deliveries} keyOf={(d) => d.id || d.messageId + d.finishedAt} columns={[
                { name: "message", cell: (d) => d.id ? <button type="button" class="link" aria-pressed={d.id === chosen} onClick={() => refine({ delivery: d.id })}><code><Safe text={d.messageId} /></code></button> : <code><Safe text={d.messageId} /></code> },
                { name: "state", cell: (d) => <State of={d.state} /> },
                { name: "attempts", number: true, cell: (d) => count(d.attempt) },
                { name: "next attempt", cell: (d) => <Time at={d.nextAttemptAt} /> },
                { name: "last answer", cell: (d) => <><Answer of={d.attempts?.[d.attempts.length - 1]} />{d.reason ? <p class="hint"><Safe text={d.reason} max={200} /></p> : null}</> },
                { name: "published", cell: (d) => <Time at={d.publishedAt} /> },
                { name: "commands", cell: (d) => d.id ? (
                  <span class="actions">
                    <Act run={async () => { await post("delivery/retry", { subscription: arn, id: d.id }); deliveries.reload(); return "It is tried now."; }}>Retry now</Act>
                    <Act kind="danger" confirm={"Give up on message " + d.messageId + "?" + (s?.deadLetterQueue ? " It becomes a dead letter." : " It is lost: there is no dead-letter queue.")} run={async () => { await post("delivery/drop", { subscription: arn, id: d.id }); deliveries.reload(); return "Given up."; }}>Give up</Act>
                  </span>
                ) : null },
              ]} />
              <Pager next={data.next} />
            </>
          ) : <Empty><p>{p.state ? "No delivery is in that state." : "Nothing waits, and nothing ended within the last hour."}</p></Empty>}
        </Shown>
      </Section>
      <Jobs arn={arn} version={version} onDone={() => { subscription.reload(); deliveries.reload(); }} />
      <Work arn={arn} kinds={["retry", "drop"]} thing="deliveries that wait" version={version} onStart={() => setVersion(version + 1)} />
      <Section title="About">
        <Shown of={subscription}>
          {(s) => (
            <>
              <Facts of={[
                ["ARN", <Safe text={s.arn} />],
                ["topic", <Arn arn={s.topic} />],
                ["protocol", s.protocol],
                ["endpoint", s.endpointArn ? <Arn arn={s.endpointArn} /> : <Safe text={s.endpoint} />],
                ["raw delivery", s.raw ? "yes" : "no"],
                ["paused", s.pausedAt ? <>since <Time at={s.pausedAt} /></> : "no"],
                ["filter policy", s.filterPolicy ? <code><Safe text={s.filterPolicy} max={4000} /></code> : "none: everything is delivered"],
                ["delivery policy", s.deliveryPolicy ? <code><Safe text={s.deliveryPolicy} max={4000} /></code> : "the topic's, or the default"],
                ["dead letters go to", s.deadLetterQueue ? <Arn arn={s.deadLetterQueue} /> : "nowhere: what is given up is lost"],
              ]} />
              <Named of={s.attributes} title="Attributes" />
            </>
          )}
        </Shown>
      </Section>
    </Page>
  );
}

function DeliveryTimeline({ subscription, id, dead, paused }: { subscription: string; id: string; dead?: string | null; paused?: string | null }) {
  const delivery = useData<DeliveryDetail>("delivery", { subscription, id }, 2000);
  const clock = useClock();
  if (delivery.error?.status === 404) return <Empty><p>This delivery has ended. <button type="button" class="link" onClick={() => refine({ delivery: "" })}>Show the next one.</button></p></Empty>;
  return (
    <Shown of={delivery}>
      {(d) => (
        <>
          <p>Message <code><Safe text={d.messageId} /></code> <State of={d.state} /> {count(d.attempt)} {d.attempt === 1 ? "attempt" : "attempts"} made{d.schedule ? <>, {count(d.schedule.aheadTotal)} to come</> : null}.</p>
          {paused ? <p class="faint">Deliveries are paused since <Time at={paused} />: no attempt is made before they are resumed, and those that are due by then are made at once. The schedule below is that of deliveries that are not paused.</p> : null}
          {d.publishedAt ? (
            <>
              <Timeline of={{
                publishedAt: d.publishedAt, attempts: d.attempts ?? [], ahead: d.schedule?.ahead ?? [], aheadTotal: d.schedule?.aheadTotal ?? 0,
                endsAt: d.schedule?.endsAt ?? null, expiresAt: d.schedule?.expiresAt ?? null, now: clock.data?.now ?? new Date().toISOString(),
              }} />
              <p class="legend"><span>◆ failed</span><span>● succeeded</span><span>○ to come</span></p>
            </>
          ) : null}
          <Facts of={[
            ["next attempt", paused ? "when deliveries are resumed" : <Time at={d.nextAttemptAt} />],
            ["expires", d.schedule?.expiresAt ? <Time at={d.schedule.expiresAt} /> : null],
            ["given up", d.schedule?.endsAt ? <><Time at={d.schedule.endsAt} />, {dead ? <>then to <Arn arn={dead} short /></> : "and lost: there is no dead-letter queue"}</> : null],
            ["reason", d.reason ? <Safe text={d.reason} max={1000} /> : null],
          ]} />
          <details>
            <summary>As a table</summary>
            <Table caption="Attempts made" rows={d.attempts ?? []} keyOf={(a) => a.at} columns={[
              { name: "at", cell: (a) => <Time at={a.at} /> },
              { name: "answer", cell: (a) => <><State of={a.outcome} /> {a.status || ""} <Safe text={a.detail} max={500} /></> },
              { name: "took", number: true, cell: (a) => a.latencyMs + " ms" },
            ]} />
            <Table caption="Attempts to come" rows={(d.schedule?.ahead ?? []).slice(0, 30)} keyOf={(a) => String(a.attempt)} columns={[
              { name: "attempt", number: true, cell: (a) => count(a.attempt) },
              { name: "phase", cell: (a) => a.phase },
              { name: "at", cell: (a) => <Time at={a.at} /> },
              { name: "after", number: true, cell: (a) => span(a.delaySeconds) },
            ]} />
          </details>
        </>
      )}
    </Shown>
  );
}
