import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, useData } from "../api";
import { A, Act, Arn, Empty, Field, nameOf, Page, Section, State, Table, Trouble } from "../components";
import { place } from "../router";
import { count, Safe, Time } from "../text";
import { useTyped } from "../typed";
import type { Attribute, MessagePage, SubscriptionDetail } from "../types";
import type { Publishes } from "./publishes";
import type { Subscriptions } from "./subscriptions";

interface Tested {
  valid: boolean;
  error: string | null;
  results: boolean[] | null;
  matched: number;
}

// Sample is a message that a filter is tried on.
interface Sample {
  id: string;
  at: string | null;
  body: string;
  attributes: { name: string; type: string; value: string }[];
}

export function FilterPage() {
  const { subscription } = place.value.params;
  const sub = useData<SubscriptionDetail>(subscription ? "subscription" : null, { arn: subscription }, 0);
  const topic = place.value.params.topic ?? sub.data?.topic ?? "";
  const wait = subscription && !sub.data;
  return (
    <Page what="Filter policy" title={topic || subscription ? <Arn arn={subscription ?? topic} short /> : "Filter policy"}>
      <Trouble error={sub.error} />
      {wait ? null : topic ? (
        <Editor key={topic + subscription} topic={topic} of={sub.data} saved={sub.reload} />
      ) : <Empty><p>A filter is tested on what a topic's queues hold. <A page="topics">Choose a topic.</A></p></Empty>}
    </Page>
  );
}

function laid(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const most = 100;

// samples are the latest messages of a queue, as they were published to the topic.
async function samples(queue: string): Promise<Sample[]> {
  const page = await get<MessagePage>("messages", { arn: queue, limit: most, bodyBytes: 65536 });
  return (page.messages ?? []).filter((m) => !m.refused && !m.bodyTruncated && m.bodyEncoding === "utf-8").map((m) => {
    const plain = (m.attributes ?? []).map(({ name, type, value }: Attribute) => ({ name, type, value }));
    const own = { id: m.messageId, at: m.sentAt, body: m.body, attributes: plain };
    try { // one that was not delivered raw is in an envelope
      const outer = JSON.parse(m.body) as { Type?: string; MessageId?: string; Message?: string; Timestamp?: string; MessageAttributes?: Record<string, { Type: string; Value: string }> };
      if (outer.Type !== "Notification" || typeof outer.Message !== "string") return own;
      return {
        id: outer.MessageId ?? m.messageId, at: outer.Timestamp ?? m.sentAt, body: outer.Message,
        attributes: Object.entries(outer.MessageAttributes ?? {}).map(([name, a]) => ({ name, type: a.Type, value: a.Value })),
      };
    } catch {
      return own;
    }
  });
}

// published are the latest messages of the topic itself.
async function published(topic: string): Promise<Sample[]> {
  const { publishes } = await get<Publishes>("publishes", { arn: topic, limit: most, bodyBytes: 65536 });
  return (publishes ?? []).filter((m) => !m.refused && !m.bodyTruncated && m.bodyEncoding === "utf-8").map((m) => ({ id: m.messageId, at: m.publishedAt, body: m.body, attributes: (m.attributes ?? []).map(({ name, type, value }) => ({ name, type, value })) }));
}

// Loaded are the samples of one choice, or why they could not be read.
interface Loaded {
  of: string;
  all: Sample[];
  error: Error | null;
}

const none: Loaded = { of: "", all: [], error: null };

// bounded are as many samples as one request may have.
function bounded(all: Sample[]): Sample[] {
  let room = 40_000; // characters, of the 64 KiB of a request
  return all.filter((m) => (room -= JSON.stringify([m.body, m.attributes]).length) > 0);
}

function Editor({ topic, of, saved }: { topic: string; of?: SubscriptionDetail; saved: () => void }) {
  const subscription = of?.arn;
  const kept = of?.filterPolicy ?? "";
  const [text, setText] = useTyped("filter", () => laid(kept || "{}"));
  const [scope, setScope] = useState(of?.filterPolicyScope || "MessageAttributes");
  const feeds = useData<Subscriptions>("subscriptions", { topic, protocol: "sqs", limit: 100 }, 0);
  const queues = [...new Set([...(feeds.data?.subscriptions ?? []).map((s) => s.endpointArn ?? ""), of?.deadLetterQueue ?? ""])].filter((q) => q);
  const [chosen, setChosen] = useState("");
  const from = chosen || "topic";
  const [body, setBody] = useState('{"status":"confirmed"}');
  const [attributes, setAttributes] = useState('{"status":"confirmed"}');
  const [loaded, setLoaded] = useState(none);
  const { all: messages, error: unread } = loaded.of === from ? loaded : none;
  const known = from === "own" || (loaded.of === from && !unread); // what it is tested on
  const [tested, setTested] = useState<{ of: string; said: Tested; on: Sample[] } | null>(null); // of is empty where only the policy was
  const [error, setError] = useState<Error | null>(null);
  const turn = useRef(0);
  useEffect(() => {
    if (from === "own") return;
    let current = true;
    const keep = (all: Sample[], error: Error | null) => current && setLoaded({ of: from, all, error });
    (from === "topic" ? published(topic) : samples(from)).then((all) => keep(bounded(all), null), (err) => keep([], err as Error));
    return () => void (current = false);
  }, [from, topic]);
  useEffect(() => {
    const mine = ++turn.current;
    const timer = setTimeout(async () => {
      try {
        const on = from === "own" ? [{ id: "yours", at: null, body, attributes: attributesOf(attributes) }] : messages;
        const said = await post<Tested>("filter-test", { filterPolicy: text, scope, messages: on.map((m) => ({ body: m.body, attributes: m.attributes })) });
        if (mine !== turn.current) return;
        setTested({ of: known ? from : "", said, on });
        setError(null);
      } catch (err) {
        if (mine === turn.current) setError(err as Error);
      }
    }, 200);
    return () => clearTimeout(timer);
  }, [text, scope, from, messages, body, attributes]);
  const set = (name: string, value: string) => post("subscription/attribute", { subscription, name, value });
  const save = async () => {
    if (scope !== of?.filterPolicyScope) await set("FilterPolicyScope", scope);
    await set("FilterPolicy", text);
    saved();
    return "Saved. It holds for what is published from now on.";
  };
  const remove = async () => {
    await set("FilterPolicy", "");
    setText("{}");
    saved();
    return "Without a filter: everything is delivered.";
  };
  const said = tested?.said;
  return (
    <>
      <Section title="Policy" hint="It is tested while you type, and changes nothing until it is saved.">
        <Field label="Filter policy">{(id) => <textarea id={id} value={text} spellcheck={false} onInput={(e) => setText(e.currentTarget.value)} />}</Field>
        <div class="filters">
          <Field label="It looks at">
            {(id) => (
              <select id={id} value={scope} onChange={(e) => setScope(e.currentTarget.value)}>
                <option value="MessageAttributes">the attributes</option><option value="MessageBody">the body</option>
              </select>
            )}
          </Field>
          {subscription ? <Act kind="main" disabled={!said?.valid} run={save}>Save filter</Act> : null}
          {subscription && kept ? <Act confirm="Deliver everything to this endpoint?" run={remove}>Remove filter</Act> : null}
          {subscription ? <A class="button" page="subscription" params={{ arn: subscription }}>Back</A> : null}
        </div>
        {said && !said.valid ? <p class="trouble" role="alert"><Safe text={said.error ?? "This policy is not valid."} max={1000} /></p> : null}
      </Section>
      <Section title="Tested on">
        <Field label="Messages">
          {(id) => (
            <select id={id} value={from} onChange={(e) => setChosen(e.currentTarget.value)}>
              <option value="topic">what was published to the topic of late</option>
              {queues.map((q) => <option value={q}>of {nameOf(q)}, as the topic sent them</option>)}
              <option value="own">one of your own</option>
            </select>
          )}
        </Field>
        <Trouble error={unread ?? error} />
        {from === "own" ? (
          <div class="fields">
            <Field label="Body">{(id) => <textarea id={id} value={body} spellcheck={false} onInput={(e) => setBody(e.currentTarget.value)} />}</Field>
            <Field label="Attributes, as JSON">{(id) => <textarea id={id} value={attributes} spellcheck={false} onInput={(e) => setAttributes(e.currentTarget.value)} />}</Field>
          </div>
        ) : null}
        {said?.valid && tested?.of === from ? (
          <>
            <p aria-live="polite"><strong>{count(said.matched)} of {count(tested.on.length)}</strong> come through.</p>
            {tested.on.length ? (
              <Table caption="Results" rows={tested.on.map((m, i) => ({ ...m, through: said.results?.[i] }))} keyOf={(m) => m.id} columns={[
                { name: "message", cell: (m) => <code><Safe text={m.id} /></code> },
                { name: "published", cell: (m) => <Time at={m.at} /> },
                { name: "comes through", cell: (m) => <State of={m.through ? "ok" : "no"} /> },
                { name: "attributes", cell: (m) => <Safe text={m.attributes.map((a) => a.name + "=" + a.value).join(", ")} max={200} /> },
                { name: "body", cell: (m) => <Safe text={m.body} max={120} /> },
              ]} />
            ) : <Empty><p>There is none. Publish something, choose a queue, or test a message of your own.</p></Empty>}
          </>
        ) : null}
      </Section>
    </>
  );
}

// attributesOf makes attributes of an object: numbers and lists are of the types that SNS
// has for them.
function attributesOf(text: string): { name: string; type: string; value: string }[] {
  let of: Record<string, unknown>;
  try {
    of = JSON.parse(text || "{}") as Record<string, unknown>;
  } catch {
    throw new Error("The attributes are not JSON.");
  }
  return Object.entries(of).map(([name, value]) => {
    if (typeof value === "number") return { name, type: "Number", value: String(value) };
    if (Array.isArray(value)) return { name, type: "String.Array", value: JSON.stringify(value) };
    return { name, type: "String", value: String(value) };
  });
}
