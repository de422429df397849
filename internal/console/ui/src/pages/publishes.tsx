import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { useAsked } from "../api";
import { A, Arn, Body, Empty, exportTable, Facts, Filter, nameOf, Section, State, Table, Trouble } from "../components";
import { place } from "../router";
import { bytes, count, Safe, Time } from "../text";
import type { Attribute } from "../types";

export interface Publish {
  messageId: string;
  publishedAt: string;
  sizeBytes: number;
  subject: string | null;
  group: string | null;
  deduplicationId: string | null;
  sender: string;
  trace: string | null;
  encrypted: boolean;
  refused: string | null;
  body: string;
  bodyEncoding: string;
  bodyTruncated: boolean;
  protocols: string[];
  attributes: Attribute[];
  queued: number;
  filteredOut: number | null;
  subscriptions: { arn: string; protocol: string; endpoint: string; taken: boolean; reason: string | null }[];
}

export interface Publishes {
  publishes: Publish[];
  kept: number;
  moreSubscriptions: boolean;
}

// RecentPublishes are what was published to a topic of late, and who took it.
export function RecentPublishes({ topic }: { topic: string }) {
  const p = place.value.params;
  const { data: found, error, look } = useAsked<Publishes>("publishes", { arn: topic, search: p.text, id: p.id, limit: 100 });
  return (
    <Section title="Published of late" hint="The last messages, at most a hundred, and which subscriptions took them. They are in memory: a restart forgets them." actions={<A class="button" page="tail" params={{ arn: topic, search: p.text }}>Follow live</A>}>
      <form class="filters" role="search" onSubmit={(e) => { e.preventDefault(); void look(); }}>
        <Filter name="text" label="Body, subject or attributes contain" />
        <Filter name="id" label="Message id" />
        <button type="submit" class="main">Look</button>
      </form>
      <Trouble error={error} />
      {found ? found.publishes?.length ? (
        <>
          <p class="hint" aria-live="polite">{count(found.publishes.length)} shown of {count(found.kept)} that are known.{found.moreSubscriptions ? " The topic has more subscriptions than are looked at." : ""}</p>
          <PublishList publishes={found.publishes} />
          <div class="actions"><button type="button" onClick={() => exportPublishes(nameOf(topic), found.publishes)}>Save as table</button></div>
        </>
      ) : <Empty><p>{found.kept ? "No message is like that." : "Nothing was published to it since the server began."}</p></Empty>
        : <Empty><p>Press <em>Look</em> to see what was published. It is recorded who looks.</p></Empty>}
    </Section>
  );
}

function exportPublishes(name: string, all: Publish[]) {
  exportTable(name, ["messageId", "publishedAt", "subject", "group", "sender", "taken", "notTaken", "bodyEncoding", "body"], all.map((m) => [
    m.messageId, m.publishedAt, m.subject, m.group, m.sender, m.subscriptions.filter((s) => s.taken).length, m.subscriptions.filter((s) => !s.taken).length, m.bodyEncoding, m.body,
  ]));
}

export function PublishList({ publishes }: { publishes: Publish[] }) {
  return <ul class="messages">{publishes.map((m) => <li key={m.messageId}><OnePublish message={m} /></li>)}</ul>;
}

// reasons says why a filter policy let a message not through.
const reasons: Record<string, string> = {
  MessageAttributes: "its filter policy does not fit the attributes", NoMessageAttributes: "its filter policy wants attributes, and there are none",
  InvalidAttributes: "an attribute is not what its type says", MessageBody: "its filter policy does not fit the body", InvalidMessageBody: "its filter policy looks at the body, which is not JSON",
};

function OnePublish({ message: m }: { message: Publish }) {
  const [open, setOpen] = useState(false);
  const taken = (m.subscriptions ?? []).filter((s) => s.taken).length;
  return (
    <details class="message" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <code><Safe text={m.messageId} /></code> <span class="hint"><Time at={m.publishedAt} />, {bytes(m.sizeBytes)}, {m.refused ? "encrypted" : `taken by ${count(taken)} of ${count(m.subscriptions?.length)} subscriptions`}</span>
        <span class="excerpt">{m.refused ? <Safe text={m.refused} /> : <>{m.subject ? <><Safe text={m.subject} max={80} />: </> : null}<Safe text={m.bodyEncoding === "base64" ? "binary" : m.body} max={160} /></>}</span>
      </summary>
      {open ? (
        <>
          <Facts of={[
            ["subject", m.subject ? <Safe text={m.subject} /> : null],
            ["group", m.group ? <Safe text={m.group} /> : null],
            ["deduplication id", m.deduplicationId ? <Safe text={m.deduplicationId} /> : null],
            ["sender", m.sender ? <Arn arn={m.sender} /> : null],
            ["trace", m.trace ? <Safe text={m.trace} /> : null],
            ["encrypted", m.encrypted ? "yes" : null],
            ["a body of its own for", m.protocols?.length ? m.protocols.join(", ") : null],
            ["filtered out at the publish", m.filteredOut === null ? "not known yet" : count(m.filteredOut)],
          ]} />
          {m.attributes?.length ? (
            <Table caption="Attributes" rows={m.attributes} keyOf={(a) => a.name} columns={[
              { name: "attribute", cell: (a) => <Safe text={a.name} /> },
              { name: "type", cell: (a) => <Safe text={a.type} /> },
              { name: "value", cell: (a) => <Safe text={a.value} max={500} /> },
            ]} />
          ) : null}
          {m.refused ? <p class="trouble"><Safe text={m.refused} /></p> : <Body body={m.body} encoding={m.bodyEncoding} truncated={m.bodyTruncated} name={m.messageId} />}
          {m.subscriptions?.length ? (
            <Table caption="Subscriptions" rows={m.subscriptions} keyOf={(s) => s.arn} columns={[
              { name: "endpoint", cell: (s) => <A page="subscription" params={{ arn: s.arn }}><Safe text={s.protocol === "sqs" || s.protocol === "lambda" ? nameOf(s.endpoint) : s.endpoint} max={120} /></A> },
              { name: "protocol", cell: (s) => s.protocol },
              { name: "by its policy of today", cell: (s) => (s.taken ? <State of="taken" /> : <><State of="not taken" /> <span class="hint">{reasons[s.reason ?? ""] ?? <Safe text={s.reason} />}</span></>) },
            ]} />
          ) : m.refused ? null : <Empty><p>Nobody had subscribed then.</p></Empty>}
        </>
      ) : null}
    </details>
  );
}
