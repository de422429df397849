import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { has, post, useClock, useData } from "../api";
import { Act, Arn, Empty, Facts, Field, Page, Section, Shown, State, Sure, Table, tell } from "../components";
import { place } from "../router";
import { count, span, Time } from "../text";

// jumps are the stops of the slider, in seconds.
const jumps = [1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 23 * 86400, 25 * 86400];

export function ClockPage() {
  const clock = useClock();
  const [stop, setStop] = useState(2);
  const advance = (by: string) => async () => {
    const moved = await post<{ now: string; ran: number; error?: string }>("/_godwit/clock", { advance: by });
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
      <Faults />
      {has("reset") ? <Reset /> : null}
    </Page>
  );
}

function Faults() {
  const faults = useData<{ faults: { arn: string; fault: string }[] }>("/_godwit/faults", {}, 3000);
  const [arn, setArn] = useState(place.value.params.arn ?? "");
  const [fault, setFault] = useState("unavailable");
  const set = (on: string, what: string) => async () => {
    await post("/_godwit/faults", { arn: on, fault: what });
    faults.reload();
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

function Reset() {
  const [asking, setAsking] = useState(false);
  return (
    <Section title="Begin anew" hint="Deletes all queues, topics, functions and messages. Only godwit dev does that.">
      <div><button type="button" class="danger" onClick={() => setAsking(true)}>Reset…</button></div>
      {asking ? <Sure title="Delete everything?" name="reset" verb="Delete everything" onClose={() => setAsking(false)} run={async () => { await post("reset", { confirm: "reset" }); tell("Everything is gone."); }}><p>All queues, topics, subscriptions, functions and messages of this server.</p></Sure> : null}
    </Section>
  );
}
