// Package consume leases what is due in backlogs, has attempts made, and concludes each lease
// by ack, retry, hand-over or release. What an attempt is, and where a message that has ended
// is handed over to, is defined by the implementation of Work: package deliver for
// subscriptions, package invoke/async for functions.
//
//	        Ready            Lease               a slot of its host
//	backlog ─────▶   queued ───────▶ waiting ─────────────────────▶ Attempt
//	   ▲                                │ its deadline has passed      │
//	   │                                ▼                              ▼
//	   ├──── Retry, in RedriveWait ◀─ HandOver ◀───────────────────── Ended
//	   ├──── Retry, when the policy says so ◀──────────────────────── Retry
//	   └──── Release, uncounted ◀──────────────────────────────────── Cancelled
//	                                            gone ◀── Ack ◀─────── Done
//
// Invariants:
//   - Every lease is concluded by exactly one call: Ack, Retry, Release, or a
//     HandOver that succeeds. If the process ends before, the message is leased again by
//     the next one.
//   - A message that has ended is never attempted again: Retry durably keeps why it ended,
//     and the next lease goes straight to HandOver. Nothing waits for a dead-letter
//     queue in memory.
//   - Lock order: backlogs before the consumer, as Ready is called under locks of the
//     backlogs. So Options.Lease, and Work but for Host and Plan, are called without the
//     consumer's lock.
//   - A backlog with work in flight holds the clock. One that only waits for a time (a rate
//     limit, a deadline, a pause) does not.
//   - A host that hangs does not take capacity from others: see Pool.
package consume
