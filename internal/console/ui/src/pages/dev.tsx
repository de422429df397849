import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { post, useClock, useData } from "../api";
import { Act, Arn, Empty, Facts, Field, Page, Section, Shown, State, Sure, Table, tell } from "../components";
import { place } from "../router";
import { count, span, Time } from "../text";
import type { Overview } from "../types";

// jumps are the stops of the slider, in seconds.
const jumps = [1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 23 * 86400, 25 * 86400];

export function ClockPage() {
  const clock = useClock();
  const server = useData<Overview>("overview", {}, 0).data?.server;
  const [stop, setStop] = useState(2);
  const advance = (by: string) => async () => {
    const moved = await post<{ now: string; ran: number; error?: string }>("clock", { advance: by });
    clock.reload();
    return moved.error ? moved.error : `${count(moved.ran)} timers ran. It is ${moved.now}.`;
  };
  return (
    <Page title="Clock and faults">
      <Section title="Clock">
        <Shown of={clock}>
          {(c) => (
            <>
              <Facts of={[["clock", c.clock], ["now", <Time at={c.now} />], ["next timer", c.next ? <><Time at={c.next} />, in {span((Date.parse(c.next) - Date.parse(c.now)) / 1000)}</> : "none"]]} />
              {c.clock === "virtual" ? (
                <>
                  <Field label={"Move forward by " + span(jumps[stop])}>
                    {(id) => <input id={id} type="range" min="0" max={jumps.length - 1} step="1" value={stop} aria-valuetext={span(jumps[stop])} onInput={(e) => setStop(Number(e.currentTarget.value))} />}
                  </Field>
                  <div class="actions">
                    <Act kind="main" run={advance(jumps[stop] + "s")}>Move {span(jumps[stop])}</Act>
                    <Act disabled={!c.next} run={advance(Math.max((Date.parse(c.next ?? c.now) - Date.parse(c.now)) / 1000, 0) + "s")}>Move to the next timer</Act>
                  </div>
                </>
              ) : <Empty><p>This server goes by the machine's clock, which nobody moves. Start it with <code>godwit dev --clock virtual</code> to see 23 days of retries in seconds.</p></Empty>}
            </>
          )}
        </Shown>
      </Section>
      {server?.mode === "dev" ? (
        <>
          <Faults />
          <Reset account={server.account} region={server.region} />
        </>
      ) : null}
    </Page>
  );
}

function Faults() {
  const faults = useData<{ faults: { arn: string; fault: string }[] }>("faults", {}, 3000);
  const [arn, setArn] = useState(place.value.params.arn ?? "");
  const [fault, setFault] = useState("unavailable");
  const set = (on: string, what: string) => async () => {
    const { note } = await post<{ note: string | null }>("faults", { arn: on, fault: what });
    faults.reload();
    if (note) return note[0].toUpperCase() + note.slice(1) + ".";
    return what === "none" ? "It works again." : "It fails from now on.";
  };
  return (
    <Section title="Faults on purpose" hint="A queue, a function, a stream or a platform fails as its owner's outage would make it. Faults are forgotten when the server ends.">
      <form class="filters" onSubmit={async (e) => { e.preventDefault(); try { tell(await set(arn.trim(), fault)()); } catch (err) { tell((err as Error).message, true); } }}>
        <Field label="ARN; * in the place of the name is all of the service">{(id) => <input id={id} value={arn} size={50} required spellcheck={false} placeholder="arn:aws:sqs:us-east-1:000000000000:orders" onInput={(e) => setArn(e.currentTarget.value)} />}</Field>
        <Field label="Fault">{(id) => (
          <select id={id} value={fault} onChange={(e) => setFault(e.currentTarget.value)}>
            {["unavailable", "throttled", "internal", "denied"].map((f) => <option value={f}>{f}</option>)}
          </select>
        )}</Field>
        <button type="submit">Make it fail</button>
      </form>
      <Shown of={faults}>
        {(data) => data.faults?.length ? (
          <Table caption="Faults" rows={data.faults} keyOf={(f) => f.arn} columns={[
            { name: "what", cell: (f) => <Arn arn={f.arn} /> },
            { name: "fault", cell: (f) => <State of={f.fault} /> },
            { name: "commands", cell: (f) => <Act run={set(f.arn, "none")}>End it</Act> },
          ]} />
        ) : <Empty><p>Nothing is made to fail.</p></Empty>}
      </Shown>
    </Section>
  );
}

// Reset deletes everything of the server's own account, which has to be named.
function Reset({ account, region }: { account: string; region: string }) {
  const [asking, setAsking] = useState(false);
  const run = async () => {
    const gone = await post<Record<string, number>>("reset", { account });
    tell("Deleted: " + (Object.entries(gone).filter(([, n]) => n > 0).map(([what, n]) => count(n) + " " + what).join(", ") || "nothing, as there was nothing") + ".");
  };
  return (
    <Section title="Begin anew" hint="Deletes queues, topics, functions and what they hold. Keys, users and metrics stay.">
      <div><button type="button" class="danger" onClick={() => setAsking(true)}>Reset…</button></div>
      {asking ? (
        <Sure title="Delete everything?" name={account} verb="Delete everything" onClose={() => setAsking(false)} run={run}>
          <p>All queues, topics, subscriptions, functions, streams, alarms, log groups and messages of the account <code>{account}</code> in <code>{region}</code>. Faults end, too.</p>
        </Sure>
      ) : null}
    </Section>
  );
}
