// Package deliver makes the deliveries that topics owe their subscriptions: it
// takes what is due out of the backlogs, sends it, and decides by the retry
// policy what comes next. Senders for the protocols are in its subfolders.
//
// Invariants:
//   - Every delivery that is taken is concluded by exactly one call to the
//     engine: Delivered, Again, Transfer, Drop or Release. A process that ends
//     before that call has decided nothing; the engine gives the delivery out
//     again.
//   - No call to the engine is made under the scheduler's lock: the engine calls
//     Ready under locks of its own.
//   - A subscription with work under way holds the clock. One that waits for a
//     moment (its throttle, a deadline, another try at a dead-letter queue) does
//     not, unless it also has work.
//   - Whoever hangs takes nothing from others: see pool.
package deliver
