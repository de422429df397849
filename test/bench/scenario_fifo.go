package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// The targets of FIFO queues.
const (
	fifoTimes  = 1.3 // of a standard queue's CPU, at the same depth
	lockedRate = 0.9 // of the rate without the locked backlog
)

// fifoProbes is how many times b.probe a round of batches of ten is. A round of one fills a
// memtable or none: whether its merges are in its CPU or in that of the queue after it was chance.
const fifoProbes = 6

const lockedGroup = "locked"

// runFIFO compares a deep FIFO queue with a standard queue as deep on the same
// server, and a FIFO queue whose longest group is locked with one without it.
func runFIFO(ctx context.Context, b *bench) error {
	specs := b.of(subject, earlier)
	if len(specs) == 0 {
		fmt.Fprintln(b.progress, "# fifo: the references have no FIFO queues")
		return nil
	}
	servers, stop, err := startAll(ctx, specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	if err := b.fifoDeep(ctx, servers); err != nil {
		return err
	}
	if len(servers) > 1 {
		return nil // it compares two queues of one server
	}
	return b.fifoLocked(ctx, servers[0])
}

// fifoTarget makes a FIFO queue whose messages go to random ones of some groups,
// or all to the locked one if there are none.
func (b *bench) fifoTarget(s *server, from texts, groups int) (*target, error) {
	c := newConn(s.host)
	defer c.close()
	url, err := makeQueue(c, b.newName()+fifoSuffix)
	if err != nil {
		return nil, err
	}
	return b.fifoView(&target{bench: b, s: s, url: url, from: from}, groups), nil
}

// fifoView is the same queue, whose messages go to other groups.
func (b *bench) fifoView(of *target, groups int) *target {
	t := *of
	opened := 0
	t.openAs = func(c *conn, seed uint64) *queue { // by one goroutine
		opened++
		q := openQueue(c, t.url, seed)
		q.fifo = &fifo{groups: groups, name: lockedGroup, prefix: fmt.Sprintf("%d-%d-", groups, opened*1000+int(seed))}
		return q
	}
	return &t
}

// fifoQueues are the two queues that are compared on a server.
func (b *bench) fifoQueues(s *server, from texts) ([]probed, error) {
	url, err := b.makeQueues(s, 1)
	if err != nil {
		return nil, err
	}
	ordered, err := b.fifoTarget(s, from, b.groups)
	return []probed{
		{nameOn(s, "standard"), &target{bench: b, s: s, url: url[0], from: from}},
		{nameOn(s, "FIFO"), ordered},
	}, err
}

// probed is a queue with the name under which it is measured.
type probed struct {
	name string
	*target
}

func (b *bench) fifoDeep(ctx context.Context, servers []*server) error {
	from := newTexts(b.depthSize, b.escapes)
	var all []probed
	for _, s := range servers {
		queues, err := b.fifoQueues(s, from)
		if err != nil {
			return err
		}
		all = append(all, queues...)
	}
	t := &table{
		title: "FIFO at depth",
		note: fmt.Sprintf("%d messages of %d bytes in %d groups of a FIFO queue, and as many in a standard queue of the same server; "+
			"%d connections, %d messages a round in batches of 10, %d one by one. CPU in µs a message.",
			b.fifoDepth, b.depthSize, b.groups, probeConns, b.fifoProbe(maxBatch), b.fifoProbe(1)),
		header: []string{
			"batch", "queue", "send µs", "× standard", "msg/s", "receive and delete µs", "× standard", "msg/s",
			"send p50 ms", "p99 ms", "other cores", "RSS MB",
		},
	}
	b.report.tables = append(b.report.tables, t)
	for _, c := range all {
		one, err := c.send(ctx, b.fifoDepth, maxBatch, 0)
		if err != nil {
			return err
		}
		b.note("fifo", "fill", c.name, 0, one, nil)
	}
	for _, batch := range b.batches {
		for _, s := range servers {
			if _, err := b.settleDown(ctx, s); err != nil {
				return err
			}
		}
		label := fmt.Sprintf("batch %d", batch)
		var contenders []contender
		for _, q := range all {
			contenders = append(contenders, contender{q.name, q.s, q.sendAndTake(b.fifoProbe(batch), batch)})
		}
		results, err := b.contest(ctx, "fifo", label, b.rounds, contenders)
		if err != nil {
			return err
		}
		base := results[0]
		for _, x := range results {
			t.add(strconv.Itoa(batch), x.name,
				figure(x.ServerCPU), figure(ratio(x.ServerCPU, base.ServerCPU)), figure(x.Throughput),
				figure(x.more["take_us"]), figure(ratio(x.more["take_us"], base.more["take_us"])), figure(x.more["take_per_s"]),
				figure(x.P50), figure(x.P99), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
		}
		for _, part := range []struct {
			name       string
			fifo, base float64
		}{
			{"send", results[1].ServerCPU, base.ServerCPU},
			{"receive and delete", results[1].more["take_us"], base.more["take_us"]},
		} {
			times := ratio(part.fifo, part.base)
			b.judge(times > 0 && times <= fifoTimes,
				fmt.Sprintf("%s × (%s against %s µs)", figure(times), figure(part.fifo), figure(part.base)),
				"FIFO, %d messages in %d groups, %s, %s: at most %.1f × the CPU of standard", b.fifoDepth, b.groups, part.name, label, fifoTimes)
		}
	}
	return nil
}

// fifoProbe is how many messages a round has.
func (b *bench) fifoProbe(batch int) int {
	if batch == 1 {
		return max(1, b.probe/5)
	}
	return fifoProbes * b.probe
}

// sendAndTake sends n messages and takes as many. The sample is the send's; the
// cost of taking stands beside it.
func (t *target) sendAndTake(n, batch int) func(context.Context) (sample, map[string]float64, error) {
	return func(ctx context.Context) (sample, map[string]float64, error) {
		sent, err := t.send(ctx, n, batch, 0)
		if err != nil {
			return sent, nil, err
		}
		taken, err := t.take(ctx, n, batch)
		sent.OtherCores = max(sent.OtherCores, taken.OtherCores)
		return sent, map[string]float64{"take_us": taken.ServerCPU, "take_per_s": taken.Throughput}, err
	}
}

// fifoLocked takes messages of free groups beside a long group that is locked.
func (b *bench) fifoLocked(ctx context.Context, s *server) error {
	from := newTexts(b.depthSize, b.escapes)
	free, err := b.fifoTarget(s, from, b.groups)
	if err != nil {
		return err
	}
	beside, err := b.fifoTarget(s, from, 0)
	if err != nil {
		return err
	}
	if _, err := beside.send(ctx, b.locked, maxBatch, 0); err != nil {
		return err
	}
	c := newConn(s.host)
	defer c.close()
	messages, err := openQueue(c, beside.url, 0).receive(nil, 1, 0, -1)
	if err == nil && len(messages) != 1 {
		err = errors.New("the group that is to be locked has no message")
	}
	if err != nil {
		return err
	}
	beside = b.fifoView(beside, b.groups)

	t := &table{
		title: "FIFO beside a locked group",
		note: fmt.Sprintf("%d messages sent to %d free groups, received and deleted, in batches of %d; "+
			"alone, and in a queue whose oldest %d messages are of one group with a message in flight. CPU in µs a message.",
			b.probe, b.groups, maxBatch, b.locked),
		header: []string{"locked messages", "send µs", "msg/s", "receive and delete µs", "× alone", "msg/s", "× alone", "other cores"},
	}
	b.report.tables = append(b.report.tables, t)
	label := fmt.Sprintf("locked %d", b.locked)
	results, err := b.contest(ctx, "fifo", label, b.rounds, []contender{
		{"alone", s, free.sendAndTake(b.probe, maxBatch)},
		{"beside", s, beside.sendAndTake(b.probe, maxBatch)},
	})
	if err != nil {
		return err
	}
	if err := checkLeft(openQueue(c, beside.url, 0), s, int64(b.locked)); err != nil {
		return err
	}
	base, x := results[0], results[1]
	for i, x := range results {
		t.add(strconv.Itoa(i*b.locked), figure(x.ServerCPU), figure(x.Throughput),
			figure(x.more["take_us"]), figure(ratio(x.more["take_us"], base.more["take_us"])),
			figure(x.more["take_per_s"]), figure(ratio(x.more["take_per_s"], base.more["take_per_s"])), fmt.Sprintf("%.2f", x.OtherCores))
	}
	share := ratio(x.more["take_per_s"], base.more["take_per_s"])
	b.judge(share >= lockedRate, fmt.Sprintf("%s × (%s against %s msg/s)", figure(share), figure(x.more["take_per_s"]), figure(base.more["take_per_s"])),
		"FIFO, %d messages in a locked group: free groups at %.1f × the rate without it, or more", b.locked, lockedRate)
	return nil
}
