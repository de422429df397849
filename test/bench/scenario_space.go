package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// spaceTarget is how much more than that of an empty server the data directory may
	// hold two minutes after all was received and deleted, in MiB.
	spaceTarget = 96
	spaceBody   = 16 << 10 // bytes
)

// runSpace sends much, receives and deletes it, and watches the disk while nothing is
// done.
func runSpace(ctx context.Context, b *bench) error {
	return b.alone(ctx, func(s *server) error {
		return b.withQueue(s, func(url string) error {
			empty, err := taken(s.dir)
			if err != nil {
				return err
			}
			n := max(1, b.space/spaceBody)
			d := &target{bench: b, s: s, url: url, from: newTexts(spaceBody, b.escapes)}
			if _, err := d.send(ctx, n, maxBatch, 0); err != nil {
				return err
			}
			full, err := taken(s.dir)
			if err != nil {
				return err
			}
			all, release := conns(s, probeConns)
			steps := make([]step, len(all))
			for i, c := range all {
				q := openQueue(c, url, uint64(i))
				steps[i] = func() (work, error) {
					messages, err := q.receive(nil, maxBatch, 0, 300)
					if err != nil {
						return work{}, err
					}
					if len(messages) == 0 {
						return work{}, errDone
					}
					var receipts [][]byte
					for _, m := range messages {
						receipts = append(receipts, m.receipt)
					}
					return work{messages: len(messages)}, q.remove(receipts)
				}
			}
			_, err = measure(ctx, s, 0, phaseWithin, steps)
			release()
			if err != nil {
				return err
			}
			t := &table{
				title: "Space",
				note: fmt.Sprintf("%d messages of %d bytes are sent, received and deleted; the space that the data directory takes, in MiB, "+
					"then and while nothing is done; the CPU of that time.", n, spaceBody),
				header: []string{"server", "MiB empty", "full", "deleted", (b.freed / 4).String(), (b.freed / 2).String(), b.freed.String(), "CPU s"},
			}
			b.report.tables = append(b.report.tables, t)
			row := []string{s.name, figure(empty), figure(full)}
			deleted, spent := time.Now(), readUsage(s.pid)
			var at float64
			for _, moment := range []time.Duration{0, b.freed / 4, b.freed / 2, b.freed} {
				if err := pause(ctx, time.Until(deleted.Add(moment))); err != nil {
					return err
				}
				if at, err = taken(s.dir); err != nil {
					return err
				}
				row = append(row, figure(at))
			}
			t.add(append(row, fmt.Sprintf("%.2f", (readUsage(s.pid).server-spent.server).Seconds()))...)
			b.judge(at-empty <= spaceTarget, fmt.Sprintf("%s MiB, %s when empty, %s when full", figure(at), figure(empty), figure(full)),
				"%s after %d MiB were received and deleted: at most %d MiB more than an empty server", b.freed, b.space>>20, spaceTarget)
			return nil
		})
	})
}
