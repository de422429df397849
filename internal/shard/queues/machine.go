package queues

import (
	"errors"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/store"
)

// Do runs a command on a queue, as part of the shard's command, and marks the queue dirty. If
// the machine has to read the store, the changes so far may be appended as a commit of their
// own. Errors are those that c names; a store that cannot be read ends the process.
func (sh *Shard) Do(qs *Queue, now int64, c queue.Command) (queue.Result, error) {
	r, err := sh.step(qs, (*splittingReader)(sh), now, c)
	sh.Touch(qs)
	return r, err
}

// doUntouched is Do for a command that changes nothing, or whose caller calls Touch if it has
// changed something.
func (sh *Shard) doUntouched(qs *Queue, now int64, c queue.Command) (queue.Result, error) {
	return sh.step(qs, (*splittingReader)(sh), now, c)
}

// DoAtomic is Do for a command that must be in one commit with what the shard's command has
// changed before.
func (sh *Shard) DoAtomic(qs *Queue, now int64, c queue.Command) (queue.Result, error) {
	r, err := sh.step(qs, (*atomicReader)(sh), now, c)
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
		sh.module.Fatal(err)
	}
	return result, err
}

// How a machine reads the store: atomicReader for a command that must be one commit,
// splittingReader for one that may be split into several.
type (
	atomicReader    Shard
	splittingReader Shard
)

// Flush makes earlier commands visible in the store, but not this one, whose batch stays whole.
func (r *atomicReader) Flush() error {
	(*Shard)(r).FlushAppended()
	return nil
}

// Get reads a record.
func (r *atomicReader) Get(key []byte) ([]byte, bool, error) { return r.module.Store.Get(nil, key) }

// Scan walks a span until f returns false.
func (r *atomicReader) Scan(span layout.Span, f func(key, value []byte) bool) error {
	return store.Each(r.module.Store, span, func(key, value []byte) error {
		if !f(key, value) {
			return store.ErrStop
		}
		return nil
	})
}

// Flush appends the command's batch so far, with the queue's counters, and makes it visible in
// the store.
func (r *splittingReader) Flush() error {
	sh := (*Shard)(r)
	if sh.Batch.Len() > 0 {
		sh.Touch(sh.running)
		sh.AppendPartial(journal.Lazy)
	}
	sh.FlushAppended()
	return nil
}

// Get reads a record.
func (r *splittingReader) Get(key []byte) ([]byte, bool, error) { return (*atomicReader)(r).Get(key) }

// Scan walks a span until f returns false.
func (r *splittingReader) Scan(span layout.Span, f func(key, value []byte) bool) error {
	return (*atomicReader)(r).Scan(span, f)
}
