package main

import (
	"context"
	"fmt"
	"slices"
)

// limitsTarget is how many times the CPU of a server without limits a message may cost with them.
const limitsTarget = 1.05

// runLimits sends to a server whose accounts have limits that nobody comes to, and to one without.
func runLimits(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	free := specs[0]
	free.name, free.role = "none", "none"
	with := specs[0]
	with.argv = append(slices.Clip(with.argv), "--account-max-requests", "10000000", "--account-max-bytes-per-second", "100GiB",
		"--account-max-queues", "1000000", "--account-max-topics", "1000000", "--account-max-storage", "10TiB")
	servers, stop, err := startAll(ctx, []spec{with, free}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title:  "Limits of accounts",
		note:   "Sends to a server whose accounts have each limit, far away, and to one without (none).",
		header: []string{"batch", "conns", "server", "CPU µs/msg", "× none", "msg/s", "p50 ms", "p99 ms"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, batch := range b.batches {
		width := b.connections[0]
		label := fmt.Sprintf("batch %d conns %d", batch, width)
		results, err := b.compare(ctx, "limits", label, b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
			one, err := b.sendWindow(ctx, s, from, batch, width)
			return one, nil, err
		})
		if err != nil {
			return err
		}
		other, _ := find(results, free.role)
		t.addLoads(batch, width, results, other)
		b.judgeCPU("limits of accounts", label, limitsTarget, results, free.role)
	}
	return nil
}
