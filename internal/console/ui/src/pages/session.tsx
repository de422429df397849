import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, last, openSession, session } from "../api";
import { Act, Field, tell, Trouble } from "../components";
import { place, refine } from "../router";
import { Safe } from "../text";
import { sign } from "../sign";

// SignIn has the browser sign a request with the access key: the secret key does not
// leave this page.
// The sign-in by an identity provider comes back with a word on why it let nobody in.
const reasons: Record<string, string> = {
  refused: "The identity provider did not vouch for you. The server's log says why.",
  over: "That took too long, or began in another browser. Sign in again.",
  unreachable: "The identity provider does not answer. Try again, or use an access key.",
  nobody: "Nobody has given you a role on this server. Ask who manages it (--console-oidc-roles).",
};

export function SignIn() {
  const [key, setKey] = useState("");
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const who = session.value;
  const why = reasons[place.value.params["sign-in"] ?? ""];
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (who?.over) form.current?.querySelector("input")?.focus(); // what had the focus is not there any more
  }, []);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await sign(key.trim(), secret.trim());
      setSecret("");
      if (why) refine({ "sign-in": "" });
      await openSession();
    } catch (err) {
      setError(err as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form ref={form} class="sign-in" onSubmit={submit}>
      <h1 tabIndex={-1}>Sign in to Godwit</h1>
      {who?.over ? <p class="trouble" role="alert">Your session has ended. Sign in to go on where you were.</p> : null}
      <Trouble error={error} />
      {why ? <p class="trouble" role="alert">{why}</p> : null}
      {who?.provider && who.providerPath ? (
        <>
          <a class="button main" href={who.providerPath + "?to=" + encodeURIComponent(why ? "" : location.pathname + location.search)}>Sign in with <Safe text={who.provider} /></a>
          <p class="hint">Or with an access key:</p>
        </>
      ) : null}
      <Field label="Access key">{(id) => <input id={id} value={key} required autocomplete="username" spellcheck={false} onInput={(e) => setKey(e.currentTarget.value)} />}</Field>
      <Field label="Secret access key">{(id) => <input id={id} type="password" value={secret} required autocomplete="current-password" onInput={(e) => setSecret(e.currentTarget.value)} />}</Field>
      <p class="hint">The access key of the root user, or of a user who is allowed <code>godwit:Read</code>. The secret key stays in this page: it signs one request.</p>
      <button type="submit" class={who?.provider ? undefined : "main"} aria-disabled={busy || undefined} aria-busy={busy}>Sign in</button>
    </form>
  );
}

// SignedIn says who is signed in, and lets them go.
export function SignedIn() {
  const who = session.value;
  if (!who?.user) return null;
  const leave = async (everywhere: boolean) => {
    await ask("POST", "/_godwit/ui/session/end", {}, { everywhere });
    last.user = "";
    session.value = { ...who, user: undefined, csrf: undefined };
    tell(everywhere ? "Signed out everywhere." : "Signed out.");
  };
  return (
    <div class="signed-in">
      <p class="hint">Signed in as <Safe text={who.user} /></p>
      <Act run={() => leave(false)}>Sign out</Act>
      <Act run={() => leave(true)} confirm="End all sessions of this user, in every browser?">Sign out everywhere</Act>
    </div>
  );
}
