// Package consume takes what is due out of backlogs, has attempts made at it, and
// sees each message to its end. What an attempt is, and where a message that has
// ended is handed over to, is defined by the implementation of Work: package deliver for
// subscriptions, package invoke/async for functions.
//
//	        Ready            Lease               room at its host
//	backlog ─────▶   queued ───────▶ waiting ─────────────────────▶ Attempt
//	   ▲                                │ its deadline has passed      │
//	   │                                ▼                              ▼
//	   ├──── Retry, in RedriveWait ◀─ HandOver ◀───────────────────── Ended
//	   ├──── Retry, when the policy says so ◀──────────────────────── Again
//	   └──── Release, uncounted ◀──────────────────────────────────── Cancelled
//	                                            gone ◀── Ack ◀─────── Done
//
// Invariants:
//   - Every lease is concluded by exactly one call: Ack, Retry, Release, or a
//     HandOver that succeeds. A process that ends before has decided nothing; the
//     backlog gives the message out again.
//   - What has ended is never attempted again: Retry keeps why it ended, durably,
//     and the next lease goes straight to HandOver. Nothing waits for a dead-letter
//     queue in memory.
//   - No call of Options.Lease, or of Work but Host and Plan, is made under the consumer's lock: Ready
//     is called under locks of the backlogs.
//   - A backlog with work under way holds the clock. One that waits for a moment (a
//     throttle, a deadline, a pause) does not, unless it also has work.
//   - A host that hangs does not take capacity from others: see Pool.
package consume
