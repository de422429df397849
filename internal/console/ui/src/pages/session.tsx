import { h } from "preact";
import { useState } from "preact/hooks";
import { ask, openSession, session } from "../api";
import { Act, Field, tell, Trouble } from "../components";
import { Safe } from "../text";
import { sign } from "../sign";

// SignIn has the browser sign a request with the access key: the secret key does not
// leave this page.
export function SignIn() {
  const [key, setKey] = useState("");
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await sign(key.trim(), secret.trim());
      setSecret("");
      await openSession();
    } catch (err) {
      setError(err as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="sign-in" onSubmit={submit}>
      <h1 tabIndex={-1}>Sign in to Godwit</h1>
      <p class="hint">With an access key of the root user, or of a user who is allowed <code>godwit:Read</code>. The secret key stays in this page: it signs one request.</p>
      <Trouble error={error} />
      <Field label="Access key">{(id) => <input id={id} value={key} required autocomplete="username" spellcheck={false} onInput={(e) => setKey(e.currentTarget.value)} />}</Field>
      <Field label="Secret access key">{(id) => <input id={id} type="password" value={secret} required autocomplete="current-password" onInput={(e) => setSecret(e.currentTarget.value)} />}</Field>
      <button type="submit" class="main" disabled={busy} aria-busy={busy}>Sign in</button>
    </form>
  );
}

// SignedIn says who is signed in, and lets them go.
export function SignedIn() {
  const who = session.value;
  if (!who?.user) return null;
  const leave = async (everywhere: boolean) => {
    await ask("POST", "/_godwit/ui/session/end", {}, { everywhere });
    session.value = { required: true };
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
