import { h, Fragment } from "preact";
import { has, useData } from "../api";
import { A, Arn, Empty, Facts, nameOf, Page, Section, Shown, State, Table, Tiles } from "../components";
import { count, rate, Safe, span, Time } from "../text";
import type { Overview } from "../types";

const words: Record<string, string> = {
  "failing-endpoint": "An endpoint fails",
  paused: "Paused",
  "dead-letters": "Dead letters",
  health: "The server itself",
  alarm: "An alarm",
  "old-backlog": "An old backlog",
  "pending-confirmation": "Not confirmed",
  source: "A source takes no posts",
  job: "A job",
};

export function OverviewPage() {
  const overview = useData<Overview>("overview", {}, 2000, "overview");
  return (
    <Page title="Overview">
      <Shown of={overview}>
        {(o) => (
          <>
            <Tiles of={[
              ["queues", count(o.counts?.queues), <A page="queues">all</A>],
              ["topics", count(o.counts?.topics), <A page="topics">all</A>],
              ["subscriptions", count(o.counts?.subscriptions), <A page="subscriptions">all</A>],
              ["functions", count(o.counts?.functions), <A page="functions">all</A>],
              ["messages in queues", count((o.messages?.visible ?? 0) + (o.messages?.inFlight ?? 0) + (o.messages?.delayed ?? 0))],
              ["owed to subscribers", count((o.owed?.due ?? 0) + (o.owed?.waiting ?? 0) + (o.owed?.inFlight ?? 0))],
              ["published", rate(o.rates?.published)],
              ["delivered", rate(o.rates?.delivered)],
              ["failed attempts", rate(o.rates?.failed)],
            ]} />
            <Section title="What needs a person">
              {o.attention?.length ? (
                <ul class="attention">
                  {o.attention.map((a) => (
                    <li key={a.kind + a.arn + a.text} class={a.severity}>
                      <State of={a.severity} /> <strong>{words[a.kind] ?? a.kind}</strong>{" "}
                      <AttentionLink kind={a.kind} arn={a.arn} text={a.text} />
                      <p><Safe text={a.text} max={400} />{a.since ? <> <span class="hint">since <Time at={a.since} /></span></> : null}</p>
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty><p>Nothing. No endpoint fails, nothing is paused, no dead letters wait.</p></Empty>
              )}
            </Section>
            <Section title="Worst backlogs">
              {o.worst?.length ? (
                <Table caption="Worst backlogs" rows={o.worst} keyOf={(w) => w.arn} columns={[
                  { name: "what", cell: (w) => w.kind },
                  { name: "name", cell: (w) => <Arn arn={w.arn} short /> },
                  { name: "messages", number: true, cell: (w) => count(w.messages) },
                  { name: "oldest", number: true, cell: (w) => span(w.oldestAgeSeconds) },
                ]} />
              ) : (
                <Empty>
                  <p>Nothing waits anywhere.</p>
                  {o.counts?.queues || o.counts?.topics ? null : <Welcome endpoint={o.server?.endpoint} />}
                </Empty>
              )}
            </Section>
            <Section title="This server">
              <Facts of={[
                ["version", <Safe text={o.server?.version} />],
                ["mode", o.server?.mode],
                ["address", <Safe text={o.server?.endpoint} />],
                ["region", <Safe text={o.server?.region} />],
                ["account", <Safe text={o.server?.account} />],
                ["clock", <>{o.server?.clock}, <Time at={o.server?.now} /></>],
                ["started", <Time at={o.server?.startedAt} />],
              ]} />
            </Section>
          </>
        )}
      </Shown>
    </Page>
  );
}

function AttentionLink({ kind, arn = "", text }: { kind: string; arn?: string; text: string }) {
  if (kind === "pending-confirmation") return <A page="subscriptions" params={{ state: kind }}>Show them</A>;
  if (kind === "source") return <A page="source" params={{ name: text.split(":")[0] }}>Show it</A>;
  if (!arn) return null;
  if (kind === "dead-letters" && has("dead-letters")) return <A page="dead-letters" params={{ queue: arn }}><Safe text={nameOf(arn)} /></A>;
  if (kind === "job" && has("jobs")) return <A page="jobs" params={{ arn }}><Safe text={nameOf(arn)} /></A>;
  return <Arn arn={arn} short />;
}

function Welcome({ endpoint }: { endpoint?: string }) {
  const at = endpoint || location.origin;
  return (
    <>
      <p>There is nothing here yet. Make a queue, and send it a message:</p>
      <pre tabIndex={0} aria-label="commands">{`aws --endpoint-url ${at} sqs create-queue --queue-name first
aws --endpoint-url ${at} sqs send-message --queue-url ${at}/000000000000/first --message-body hello`}</pre>
    </>
  );
}
