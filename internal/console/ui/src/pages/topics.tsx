import { h, Fragment } from "preact";
import { useData } from "../api";
import { A, Arn, Body, Empty, Facts, Filter, nameOf, Page, Pager, Section, Shown, Table, Tiles } from "../components";
import { place } from "../router";
import { bytes, count, rate, Safe, Time } from "../text";
import type { Publication, Topic, TopicDetail } from "../types";
import { Named } from "./queues";
import { SubscriptionTable, type Subscriptions } from "./subscriptions";

export function TopicsPage() {
  const p = place.value.params;
  const topics = useData<{ topics: Topic[]; next: string | null }>("topics", { search: p.search, cursor: p.cursor, limit: 100 });
  return (
    <Page title="Topics">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Filter name="search" label="Name contains" />
      </form>
      <Shown of={topics}>
        {(data) => data.topics?.length ? (
          <>
            <Table caption="Topics" rows={data.topics} keyOf={(t) => t.arn} columns={[
              { name: "name", cell: (t) => <><Arn arn={t.arn} short />{t.fifo ? <span class="tag">FIFO</span> : null}</> },
              { name: "subscriptions", number: true, cell: (t) => <A page="subscriptions" params={{ topic: t.arn }} label={"subscriptions of " + t.name}>{count(t.subscriptions)}</A> },
              { name: "paused", number: true, cell: (t) => count(t.paused) },
              { name: "owed", number: true, cell: (t) => count(t.owed) },
              { name: "published", number: true, cell: (t) => rate(t.rates?.published) },
            ]} />
            <Pager next={data.next} />
          </>
        ) : (
          <Empty>{p.search ? <p>No topic is called like that. <A page="topics">Show all topics.</A></p> : <p>There are no topics. Make one with <code>aws sns create-topic --name orders</code>.</p>}</Empty>
        )}
      </Shown>
    </Page>
  );
}

export function TopicPage() {
  const arn = place.value.params.arn ?? "";
  const topic = useData<TopicDetail>("topic", { arn });
  const subscriptions = useData<Subscriptions>("subscriptions", { topic: arn, sort: "owed", limit: 50 });
  const publishes = useData<{ publishes: Publication[] }>("publishes", { topic: arn, limit: 20 });
  return (
    <Page what="Topic" title={<Safe text={nameOf(arn)} />} actions={
      <>
        <A class="button" page="filter" params={{ topic: arn }}>Test a filter</A>
        <A class="button" page="metrics" params={{ arn }}>Metrics</A>
        <A class="button" page="topology" params={{ root: arn }}>Topology</A>
      </>
    }>
      <Shown of={topic}>
        {(t) => (
          <>
            <Tiles of={[
              ["subscriptions", count(t.subscriptions)], ["paused", count(t.paused)], ["owed", count(t.owed)], ["published", rate(t.rates?.published)],
            ]} />
            <Section title="About" actions={<A class="button" page="policy" params={{ topic: arn }}>Delivery policy</A>}>
              <Facts of={[
                ["ARN", <Safe text={t.arn} />],
                ["kind", t.fifo ? "FIFO" : "standard"],
                ["display name", t.displayName ? <Safe text={t.displayName} /> : null],
                ["delivery policy", t.deliveryPolicy ? <code><Safe text={t.deliveryPolicy} max={2000} /></code> : "the default"],
              ]} />
              <Named of={t.attributes} title="Attributes" />
              <Named of={t.tags} title="Tags" />
            </Section>
          </>
        )}
      </Shown>
      <Section title="Subscriptions" actions={<A page="subscriptions" params={{ topic: arn }}>All of them</A>}>
        <Shown of={subscriptions}>
          {(data) => data.subscriptions?.length ? <SubscriptionTable rows={data.subscriptions} /> : <Empty><p>Nobody has subscribed: what is published goes nowhere. Subscribe with <code>aws sns subscribe</code>.</p></Empty>}
        </Shown>
      </Section>
      <Section title="Published of late">
        <Shown of={publishes}>
          {(data) => data.publishes?.length ? (
            <ul class="messages">{data.publishes.map((m) => <li key={m.messageId}><Published of={m} /></li>)}</ul>
          ) : <Empty><p>Nothing, or nothing that is still remembered: this list is kept in memory, and a restart forgets it.</p></Empty>}
        </Shown>
      </Section>
    </Page>
  );
}

export function Published({ of: m }: { of: Publication }) {
  return (
    <details class="message">
      <summary>
        <code><Safe text={m.messageId} /></code> <span class="hint"><Time at={m.at} />, {bytes(m.sizeBytes)}{m.outcome ? <>, {count(m.outcome.matched)} subscriptions, {count(m.outcome.filteredOut)} filtered out</> : null}</span>
        <span class="excerpt"><Safe text={m.subject ? m.subject + ": " + m.body : m.body} max={160} /></span>
      </summary>
      <Facts of={[
        ["subject", m.subject ? <Safe text={m.subject} /> : null],
        ["group", m.group ? <Safe text={m.group} /> : null],
        ...(m.attributes ?? []).map((a): [string, h.JSX.Element] => [a.name, <Safe text={a.value} max={500} />]),
      ]} />
      <Body body={m.body} encoding={m.bodyEncoding} truncated={m.bodyTruncated} name={m.messageId} />
    </details>
  );
}
