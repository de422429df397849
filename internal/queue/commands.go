package queue

import (
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// Command is what a machine can do: one of the structs of this file.
// Times are epoch milliseconds, and durations milliseconds.
type Command interface{ command() }

// Accept adds a message. Result: Sequence.
type Accept struct{ Arrival }

// Receive leases up to Max messages. Those that can be received come in the order in
// which they were sent; where more of them were delayed or came back than memory holds,
// the ones that did so first. Of a queue whose groups block, groups come in the order
// in which their first messages became available, and of each as many messages as
// there are before the next group; those of a backlog, in the order in which they
// became available. It finds only what
// is in memory: where it comes to the end of a window (expired messages and dead
// letters use it up) it stops early, and Probe reports that there is more. Result:
// Leases, Moves. ErrInFlight: nothing can be leased now.
type Receive struct {
	Max        int
	Visibility int64  // how long the messages are hidden
	Epoch      uint32 // of the shard
	// Task takes the messages for a move task: no client receives them, and they
	// are leased until Remove or Return.
	Task bool
	// Attempt is a ReceiveRequestAttemptId, or empty: a receive that is made again
	// within five minutes gets the same messages, if nothing has happened to them.
	Attempt string
}

// Delete deletes a message that was received, with the handle of any of its
// receives. One on its way to another queue does not arrive there: its transfer
// finds nothing to move. ErrGone: there is none. In a FIFO queue the handle must be
// of the latest receive, and that not over: else ErrExpired.
type Delete struct{ Handle }

// ChangeVisibility hides a received message for Timeout from now; 0 returns it at
// once. Any receive's handle will do, and a message whose visibility has run out is
// hidden again; but in a queue whose groups block the handle must be of the latest
// receive, and that not over: else ErrExpired. ErrGone: it was deleted. ErrNotLeased:
// it is on its way to another queue. ErrVisibility: more than 12 h in all.
type ChangeVisibility struct {
	Handle

	Timeout int64
}

// Remove deletes a message whatever its state. ErrGone: there is none.
type Remove struct {
	Lane     layout.Lane
	Sequence uint64
}

// MakeDueNow makes a message that was returned for later due now. Result: Changed,
// false if it is due already, is leased, or was never received. ErrGone: there is
// none.
type MakeDueNow struct {
	Lane     layout.Lane
	Sequence uint64
	// State is the record of its state, if the caller has read it and the message is
	// in no group that blocks; nil: it is read.
	State []byte
}

// Return gives a leased message back, to be received again at Due. With Uncounted
// the receive that leased it had not been made: no client saw the message. With History a
// history record stands beside it from now on. ErrNotLeased: the lease is over, and
// the message may be leased by another.
type Return struct {
	Lease     Lease
	Due       int64
	Uncounted bool
	History   bool
}

// Quarantine keeps a leased message from everybody, as if a move task carried it,
// which at the next start it does not. ErrNotLeased: the lease is over.
type Quarantine struct{ Lease Lease }

// RejectMove gives back a message that the dead-letter queue would not have: it is
// delivered here once more. ErrNotLeased: it is not on its way any more.
type RejectMove struct{ Sequence uint64 }

// Expire returns the leases that have run out to the queue. It handles a bounded
// number; NextTimer says whether there are more.
type Expire struct{}

// Sweep drops messages that are past their retention, a bounded number. Result:
// Removed. NextTimer says when the next sweep is due.
type Sweep struct{}

// Configure changes the behaviour of commands to come. A changed retention holds
// for the messages that are there; so does a FIFO queue's changed delay.
type Configure struct{ Config Config }

// Probe finds out whether a Receive would find something. Result: Found.
type Probe struct{}

// Count counts the messages, after the leases that have run out by now. Result:
// Counts, as exact as it says there.
type Count struct{}

// Oldest finds the oldest message. One that was received three times and not deleted
// does not count, nor do those of the given tenants. Of a FIFO queue all count. Result:
// Sent, when it was sent, or came from another queue; 0: there is none.
type Oldest struct{ Without []layout.Lane }

// Prefetch reads what a Receive of up to Max messages needs, so that NextTimer is
// exact.
type Prefetch struct{ Max int }

func (Accept) command()           {}
func (Receive) command()          {}
func (Delete) command()           {}
func (ChangeVisibility) command() {}
func (Remove) command()           {}
func (MakeDueNow) command()       {}
func (Return) command()           {}
func (Quarantine) command()       {}
func (RejectMove) command()       {}
func (Expire) command()           {}
func (Sweep) command()            {}
func (Configure) command()        {}
func (Probe) command()            {}
func (Count) command()            {}
func (Oldest) command()           {}
func (Prefetch) command()         {}

// Result is what a command answers; each names what it sets.
type Result struct {
	Sequence uint64
	Leases   []Lease
	// Moves are messages that were received often enough and must go to the
	// dead-letter queue. They are leased until Remove or RejectMove.
	Moves   []Lease
	Counts  Counts
	Sent    int64
	Removed int
	Found   bool
	Changed bool
	// Corrected, of any command: a counter disagreed with the records, which is a
	// fault in this program, and was set right.
	Corrected bool
}

// Step runs a command as far as memory goes, and appends to b what it changes. While
// it returns a Need it has answered nothing: Fill the need and call Step again with
// the same command, which continues where it stopped. No other command comes between
// the two. The result goes into r, which was zero.
func (q *Machine) Step(b *mutation.Batch, now int64, c Command, r *Result) (need Need, err error) {
	if q.stale != nil {
		if need = q.resorted(b); !need.Nothing() {
			return need, nil
		}
	}
	switch c := c.(type) {
	case Accept:
		if need = q.needToAccept(c.Lane); need.Nothing() {
			r.Sequence = q.accept(b, now, &c.Arrival)
		}
	case Receive:
		if need = q.needToReceive(now, c.Max); need.Nothing() {
			err = q.receive(b, now, &c, r)
		}
	case Delete:
		need, err = q.delete(b, now, c.Handle)
	case ChangeVisibility:
		need, err = q.changeVisibility(b, now, c.Handle, c.Timeout)
	case Remove:
		need, err = q.remove(b, now, expired{lane: c.Lane, sequence: c.Sequence})
	case MakeDueNow:
		r.Changed, need, err = q.makeDueNow(b, now, &c)
	case Return:
		err = q.returned(b, now, &c)
	case Quarantine:
		err = q.quarantine(b, now, c.Lease)
	case RejectMove:
		err = q.rejectMove(b, now, c.Sequence)
	case Expire:
		q.expire(b, now)
	case Sweep:
		r.Removed, need = q.sweep(b, now)
	case Configure:
		q.configure(b, now, c.Config)
	case Probe:
		r.Found, need = q.probe(now)
	case Count:
		if need = q.needToCount(); need.Nothing() {
			q.expire(b, now)
			r.Counts = q.Counts(now)
		}
	case Oldest:
		r.Sent, need = q.findOldest(now, c.Without)
	case Prefetch:
		need = q.needToReceive(now, c.Max)
	default:
		panic("queue: unknown command") // not which: c would escape to the heap
	}
	return need, err
}

// Do runs a command to its end, and reads from r what it needs. The error is one that
// the command names, or ErrRead with its cause.
func (q *Machine) Do(r Reader, b *mutation.Batch, now int64, c Command) (result Result, err error) {
	for {
		need, err := q.Step(b, now, c, &result)
		if need.Nothing() {
			return result, err
		}
		corrected, err := q.Fill(r, need)
		if err != nil {
			return Result{}, err
		}
		result.Corrected = result.Corrected || corrected
	}
}
