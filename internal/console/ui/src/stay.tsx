// Whether somebody is at the page. A session ends where nobody is: what the page asks for by
// itself does not count, and so it says when there are hands at it.
import { h } from "preact";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, openSession, session, type Session } from "./api";
import { Act } from "./components";
import { clock } from "./text";

const often = 60_000; // at most, in milliseconds, it is said
const notice = 120_000; // before the end of a session it is announced

// ends is when the session will, once that is near.
const ends = signal<Date | null>(null);

let said = -often;

async function stay() {
  const who = session.value;
  if (!who?.user) return;
  said = performance.now();
  session.value = { ...who, ...(await ask<Session>("POST", "/_godwit/ui/session/use")) };
}

function touched() {
  if (session.value?.user && !document.hidden && performance.now() - said > often) void stay().catch(() => {}); // the next one may succeed
}

for (const kind of ["pointerdown", "keydown", "wheel", "touchstart"]) addEventListener(kind, touched, { passive: true, capture: true });

// Ending announces the end of a session, and shows nothing of it afterwards.
export function Ending() {
  const who = session.value;
  const over = who?.user && who.expiresAt ? Date.parse(who.expiresAt) - Date.parse(who.now ?? new Date().toISOString()) : 0;
  useEffect(() => {
    ends.value = null;
    if (!over) return;
    const at = performance.now() + over; // the clocks of this machine and the server's may differ
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(timer);
      const left = at - performance.now();
      if (left > notice) {
        timer = setTimeout(look, left - notice);
        return;
      }
      if (document.hidden && left <= 0) {
        session.value = null; // asked for once somebody looks
        return;
      }
      if (!document.hidden) {
        if (left <= 0 || !ends.value) void openSession().catch(() => {}); // another page may have kept it
        if (left > 0) ends.value = new Date(Date.now() + left);
      }
      timer = setTimeout(look, Math.max(left, 1000));
    };
    document.addEventListener("visibilitychange", look);
    look();
    return () => {
      document.removeEventListener("visibilitychange", look);
      clearTimeout(timer);
    };
  }, [who?.expiresAt]);
  return ends.value ? <div class="notice bad" role="alert">You are signed out at {clock(ends.value).slice(11)}, as nobody seems to be here. <Act run={stay}>Stay signed in</Act></div> : null;
}
