import { h, Fragment } from "preact";
import { post, useData } from "../api";
import { A, Act, Arn, Empty, Facts, Page, Pager, Section, Shown, State, Table, Tiles } from "../components";
import { place } from "../router";
import { bytes, count, Safe, span, Time } from "../text";

interface Source {
  name: string;
  path: string;
  target: string;
  owner: string;
  verification: {
    kind: string; tolerance: number; header: string; algorithm: string; encoding: string; prefix: string;
    timestampHeader: string; idHeader: string; topics: string[]; origins: string[];
  };
  secrets: number;
  mapping: { message: string; subject: string; attributes: Record<string, string>; groupId: string; deduplicationId: string };
  limits: { bytes: number; perSecond: number; concurrent: number };
  paused: boolean;
  problem: string | null;
  warning: string | null;
  createdAt: string | null;
  changedAt: string | null;
}

// timed reports whether the time of a post is looked at.
const timed = (v: Source["verification"]) =>
  ["standard-webhooks", "stripe", "slack"].includes(v.kind) || (v.kind === "sns" && v.tolerance > 0) || (v.kind === "hmac" && v.timestampHeader !== "");

// standing is the word for whether a source takes posts.
const standing = (s: Source) => (s.problem ? "failing" : s.paused ? "paused" : s.warning ? "no target" : "active");

export function SourcesPage() {
  const p = place.value.params;
  const sources = useData<{ sources: Source[]; next: string | null }>("sources", { cursor: p.cursor, limit: 100 }, 5000);
  return (
    <Page title="Sources">
      <p class="hint">Ways in for senders that know nothing of AWS: what they post to <code>--ingest-listen</code> is verified, and becomes a message.</p>
      <Shown of={sources}>
        {(data) => data.sources?.length ? (
          <>
            <Table caption="Sources" rows={data.sources} keyOf={(s) => s.name} columns={[
              { name: "name", cell: (s) => <A page="source" params={{ name: s.name }}><Safe text={s.name} /></A> },
              { name: "state", cell: (s) => <State of={standing(s)} /> },
              { name: "verified by", cell: (s) => s.verification.kind },
              { name: "becomes a message of", cell: (s) => <Arn arn={s.target} short /> },
              { name: "as", cell: (s) => <Arn arn={s.owner} short /> },
              { name: "changed", cell: (s) => <Time at={s.changedAt} /> },
            ]} />
            <Pager next={data.next} />
          </>
        ) : <Empty><p>There are no sources. Make one of a file with <code>godwit sources put shop.yaml</code>.</p></Empty>}
      </Shown>
    </Page>
  );
}

export function SourcePage() {
  const name = place.value.params.name ?? "";
  const source = useData<Source>("source", { name }, 5000);
  const set = (verb: string, said: string) => async () => {
    await post("source/" + verb, { name });
    source.reload();
    return said;
  };
  const text = (of: string) => (of ? <code><Safe text={of} max={1000} /></code> : null);
  return (
    <Page what="Source" title={<Safe text={name} />} actions={
      <>
        {source.data?.paused
          ? <Act kind="main" run={set("resume", "It takes posts again.")}>Take posts again</Act>
          : <Act kind="main" disabled={!source.data} run={set("pause", "Paused: who posts is told to come again.")}>Take no posts</Act>}
        <A class="button" page="sources">All sources</A>
      </>
    }>
      <Shown of={source}>
        {(s) => (
          <>
            <Tiles of={[
              ["state", <State of={standing(s)} />], ["secrets", count(s.secrets)], ["at most", bytes(s.limits.bytes || 256 << 10)],
              ["a second", s.limits.perSecond ? count(s.limits.perSecond) : "any number"], ["at once", count(s.limits.concurrent || 64)],
            ]} />
            <Section title="About">
              <Facts of={[
                ["problem", s.problem ? <Safe text={s.problem} max={1000} /> : null],
                ["warning", s.warning ? <Safe text={s.warning} max={1000} /> : null],
                ["posts to", <code><Safe text={s.path} /></code>],
                ["becomes a message of", <Arn arn={s.target} />],
                ["as", <Arn arn={s.owner} />],
                ["made", <Time at={s.createdAt} />],
                ["changed", <Time at={s.changedAt} />],
              ]} />
            </Section>
            <Section title="How posts are verified" hint="Secrets are never shown. Two are good while one is rotated.">
              <Facts of={[
                ["by", s.verification.kind],
                ["signed within", timed(s.verification) ? span(s.verification.tolerance || 300) : null],
                ["header", text(s.verification.header)],
                ["algorithm", text(s.verification.algorithm)],
                ["encoding", text(s.verification.encoding)],
                ["prefix", text(s.verification.prefix)],
                ["header of the time", text(s.verification.timestampHeader)],
                ["header of the id", text(s.verification.idHeader)],
                ["topics", s.verification.topics?.length ? <ul class="plain">{s.verification.topics.map((t) => <li key={t}><Arn arn={t} /></li>)}</ul> : null],
                ["certificates from", s.verification.origins?.length ? text(s.verification.origins.join(", ")) : null],
              ]} />
            </Section>
            <Section title="What becomes the message">
              <Facts of={[
                ["body", text(s.mapping.message) ?? "the whole body, as it comes"],
                ["subject", text(s.mapping.subject)],
                ["group", text(s.mapping.groupId)],
                ["deduplication id", text(s.mapping.deduplicationId)],
              ]} />
              {Object.keys(s.mapping.attributes ?? {}).length ? (
                <Table caption="Attributes" rows={Object.entries(s.mapping.attributes)} keyOf={(a) => a[0]} columns={[
                  { name: "attribute", cell: (a) => <Safe text={a[0]} /> },
                  { name: "of", cell: (a) => text(a[1]) },
                ]} />
              ) : null}
            </Section>
          </>
        )}
      </Shown>
    </Page>
  );
}
