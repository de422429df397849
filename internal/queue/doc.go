// Package queue is the state machine of one queue: of an SQS queue, the backlog of a
// subscription or the events of a function.
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
// applies the batch, with what Save adds to it, as one atomic unit, and reports no result
// before that is as durable as it has to be. After each command NextTimer says when the
// machine has something to do by itself: then the caller calls Expire, which returns leases
// that have run out, and Sweep, which removes messages past their retention.
//
// What a machine reports without a command (Counts, Len, Leases …) is in memory.
//
// # Needs
//
// Memory holds a bounded part of a queue: ten million messages take as much as ten
// thousand. Where a command cannot continue without a record from disk, Step returns a Need
// and no result. Fill reads the need's records through a Reader, and the same command,
// stepped again, continues where it stopped. Do is that loop, and the only one:
//
//	Command ──▶ Step ──▶ Result, error
//	            │  ▲
//	       Need │  │ again
//	            ▼  │
//	            Fill ◀── Reader
//
// In between, the writes of the command so far must be visible to the Reader, or be
// independent of what is read. That is what Reader.Flush is for, and why a command that has
// needs may take several commits. Most commands have none: messages that are sent, received
// and deleted soon never leave memory.
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
//	fresh      never received. Fresh messages are ordered by sequence, from the
//	           head on; memory holds a window of the first ones.
//	scheduled  delayed, or received and returned. They are ordered by (due time,
//	           sequence); memory holds a window of the first ones.
//	leased     received and not yet deleted or returned, or moving to another
//	           queue. All leases are in memory: a queue has at most maxInFlight.
//	held       in a FIFO queue, a returned message is not scheduled but held: it
//	           keeps its place in its group, and blocks the messages behind it.
//
// A message that was received as often as the redrive policy allows is not among the
// Leases of a Receive but among its Moves: leased and moving. The caller transfers it to
// the dead-letter queue, and then calls Remove, or, if it is refused there, RejectMove,
// after which it can be received once more. A move task leases its messages by a Receive
// with Task. An unreadable message is put into Quarantine: leased until the next start.
//
// # Groups
//
// Fresh messages form groups: the main lane is one, and each MessageGroupId has its own.
// Groups that are not empty or blocked are listed, in the order of their first messages. A
// FIFO queue has a second list, of the groups whose first message was returned, in the
// order of these returns. In a FIFO queue a group also holds, in order, its messages that
// were received and not deleted. A leased message at the head removes the group from its
// list; a returned message has its old place. In a standard queue groups are tenants:
// those with a large share of the messages in flight are noisy, and messages of the others
// are received first.
//
// # Invariants
//
//   - A message's record is written once and removed once.
//   - Every fresh message's sequence is at or above the head, every other
//     message of the main lane is below it; likewise in each group.
//   - A group is listed by its first message, unless it is empty or blocked.
//     All blocked groups are in memory.
//   - Each window holds the smallest elements of its order, without a gap.
//   - The counters equal the number of records in each state, in every commit.
//   - A sequence number is never used twice in one incarnation.
//
// # Where to read on
//
// commands.go has the commands, Step and Do; need.go the reads; accept.go, receive.go,
// lease.go, locate.go, sweep.go and oldest.go the commands' work; members.go and tenants.go
// the messages of groups; save.go the state that a restart reads. Packages of their own are
// the indexes of messages: grouping (groups), schedule (delayed and returned ones) and
// leases; packages that others use too: layout (keys and records), message and dedup; and
// packages that know nothing of queues: order (windows) and fair (noisy tenants).
package queue
