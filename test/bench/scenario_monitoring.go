package main

import (
	"context"
	"fmt"
	"slices"
)

// unwatched is the server without metrics.
const unwatched role = "off"

// monitoringTarget is how many times the CPU of a server without metrics a message
// may cost with them.
const monitoringTarget = 1.05

// runMonitoring lets each connection send, receive and delete, as the cycle does,
// with metrics and without.
func runMonitoring(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	off := specs[0]
	off.name, off.role, off.argv = "off", unwatched, append(slices.Clip(off.argv), "--no-metrics", "--no-prometheus")
	servers, stop, err := startAll(ctx, append(slices.Clip(specs[:1]), off), b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title:  "Monitoring",
		note:   "The cycle with CloudWatch's metrics and Prometheus, as by default, and without (off).",
		header: []string{"batch", "conns", "server", "CPU µs/msg", "× off", "msg/s", "p50 ms", "p99 ms"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, batch := range b.batches {
		width := b.connections[0]
		label := fmt.Sprintf("batch %d conns %d", batch, width)
		results, err := b.compare(ctx, "monitoring", label, b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
			return b.cycleWindow(ctx, s, from, batch, width)
		})
		if err != nil {
			return err
		}
		other, _ := find(results, unwatched)
		t.addLoads(batch, width, results, other)
		b.judgeCPU("monitoring", label, monitoringTarget, results, unwatched)
	}
	return nil
}
