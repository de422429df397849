// Package async runs functions with the events that wait in their queues, and
// decides what comes next: another attempt, or the end, of which a dead-letter
// queue and a destination are told.
//
// Invariants:
//   - Every event that is taken is concluded by exactly one call to the engine:
//     EventDone, RetryEvent, ReleaseEvent or a MoveEvent that succeeds. A process
//     that ends before that call has decided nothing, and the engine gives the
//     event out again: a function may run twice with an event, and an end may be
//     told twice, but none is lost.
//   - No call to the engine is made under the consumer's lock: the engine calls
//     Ready under locks of its own.
//   - A function with work under way holds the clock. Waits are the queue's; a
//     function that nothing is due for costs nothing here.
package async
