package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// purgeTarget is how much more than that of an empty server the data
	// directory may hold a minute after a purge, in MiB.
	purgeTarget = 64
	purgeFew    = 10
	purgeMany   = 1_000_000
)

var purgeQueue = sqsOperation("PurgeQueue")

// runPurge purges a queue of few messages and one of many, and watches the
// disk and the sends to another queue meanwhile.
func runPurge(ctx context.Context, b *bench) error {
	from := newTexts(b.depthSize, b.escapes)
	t := &table{
		title: "Purge",
		note: fmt.Sprintf("PurgeQueue of a fresh server's queue with messages of %d bytes; the disk space that the data directory takes, in MiB; "+
			"sends to another queue after the purge, on %d connections in batches of %d, CPU in µs a message.", b.depthSize, probeConns, maxBatch),
		header: []string{"messages", "purge ms", "µs CPU", "MiB empty", "full", fmt.Sprintf("after %s", b.purged/4), (b.purged / 2).String(), b.purged.String(), "sends µs before", "after", "p99 ms before", "after"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, n := range []int{purgeFew, min(purgeMany, b.depth)} {
		if err := b.purgeOf(ctx, n, from, t); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) purgeOf(ctx context.Context, n int, from texts, t *table) error {
	return b.alone(ctx, func(s *server) error {
		return b.withQueue(s, func(url string) error {
			d := &target{bench: b, s: s, url: url, from: from}
			empty, err := taken(s.dir)
			if err != nil {
				return err
			}
			if _, err := d.send(ctx, n, maxBatch, 0); err != nil {
				return err
			}
			before, err := d.sendElsewhere(ctx)
			if err != nil {
				return err
			}
			full, err := taken(s.dir)
			if err != nil {
				return err
			}

			c := newConn(s.host)
			defer c.close()
			spentBefore, began := readUsage(s.pid), time.Now()
			if _, err := c.do(purgeQueue, []byte(`{"QueueUrl":`+strconv.Quote(url)+`}`)); err != nil {
				return err
			}
			took, cpu := time.Since(began), readUsage(s.pid).server-spentBefore.server
			purged := time.Now()
			after, err := d.sendElsewhere(ctx)
			if err != nil {
				return err
			}
			row := []string{
				strconv.Itoa(n), figure(milliseconds(took)), figure(microseconds(cpu)),
				figure(empty), figure(full),
			}
			var at float64
			for _, moment := range []time.Duration{b.purged / 4, b.purged / 2, b.purged} {
				if err := pause(ctx, time.Until(purged.Add(moment))); err != nil {
					return err
				}
				if at, err = taken(s.dir); err != nil {
					return err
				}
				row = append(row, figure(at))
			}
			t.add(append(row, figure(before.ServerCPU), figure(after.ServerCPU), figure(before.P99), figure(after.P99))...)
			b.report.Verdicts = append(b.report.Verdicts, verdict{
				What: fmt.Sprintf("%s after a purge of %d messages: at most %d MiB more than an empty server", b.purged, n, purgeTarget),
				Met:  at-empty <= purgeTarget,
				Says: fmt.Sprintf("%s MiB, %s when empty", figure(at), figure(empty)),
			})
			return nil
		})
	})
}

// sendElsewhere measures sends to another queue, which is then dropped.
func (t *target) sendElsewhere(ctx context.Context) (out sample, err error) {
	err = t.withQueue(t.s, func(url string) error {
		other := *t
		other.url = url
		out, err = other.send(ctx, t.bench.probe, maxBatch, 0)
		return err
	})
	return out, err
}

// taken is the space that the files below dir take on the disk, in MiB.
func taken(dir string) (float64, error) {
	var blocks int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return nil // it has just been removed
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			blocks += st.Blocks
		}
		return nil
	})
	return float64(blocks) * 512 / (1 << 20), err
}
