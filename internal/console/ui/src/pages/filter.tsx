import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { post, useData } from "../api";
import { A, Act, Arn, Empty, Field, Page, Section, State, Table, Trouble } from "../components";
import { place } from "../router";
import { count, Safe, Time } from "../text";
import type { SubscriptionDetail } from "../types";

interface Tested {
  valid: boolean;
  error: string | null;
  results: { messageId: string; at?: string | null; matches: boolean; why?: string }[] | null;
  matched: number;
  tested: number;
}

export function FilterPage() {
  const { subscription } = place.value.params;
  const sub = useData<SubscriptionDetail>(subscription ? "subscription" : null, { arn: subscription }, 0);
  const topic = place.value.params.topic ?? sub.data?.topic ?? "";
  const wait = subscription && !sub.data;
  return (
    <Page what="Filter policy" title={<Arn arn={subscription ?? topic} short />}>
      <Trouble error={sub.error} />
      {wait ? null : topic ? (
        <Editor key={subscription + (sub.data?.filterPolicy ?? "")} topic={topic} subscription={subscription} kept={sub.data?.filterPolicy ?? ""} keptScope={sub.data?.filterPolicyScope || "MessageAttributes"} saved={sub.reload} />
      ) : <Empty><p>A filter is tested on what a topic was sent of late. <A page="topics">Choose a topic.</A></p></Empty>}
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

function Editor({ topic, subscription, kept, keptScope, saved }: { topic: string; subscription?: string; kept: string; keptScope: string; saved: () => void }) {
  const [text, setText] = useState(laid(kept || "{}"));
  const [scope, setScope] = useState(keptScope);
  const [own, setOwn] = useState(false);
  const [body, setBody] = useState('{"status":"confirmed"}');
  const [attributes, setAttributes] = useState('{"status":"confirmed"}');
  const [tested, setTested] = useState<Tested | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const turn = useRef(0);
  useEffect(() => {
    const mine = ++turn.current;
    const timer = setTimeout(async () => {
      try {
        let on: object = { topic };
        if (own) on = { messages: [{ body, attributes: attributesOf(attributes) }] };
        const said = await post<Tested>("filter-test", { filterPolicy: text, scope, ...on });
        if (mine === turn.current) {
          setTested(said);
          setError(null);
        }
      } catch (err) {
        if (mine === turn.current) setError(err as Error);
      }
    }, 200);
    return () => clearTimeout(timer);
  }, [text, scope, topic, own, body, attributes]);
  const save = async (policy: string | null) => {
    await post("subscription/attributes", { subscription, filterPolicy: policy, ...(policy === null ? {} : { filterPolicyScope: scope }) });
    saved();
    return policy === null ? "Without a filter: everything is delivered." : "Saved. It holds for what is published from now on.";
  };
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
          {subscription ? <Act kind="main" disabled={!tested?.valid} run={() => save(text)}>Save filter</Act> : null}
          {subscription && kept ? <Act confirm="Deliver everything to this endpoint?" run={() => save(null)}>Remove filter</Act> : null}
          {subscription ? <A class="button" page="subscription" params={{ arn: subscription }}>Back</A> : null}
        </div>
        {tested && !tested.valid ? <p class="trouble" role="alert"><Safe text={tested.error ?? "This policy is not valid."} max={1000} /></p> : null}
      </Section>
      <Section title="Tested on" actions={<label class="check"><input type="checkbox" checked={own} onChange={(e) => setOwn(e.currentTarget.checked)} /> a message of your own</label>}>
        <Trouble error={error} />
        {own ? (
          <div class="fields">
            <Field label="Body">{(id) => <textarea id={id} value={body} spellcheck={false} onInput={(e) => setBody(e.currentTarget.value)} />}</Field>
            <Field label="Attributes, as JSON">{(id) => <textarea id={id} value={attributes} spellcheck={false} onInput={(e) => setAttributes(e.currentTarget.value)} />}</Field>
          </div>
        ) : null}
        {tested?.valid ? (
          <>
            <p aria-live="polite"><strong>{count(tested.matched)} of {count(tested.tested)}</strong> {own ? "match" : "messages that the topic was sent of late match"}.</p>
            {tested.results?.length ? (
              <Table caption="Results" rows={tested.results} keyOf={(r) => r.messageId + r.at} columns={[
                { name: "message", cell: (r) => <code><Safe text={r.messageId || "yours"} /></code> },
                { name: "published", cell: (r) => <Time at={r.at} /> },
                { name: "matches", cell: (r) => <State of={r.matches ? "ok" : "no"} /> },
                { name: "why", cell: (r) => <Safe text={r.why} max={300} /> },
              ]} />
            ) : own ? null : <Empty><p>The topic was sent nothing of late. Publish something, or test a message of your own.</p></Empty>}
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
