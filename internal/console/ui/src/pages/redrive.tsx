import { h, Fragment } from "preact";
import { post, useData } from "../api";
import { Act, Arn, Progress, Section, State } from "../components";
import { Safe, Time } from "../text";
import type { Redrive as Task } from "../types";

// Redrives are the message move tasks of SQS, which programs begin.
export function Redrives({ queue }: { queue: string }) {
  const redrives = useData<{ redrives: Task[] }>("redrives", { arn: queue }, 1000);
  const [first] = redrives.data?.redrives ?? [];
  if (!first) return null;
  const running = first.state === "running" || first.state === "cancelling";
  return (
    <Section title="Redrive of all">
      <div class="job">
        <p><State of={first.state} /> begun <Time at={first.startedAt} />{first.to ? <>, to <Arn arn={first.to} short /></> : ", each to where it came from"}{first.perSecond ? `, at most ${first.perSecond} a second` : ""}.</p>
        <Progress done={first.done} of={Math.max(first.total, first.done)} label="redriven" />
        {first.error ? <p class="trouble"><Safe text={first.error} max={1000} /></p> : null}
        {running ? <Act run={async () => { await post("redrive/cancel", { arn: queue, id: first.id }); redrives.reload(); return "It stops; what was moved stays moved."; }}>Stop</Act> : null}
      </div>
    </Section>
  );
}
