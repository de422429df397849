// Package queue is the state machine of one queue: what every thing that waits in
// Godwit is kept in, be it an SQS queue, the backlog of a subscription or the events
// of a function.
//
// # Commands
//
// A Machine takes a Command and the time, changes its own state, and appends to a
// mutation.Batch what must be written:
//
//	r, err := m.Do(reader, &batch, now, queue.Accept{Arrival: a})    // r.Sequence
//	r, err  = m.Do(reader, &batch, now, queue.Receive{Max: 10, …})   // r.Leases, r.Moves
//	r, err  = m.Do(reader, &batch, now, queue.Delete{Handle: h})
//
// It does no I/O, has no clock and starts no goroutine: the same commands at the same
// times give the same state and the same writes. Its caller holds a lock around it,
// applies the batch as one atomic unit, behind what Save adds to it, and tells nobody
// of a result before that is as durable as it has to be. After each command NextTimer
// says when the machine has something to do by itself; then comes Expire, which
// returns leases that have run out, and Sweep, which drops what is past its retention.
//
// What a machine tells without a command (Counts, Len, Leases …) is in memory.
//
// # Needs
//
// Memory holds a bounded part of a queue: ten million messages cost what ten thousand
// cost. Where a command cannot continue without a record from disk, Step returns a Need
// and has answered nothing. Fill reads what the need asks for through a Reader, and
// the same command, stepped again, continues where it stopped. Do is that loop, and the
// only one:
//
//	Command ──▶ Step ──▶ Result, error
//	            │  ▲
//	       Need │  │ again
//	            ▼  │
//	            Fill ◀── Reader
//
// In between, what the command has written already must be visible to the Reader, or
// have nothing to do with what is read: that is what Reader.Flush is for, and why a
// command that needs something may take several commits. Most need nothing: what is
// sent, received and deleted soon never leaves memory.
//
// # The states of a message
//
//	                 Accept                      Accept, delayed or moved here
//	                   │                                     │
//	                   ▼          Receive                    ▼
//	                 fresh ─────────────────▶ leased ◀─── scheduled
//	                   │                       │  │  Receive   ▲
//	                   │                       │  └────────────┘
//	                   │                       │   Return, Expire, ChangeVisibility 0,
//	                   │                       │   RejectMove
//	                   └──────────▶ gone ◀─────┘
//	                    Sweep      Delete, Remove (also of what is scheduled)
//
//	fresh      never received. Fresh messages stand in order of sequence, from
//	           the head on; memory holds a window of the first ones.
//	scheduled  delayed, or received and returned. They stand in order of
//	           (due time, sequence); memory holds a window of the first ones.
//	leased     received and not yet deleted or returned, or moving: on its way to
//	           another queue. Leases are all in memory: a queue has at most
//	           MaxInFlight of them.
//	held       in a queue whose groups block, what is returned is not scheduled but
//	           held: it keeps its place in its group, and blocks what stands behind it.
//
// A message that was received as often as the redrive policy allows is not answered
// to a Receive but listed in Moves, leased and moving. The caller that carries it to the
// dead-letter queue ends that with Remove, or, if it is refused there, with
// RejectMove, after which it is received here once more. A move task takes what it
// carries by a Receive with Task. A message that cannot be read is put into
// Quarantine: leased until the next start.
//
// # Groups
//
// Fresh messages form groups: the main lane is one, and each MessageGroupId has
// one of its own. Groups that something can be received from are listed, in the
// order of their first messages, and, in a FIFO queue, apart in the order in which
// their first messages came back. In a FIFO queue a group also holds, in order,
// those of its messages that were received and are not gone; a leased one at its
// head takes it off the list, and a message that comes back takes its old place.
// In a standard queue groups are tenants: those who hold much of what is in flight
// are noisy, and what there is of the others is received first.
//
// # Invariants
//
//   - A message's record is written once and removed once.
//   - Every fresh message's sequence is at or above the head, every other
//     message of the main lane is below it; likewise in each group.
//   - A group is listed, under its first message, unless it is empty or blocked.
//     All blocked groups are in memory.
//   - Each window holds the smallest elements of its order, without a gap.
//   - The counters equal the number of records in each state, in every commit.
//   - A sequence number is never used twice in one incarnation.
//
// # Where to read on
//
// commands.go has the commands, Step and Do; need.go what is read; accept.go,
// receive.go, lease.go, locate.go, sweep.go and oldest.go what the commands do;
// members.go and tenants.go who belongs to which group; save.go what a restart reads.
// Packages of their own are the orders in which messages stand: grouping (groups),
// schedule (what is delayed or was returned) and leases; what others use too: layout
// (keys and records), message and dedup; and what knows nothing of queues: order (windows
// on orders) and fair (who is noisy).
package queue
