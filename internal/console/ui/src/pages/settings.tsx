import { h } from "preact";
import { useState } from "preact/hooks";
import { has, useData } from "../api";
import { Choice, Empty, Field, Filter, Page, Section, Shown, Table } from "../components";
import { paint, scheme } from "../paint";
import { place } from "../router";
import { Safe } from "../text";

export function SettingsPage() {
  return (
    <Page title="Settings">
      <Appearance />
      {has("settings") ? <Server /> : null}
    </Page>
  );
}

interface Setting {
  name: string;
  value: string;
  default: string;
  help: string;
}

// Server is how the server was started, without its secrets.
function Server() {
  const p = place.value.params;
  const settings = useData<{ settings: Setting[] }>("settings", {}, 0);
  const looked = (p.search ?? "").toLowerCase();
  return (
    <Section title="This server" hint="How it was started. Settings are changed by its flags, its file or its environment, and a restart.">
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Filter name="search" label="Name or meaning contains" />
        <Choice name="which" label="Which" options={[["", "all"], ["changed", "not the default"]]} />
      </form>
      <Shown of={settings}>
        {(data) => {
          const some = (data.settings ?? []).filter((s) => (s.name + " " + s.help).toLowerCase().includes(looked) && (p.which !== "changed" || s.value !== s.default));
          return some.length ? (
            <Table caption="Settings" rows={some} keyOf={(s) => s.name} columns={[
              { name: "setting", cell: (s) => <code><Safe text={s.name} /></code> },
              { name: "value", cell: (s) => (s.value === s.default ? <span class="hint"><Safe text={s.value || "none"} max={500} /></span> : <strong><Safe text={s.value || "none"} max={500} /></strong>) },
              { name: "meaning", cell: (s) => <Safe text={s.help} max={1000} /> },
            ]} />
          ) : <Empty><p>No setting is like that.</p></Empty>;
        }}
      </Shown>
    </Section>
  );
}

// Appearance is kept by the browser.
function Appearance() {
  const [now, setNow] = useState(scheme());
  return (
    <Section title="This browser">
      <Field label="Colours">{(id) => (
        <select id={id} value={now} onChange={(e) => { setNow(e.currentTarget.value); paint(e.currentTarget.value); }}>
          <option value="">as the system has them</option><option value="light">light</option><option value="dark">dark</option>
        </select>
      )}</Field>
    </Section>
  );
}
