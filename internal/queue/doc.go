// Package queue is the state machine of one queue: what every thing that waits
// in Godwit is kept in, be it an SQS queue or the backlog of a subscription.
//
// A Machine takes commands and the time, changes its own state and appends to
// a mutation.Batch what must be written. It does no I/O and holds a bounded
// part of the queue in memory; where a command cannot go on without a record
// from disk it returns a Need, its caller reads what it asks for, hands it over by
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
// Fresh messages form groups: the main lane is one, and each MessageGroupId has
// one of its own. Groups that something can be received from are listed, in the
// order of their first messages. In a FIFO queue a group also holds, in order,
// those of its messages that were received and are not gone; a leased one at its
// head takes it off the list, and a message that comes back takes its old place,
// where in a standard queue it would be scheduled.
//
// Invariants:
//   - A message's record is written once and removed once.
//   - Every fresh message's sequence is at or above the head, every other
//     message of the main lane is below it; likewise in each group.
//   - A group is listed, under its first message, unless it is empty or blocked.
//     All blocked groups are in memory.
//   - Each window holds the smallest elements of its order, without a gap.
//   - The counters equal the number of records in each state, in every commit.
//   - A sequence number is never used twice in one incarnation.
package queue
