// Package queue is the state machine of one queue: what every thing that waits
// in Godwit is kept in, be it an SQS queue or the backlog of a subscription.
//
// A Machine takes commands and the time, changes its own state and appends to
// a mutation.Batch what must be written. It does no I/O and holds a bounded
// part of the queue in memory; where a command cannot go on without a record
// from disk it returns a Need, its caller reads the record, hands it over by
// one of the Fill methods, and calls the command again, which goes on where it
// stopped.
//
// A message is in one of three states.
//
//	fresh      never received. Fresh messages stand in order of sequence, from
//	           the head on; memory holds a window of the first ones.
//	scheduled  delayed, or received and returned. They stand in order of
//	           (due time, sequence); memory holds a window of the first ones.
//	leased     received and not yet deleted or returned, or on its way to
//	           another queue. Leases are all in memory: a queue has at most
//	           MaxInFlight of them.
//
// Invariants:
//   - A message's record is written once and removed once.
//   - Every fresh message's sequence is at or above the head, every other
//     message of the main lane is below it.
//   - Each window holds the smallest elements of its order, without a gap.
//   - The counters equal the number of records in each state, in every commit.
//   - A sequence number is never used twice in one incarnation.
package queue
