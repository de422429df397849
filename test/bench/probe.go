package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	probeConns  = 16
	phaseWithin = 30 * time.Minute
	emptyAtMost = 10 * time.Second // for which receives may bring nothing
)

// target is a queue that a fixed amount of work is done on.
type target struct {
	*bench
	s       *server
	url     string
	from    texts
	openAs  func(c *conn, seed uint64) *queue // nil: as a standard queue
	maxPeak float64                           // MB, of all phases
}

func (t *target) open(c *conn, seed uint64) *queue {
	if t.openAs != nil {
		return t.openAs(c, seed)
	}
	return openQueue(c, t.url, seed)
}

// phase runs a step on each of several connections until all have nothing left
// to do.
func (t *target) phase(ctx context.Context, name string, makeStep func(*queue) step) (sample, error) {
	all, release := conns(t.s, probeConns)
	defer release()
	steps := make([]step, len(all))
	for i, c := range all {
		steps[i] = makeStep(t.open(c, uint64(i)))
	}
	out, err := measure(ctx, t.s, 0, phaseWithin, steps)
	if err == nil {
		err = t.s.alive()
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	t.maxPeak = max(t.maxPeak, out.Peak)
	return out, nil
}

// send sends n messages in batches.
func (t *target) send(ctx context.Context, n, batch, delay int) (sample, error) {
	var left atomic.Int64
	left.Store(int64(n))
	return t.phase(ctx, "send", func(q *queue) step {
		return func() (work, error) {
			some := share(&left, batch)
			if some == 0 {
				return work{}, errDone
			}
			return work{messages: some}, q.send(t.from, some, delay)
		}
	})
}

// share takes up to batch of what is left. What could not be used may be added
// to it again.
func share(left *atomic.Int64, batch int) int {
	for {
		have := left.Load()
		some := min(int64(batch), have)
		if left.CompareAndSwap(have, have-some) {
			return int(some)
		}
	}
}

// receive receives n messages in batches, or a few less when what is left is on
// its way to other connections, and keeps them.
func (t *target) receive(ctx context.Context, n, batch int) (receipts [][]byte, out sample, err error) {
	var mu sync.Mutex
	var left atomic.Int64
	left.Store(int64(n))
	out, err = t.phase(ctx, "receive", func(q *queue) step {
		var messages []got
		return func() (work, error) {
			some := share(&left, batch)
			if some == 0 {
				return work{}, errDone
			}
			var err error
			if messages, err = q.receive(messages[:0], some, 0, -1); err != nil {
				return work{}, err
			}
			if len(messages) == 0 {
				return work{}, errDone
			}
			left.Add(int64(some - len(messages)))
			mu.Lock()
			defer mu.Unlock()
			for _, m := range messages {
				receipts = append(receipts, append([]byte(nil), m.receipt...))
			}
			return work{messages: len(messages)}, nil
		}
	})
	if short := n - len(receipts); err == nil && short > n/100 {
		err = fmt.Errorf("only %d of %d messages could be received", len(receipts), n)
	}
	return receipts, out, err
}

// remove deletes messages in batches.
func (t *target) remove(ctx context.Context, receipts [][]byte, batch int) (sample, error) {
	var next atomic.Int64
	return t.phase(ctx, "delete", func(q *queue) step {
		return func() (work, error) {
			end := int(next.Add(int64(batch)))
			if end-batch >= len(receipts) {
				return work{}, errDone
			}
			some := receipts[end-batch : min(end, len(receipts))]
			return work{messages: len(some)}, q.remove(some)
		}
	})
}

// take receives n messages, each connection deleting what it got before it
// receives more. In a FIFO queue a receive can find every group locked by the
// other connections; it tries again.
func (t *target) take(ctx context.Context, n, batch int) (sample, error) {
	var left atomic.Int64
	left.Store(int64(n))
	return t.phase(ctx, "receive and delete", func(q *queue) step {
		var messages []got
		var receipts [][]byte
		lucky := time.Now()
		return func() (work, error) {
			some := share(&left, batch)
			if some == 0 {
				return work{}, errDone
			}
			var err error
			if messages, err = q.receive(messages[:0], some, 0, -1); err != nil {
				return work{}, err
			}
			left.Add(int64(some - len(messages)))
			if len(messages) == 0 {
				if time.Since(lucky) > emptyAtMost {
					return work{}, fmt.Errorf("%d messages can't be received", left.Load())
				}
				return work{}, nil
			}
			receipts = receipts[:0]
			for _, m := range messages {
				receipts = append(receipts, append([]byte(nil), m.receipt...))
			}
			lucky = time.Now()
			return work{messages: len(messages)}, q.remove(receipts)
		}
	})
}

// settleDown waits until a server does nothing any more by itself, at most for
// the time that the sizes say. How long that took is returned.
func (b *bench) settleDown(ctx context.Context, s *server) (time.Duration, error) {
	const (
		look  = 250 * time.Millisecond
		quiet = 0.03 // cores
		looks = 4    // in a row
	)
	began, calm := time.Now(), 0
	last := readUsage(s.pid)
	for calm < looks && time.Since(began) < b.settle {
		if err := pause(ctx, look); err != nil {
			return 0, err
		}
		now := readUsage(s.pid)
		if (now.server - last.server).Seconds() < quiet*now.at.Sub(last.at).Seconds() {
			calm++
		} else {
			calm = 0
		}
		last = now
	}
	return time.Since(began), nil
}
