// What was being typed on a page when the session ended is there again when the same user goes on.
import { useEffect, useRef, useState } from "preact/hooks";
import { last, session } from "./api";

let user = ""; // whose it is
const kept = new Map<string, string>(); // by address and field

// useTyped is the text of a field of the page that is shown.
export function useTyped(field: string, begin: () => string): [text: string, set: (text: string) => void] {
  const at = useRef(location.href + " " + field).current;
  const begun = useRef("");
  const [text, set] = useState(() => {
    if (user !== (session.value?.user ?? "")) kept.clear();
    begun.current = begin();
    return kept.get(at) ?? begun.current;
  });
  const now = useRef(text);
  now.current = text;
  useEffect(() => {
    kept.delete(at);
    return () => {
      if (!last.user || session.value?.user) return; // the page was left, or nobody has to sign in
      if (user !== last.user) kept.clear();
      user = last.user;
      if (now.current !== begun.current) kept.set(at, now.current); // else another may have changed it since
    };
  }, []);
  return [text, set];
}
