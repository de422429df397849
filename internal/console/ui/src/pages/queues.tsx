import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { get, has, useAsked, useData } from "../api";
import { A, Act, Arn, Body, Choice, Empty, exportTable, Facts, Filter, List, Named, nameOf, Page, Pager, Section, Shown, State, Table, tell, Tiles, Trouble } from "../components";
import { place, refine } from "../router";
import { bytes, count, rate, Safe, span, Time } from "../text";
import type { Message, MessagePage, Queue, QueueDetail } from "../types";

export function QueuesPage() {
  const p = place.value.params;
  const queues = useData<{ queues: Queue[]; next: string | null; total: number | null }>("queues", {
    search: p.search, sort: p.sort || "name", kind: p.kind, nonEmpty: p.nonEmpty, cursor: p.cursor, limit: 100,
  });
  return (
    <Page title="Queues">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Filter name="search" label="Name contains" />
        <Choice name="kind" label="Kind" options={[["", "all"], ["standard", "standard"], ["fifo", "FIFO"], ["dead-letter", "dead-letter queues"]]} />
        <Choice name="nonEmpty" label="Messages" options={[["", "any number"], ["true", "some"]]} />
      </form>
      <Shown of={queues}>
        {(data) => data.queues?.length ? (
          <>
            {data.total !== null && data.total !== undefined ? <p class="hint">{count(data.total)} queues{p.sort === "messages" ? "; most messages first, without those that are empty" : ""}</p> : null}
            <Table caption="Queues" rows={data.queues} keyOf={(q) => q.arn} sorted={p.sort || "name"} onSort={(by) => refine({ sort: by, cursor: "" })} columns={[
              { name: "name", sort: "name", cell: (q) => <><Arn arn={q.arn} short />{q.takesDeadLetters ? <span class="tag">dead letters</span> : null}{q.fifo ? <span class="tag">FIFO</span> : null}</> },
              { name: "messages", number: true, sort: "messages", cell: (q) => count(q.messages) },
              { name: "visible", number: true, cell: (q) => count(q.visible) },
              { name: "in flight", number: true, cell: (q) => count(q.inFlight) },
              { name: "delayed", number: true, cell: (q) => count(q.delayed) },
              { name: "oldest", number: true, cell: (q) => span(q.oldestAgeSeconds) },
              { name: "sent", number: true, cell: (q) => rate(q.rates?.sent) },
              { name: "deleted", number: true, cell: (q) => rate(q.rates?.deleted) },
              { name: "dead letters go to", cell: (q) => <Arn arn={q.deadLetterQueue} short /> },
            ]} />
            <Pager next={data.next} />
          </>
        ) : (
          <Empty>
            {p.search || p.kind || p.nonEmpty ? <p>No queue is like that. <A page="queues">Show all queues.</A></p> : <p>There are no queues. Make one with <code>aws sqs create-queue --queue-name first</code>.</p>}
          </Empty>
        )}
      </Shown>
    </Page>
  );
}

export function QueuePage() {
  const arn = place.value.params.arn ?? "";
  const queue = useData<QueueDetail>("queue", { arn }, 2000, "queue");
  const dead = queue.data?.takesDeadLetters;
  return (
    <Page what="Queue" title={<Safe text={nameOf(arn)} />} actions={
      <>
        {dead ? <A class="button main" page="dead-letters" params={{ queue: arn }}>Dead-letter workbench</A> : null}
        {has("metrics") ? <A class="button" page="metrics" params={{ arn }}>Metrics</A> : null}
        <A class="button" page="topology" params={{ root: arn }}>Topology</A>
      </>
    }>
      <Shown of={queue}>
        {(q) => (
          <>
            <Tiles of={[
              ["visible", count(q.visible)], ["in flight", count(q.inFlight)], ["delayed", count(q.delayed)],
              ["oldest", span(q.oldestAgeSeconds)],
              ["sent", rate(q.rates?.sent)], ["received", rate(q.rates?.received)], ["deleted", rate(q.rates?.deleted)],
            ]} />
            <Section title="About">
              <Facts of={[
                ["ARN", <Safe text={q.arn} />],
                ["problem", q.problem ? <Safe text={q.problem} /> : null],
                ["kind", q.fifo ? "FIFO" : "standard"],
                ["encrypted", q.encrypted ? "yes" : "no"],
                ["created", <Time at={q.createdAt} />],
                ["dead letters go to", q.deadLetterQueue ? <><Arn arn={q.deadLetterQueue} short /> after {count(q.maxReceiveCount)} receives</> : "nowhere: there is no redrive policy"],
                ["takes dead letters of", q.sources?.length || q.undelivered?.length ? <List arns={[...q.sources ?? [], ...q.undelivered ?? []]} /> : null],
                ["fed by", q.subscriptions?.length ? <List arns={q.subscriptions} /> : null],
                ["read by functions", q.mappings?.length ? <List arns={q.mappings.map((m) => m.function)} /> : null],
              ]} />
              <Named of={q.attributes} title="Attributes" />
              <Named of={q.tags} title="Tags" />
              {q.totals ? <Named of={Object.fromEntries(Object.entries(q.totals).map(([k, v]) => [k, count(v)]))} title="Since the server began" /> : null}
            </Section>
          </>
        )}
      </Shown>
      {has("messages") ? <Messages queue={arn} /> : null}
    </Page>
  );
}

// Messages looks at what is in a queue, without any effect on it.
function Messages({ queue }: { queue: string }) {
  const p = place.value.params;
  const { data: page, error, look } = useAsked<MessagePage>("messages", { arn: queue, state: p.state, search: p.text, id: p.id, group: p.group, limit: 20 });
  return (
    <Section title="Messages" actions={<A class="button" page="tail" params={{ arn: queue, search: p.text }}>Follow live</A>} hint="Looking changes nothing: no receive is counted, nothing becomes invisible, the order stays.">
      <form class="filters" role="search" onSubmit={(e) => { e.preventDefault(); void look(); }}>
        <Filter name="text" label="Body or attributes contain" />
        <Filter name="id" label="Message id" />
        <Choice name="state" label="State" options={[["", "any"], ["visible", "visible"], ["in-flight", "in flight"], ["delayed", "delayed"]]} />
        <button type="submit" class="main">Look</button>
      </form>
      <Trouble error={error} />
      {page ? (
        <>
          <p class="hint" aria-live="polite">
            {count(page.messages?.length ?? 0)} shown{page.total !== undefined ? <>, {count(page.scanned)} of {count(page.total)} looked at</> : null}
            {page.unreadable ? <>; {count(page.unreadable)} are damaged</> : null}
          </p>
          {page.messages?.length ? (
            <>
              <MessageList queue={queue} messages={page.messages} />
              <div class="actions">
                <button type="button" onClick={() => exportMessages(nameOf(queue), page.messages)}>Save as table</button>
              </div>
            </>
          ) : <Empty><p>{page.next ? "Nothing found so far." : "No message is like that."}</p></Empty>}
          <div class="pager">
            {page.next ? <button type="button" onClick={() => look(page.next)}>{page.messages?.length ? "Next page" : "Search on"}</button> : null}
          </div>
        </>
      ) : <Empty><p>Press <em>Look</em> to see messages. It is recorded who looks.</p></Empty>}
    </Section>
  );
}

export function exportMessages(name: string, messages: Message[]) {
  exportTable(name, ["messageId", "sentAt", "state", "receives", "group", "cause", "bodyEncoding", "body"],
    messages.map((m) => [m.messageId, m.sentAt, m.state, m.receives, m.group, m.deadLetter?.cause, m.bodyEncoding, m.body]));
}

export function MessageList({ queue, messages, selected, onSelect }: {
  queue: string;
  messages: Message[];
  selected?: Set<string>;
  onSelect?: (position: string, on: boolean) => void;
}) {
  return (
    <ul class="messages">
      {messages.map((m) => (
        <li key={m.position}>
          {onSelect ? <input type="checkbox" aria-label={"select message " + m.messageId} checked={selected?.has(m.position)} onChange={(e) => onSelect(m.position, e.currentTarget.checked)} /> : null}
          <OneMessage queue={queue} message={m} />
        </li>
      ))}
    </ul>
  );
}

export function OneMessage({ queue, message }: { queue: string; message: Message }) {
  const [whole, setWhole] = useState<Message | null>(null);
  // The rest of the message may be newer than what was loaded.
  const m = whole ? { ...message, body: whole.body, bodyEncoding: whole.bodyEncoding, bodyTruncated: whole.bodyTruncated } : message;
  return (
    <details class="message">
      <summary>
        <code><Safe text={m.messageId} /></code> <State of={m.state} /> <span class="hint"><Time at={m.sentAt} />, {bytes(m.sizeBytes)}, {count(m.receives)} receives</span>
        <span class="excerpt"><Safe text={m.refused ? m.refused : m.bodyEncoding === "base64" ? "binary" : m.body} max={160} /></span>
      </summary>
      <Facts of={[
        ["back at", m.availableAt ? <Time at={m.availableAt} /> : null],
        ["first received", m.firstReceivedAt ? <Time at={m.firstReceivedAt} /> : null],
        ["group", m.group ? <Safe text={m.group} /> : null],
        ["deduplication id", m.deduplicationId ? <Safe text={m.deduplicationId} /> : null],
        ["sequence number", m.sequenceNumber || null],
        ["sender", m.sender ? <Arn arn={m.sender} /> : null],
        ["died in", m.deadLetter?.from ? <Arn arn={m.deadLetter.from} /> : null],
        ["cause", m.deadLetter?.cause ? <Safe text={m.deadLetter.cause} max={2000} /> : null],
        ["attempts", m.deadLetter?.attempts ?? null],
        ["encrypted", m.encrypted ? "yes" : null],
      ]} />
      {m.attributes?.length ? (
        <Table caption="Attributes" rows={m.attributes} keyOf={(a) => a.name} columns={[
          { name: "attribute", cell: (a) => <Safe text={a.name} /> },
          { name: "type", cell: (a) => <Safe text={a.type} /> },
          { name: "value", cell: (a) => <Safe text={a.value} max={500} /> },
        ]} />
      ) : null}
      {m.refused ? <p class="trouble"><Safe text={m.refused} /></p> : <Body body={m.body} encoding={m.bodyEncoding} truncated={m.bodyTruncated} name={m.messageId} />}
      {m.bodyTruncated ? <Act run={async () => { setWhole(await get<Message>("message", { arn: queue, position: m.position })); tell("All of the body is shown."); }}>Load the whole body</Act> : null}
    </details>
  );
}
