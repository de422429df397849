package queues

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/store"
)

// recordWeight is how many bytes of memory an answer takes for each byte of a message: its
// record, its text, and the encoded answer.
const recordWeight = 3

var errNoMemory = errors.New("no memory for the record")

// readRecords reads the records of messages, in key order, as far as memory can be reserved for
// them; it waits for the memory of the first one. rest are the indexes of those that were not
// read. A record is nil if it is in rest, or does not exist, as the message was deleted or has
// expired. Errors: ctx's; a store that cannot be read ends the process, but for one that was closed
// as another node owns the state.
func (q *Queues) readRecords(ctx context.Context, keys [][]byte, memory *limit.Reservation) (records [][]byte, rest []int, err error) {
	records = make([][]byte, len(keys))
	var granted int64 // bytes that were reserved by waiting
	for {
		some, missing, at := false, int64(0), 0
		err = store.GetEach(q.Store, keys, func(i int, record []byte) error {
			weight := recordWeight * int64(len(record))
			if weight <= granted {
				granted -= weight
			} else if !memory.TryMore(weight) {
				missing, at = weight, i
				return errNoMemory
			}
			some = true
			if records[i] = record; len(keys) > 1 { // a single record is a copy already
				records[i] = bytes.Clone(record)
			}
			return nil
		})
		switch {
		case err == nil:
			memory.Shrink(granted)
			return records, nil, nil
		case !errors.Is(err, errNoMemory):
			q.Fatal(err)
			return nil, nil, err
		case !some:
			if err := memory.Grow(ctx, missing-granted); err != nil {
				return nil, nil, err
			}
			granted = missing
			continue
		}
		memory.Shrink(granted)
		for i := range keys {
			if bytes.Compare(keys[i], keys[at]) >= 0 {
				rest = append(rest, i)
			}
		}
		return records, rest, nil
	}
}

// readLeased reads the messages of leases, which are durable, as far as memory can be reserved
// for them. Those that the caller may not decrypt go back, and those that nobody can are withheld; the
// error is that of the first one, if there is no other message.
func (q *Queues) readLeased(ctx context.Context, sh *Shard, found Found, req *ReceiveRequest) (out []Received, bad []unreadable, err error) {
	if len(found.Leases) == 0 {
		return nil, nil, nil
	}
	qs := found.queue
	if req.Admit != nil {
		if err := req.Admit(); err != nil {
			sh.requeue(&found, found.Leases)
			return nil, nil, err
		}
	}
	names := layout.NewKeys(sh.ID, qs.Incarnation)
	keys := make([][]byte, len(found.Leases))
	for i, l := range found.Leases {
		keys[i] = bytes.Clone(names.Record(l.Lane, l.Sequence))
	}
	records, rest, err := q.readRecords(ctx, keys, req.Memory)
	if err != nil {
		sh.requeue(&found, found.Leases)
		return nil, nil, err
	}
	r := reading{queue: qs, origin: found.origin, out: make([]Received, 0, len(found.Leases))}
	for _, at := range rest {
		r.back = append(r.back, found.Leases[at])
	}
	for i, l := range found.Leases {
		q.open(&r, req.Caller, l, keys[i], records[i])
	}
	sh.withhold(&found, r.withheld)
	sh.requeue(&found, r.back)
	for i, err := range slices.Backward(q.sign(r.out)) {
		if err != nil {
			at := slices.IndexFunc(found.Leases, func(l queue.Lease) bool { return l.Sequence == r.out[i].Sequence })
			r.bad = append(r.bad, unreadable{found.Leases[at], err})
			r.out = slices.Delete(r.out, i, i+1)
		}
	}
	if len(r.out) == 0 && len(r.bad) == 0 {
		return nil, nil, r.refused.err
	}
	return r.out, r.bad, nil
}

// reading has the leases of a receive by what becomes of them.
type reading struct {
	queue    *Queue
	origin   uint64        // of its sequence numbers
	out      []Received    // for the client
	back     []queue.Lease // visible again
	withheld []queue.Lease
	bad      []unreadable
	refused  refusedLeases // those of back and withheld that the caller may not decrypt
}

// open decodes and decrypts the record of a lease; nil: it was not read, or does not exist.
func (q *Queues) open(r *reading, who *caller.Caller, l queue.Lease, key, record []byte) {
	if record == nil {
		if err := q.Lost(key); err != nil {
			r.bad = append(r.bad, unreadable{l, err})
		}
		return
	}
	if r.refused.block(r.queue, l) { // it must not overtake the one before it in its group
		r.back = append(r.back, l)
		return
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		r.bad = append(r.bad, unreadable{l, err})
		return
	}
	denied, err := q.decrypt(r.queue, who, m)
	switch {
	case denied && q.unusable(m, err):
		r.refused.add(l, err)
		r.withheld = append(r.withheld, l)
	case denied:
		r.refused.add(l, err)
		r.back = append(r.back, l)
	case err != nil:
		r.bad = append(r.bad, unreadable{l, err})
	default:
		r.out = append(r.out, Received{
			Message: m, Sequence: l.Sequence, Origin: r.origin, ReceiptHandle: q.handles.Seal(r.queue.Shard.ID, r.queue.Incarnation, l),
			Receives: int(m.Receives) + int(l.Receives), FirstReceived: cmp.Or(m.FirstReceived, l.First), FIFO: r.queue.ARN.FIFO(),
		})
	}
}

// unusable reports that nobody can decrypt a message that was refused to a caller, as its key is
// disabled or gone.
func (q *Queues) unusable(m *message.Message, refusal error) bool {
	if fault.KindOf(refusal) != fault.KMSAccessDenied {
		return true
	}
	sealed := *m
	return fault.Is(q.OpenWaiting(&sealed)) // a caller that is denied is not told whether there is a key
}

// refusedLeases are those of a receive whose messages may not be decrypted, as the caller has no
// right to, or as the key is disabled or gone.
type refusedLeases struct {
	leases []queue.Lease
	err    error // of the first one
}

func (r *refusedLeases) add(l queue.Lease, err error) {
	r.leases, r.err = append(r.leases, l), cmp.Or(r.err, err)
}

// block reports that a message comes behind a refused one of its group, in a FIFO queue.
func (r *refusedLeases) block(qs *Queue, l queue.Lease) bool {
	return qs.ARN.FIFO() && slices.ContainsFunc(r.leases, func(o queue.Lease) bool { return o.Lane == l.Lane })
}

// sign adds the missing signatures of the messages of a receive, concurrently. It returns an
// error for each message, nil for those that are complete.
func (q *Queues) sign(received []Received) []error {
	errs := make([]error, len(received))
	var wg sync.WaitGroup
	for i := range received {
		m := received[i].Message
		if m.Unsigned == nil {
			continue
		}
		wg.Go(func() {
			if errs[i] = q.options.Sign(m.Body, m.Unsigned); errs[i] == nil {
				m.Unsigned = nil
				m.Seal()
			}
		})
	}
	wg.Wait()
	return errs
}

// requeue releases leases of a receive that no client has seen: the messages are visible again, and
// the receive is not counted. What other receives with the same attempt have got stays leased.
func (sh *Shard) requeue(found *Found, all []queue.Lease) {
	sh.unanswered(found, all, func(l queue.Lease, now int64) queue.Command {
		return queue.Return{Lease: l, Due: now, Uncounted: true, Attempt: found.attempt}
	})
}

// withhold is requeue for messages that nobody can decrypt now: they stay leased, as the first ones of
// the queue would otherwise be all that anybody finds.
func (sh *Shard) withhold(found *Found, all []queue.Lease) {
	sh.unanswered(found, all, func(l queue.Lease, _ int64) queue.Command {
		return queue.Withhold{Lease: l, Attempt: found.attempt}
	})
}

func (sh *Shard) unanswered(found *Found, all []queue.Lease, command func(l queue.Lease, now int64) queue.Command) {
	if len(all) == 0 {
		return
	}
	qs := found.queue
	sh.RunLazy(func() {
		if qs.Gone {
			return
		}
		now := sh.Now()
		for _, l := range all {
			_, _ = sh.Do(qs, now, command(l, now)) // fails if the message was deleted meanwhile
		}
		sh.Touch(qs)
	})
}

// unreadable is a leased message whose record cannot be read, with the error.
type unreadable struct {
	lease queue.Lease
	err   error
}

// quarantine keeps messages that cannot be read or signed leased until the next start of the
// process, so that they do not block others.
func (sh *Shard) quarantine(qs *Queue, all []unreadable) {
	gone := false
	sh.RunLazy(func() {
		if gone = qs.Gone; gone {
			return
		}
		for _, u := range all {
			_, _ = sh.Do(qs, sh.Now(), queue.Quarantine{Lease: u.lease}) // fails if the lease has ended
		}
		sh.Touch(qs)
	})
	for _, u := range all {
		if !gone {
			sh.module.Logger.Error("a message cannot be read, and is quarantined until the next start",
				"queue", qs.ARN.String(), "sequence", u.lease.Sequence, "error", u.err)
		}
	}
}
