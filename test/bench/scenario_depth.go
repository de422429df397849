package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"time"
)

// The targets of a deep queue.
const (
	depthMemory  = 300.0 // MB resident
	depthTimes   = 1.15  // of the CPU of the same operation on an empty queue
	depthRestart = 3.0   // seconds until it serves
)

const (
	depthDelay = 900 // seconds

	returnedMost   = 100_000 // messages; 120,000 can be in flight
	returnedWithin = 3       // seconds, and one more for each returnedRate messages
	returnedRate   = 5_000
)

// The states of a deep queue, and the one that they are compared with.
const (
	shallow   = "empty"
	untouched = "untouched"
	delayed   = "delayed"
	returned  = "returned"
)

// runDepth fills one queue of a fresh server and measures what it costs to
// hold it, to start with it, and to work on it.
func runDepth(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		specs = b.of(inMemory)
	}
	from := newTexts(b.depthSize, b.escapes)
	memories := &table{
		title: "Depth: memory and restarts",
		note: fmt.Sprintf("%d messages of %d bytes in one queue of a fresh server, sent in batches of %d on %d connections. "+
			"Delayed: DelaySeconds %d. Returned: the first %d received once, and visible again. "+
			"Settled: until the server does nothing by itself. Serving: from the start of the process to its first answered ReceiveMessage, "+
			"after an orderly end with its files dropped from the page cache, and after a kill -9 in the end.",
			b.depth, b.depthSize, maxBatch, probeConns, depthDelay, min(b.depth, returnedMost)),
		header: []string{
			"state", "server", "RSS MB before", "full", "restarted", "after the probes", "peak", "data MB",
			"fill msg/s", "µs", "return msg/s", "µs", "settled s", "serving s", "killed s",
		},
	}
	costs := &table{
		title: "Depth: operations",
		note: fmt.Sprintf("%d messages sent, received and deleted in batches of %d, against an empty queue of a fresh server in turn. "+
			"The deep queue's server was started anew, and its files are not in the page cache when a round begins. CPU in µs a message.",
			b.probe, maxBatch),
		header: []string{"state", "server", "send", "× empty", "receive", "× empty", "delete", "× empty", "other cores"},
	}
	b.report.tables = append(b.report.tables, memories, costs)
	for _, sp := range specs {
		for _, state := range []string{untouched, delayed, returned} {
			if err := b.depthState(ctx, sp, state, from, memories, costs); err != nil {
				return fmt.Errorf("%s: %w", state, err)
			}
		}
	}
	return nil
}

// depthRun is one state of one server.
type depthRun struct {
	target
	state string

	before, full, restarted, after float64 // MB resident
	data                           float64 // MB on disk
	fill, back                     sample
	settled, serving, killed       time.Duration
}

func (b *bench) depthState(ctx context.Context, sp spec, state string, from texts, memories, costs *table) error {
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	s := servers[0]
	url, err := b.makeQueues(s, 1)
	if err != nil {
		return err
	}
	d := &depthRun{target: target{bench: b, s: s, url: url[0], from: from}, state: state}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	results, err := d.probes(ctx, sp)
	if err != nil {
		return err
	}
	d.after, _ = memory(s.pid)
	if s.role == subject {
		if d.killed, err = d.restart(ctx, true); err != nil {
			return err
		}
	}
	memories.add(state, s.name, figure(d.before), figure(d.full), figure(d.restarted), figure(d.after), figure(d.maxPeak), figure(d.data),
		figure(d.fill.Throughput), figure(d.fill.ServerCPU), figure(d.back.Throughput), figure(d.back.ServerCPU),
		figure(d.settled.Seconds()), figure(d.serving.Seconds()), figure(d.killed.Seconds()))
	empty, deep := results[0], results[1]
	for _, x := range results {
		row := []string{x.name, s.name}
		for _, part := range cycleParts {
			cpu := x.more[part+"_us"]
			row = append(row, figure(cpu), figure(ratio(cpu, empty.more[part+"_us"])))
		}
		costs.add(append(row, fmt.Sprintf("%.2f", x.OtherCores))...)
	}
	if s.role == subject {
		d.judgeAll(empty, deep)
	}
	return nil
}

func (d *depthRun) judgeAll(empty, deep result) {
	most := max(d.full, d.restarted, d.after)
	what := fmt.Sprintf("%d messages of %d bytes, %s", d.depth, d.depthSize, d.state)
	d.judge(most > 0 && most < depthMemory,
		fmt.Sprintf("%s MB, %s restarted, %s after the probes, peak %s", figure(d.full), figure(d.restarted), figure(d.after), figure(d.maxPeak)),
		"%s: under %.0f MB resident", what, depthMemory)
	slowest := max(d.serving, d.killed).Seconds()
	d.judge(slowest > 0 && slowest < depthRestart,
		fmt.Sprintf("%s s, %s after kill -9", figure(d.serving.Seconds()), figure(d.killed.Seconds())),
		"%s: serving again in under %.0f s", what, depthRestart)
	for _, part := range cycleParts {
		a, e := deep.more[part+"_us"], empty.more[part+"_us"]
		times := ratio(a, e)
		d.judge(times > 0 && times <= depthTimes, fmt.Sprintf("%s × (%s against %s µs)", figure(times), figure(a), figure(e)),
			"%s, %s: at most %.2f × the CPU of an empty queue", what, part, depthTimes)
	}
}

// prepare brings the queue into its state, and the server to rest, started again.
func (d *depthRun) prepare(ctx context.Context) (err error) {
	d.before, _ = memory(d.s.pid)
	delay := 0
	if d.state == delayed {
		delay = depthDelay
	}
	if d.fill, err = d.send(ctx, d.depth, maxBatch, delay); err != nil {
		return err
	}
	d.note("depth", d.state+" fill", d.s.name, 0, d.fill, nil)
	if d.state == returned {
		if d.back, err = d.requeue(ctx); err != nil {
			return err
		}
		d.note("depth", d.state+" return", d.s.name, 0, d.back, nil)
	}
	if d.settled, err = d.settleDown(ctx, d.s); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	d.full, _ = memory(d.s.pid)
	d.data = dirSize(d.s.dir)
	if d.s.role != subject { // the references keep nothing
		return nil
	}
	if d.serving, err = d.restart(ctx, false); err != nil {
		return err
	}
	if _, err := d.settleDown(ctx, d.s); err != nil {
		return err
	}
	d.restarted, _ = memory(d.s.pid)
	return d.check()
}

// restart says how long it took until the server answered a receive. The
// message is given back.
func (d *depthRun) restart(ctx context.Context, killed bool) (time.Duration, error) {
	if err := forget(d.s.dir); err != nil {
		return 0, err
	}
	if err := d.s.restart(ctx, killed); err != nil {
		return 0, err
	}
	began := time.Now()
	c := newConn(d.s.host)
	defer c.close()
	messages, err := openQueue(c, d.url, 0).receive(nil, 1, 0, 0)
	took := d.s.readyIn + time.Since(began)
	if err == nil && len(messages) == 0 && d.state != delayed {
		err = errors.New("nothing to receive after a restart")
	}
	return took, err
}

// requeue receives messages once, up to returnedMost, and waits until the visibility
// timeout has returned them all. They come first again, and so there are no more of them
// in any queue than can be in flight at once.
func (d *depthRun) requeue(ctx context.Context) (sample, error) {
	var firsts atomic.Int64
	want := int64(min(d.depth, returnedMost))
	visibility := returnedWithin + int(want/returnedRate)
	out, err := d.phase(ctx, "return", func(q *queue) step {
		var messages []got
		return func() (work, error) {
			if firsts.Load() >= want {
				return work{}, errDone
			}
			var err error
			if messages, err = q.receive(messages[:0], maxBatch, 0, visibility); err != nil {
				return work{}, err
			}
			for _, m := range messages {
				if m.receives == 1 {
					firsts.Add(1)
				}
			}
			if len(messages) == 0 {
				return work{}, errDone // what is left is in the hands of the others
			}
			return work{messages: len(messages)}, nil
		}
	})
	if n := firsts.Load(); err == nil && n < want*99/100 {
		err = fmt.Errorf("return: only %d of %d messages came", n, want)
	}
	if err != nil {
		return out, err
	}
	return out, pause(ctx, time.Duration(visibility+1)*time.Second)
}

// check compares the queue's counts with what was sent.
func (d *depthRun) check() error {
	c := newConn(d.s.host)
	defer c.close()
	q := openQueue(c, d.url, 0)
	if err := checkLeft(q, d.s, int64(d.depth)); err != nil || d.state != delayed {
		return err
	}
	a, err := q.attributes()
	if err == nil && a.delayed == 0 {
		err = errors.New("no message is delayed")
	}
	return err
}

// probes compares the deep queue with an empty one of a fresh server. Both are
// warm from other work, of which the deep queue's messages were no part.
func (d *depthRun) probes(ctx context.Context, sp spec) ([]result, error) {
	fresh, stop, err := startAll(ctx, []spec{sp}, d.dir)
	if err != nil {
		return nil, err
	}
	defer stop()
	var contenders []contender
	for _, s := range []*server{fresh[0], d.s} {
		urls, err := d.makeQueues(s, 1)
		if err != nil {
			return nil, err
		}
		empty := &target{bench: d.bench, s: s, url: urls[0], from: d.from}
		if _, _, err := empty.probe(ctx); err != nil {
			return nil, err
		}
		if s != d.s {
			contenders = append(contenders, contender{shallow, s, empty.probe})
			continue
		}
		contenders = append(contenders, contender{d.state, s, func(ctx context.Context) (sample, map[string]float64, error) {
			if s.dir != "" {
				if err := forget(s.dir); err != nil {
					return sample{}, nil, err
				}
			}
			return d.probe(ctx)
		}})
	}
	return d.contest(ctx, "depth", d.state+" probes", d.rounds, contenders)
}

// probe sends, receives and deletes some messages. The sample is the send's;
// the CPU of each part stands beside it.
func (t *target) probe(ctx context.Context) (sample, map[string]float64, error) {
	sent, err := t.send(ctx, t.bench.probe, maxBatch, 0)
	if err != nil {
		return sent, nil, err
	}
	receipts, received, err := t.receive(ctx, t.bench.probe, maxBatch)
	if err != nil {
		return sent, nil, err
	}
	removed, err := t.remove(ctx, receipts, maxBatch)
	more := map[string]float64{}
	for i, part := range []sample{sent, received, removed} {
		more[cycleParts[i]+"_us"], more[cycleParts[i]+"_per_s"] = part.ServerCPU, part.Throughput
	}
	sent.OtherCores = max(sent.OtherCores, received.OtherCores, removed.OtherCores)
	return sent, more, err
}

// dirSize is the length of all files below dir, in MB.
func dirSize(dir string) (size float64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += float64(info.Size())
		}
		return nil
	})
	return size / 1e6
}

// ignoreMissing: a server removes files while they are looked at.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
