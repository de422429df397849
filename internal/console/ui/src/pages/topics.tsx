import { h, Fragment } from "preact";
import { has, useData } from "../api";
import { A, Arn, Empty, Facts, Filter, Named, nameOf, Page, Pager, Section, Shown, Table, Tiles } from "../components";
import { place } from "../router";
import { count, rate, Safe } from "../text";
import type { Topic, TopicDetail } from "../types";
import { RecentPublishes } from "./publishes";
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
              { name: "subscriptions", number: true, cell: (t) => <A page="subscriptions" params={{ topic: t.arn }} label={count(t.subscriptions) + " subscriptions of " + t.name}>{count(t.subscriptions)}</A> },
              { name: "not confirmed", number: true, cell: (t) => count(t.pending) },
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
  const subscriptions = useData<Subscriptions>("subscriptions", { topic: arn, sort: "name", limit: 50 });
  return (
    <Page what="Topic" title={<Safe text={nameOf(arn)} />} actions={
      <>
        {has("filter-test") ? <A class="button" page="filter" params={{ topic: arn }}>Test a filter</A> : null}
        {has("metrics") ? <A class="button" page="metrics" params={{ arn }}>Metrics</A> : null}
        <A class="button" page="topology" params={{ root: arn }}>Topology</A>
      </>
    }>
      <Shown of={topic}>
        {(t) => (
          <>
            <Tiles of={[
              ["subscriptions", count(t.subscriptions)], ["not confirmed", count(t.pending)], ["owed", count(t.owed)], ["published", rate(t.rates?.published)],
            ]} />
            <Section title="About" actions={has("policy-plan") ? <A class="button" page="policy" params={{ topic: arn }}>Delivery policy</A> : null}>
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
      <RecentPublishes topic={arn} />
      <Section title="Subscriptions" actions={<A page="subscriptions" params={{ topic: arn }}>All of them</A>}>
        <Shown of={subscriptions}>
          {(data) => data.subscriptions?.length ? <SubscriptionTable rows={data.subscriptions} /> : <Empty><p>Nobody has subscribed: what is published goes nowhere. Subscribe with <code>aws sns subscribe</code>.</p></Empty>}
        </Shown>
      </Section>
    </Page>
  );
}
