// Signature Version 4 of the one request that opens a session.
import { Refused } from "./api";

const path = "/_godwit/ui/session";
const encoder = new TextEncoder();

const hex = (data: ArrayBuffer) => [...new Uint8Array(data)].map((b) => b.toString(16).padStart(2, "0")).join("");

async function mac(key: BufferSource, text: string): Promise<ArrayBuffer> {
  const made = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return crypto.subtle.sign("HMAC", made, encoder.encode(text));
}

async function digest(text: string): Promise<string> {
  return hex(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
}

// sign opens a session. The server says which region requests are signed for, and what
// time it is: the clock of this machine may be wrong.
export async function sign(accessKey: string, secret: string) {
  if (!globalThis.crypto?.subtle) throw new Refused(-1, "This browser signs only over https or on localhost: open the console by such an address.");
  const hint = await fetch(path, { credentials: "same-origin", cache: "no-store" });
  const { region = "us-east-1", now } = (await hint.json()) as { region?: string; now?: string };
  const date = (now ? new Date(now) : new Date()).toISOString().replace(/[-:]|\.\d+/g, "");
  const day = date.slice(0, 8);
  const scope = `${day}/${region}/godwit/aws4_request`;
  const body = "{}";
  const payload = await digest(body);
  const canonical = ["POST", path, "", `host:${location.host}`, `x-amz-content-sha256:${payload}`, `x-amz-date:${date}`, "", "host;x-amz-content-sha256;x-amz-date", payload].join("\n");
  let key: BufferSource = encoder.encode("AWS4" + secret);
  for (const part of [day, region, "godwit", "aws4_request"]) key = await mac(key, part);
  const signature = hex(await mac(key, ["AWS4-HMAC-SHA256", date, scope, await digest(canonical)].join("\n")));
  const answer = await fetch(path, {
    method: "POST", body, credentials: "same-origin",
    headers: {
      "Content-Type": "application/json", "X-Amz-Date": date, "X-Amz-Content-Sha256": payload,
      Authorization: `AWS4-HMAC-SHA256 Credential=${accessKey}/${scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${signature}`,
    },
  });
  if (!answer.ok) {
    const said = (await answer.json().catch(() => ({}))) as { error?: string };
    throw new Refused(answer.status, said.error ?? "The server refuses this key.");
  }
}
