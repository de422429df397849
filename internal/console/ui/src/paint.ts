// The colours of the page: the browser keeps which were chosen.
import { signal } from "@preact/signals";
import { tell } from "./components";

const kept = "godwit-scheme";

// painted counts how often the page got its colours: what draws on a canvas has to do so again.
export const painted = signal(0);

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => painted.value++);

// scheme is what was chosen; empty: what the system has.
export function scheme(): string {
  try {
    return localStorage.getItem(kept) ?? "";
  } catch {
    return ""; // a browser that keeps nothing
  }
}

// paint gives the page its colours, and keeps what was chosen.
export function paint(chosen?: string) {
  if (chosen !== undefined) {
    try {
      localStorage.setItem(kept, chosen);
    } catch {
      tell("This browser keeps nothing: it is forgotten with the page.", true);
    }
  }
  document.documentElement.style.colorScheme = (chosen ?? scheme()) || "light dark";
  painted.value++;
}
