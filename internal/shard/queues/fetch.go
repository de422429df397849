package queues

import (
	"errors"

	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/store"
)

// Do runs a command on a queue, as part of the command under way of the shard: what
// came before may be appended first, so that the store shows it. Errors are those
// that c names; a store that cannot be read ends the process.
func (sh *Shard) Do(qs *Queue, now int64, c queue.Command) (queue.Result, error) {
	r, err := sh.step(qs, (*inParts)(sh), now, c)
	sh.Touch(qs)
	return r, err
}

// ask runs a command that changes nothing, or of which the caller says what it changed.
func (sh *Shard) ask(qs *Queue, now int64, c queue.Command) (queue.Result, error) {
	return sh.step(qs, (*inParts)(sh), now, c)
}

// DoAtOnce is do for a command that must be one commit.
func (sh *Shard) DoAtOnce(qs *Queue, now int64, c queue.Command) (queue.Result, error) {
	r, err := sh.step(qs, (*atOnce)(sh), now, c)
	sh.Touch(qs)
	return r, err
}

func (sh *Shard) step(qs *Queue, r queue.Reader, now int64, c queue.Command) (queue.Result, error) {
	sh.running = qs
	result, err := qs.Machine.Do(r, &sh.Batch, now, c)
	sh.running = nil
	if result.Corrected {
		sh.inconsistent(qs)
	}
	if err != nil && errors.Is(err, queue.ErrRead) {
		sh.engine.Fatal(err)
	}
	return result, err
}

// What a machine reads by: atOnce for a command that must be one commit, inParts for
// one that may be several.
type (
	atOnce  Shard
	inParts Shard
)

// Flush leaves what was written where it is.
func (r *atOnce) Flush() error {
	(*Shard)(r).Readable()
	return nil
}

// Get reads a record.
func (r *atOnce) Get(key []byte) ([]byte, bool, error) { return r.engine.Store.Get(nil, key) }

// Scan walks a span until f returns false.
func (r *atOnce) Scan(span layout.Span, f func(key, value []byte) bool) error {
	return store.Each(r.engine.Store, span, f)
}

// Flush appends what was written, with the queue's counters, so that the store shows
// it.
func (r *inParts) Flush() error {
	sh := (*Shard)(r)
	if sh.Batch.Len() > 0 {
		sh.Touch(sh.running)
		sh.CommitPart(false)
	}
	sh.Readable()
	return nil
}

// Get reads a record.
func (r *inParts) Get(key []byte) ([]byte, bool, error) { return (*atOnce)(r).Get(key) }

// Scan walks a span until f returns false.
func (r *inParts) Scan(span layout.Span, f func(key, value []byte) bool) error {
	return (*atOnce)(r).Scan(span, f)
}

// requeue undoes leases that no client has seen.
func (sh *Shard) requeue(qs *Queue, leases []queue.Lease) {
	if len(leases) == 0 {
		return
	}
	sh.View(func() {
		if qs.Gone {
			return
		}
		now := sh.Now()
		for _, l := range leases {
			// The message may be gone already; then there is nothing to undo.
			_, _ = sh.Do(qs, now, queue.Return{Lease: l, Due: now, Uncounted: true})
		}
		sh.Touch(qs)
	})
}
