// What is shown is a function of the address: a page's name and its filters. So every
// view can be linked to, and the browser's own buttons work.
import { signal } from "@preact/signals";

export const BASE = "/_godwit/ui/";

export type Params = Record<string, string>;

export interface Place {
  page: string; // "" is the overview
  params: Params;
  at?: number; // how far down it was when it was left, if the browser goes back or forward to it
  left?: string; // the address that it comes back from
}

let now = location.href;

function read(): Place {
  now = location.href;
  const page = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length).replace(/\/+$/, "") : "";
  return { page, params: Object.fromEntries(new URLSearchParams(location.search)) };
}

export const place = signal<Place>(read());

// href is the address of a page. What is empty is left out.
export function href(page: string, params: Record<string, string | undefined | null> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value) query.set(name, value);
  }
  const text = query.toString();
  return BASE + page + (text ? "?" + text : "");
}

// go shows another page. Replaced addresses leave no trace in the history: filters while
// they are typed.
export function go(to: string, replace = false) {
  if (replace) history.replaceState(null, "", to);
  else {
    history.replaceState({ at: scrollY }, "");
    history.pushState(null, "", to);
  }
  place.value = read();
}

// refine changes filters of the page that is shown.
export function refine(change: Record<string, string | undefined | null>, replace = true) {
  go(href(place.value.page, { ...place.value.params, ...change }), replace);
}

addEventListener("popstate", (e) => {
  const left = now;
  place.value = { ...read(), at: (e.state as { at?: number } | null)?.at ?? 0, left };
});

// settle scrolls a page that is come back to down to where it was, as soon as that much of it is
// there, and gives the link that was followed the focus again. Hands at the page end it.
export function settle({ at = 0, left = "" }: Place): () => void {
  const events = ["wheel", "touchstart", "pointerdown", "keydown"];
  const seen = new ResizeObserver(look);
  const stop = () => {
    seen.disconnect();
    for (const e of events) removeEventListener(e, stop);
  };
  function look() {
    scrollTo(0, at);
    if (Math.abs(scrollY - at) > 2 || document.querySelector("main [aria-busy=true]")) return;
    stop();
    const ways = [...document.querySelectorAll<HTMLAnchorElement>("main a")].filter((a) => left.startsWith(a.href)); // filters were added there, perhaps
    ways.sort((a, b) => b.href.length - a.href.length)[0]?.focus({ preventScroll: true });
  }
  for (const e of events) addEventListener(e, stop, { passive: true });
  seen.observe(document.querySelector("main") ?? document.body); // it is told of at once
  return stop;
}
