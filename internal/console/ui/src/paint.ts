// The colours of the page: the browser keeps which were chosen.
import { tell } from "./components";

const kept = "godwit-scheme";

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
}
