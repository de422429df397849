// What is shown is a function of the address: a page's name and its filters. So every
// view can be linked to, and the browser's own buttons work.
import { signal } from "@preact/signals";

export const BASE = "/_godwit/ui/";

export type Params = Record<string, string>;

export interface Place {
  page: string; // "" is the overview
  params: Params;
}

function read(): Place {
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
  else history.pushState(null, "", to);
  place.value = read();
}

// refine changes filters of the page that is shown.
export function refine(change: Record<string, string | undefined | null>, replace = true) {
  go(href(place.value.page, { ...place.value.params, ...change }), replace);
}

addEventListener("popstate", () => {
  place.value = read();
});
