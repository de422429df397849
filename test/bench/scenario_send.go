package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// sendTarget is how much more than the durable reference a durable send may
// cost in the server's CPU.
const sendTarget = 1.3

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
	t := &table{title: "Send", header: append([]string{"batch", "conns"}, loadHeader...)}
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
				t.add(append([]string{strconv.Itoa(batch), strconv.Itoa(width)}, loadCells(x, results)...)...)
			}
			b.judgeSend(label, results)
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

func (b *bench) judgeSend(label string, results []result) {
	x, ok := find(results, subject)
	r, reference := find(results, durable)
	if !ok || !reference {
		return
	}
	times := ratio(x.ServerCPU, r.ServerCPU)
	b.report.Verdicts = append(b.report.Verdicts, verdict{
		What: fmt.Sprintf("durable send, %s: at most %.1f × the CPU of r", label, sendTarget),
		Met:  times > 0 && times <= sendTarget,
		Says: fmt.Sprintf("%s × (%s against %s µs)", figure(times), figure(x.ServerCPU), figure(r.ServerCPU)),
	})
}

// openConns is how many requests of the open loop can be under way at once.
const openConns = 64

// runOpen sends at a fixed rate whatever the server does. A send that has to
// wait for a free connection has waited since it was due.
func runOpen(ctx context.Context, b *bench) error {
	servers, stop, err := startAll(ctx, b.specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title:  "Open loop",
		note:   "One message a request, at a fixed rate; latency from the time when each was due.",
		header: append([]string{"rate"}, loadHeader...),
	}
	b.report.tables = append(b.report.tables, t)
	for _, rate := range b.rates {
		results, err := b.compare(ctx, "open", fmt.Sprintf("rate %d", rate), b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
			one, err := b.openWindow(ctx, s, from, rate)
			return one, nil, err
		})
		if err != nil {
			return err
		}
		for _, x := range results {
			t.add(append([]string{strconv.Itoa(rate)}, loadCells(x, results)...)...)
		}
	}
	return nil
}

func (b *bench) openWindow(ctx context.Context, s *server, from texts, rate int) (out sample, err error) {
	err = b.withQueue(s, func(url string) error {
		all, release := conns(s, openConns)
		defer release()
		var tickets atomic.Int64
		interval := time.Second / time.Duration(rate)
		began := time.Now()
		steps := make([]step, openConns)
		for i, c := range all {
			q := openQueue(c, url, uint64(i))
			steps[i] = func() (work, error) {
				due := began.Add(time.Duration(tickets.Add(1)) * interval)
				time.Sleep(time.Until(due))
				return work{messages: 1, due: due}, q.send(from, 1, 0)
			}
		}
		out, err = measure(ctx, s, b.warm, b.window, steps)
		return err
	})
	return out, err
}
