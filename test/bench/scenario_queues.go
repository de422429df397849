package main

import (
	"context"
	"fmt"
	"strconv"
)

// The targets of many queues.
const (
	queuesSlower = 1.1 // times the CPU and the time of a message
	queueMemory  = 600 // bytes of an idle queue, after work and after a restart
)

// runQueues works on some queues of a server that has no others, and of one
// that has many more.
func runQueues(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		specs = b.of(inMemory)
	}
	servers, stop, err := startAll(ctx, []spec{specs[0], specs[0]}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	crowds := make([]*crowd, 2)
	for i, n := range []int{b.busy, b.queues} {
		if crowds[i], err = b.gather(ctx, servers[i], n); err != nil {
			return err
		}
	}
	work := &table{
		title: "Many queues: work",
		note: fmt.Sprintf("Send, receive and delete on %d queues in turn, %d connections, on two fresh servers: "+
			"one with these queues only, one with idle ones beside them. CPU in µs a message.", b.busy, probeConns),
		header: []string{"batch", "queues", "server", "CPU µs/msg", "× few", "msg/s", "× few", "p50 ms", "p99 ms", "other cores", "RSS MB"},
	}
	b.report.tables = append(b.report.tables, work)
	from := newTexts(b.size, b.escapes)
	for _, batch := range b.batches {
		label := fmt.Sprintf("batch %d", batch)
		var contenders []contender
		for _, c := range crowds {
			contenders = append(contenders, contender{
				fmt.Sprintf("%d queues", len(c.urls)), c.s,
				func(ctx context.Context) (sample, map[string]float64, error) {
					return b.crowdWindow(ctx, c, from, batch)
				},
			})
		}
		results, err := b.contest(ctx, "queues", label, b.rounds, contenders)
		if err != nil {
			return err
		}
		few := results[0]
		for i, x := range results {
			work.add(strconv.Itoa(batch), strconv.Itoa(len(crowds[i].urls)), x.server.name,
				figure(x.ServerCPU), figure(ratio(x.ServerCPU, few.ServerCPU)),
				figure(x.Throughput), figure(ratio(x.Throughput, few.Throughput)),
				figure(x.P50), figure(x.P99), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
		}
		if many := results[1]; many.server.role == subject {
			cpu, slower := ratio(many.ServerCPU, few.ServerCPU), ratio(few.Throughput, many.Throughput)
			b.judge(max(cpu, slower) > 0 && max(cpu, slower) <= queuesSlower,
				fmt.Sprintf("%s × the CPU, %s × the rate", figure(cpu), figure(ratio(many.Throughput, few.Throughput))),
				"%d queues, %d of them busy, %s: at most %.0f %% slower than those alone", b.queues, b.busy, label, (queuesSlower-1)*100)
		}
	}
	return b.crowdMemory(ctx, crowds)
}

// crowd is a server with queues, of which the first are busy.
type crowd struct {
	s    *server
	urls []string

	before, made, worked, restarted float64 // MB resident
}

func (b *bench) gather(ctx context.Context, s *server, n int) (*crowd, error) {
	c := &crowd{s: s}
	c.before, _ = memory(s.pid)
	var err error
	if c.urls, err = b.makeQueues(s, n); err != nil {
		return nil, err
	}
	if _, err := b.settleDown(ctx, s); err != nil {
		return nil, err
	}
	c.made, _ = memory(s.pid)
	return c, nil
}

// crowdWindow lets each connection send, receive and delete on its share of the
// busy queues, one after the other.
func (b *bench) crowdWindow(ctx context.Context, c *crowd, from texts, batch int) (sample, map[string]float64, error) {
	all, release := conns(c.s, probeConns)
	defer release()
	steps := make([]step, len(all))
	for i, connection := range all {
		var queues []*queue
		for k := i; k < b.busy; k += len(all) {
			queues = append(queues, openQueue(connection, c.urls[k], uint64(k)))
		}
		if len(queues) == 0 {
			queues = append(queues, openQueue(connection, c.urls[0], 0))
		}
		cycle, turn := &cycler{from: from, batch: batch}, 0
		steps[i] = func() (work, error) {
			cycle.q = queues[turn%len(queues)]
			turn++
			return cycle.step()
		}
	}
	out, err := measure(ctx, c.s, b.warm, b.window, steps)
	return out, nil, err
}

// crowdMemory compares what the servers keep resident.
func (b *bench) crowdMemory(ctx context.Context, crowds []*crowd) error {
	t := &table{
		title: "Many queues: memory",
		note: "RSS of the two servers, before there was a queue, after all were made, after the work above, and after an orderly restart. " +
			"Bytes an idle queue: the difference of the two by the difference of their queues.",
		header: []string{"queues", "server", "RSS MB before", "made", "worked", "restarted", "restart s"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, c := range crowds {
		if _, err := b.settleDown(ctx, c.s); err != nil {
			return err
		}
		c.worked, _ = memory(c.s.pid)
		ready := unknown
		if c.s.role == subject {
			if err := c.s.restart(ctx, false); err != nil {
				return err
			}
			if _, err := b.settleDown(ctx, c.s); err != nil {
				return err
			}
			c.restarted, _ = memory(c.s.pid)
			ready = figure(c.s.readyIn.Seconds())
		}
		t.add(strconv.Itoa(len(c.urls)), c.s.name, figure(c.before), figure(c.made), figure(c.worked), figure(c.restarted), ready)
	}
	few, many := crowds[0], crowds[1]
	idle := float64(max(1, len(many.urls)-len(few.urls)))
	each := func(of func(*crowd) float64) float64 { return (of(many) - of(few)) * 1e6 / idle }
	made := each(func(c *crowd) float64 { return c.made - c.before })
	worked := each(func(c *crowd) float64 { return c.worked - c.before })
	restarted := each(func(c *crowd) float64 { return c.restarted })
	t.add("bytes an idle queue", many.s.name, "", figure(made), figure(worked), figure(restarted), "")
	if many.s.role == subject {
		b.judge(worked <= queueMemory && restarted <= queueMemory, fmt.Sprintf("%.0f bytes after work, %.0f when made, %.0f restarted", worked, made, restarted),
			"%d idle queues: at most %d bytes of memory each after work and after a restart", len(many.urls)-len(few.urls), queueMemory)
	}
	return nil
}
