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

// Receive leases up to Max visible messages. A standard queue gives them in the order of
// sending; if more scheduled messages are due than memory holds, those that became due
// first precede. A FIFO queue gives groups in the order in which their first messages
// became visible, and all visible messages of a group before the next group. A backlog
// gives messages in the order in which they became due. A receive finds only messages in
// memory: if expired messages and dead letters use up a window, it stops early, and Probe
// reports that there are more. Result: Leases, Moves. ErrInFlight: nothing can be leased
// now.
type Receive struct {
	Max        int
	Visibility int64  // how long the messages are hidden
	Epoch      uint32 // of the shard
	// Task leases the messages for a move task, until Remove or Return.
	Task bool
	// Attempt is a ReceiveRequestAttemptId, or empty: a receive that is repeated with it
	// within five minutes gets the same messages, if these are unchanged.
	Attempt string
}

// Delete deletes a message that was received, with the handle of any of its
// receives. One that is being moved to another queue does not arrive there: its transfer
// finds nothing to move. ErrGone: there is none. In a FIFO queue the handle must be
// of the latest receive, whose lease must not have ended: else ErrExpired.
type Delete struct{ Handle }

// ChangeVisibility sets the visibility timeout of a received message to Timeout from now;
// 0 makes it visible at once. The handle of any receive is valid, also after the timeout:
// then the message is leased again. In a FIFO queue the handle must be of the latest
// receive, whose lease must not have ended: else ErrExpired. ErrGone: it was deleted.
// ErrNotLeased: it is being moved to another queue. ErrVisibility: more than 12 h in all.
type ChangeVisibility struct {
	Handle

	Timeout int64
}

// Remove deletes a message whatever its state. ErrGone: there is none.
type Remove struct {
	Lane     layout.Lane
	Sequence uint64
}

// MakeDueNow makes a message due now that was returned with a later due time. Result:
// Changed, false if it is due already, is leased, or was never received. ErrGone: there
// is none.
type MakeDueNow struct {
	Lane     layout.Lane
	Sequence uint64
	// State is the record of its state, if the caller has read it and the queue is no FIFO
	// queue; nil: it is read.
	State []byte
}

// Return ends a lease, and makes the message visible again at Due. With Uncounted the
// receive is not counted, as no client saw the message. With History the message has a
// history record from now on. With the Attempt of the Receive it does nothing if a repeat of
// that has got the same lease. ErrNotLeased: the lease has ended; the message may have
// another one.
type Return struct {
	Lease     Lease
	Due       int64
	Uncounted bool
	History   bool
	Attempt   string
}

// Withhold keeps a message leased that a receive could not give to its caller: for as long as its
// lease says, but no longer than the queue's own visibility timeout, since a longer one was asked
// for with messages that the caller gets. The receive is not counted. Attempt is as in Return. ErrNotLeased: the lease has ended.
type Withhold struct {
	Lease   Lease
	Attempt string
}

// Quarantine keeps a message leased until the next start, as a lease of a move task.
// ErrNotLeased: the lease has ended.
type Quarantine struct{ Lease Lease }

// RejectMove returns a message that the dead-letter queue has refused: it can be received
// here once more. ErrNotLeased: it is not being moved any more.
type RejectMove struct{ Sequence uint64 }

// Expire returns the messages whose leases have run out, a bounded number. NextTimer says
// whether there are more.
type Expire struct{}

// Sweep removes messages past their retention, a bounded number. Result: Removed.
// NextTimer says when the next sweep is due.
type Sweep struct{}

// Configure sets the configuration. A changed retention, and a changed delay of a FIFO
// queue, also apply to the messages that are in the queue.
type Configure struct{ Config Config }

// Recount makes a step of what Configure has begun: to count the messages of a FIFO queue that a
// longer delay hides. NextTimer says that there is one to make.
type Recount struct{}

// Probe finds out whether a Receive would find a message. Result: Found.
type Probe struct{}

// Count first expires leases, then counts the messages. Result: Counts, which says how
// exact they are.
type Count struct{}

// Oldest finds the oldest message, without those that were received three times, and those
// of the given tenants. In a FIFO queue all count. Result: Sent, when it was sent, or moved
// here; 0: there is none.
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
func (Withhold) command()         {}
func (Quarantine) command()       {}
func (RejectMove) command()       {}
func (Expire) command()           {}
func (Sweep) command()            {}
func (Configure) command()        {}
func (Recount) command()          {}
func (Probe) command()            {}
func (Count) command()            {}
func (Oldest) command()           {}
func (Prefetch) command()         {}

// Result is the result of a command; each command names the fields that it sets.
type Result struct {
	Sequence uint64
	Leases   []Lease
	// Moves are messages to be moved to the dead-letter queue, by maxReceiveCount. They
	// are leased until Remove or RejectMove.
	Moves   []Lease
	Counts  Counts
	Sent    int64
	Removed int
	Found   bool
	Changed bool
	// Corrected, of any command: a counter disagreed with the records, which is a bug, and
	// was corrected.
	Corrected bool
}

// Step runs a command as far as it can without reads, and appends its writes to b. If it
// returns a Need, the command is not complete: Fill the need, and call Step again with the
// same command, which continues where it stopped. No other command may come in between.
// The result is in r, which must be zero before.
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
	case Withhold:
		err = q.withhold(b, now, &c)
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
		need = q.recountOnce(b, now) // all of a small queue
	case Recount:
		need = q.recountOnce(b, now)
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
		panic("queue: unknown command") // without its name, as c would escape to the heap
	}
	if need.Nothing() && q.countsNothing() {
		q.dropCounts(b)
	}
	return need, err
}

// Do runs a command to its end, filling its needs from r. The error is one that the command
// names, or ErrRead with its cause.
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
