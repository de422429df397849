package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// openConns is how many requests of the open loop can be under way at once.
	openConns  = 64
	openTarget = 5.0 // ms, p99 of a send at half the maximum rate
)

// runOpen sends by a schedule, however slow the server is: at half the rate that
// the same server has just reached in a closed loop, and at the given rates.
func runOpen(ctx context.Context, b *bench) error {
	servers, stop, err := startAll(ctx, b.specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title: "Open loop",
		note: fmt.Sprintf("One message a request by a schedule, on at most %d connections; latency from the time when each was due. "+
			"Half: of the rate that the server reached just before in a closed loop on as many connections (max/s).", openConns),
		header: b.loadHeader("rate", "max/s"),
	}
	b.report.tables = append(b.report.tables, t)
	for _, rate := range append([]int{0}, b.rates...) {
		label := fmt.Sprintf("rate %d", rate)
		if rate == 0 {
			label = "half"
		}
		results, err := b.compare(ctx, "open", label, b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
			return b.openWindow(ctx, s, from, rate)
		})
		if err != nil {
			return err
		}
		for _, x := range results {
			t.add(b.loadCells(x, results, label, figure(x.more["max_per_s"]))...)
		}
		if x, ok := find(results, subject); ok && rate == 0 {
			b.judge(x.P99 < openTarget, fmt.Sprintf("%s ms at %s/s (p50 %s, p99.9 %s)", figure(x.P99), figure(x.Throughput), figure(x.P50), figure(x.P999)),
				"open loop at half the maximum rate: p99 of a send under %.0f ms", openTarget)
		}
	}
	return nil
}

// openWindow sends at a rate; 0 is half the maximum, which it measures first.
func (b *bench) openWindow(ctx context.Context, s *server, from texts, rate int) (out sample, more map[string]float64, err error) {
	perSecond := float64(rate)
	if rate == 0 {
		most, err := b.sendWindow(ctx, s, from, 1, openConns)
		if err != nil {
			return out, nil, err
		}
		more = map[string]float64{"max_per_s": most.Throughput}
		perSecond = most.Throughput / 2
	}
	err = b.withQueue(s, func(url string) error {
		all, release := conns(s, openConns)
		defer release()
		sends := make([]func(time.Time) error, len(all))
		for i, c := range all {
			q := openQueue(c, url, uint64(i))
			sends[i] = func(time.Time) error { return q.send(from, 1, 0) }
		}
		if _, err := schedule(ctx, s, perSecond, b.warm, sends); err != nil {
			return err
		}
		out, err = schedule(ctx, s, perSecond, b.window, sends)
		return err
	})
	return out, more, err
}

// schedule makes as many calls as are due within length at a rate, evenly
// spaced, each by the first of the callers that is free, and ends when all have
// returned: one that must wait has waited since it was due, and none is left
// out because it was slow. Each is told when it was due.
func schedule(ctx context.Context, s *server, perSecond float64, length time.Duration, callers []func(time.Time) error) (sample, error) {
	interval := time.Duration(float64(time.Second) / perSecond)
	calls := max(1, int64(length/max(interval, 1)))
	var tickets atomic.Int64
	began := time.Now()
	steps := make([]step, len(callers))
	for i, call := range callers {
		steps[i] = func() (work, error) {
			n := tickets.Add(1)
			if n > calls {
				return work{}, errDone
			}
			due := began.Add(time.Duration(n) * interval)
			time.Sleep(time.Until(due))
			return work{messages: 1, due: due}, call(due)
		}
	}
	return measure(ctx, s, 0, phaseWithin, steps)
}
