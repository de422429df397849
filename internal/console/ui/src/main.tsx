import { h, Fragment, render, type ComponentType } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { discover, has, openSession, reached, session } from "./api";
import { A, Empty, notice, Page, Trouble } from "./components";
import { paint } from "./paint";
import { place, settle } from "./router";
import { Safe } from "./text";
import { Ending } from "./stay";
import { OverviewPage } from "./pages/overview";
import { QueuePage, QueuesPage } from "./pages/queues";
import { SignIn, SignedIn } from "./pages/session";
import { TopicPage, TopicsPage } from "./pages/topics";
import { SubscriptionPage, SubscriptionsPage } from "./pages/subscriptions";
import { DeadLettersPage } from "./pages/deadletters";
import { JobsPage } from "./pages/jobs";

type Seldom = typeof import("./seldom");

// seldom is null until one of its pages is asked for.
const seldom = signal<Seldom | null>(null);

const pages: Record<string, [title: string, page: ComponentType | keyof Seldom]> = {
  "": ["Overview", OverviewPage],
  queues: ["Queues", QueuesPage],
  queue: ["Queue", QueuePage],
  topics: ["Topics", TopicsPage],
  topic: ["Topic", TopicPage],
  subscriptions: ["Subscriptions", SubscriptionsPage],
  subscription: ["Subscription", SubscriptionPage],
  "dead-letters": ["Dead letters", DeadLettersPage],
  jobs: ["Jobs", JobsPage],
  policy: ["Delivery policy", "PolicyPage"],
  filter: ["Filter policy", "FilterPage"],
  functions: ["Functions", "FunctionsPage"],
  function: ["Function", "FunctionPage"],
  sources: ["Sources", "SourcesPage"],
  source: ["Source", "SourcePage"],
  topology: ["Topology", "TopologyPage"],
  metrics: ["Metrics", "MetricsPage"],
  alarms: ["Alarms", "AlarmsPage"],
  alarm: ["Alarm", "AlarmPage"],
  logs: ["Logs", "LogsPage"],
  tail: ["Live tail", "TailPage"],
  clock: ["Clock and faults", "ClockPage"],
  identity: ["Identity", "IdentityPage"],
  settings: ["Settings", "SettingsPage"],
};

const menu: [group: string, entries: [page: string, name: string][]][] = [
  ["See", [["", "Overview"], ["topics", "Topics"], ["subscriptions", "Subscriptions"], ["queues", "Queues"], ["functions", "Functions"], ["sources", "Sources"], ["topology", "Topology"]]],
  ["Mend", [["dead-letters", "Dead letters"], ["jobs", "Jobs"], ["policy", "Policy simulator"]]],
  ["Watch", [["metrics", "Metrics"], ["alarms", "Alarms"], ["logs", "Logs"], ["tail", "Live tail"]]],
  ["Server", [["clock", "Clock and faults"], ["identity", "Identity"], ["settings", "Settings"]]],
];

// needs is the path of the API that a page is about.
const needs: Record<string, string> = {
  "dead-letters": "dead-letters", policy: "policy-plan", filter: "filter-test", metrics: "metrics", alarms: "alarms", alarm: "alarm",
  logs: "log-groups", jobs: "jobs", identity: "users", sources: "sources", source: "source",
};

const offers = (page: string) => !needs[page] || has(needs[page]);

// above is the entry of the menu that a page belongs to.
const above: Record<string, string> = { queue: "queues", topic: "topics", subscription: "subscriptions", delivery: "subscriptions", filter: "subscriptions", function: "functions", source: "sources", alarm: "alarms" };

function Menu() {
  const [open, setOpen] = useState(false);
  const nav = useRef<HTMLElement>(null);
  const { page: shown } = place.value;
  const now = above[shown] ?? shown;
  useLayoutEffect(() => setOpen(false), [place.value]); // a frame later it would close what was opened meanwhile
  useLayoutEffect(() => { // what is seen open can be closed
    if (!open) return;
    const outside = (e: Event) => {
      if (!nav.current?.contains(e.target as Node)) setOpen(false);
    };
    const escape = (e: KeyboardEvent) => {
      if (e.key !== "Escape") return;
      e.preventDefault();
      setOpen(false);
      if (nav.current?.contains(document.activeElement)) nav.current.querySelector<HTMLElement>(".menu-button")?.focus();
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("keydown", escape, true); // before a notice is closed by it
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("keydown", escape, true);
    };
  }, [open]);
  return (
    <nav ref={nav} aria-label="main" class={open ? "menu open" : "menu"}>
      <div class="brand">
        <A page="">Godwit</A>
        <button type="button" class="menu-button" aria-expanded={open} aria-controls="menu" onClick={() => setOpen(!open)}>Menu</button>
      </div>
      <div id="menu" class="entries">
        {menu.filter(([, entries]) => entries.some(([page]) => offers(page))).map(([group, entries]) => (
          <div>
            <p class="group" id={"menu-" + group}>{group}</p>
            <ul aria-labelledby={"menu-" + group}>
              {entries.filter(([page]) => offers(page)).map(([page, name]) => (
                <li class={page === now ? "current" : undefined}><A page={page} current={page === shown ? "page" : page === now ? "true" : undefined}>{name}</A></li>
              ))}
            </ul>
          </div>
        ))}
        <SignedIn />
      </div>
    </nav>
  );
}

function Notice() {
  const said = notice.value;
  const [held, setHeld] = useState(false); // somebody points at it, or has the focus in it
  const [away, setAway] = useState(document.hidden);
  const before = useRef<Element | null>(null); // what had the focus before it came to the notice
  const close = () => {
    const inside = document.activeElement?.closest(".notice");
    notice.value = null;
    setHeld(false);
    if (!inside) return;
    const to = before.current?.isConnected ? before.current : document.querySelector("h1");
    (to as HTMLElement | null)?.focus({ preventScroll: true });
  };
  useEffect(() => {
    const seen = () => setAway(document.hidden);
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);
  useLayoutEffect(() => {
    if (!said) return;
    const escape = (e: KeyboardEvent) => {
      const field = e.target instanceof HTMLInputElement && e.target.value; // which it empties
      if (e.key === "Escape" && !e.defaultPrevented && !field && !document.querySelector("dialog[open]")) close();
    };
    document.addEventListener("keydown", escape);
    return () => document.removeEventListener("keydown", escape);
  }, [said]);
  useEffect(() => {
    if (!said || said.bad || held || away) return;
    const timer = setTimeout(() => (notice.value = null), Math.max(8000, said.text.length * 80));
    return () => clearTimeout(timer);
  }, [said, held, away]);
  const text = said ? <Safe key={said.n} text={said.text} max={1000} /> : null;
  return (
    <div class="notices">
      <Ending />
      <div class={said ? (said.bad ? "notice bad" : "notice") : undefined} onMouseEnter={() => setHeld(true)} onMouseLeave={() => setHeld(false)}
        onFocusCapture={(e) => { if (!(e.relatedTarget as Element | null)?.closest(".notice")) before.current = e.relatedTarget as Element | null; setHeld(true); }}
        onBlurCapture={() => setHeld(false)}>
        <span role="status">{said?.bad ? null : text}</span>
        {said?.bad ? <span role="alert">{text}</span> : null}
        {said ? <> <button type="button" class="link" aria-label="Close notice" onClick={close}>Close</button></> : null}
      </div>
    </div>
  );
}

// Later fetches pages, and shows one of them.
function Later({ title, name }: { title: string; name: keyof Seldom }) {
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!seldom.value) import("./seldom").then((all) => (seldom.value = all), () => setFailed(true));
  }, []);
  const Shown = seldom.value?.[name];
  if (Shown) return <Shown />;
  if (!failed) return <p class="hint" aria-busy="true">Loading…</p>;
  return (
    <Page title={title}>
      <div class="trouble" role="alert"><p><strong>This page could not be loaded.</strong></p><p>The server does not answer, or has another version since.</p></div>
      <div><button type="button" class="main" onClick={() => location.reload()}>Load it again</button></div>
    </Page>
  );
}

function App() {
  const [error, setError] = useState<Error | null>(null);
  const first = useRef(true);
  const asked = useRef(false); // who it is
  const main = useRef<HTMLElement>(null);
  const begin = () => openSession().then(() => setError(null), setError);
  useEffect(() => {
    const seen = () => {
      if (!document.hidden && session.value === null) void begin();
    };
    document.addEventListener("visibilitychange", seen);
    void begin();
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);
  const inside = session.value !== null && (!session.value.required || !!session.value.user);
  useEffect(() => {
    if (!inside) return;
    void discover();
  }, [inside]);
  const { page, params } = place.value;
  const subject = params.arn ?? params.queue ?? params.name ?? params.subscription ?? params.topic ?? params.root ?? "";
  const found = pages[page];
  const there = typeof found?.[1] !== "string" || seldom.value !== null;
  useEffect(() => {
    document.title = (found ? found[0] : "Not found") + (subject ? " " + subject.split(":").pop() : "") + " – Godwit";
    if (!there || !inside) return;
    if (first.current && !asked.current) {
      first.current = false;
      return;
    }
    main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    if (place.value.at === undefined) scrollTo(0, 0);
  }, [page, subject, there, inside]);
  useEffect(() => (there && inside && place.value.at !== undefined ? settle(place.value) : undefined), [place.value, there, inside]);

  const who = session.value;
  if (who === null) return <main class="alone">{error ? <><Trouble error={error} /><button type="button" onClick={begin}>Try again</button></> : <p class="hint" aria-busy="true">Loading…</p>}</main>;
  if (who.required && !who.user) asked.current = true;
  if (who.required && !who.user) return <main class="alone"><SignIn /><Notice /></main>;
  const Shown = found?.[1];
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      <Menu />
      <main id="content" ref={main} tabIndex={-1}>
        {reached.value ? null : <p class="trouble" role="alert">The server does not answer. What is shown may be old.</p>}
        {Shown && !offers(page) ? (
          <Page title={found[0]}><Empty><p>This server does not offer that. <A page="">To the overview.</A></p></Empty></Page>
        ) : typeof Shown === "string" ? <Later key={page + "?" + (place.value.params.arn ?? "")} title={found[0]} name={Shown} /> : Shown ? <Shown key={page + "?" + (place.value.params.arn ?? "")} /> : (
          <Page title="Not found"><Empty><p>There is no such page. <A page="">To the overview.</A></p></Empty></Page>
        )}
      </main>
      <Notice />
    </>
  );
}

paint();
render(<App />, document.getElementById("app")!);
