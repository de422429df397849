package main

import (
	"context"
	"fmt"
	"strconv"
)

// sendTarget is how many times the durable reference's CPU a durable send may
// cost.
const sendTarget = 1.0

func runSend(ctx context.Context, b *bench) error {
	servers, stop, err := startAll(ctx, b.specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	for _, s := range servers {
		if s.role == subject {
			b.report.Facts = append(b.report.Facts,
				fmt.Sprintf("Start of an empty server to its first answer: %.0f ms.", milliseconds(s.readyIn)))
		}
	}
	from := newTexts(b.size, b.escapes)
	t := &table{title: "Send", header: b.loadHeader("batch", "conns")}
	b.report.tables = append(b.report.tables, t)
	for _, batch := range b.batches {
		for _, width := range b.connections {
			label := fmt.Sprintf("batch %d conns %d", batch, width)
			results, err := b.compare(ctx, "send", label, b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
				one, err := b.sendWindow(ctx, s, from, batch, width)
				return one, nil, err
			})
			if err != nil {
				return err
			}
			for _, x := range results {
				t.add(b.loadCells(x, results, strconv.Itoa(batch), strconv.Itoa(width))...)
			}
			b.judgeCPU("durable send", label, sendTarget, results, durable)
		}
	}
	return nil
}

func (b *bench) sendWindow(ctx context.Context, s *server, from texts, batch, width int) (out sample, err error) {
	err = b.withQueue(s, func(url string) error {
		all, release := conns(s, width)
		defer release()
		steps := make([]step, width)
		for i, c := range all {
			q := openQueue(c, url, uint64(i))
			steps[i] = func() (work, error) { return work{messages: batch}, q.send(from, batch, 0) }
		}
		out, err = measure(ctx, s, b.warm, b.window, steps)
		return err
	})
	return out, err
}

// judgeCPU compares the server's CPU a message with a reference's.
func (b *bench) judgeCPU(what, label string, target float64, results []result, reference role) {
	x, ok := find(results, subject)
	y, compared := find(results, reference)
	if !ok || !compared {
		return
	}
	times := ratio(x.ServerCPU, y.ServerCPU)
	b.judge(times > 0 && times <= target,
		fmt.Sprintf("%s × (%s against %s µs)", figure(times), figure(x.ServerCPU), figure(y.ServerCPU)),
		"%s, %s: at most %.4g × the CPU of %s", what, label, target, reference)
}
