// Text of strangers: bodies, names, tags, what endpoints answer. It is only ever the text
// of a node; and what would hide, reorder or colour it is shown by its code point.
import { h, Fragment, type ComponentChildren } from "preact";

// Not what chooses between the text and the picture of an emoji, which hides nothing.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202f\u2800\ufff9-\uffff]|(?![\ufe0e\ufe0f])\p{Default_Ignorable_Code_Point}|[\p{Cf}\p{Co}\p{Cs}]/gu;

// Safe shows text with its invisible characters made visible. In its own <bdi>, so that it
// does not turn what stands around it.
// Bare text is all that an element has, which then finds out its direction by itself.
export function Safe({ text, max, bare }: { text: string | undefined | null; max?: number; bare?: boolean }) {
  if (text === undefined || text === null || text === "") return null;
  if (bare) return <>{pieces(text)}</>;
  const cut = max !== undefined && text.length > max;
  return (
    <bdi>
      {pieces(cut ? text.slice(0, max) : text)}
      {cut ? "…" : null}
    </bdi>
  );
}

function pieces(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let from = 0;
  for (const found of text.matchAll(hidden)) {
    if (found.index > from) out.push(text.slice(from, found.index));
    out.push(<span class="code-point">{named(found[0])}</span>);
    from = found.index + found[0].length;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

// visible is text for where no markup goes: a title, an option, a drawing.
export const visible = (text: string) => text.replace(hidden, named);

const named = (found: string) => "U+" + found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");

// cell is text for a table of a spreadsheet: what it would take for a formula begins with
// an apostrophe, and quotes are doubled.
export function cell(text: string): string {
  const harmless = /^[=+\-@\t\r\n|%＝＋－＠]/.test(text) ? "'" + text : text;
  return '"' + harmless.replaceAll('"', '""') + '"';
}

// save has the browser keep text as a file.
export function save(name: string, text: string, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: type + ";charset=utf-8" }));
  link.download = name.replace(/[^A-Za-z0-9_.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function count(n: number | undefined | null): string {
  return n === undefined || n === null ? "–" : n.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

export function rate(n: number | undefined | null): string {
  if (n === undefined || n === null) return "–";
  if (n === 0) return "0/s";
  return (n < 10 ? n.toFixed(n < 0.1 ? 3 : 1) : count(Math.round(n))) + "/s";
}

export function bytes(n: number | undefined | null): string {
  if (n === undefined || n === null) return "–";
  if (n < 1024) return n + " B";
  if (n < 1024 * 1024) return (n / 1024).toFixed(1) + " KiB";
  return (n / 1024 / 1024).toFixed(1) + " MiB";
}

// span writes seconds as people say them: 45 s, 3 min 20 s, 23 d 4 h.
export function span(seconds: number | undefined | null): string {
  if (seconds === undefined || seconds === null || !Number.isFinite(seconds)) return "–";
  const sign = seconds < 0 ? "−" : "";
  let rest = Math.abs(seconds);
  if (rest < 10) return sign + (Number.isInteger(rest) ? rest : rest.toFixed(1)) + " s";
  rest = Math.round(rest);
  const parts: string[] = [];
  for (const [name, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]] as const) {
    const n = Math.floor(rest / size);
    if (n > 0) parts.push(`${n} ${name}`);
    rest -= n * size;
    if (parts.length === 2) break;
  }
  return sign + parts.join(" ");
}

// Time shows a moment in the reader's own zone, and exactly on request.
export function Time({ at }: { at: string | undefined | null }) {
  if (!at) return <>–</>;
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return <Safe text={at} />;
  return <time dateTime={moment.toISOString()} title={moment.toISOString()}>{clock(moment)}</time>;
}

export function clock(moment: Date): string {
  const pad = (n: number) => String(n).padStart(2, "0");
  const day = `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())}`;
  return `${day} ${pad(moment.getHours())}:${pad(moment.getMinutes())}:${pad(moment.getSeconds())}`;
}
