package shard

import (
	"errors"

	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
)

// do runs a command on a queue, as part of the command under way of the shard: what
// came before may be appended first, so that the store shows it. Errors are those
// that c names; a store that cannot be read ends the process.
func (sh *queueShard) do(qs *queueState, now int64, c queue.Command) (queue.Result, error) {
	r, err := sh.step(qs, (*inParts)(sh), now, c)
	sh.touch(qs)
	return r, err
}

// ask runs a command that changes nothing, or of which the caller says what it changed.
func (sh *queueShard) ask(qs *queueState, now int64, c queue.Command) (queue.Result, error) {
	return sh.step(qs, (*inParts)(sh), now, c)
}

// doAtOnce is do for a command that must be one commit.
func (sh *queueShard) doAtOnce(qs *queueState, now int64, c queue.Command) (queue.Result, error) {
	r, err := sh.step(qs, (*atOnce)(sh), now, c)
	sh.touch(qs)
	return r, err
}

func (sh *queueShard) step(qs *queueState, r queue.Reader, now int64, c queue.Command) (queue.Result, error) {
	sh.running = qs
	result, err := qs.machine.Do(r, &sh.batch, now, c)
	sh.running = nil
	if result.Corrected {
		sh.engine.inconsistent(qs)
	}
	if err != nil && errors.Is(err, queue.ErrRead) {
		sh.engine.fatal(err)
	}
	return result, err
}

// What a machine reads by: atOnce for a command that must be one commit, inParts for
// one that may be several.
type (
	atOnce  queueShard
	inParts queueShard
)

// Flush leaves what was written where it is.
func (r *atOnce) Flush() error {
	(*queueShard)(r).readable()
	return nil
}

// Get reads a record.
func (r *atOnce) Get(key []byte) ([]byte, bool, error) { return r.engine.store.Get(nil, key) }

// Scan walks a span until f returns false.
func (r *atOnce) Scan(span layout.Span, f func(key, value []byte) bool) error {
	return each(r.engine.store, span, f)
}

// Flush appends what was written, with the queue's counters, so that the store shows
// it.
func (r *inParts) Flush() error {
	sh := (*queueShard)(r)
	if sh.batch.Len() > 0 {
		sh.touch(sh.running)
		sh.commitPart(false)
	}
	sh.readable()
	return nil
}

// Get reads a record.
func (r *inParts) Get(key []byte) ([]byte, bool, error) { return (*atOnce)(r).Get(key) }

// Scan walks a span until f returns false.
func (r *inParts) Scan(span layout.Span, f func(key, value []byte) bool) error {
	return (*atOnce)(r).Scan(span, f)
}
