package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// runCycle lets each connection send, receive and delete in turn, on one queue
// that always holds a few messages more than are asked for.
func runCycle(ctx context.Context, b *bench) error {
	servers, stop, err := startAll(ctx, b.of(subject, earlier, inMemory, peer), b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title:  "Cycle",
		note:   "Send, receive and delete of one queue; a message counts when it is deleted, the latency is that of all three.",
		header: append(b.loadHeader("batch", "conns"), "send p50", "p99", "receive p50", "p99", "delete p50", "p99"),
	}
	b.report.tables = append(b.report.tables, t)
	for _, batch := range b.batches {
		for _, width := range b.connections {
			label := fmt.Sprintf("batch %d conns %d", batch, width)
			results, err := b.compare(ctx, "cycle", label, b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
				return b.cycleWindow(ctx, s, from, batch, width)
			})
			if err != nil {
				return err
			}
			for _, x := range results {
				row := b.loadCells(x, results, strconv.Itoa(batch), strconv.Itoa(width))
				for _, part := range cycleParts {
					row = append(row, figure(x.more[part+"_p50_ms"]), figure(x.more[part+"_p99_ms"]))
				}
				t.add(row...)
			}
			target := cycleTarget
			if batch > 1 {
				target = cycleBatchTarget
			}
			b.judgeCPU("cycle", label, target, results, inMemory)
		}
	}
	return nil
}

// How many times the in-memory reference's CPU a cycle may cost.
const (
	cycleTarget      = 1.5 // of single messages
	cycleBatchTarget = 1.3
)

var cycleParts = [3]string{"send", "receive", "delete"}

// cycler is one connection's share of a cycle.
type cycler struct {
	q     *queue
	from  texts
	batch int

	sent, removed int64
	parts         [3]histogram
	got           []got
	receipts      [][]byte
	arena         []byte // holds the receipts, which the next answer would overwrite
}

func (c *cycler) step() (work, error) {
	at := time.Now()
	lap := func(part int) {
		now := time.Now()
		c.parts[part].add(now.Sub(at))
		at = now
	}
	if err := c.q.send(c.from, c.batch, 0); err != nil {
		return work{}, err
	}
	lap(0)
	c.sent += int64(c.batch)
	var err error
	if c.got, err = c.q.receive(c.got[:0], c.batch, 0, -1); err != nil || len(c.got) == 0 {
		return work{}, err
	}
	lap(1)
	c.arena, c.receipts = c.arena[:0], c.receipts[:0]
	size := 0
	for _, g := range c.got {
		size += len(g.receipt)
	}
	if cap(c.arena) < size {
		c.arena = make([]byte, 0, 2*size)
	}
	for _, g := range c.got {
		begin := len(c.arena)
		c.arena = append(c.arena, g.receipt...)
		c.receipts = append(c.receipts, c.arena[begin:])
	}
	if err := c.q.remove(c.receipts); err != nil {
		return work{}, err
	}
	lap(2)
	c.removed += int64(len(c.got))
	return work{messages: len(c.got)}, nil
}

func (b *bench) cycleWindow(ctx context.Context, s *server, from texts, batch, width int) (out sample, more map[string]float64, err error) {
	err = b.withQueue(s, func(url string) error {
		all, release := conns(s, width)
		defer release()
		first := openQueue(all[0], url, uint64(width))
		for range width { // so that no receive comes back short
			if err := first.send(from, batch, 0); err != nil {
				return err
			}
		}
		cyclers := make([]*cycler, width)
		steps := make([]step, width)
		for i, c := range all {
			cyclers[i] = &cycler{q: openQueue(c, url, uint64(i)), from: from, batch: batch}
			steps[i] = cyclers[i].step
		}
		if out, err = measure(ctx, s, b.warm, b.window, steps); err != nil {
			return err
		}
		left := int64(width * batch)
		var parts [3]histogram
		for _, c := range cyclers {
			left += c.sent - c.removed
			for i := range parts {
				parts[i].merge(&c.parts[i])
			}
		}
		more = map[string]float64{}
		for i, part := range cycleParts {
			more[part+"_p50_ms"], more[part+"_p99_ms"] = parts[i].latency().P50, parts[i].latency().P99
		}
		return checkLeft(first, s, left)
	})
	return out, more, err
}

// checkLeft compares what a queue says it holds with what it must hold. Peers
// need not count exactly.
func checkLeft(q *queue, s *server, want int64) error {
	if s.role == peer {
		return nil
	}
	a, err := q.attributes()
	if err != nil {
		return err
	}
	if have := a.visible + a.delayed + a.inFlight; have != want {
		return fmt.Errorf("the queue holds %d messages (%d visible, %d delayed, %d in flight) instead of %d",
			have, a.visible, a.delayed, a.inFlight, want)
	}
	return nil
}
