// AWS's own APIs, for what the operator API leaves to them: metrics, alarms and logs. A server
// that asks nobody who calls answers the page as it answers any client; where callers are
// asked these pages are not shown, since the page has no key to sign with.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, Refused } from "./api";

// open says that the server takes anybody's calls.
export const open = signal(false);

const targets = { monitoring: "GraniteServiceVersion20100801", logs: "Logs_20140328" };

export interface Where {
  region: string;
  account: string;
}

let own: Where = { region: "us-east-1", account: "000000000000" };

// findOut learns where the server is, and whether it takes anybody's calls.
export async function findOut() {
  const { server } = await get<{ server: Where & { enforced: boolean } }>("overview");
  own = { region: server.region, account: server.account };
  if (server.enforced) return;
  const answer = await fetch("/", { method: "POST", headers: head("monitoring", "DescribeAlarms", own), body: '{"MaxRecords":1}' });
  open.value = answer.ok;
}

function head(service: keyof typeof targets, operation: string, at: Where): Record<string, string> {
  return {
    "Content-Type": "application/x-amz-json-1.1",
    "X-Amz-Target": `${targets[service]}.${operation}`,
    // Nobody checks it: it says which account and region are meant.
    Authorization: `AWS4-HMAC-SHA256 Credential=${at.account}/20260101/${at.region}/${service}/aws4_request, SignedHeaders=host, Signature=0`,
  };
}

// call carries out an operation, where an ARN is, or in the server's own account and region.
export async function call<T>(service: keyof typeof targets, operation: string, input: object, arn?: string): Promise<T> {
  const part = (arn ?? "").split(":");
  const at = part.length > 5 ? { region: part[3], account: part[4] } : own;
  let answer: Response;
  try {
    answer = await fetch("/", { method: "POST", headers: head(service, operation, at), body: JSON.stringify(input) });
  } catch {
    throw new Refused(0, "The server does not answer.");
  }
  const said = (await answer.json().catch(() => ({}))) as { message?: string; Message?: string };
  if (!answer.ok) throw new Refused(answer.status, said.message ?? said.Message ?? `The server answered ${answer.status}.`);
  return said as T;
}

// useCalls loads something by calls, again when its key changes, and every so many
// milliseconds while the page is looked at.
export function useCalls<T>(key: string, load: () => Promise<T>, every: number): { data?: T; error?: Refused; loading: boolean; reload: () => void } {
  const [state, setState] = useState<{ key?: string; data?: T; error?: Refused }>({});
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async () => {
      clearTimeout(timer);
      try {
        const data = await load();
        if (!over) setState({ key, data });
      } catch (err) {
        const error = err instanceof Refused ? err : new Refused(-1, String(err));
        if (!over) setState((old) => ({ key, error, data: old.key === key ? old.data : undefined }));
      }
      if (!over && every > 0 && !document.hidden) timer = setTimeout(run, every);
    };
    const seen = () => {
      if (!document.hidden) void run();
    };
    again.current = () => void run();
    document.addEventListener("visibilitychange", seen);
    void run();
    return () => {
      over = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key]);
  const current = state.key === key;
  return { data: current ? state.data : undefined, error: current ? state.error : undefined, loading: !current, reload: () => again.current() };
}
