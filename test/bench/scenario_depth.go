package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// What a server that holds the deep queue may keep resident, in MB; how soon it
// must serve again after a kill; and how much more than on an empty queue an
// operation may cost.
const (
	depthTarget   = 300
	restartTarget = 3 * time.Second
	costTarget    = 1.15
)

const (
	depthConns    = 16
	depthDelay    = 900 // seconds
	phaseWithin   = 10 * time.Minute
	returnsAtMost = 1.2 // receives for each message until all have come once
)

// The states of a deep queue. The first is the queue to compare with.
const (
	shallow   = "empty"
	untouched = "untouched"
	delayed   = "delayed"
	returned  = "returned"
)

// runDepth fills one queue of a fresh server and measures what it costs to
// hold it, and to work on it.
func runDepth(ctx context.Context, b *bench) error {
	specs := b.of(subject, peer)
	if len(specs) == 0 {
		specs = b.of(inMemory)
	}
	from := newTexts(b.depthSize, b.escapes)
	t := &table{
		title: "Depth",
		note: fmt.Sprintf("%d messages of %d bytes in one queue of a fresh server; %d connections, batches of %d. "+
			"CPU in µs a message, and how many times that of an empty queue. "+
			"Delayed: DelaySeconds %d. Returned: each received once with a visibility timeout of 0. "+
			"Restart: from the start after a kill -9 until it serves; the probes follow it, so that no message is in a cache.",
			b.depth, b.depthSize, depthConns, maxBatch, depthDelay),
		header: []string{
			"state", "server", "RSS MB before", "full", "restart s", "RSS MB", "after the probes", "peak", "fill msg/s", "µs",
			"return msg/s", "µs", "send µs", "× empty", "receive µs", "× empty", "delete µs", "× empty",
		},
	}
	b.report.tables = append(b.report.tables, t)
	for _, sp := range specs {
		base := map[string]sample{}
		for _, state := range []string{shallow, untouched, delayed, returned} {
			if err := b.depthState(ctx, sp, state, from, t, base); err != nil {
				return fmt.Errorf("%s: %w", state, err)
			}
		}
	}
	return nil
}

// depthRun is one state of one server.
type depthRun struct {
	*bench
	s     *server
	url   string
	state string
	from  texts
	peak  float64
}

func (b *bench) depthState(ctx context.Context, sp spec, state string, from texts, t *table, base map[string]sample) error {
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	s := servers[0]
	return b.withQueue(s, func(url string) error {
		d := &depthRun{bench: b, s: s, url: url, state: state, from: from}
		before, _ := memory(s.pid)
		var fill, back sample
		if state != shallow {
			if fill, err = d.fill(ctx); err != nil {
				return err
			}
		}
		if state == returned {
			if back, err = d.giveBack(ctx); err != nil {
				return err
			}
		}
		if err := pause(ctx, b.settle); err != nil {
			return err
		}
		if err := d.check(); err != nil {
			return err
		}
		full, _ := memory(s.pid)
		restart, again, err := d.restart(ctx)
		if err != nil {
			return err
		}
		if state == shallow {
			if _, err := d.probes(ctx); err != nil {
				return err
			}
		}
		probes, err := d.probes(ctx)
		if err != nil {
			return err
		}
		after, _ := memory(s.pid)
		row := []string{
			state, s.name, figure(before), figure(full), figure(restart.Seconds()), figure(again), figure(after), figure(d.peak),
			figure(fill.Throughput), figure(fill.ServerCPU), figure(back.Throughput), figure(back.ServerCPU),
		}
		for _, part := range cycleParts {
			if state == shallow {
				base[part] = probes[part]
			}
			row = append(row, figure(probes[part].ServerCPU), figure(ratio(probes[part].ServerCPU, base[part].ServerCPU)))
		}
		t.add(row...)
		if state != shallow && s.role == subject {
			b.judgeDepth(state, map[string]float64{"full": full, "restarted": again, "probed": after}, restart, probes, base)
		}
		return nil
	})
}

// judgeDepth compares a state with the targets. resident is in MB.
func (b *bench) judgeDepth(state string, resident map[string]float64, restart time.Duration, probes, base map[string]sample) {
	of := fmt.Sprintf("%d messages of %d bytes, %s: ", b.depth, b.depthSize, state)
	full, again, after := resident["full"], resident["restarted"], resident["probed"]
	worst, costs := 0.0, ""
	for _, part := range cycleParts {
		r := ratio(probes[part].ServerCPU, base[part].ServerCPU)
		worst, costs = max(worst, r), costs+fmt.Sprintf("%s %s ", part, figure(r))
	}
	b.report.Verdicts = append(b.report.Verdicts,
		verdict{
			What: of + fmt.Sprintf("under %d MB resident", depthTarget),
			Met:  full > 0 && max(full, again, after) < depthTarget,
			Says: fmt.Sprintf("%s MB, %s after a restart, %s after the probes", figure(full), figure(again), figure(after)),
		},
		verdict{
			What: of + fmt.Sprintf("serves %s after a kill", restartTarget),
			Met:  restart < restartTarget,
			Says: fmt.Sprintf("%s s", figure(restart.Seconds())),
		},
		verdict{
			What: of + fmt.Sprintf("at most %.2f × the CPU of an empty queue", costTarget),
			Met:  worst <= costTarget,
			Says: costs,
		})
}

// restart kills the server and starts it again. It does nothing to a peer.
func (d *depthRun) restart(ctx context.Context) (took time.Duration, resident float64, err error) {
	if d.s.cmd == nil || d.s.role != subject {
		return 0, 0, nil // the references do not load what they kept
	}
	if err := d.s.restart(ctx); err != nil {
		return 0, 0, fmt.Errorf("restart: %w", err)
	}
	if err := d.check(); err != nil {
		return 0, 0, fmt.Errorf("after the restart: %w", err)
	}
	resident, _ = memory(d.s.pid)
	fmt.Fprintf(d.progress, "%-7s %s: serves %s after a kill, rss %s MB\n",
		"depth", d.state, d.s.readyIn.Round(time.Millisecond), figure(resident))
	return d.s.readyIn, resident, pause(ctx, d.settle)
}

// phase measures one part of a run and remembers the peak of memory.
func (d *depthRun) phase(ctx context.Context, name string, makeStep func(*queue) step) (sample, error) {
	all, release := conns(d.s, depthConns)
	defer release()
	steps := make([]step, len(all))
	for i, c := range all {
		steps[i] = makeStep(openQueue(c, d.url, uint64(i)))
	}
	out, err := measure(ctx, d.s, 0, phaseWithin, steps)
	if err == nil {
		err = d.s.alive()
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	d.peak = max(d.peak, out.Peak)
	d.note("depth", d.state+" "+name, d.s, 0, out, nil)
	return out, nil
}

// sender sends n messages, in batches, together with the other connections.
func (d *depthRun) sender(left *atomic.Int64, delay int) func(*queue) step {
	return func(q *queue) step {
		return func() (work, error) {
			n := int(min(maxBatch, left.Add(-maxBatch)+maxBatch))
			if n <= 0 {
				return work{}, errDone
			}
			return work{messages: n}, q.send(d.from, n, delay)
		}
	}
}

func (d *depthRun) fill(ctx context.Context) (sample, error) {
	delay := 0
	if d.state == delayed {
		delay = depthDelay
	}
	var left atomic.Int64
	left.Store(int64(d.depth))
	return d.phase(ctx, "fill", d.sender(&left, delay))
}

// giveBack receives each message once, with a visibility timeout of 0 that
// returns it at once. A server may give a message a second time before it has
// given each once; that is bounded.
func (d *depthRun) giveBack(ctx context.Context) (sample, error) {
	var firsts, receives atomic.Int64
	depth := int64(d.depth)
	out, err := d.phase(ctx, "return", func(q *queue) step {
		var messages []got
		return func() (work, error) {
			if firsts.Load() >= depth || receives.Load() >= int64(returnsAtMost*float64(depth))+depthConns*maxBatch {
				return work{}, errDone
			}
			var err error
			if messages, err = q.receive(messages[:0], maxBatch, 0, 0); err != nil {
				return work{}, err
			}
			for _, m := range messages {
				if m.receives == 1 {
					firsts.Add(1)
				}
			}
			receives.Add(int64(len(messages)))
			if len(messages) == 0 {
				return work{}, errDone // what is left is in the hands of the others
			}
			return work{messages: len(messages)}, nil
		}
	})
	if n := firsts.Load(); err == nil && n < depth*99/100 {
		err = fmt.Errorf("return: only %d of %d messages came in %d receives", n, depth, receives.Load())
	}
	return out, err
}

// check compares the queue's counts with what was sent.
func (d *depthRun) check() error {
	if d.state == shallow {
		return nil
	}
	c := newConn(d.s.host)
	defer c.close()
	q := openQueue(c, d.url, 0)
	if err := checkLeft(q, d.s, int64(d.depth)); err != nil || d.state != delayed {
		return err
	}
	a, err := q.attributes()
	if err == nil && a.delayed == 0 {
		err = fmt.Errorf("no message is delayed")
	}
	return err
}

// probes send, receive and delete some messages.
func (d *depthRun) probes(ctx context.Context) (map[string]sample, error) {
	out := map[string]sample{}
	var err error
	var left atomic.Int64
	left.Store(int64(d.probe))
	if out["send"], err = d.phase(ctx, "send", d.sender(&left, 0)); err != nil {
		return nil, err
	}

	var mu sync.Mutex
	var receipts [][]byte
	left.Store(int64(d.probe))
	out["receive"], err = d.phase(ctx, "receive", func(q *queue) step {
		var messages []got
		return func() (work, error) {
			if left.Load() <= 0 {
				return work{}, errDone
			}
			var err error
			if messages, err = q.receive(messages[:0], maxBatch, 0, -1); err != nil {
				return work{}, err
			}
			if len(messages) == 0 {
				return work{}, errDone
			}
			left.Add(-int64(len(messages)))
			mu.Lock()
			defer mu.Unlock()
			for _, m := range messages {
				receipts = append(receipts, append([]byte(nil), m.receipt...))
			}
			return work{messages: len(messages)}, nil
		}
	})
	if err != nil {
		return nil, err
	}
	if short := d.probe - len(receipts); short > d.probe/100 {
		return nil, fmt.Errorf("only %d of %d messages could be received", len(receipts), d.probe)
	}

	var next atomic.Int64
	out["delete"], err = d.phase(ctx, "delete", func(q *queue) step {
		return func() (work, error) {
			end := int(next.Add(maxBatch))
			if end-maxBatch >= len(receipts) {
				return work{}, errDone
			}
			some := receipts[end-maxBatch : min(end, len(receipts))]
			return work{messages: len(some)}, q.remove(some)
		}
	})
	return out, err
}
