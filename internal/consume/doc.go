// Package consume leases the due messages of backlogs, has attempts made, and concludes each
// lease by ack, retry, hand-over or release. Implementations of Work define the attempt, and
// the target of the hand-over: package deliver for subscriptions, package invoke/async for
// functions.
//
//	        Ready            Lease               a slot of its host
//	backlog ─────▶   queued ───────▶ waiting ─────────────────────▶ Attempt
//	   ▲                                │ its deadline has passed      │
//	   │                                ▼                              ▼
//	   ├──── Retry, in HandOverWait ◀─ HandOver ◀──────────────────── Ended
//	   ├──── Retry, when the policy says so ◀──────────────────────── Retry
//	   └──── Release, uncounted ◀──────────────────────────────────── Cancelled
//	                                            gone ◀── Ack ◀─────── Done
//
// Invariants:
//   - Every lease is concluded by exactly one call: Ack, Retry, Release, or a
//     HandOver that succeeds. After a crash the next process leases the message again.
//   - A message that has ended is never attempted again: Retry durably stores why it ended,
//     and the next lease goes straight to HandOver. No message waits for a dead-letter
//     queue in memory.
//   - Lock order: backlogs before the consumer, as Ready is called under locks of the
//     backlogs. So Options.Lease, and Work except Host and Plan, are called without the
//     consumer's lock.
//   - A backlog with work in flight holds the clock. One that only waits for a time (a rate
//     limit, a deadline, a pause) does not.
//   - A host that hangs does not take capacity from others: see Pool.
package consume
