package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// The targets of queues that hold a message each and are left alone.
const (
	quietCPU  = 1.0  // s a minute, on average: the collector of garbage runs every second one
	quietStop = 20.0 // s
)

// runQuiet sends a message to each of many queues, and looks at what their minutes
// cost, how long a stop takes, and the minutes after a start.
func runQuiet(ctx context.Context, b *bench) error {
	return b.alone(ctx, func(s *server) error {
		urls, err := b.makeQueues(s, b.quiet)
		if err != nil {
			return err
		}
		from := newTexts(b.depthSize, b.escapes)
		all, release := conns(s, probeConns)
		steps := make([]step, len(all))
		for i, c := range all {
			next := i
			steps[i] = func() (work, error) {
				if next >= len(urls) {
					return work{}, errDone
				}
				q := openQueue(c, urls[next], uint64(next))
				next += len(all)
				return work{messages: 1}, q.send(from, 1, 0)
			}
		}
		_, err = measure(ctx, s, 0, phaseWithin, steps)
		release()
		if err != nil {
			return err
		}
		t := &table{
			title: "Quiet queues",
			note: fmt.Sprintf("%d queues with a message each that are left alone: the CPU of each %s, in s, from a moment between two minutes on; "+
				"the first has what their creation leaves to be told, the others what it leaves in memory.", b.quiet, b.minute),
			header: []string{"queues", "server", "first", "second", "third", "fourth", "started: second", "third", "RSS MB", "stop s", "start s"},
		}
		b.report.tables = append(b.report.tables, t)
		row := []string{strconv.Itoa(b.quiet), s.name}
		minutes := func(n int) (mean float64, err error) {
			for range n {
				began := readUsage(s.pid)
				if err := pause(ctx, b.minute); err != nil {
					return 0, err
				}
				used := (readUsage(s.pid).server - began.server).Seconds()
				row = append(row, fmt.Sprintf("%.2f", used))
				mean += used / float64(n)
			}
			return mean, nil
		}
		between := time.Now().Truncate(b.minute).Add(b.minute / 2)
		if time.Until(between) < 0 {
			between = between.Add(b.minute)
		}
		if err := pause(ctx, time.Until(between)); err != nil {
			return err
		}
		if _, err := minutes(1); err != nil {
			return err
		}
		left, err := minutes(3)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := s.restart(ctx, false); err != nil {
			return err
		}
		stopped := time.Since(began) - s.readyIn
		if err := pause(ctx, b.minute); err != nil {
			return err
		}
		started, err := minutes(2)
		if err != nil {
			return err
		}
		resident, _ := memory(s.pid)
		t.add(append(row, figure(resident), figure(stopped.Seconds()), figure(s.readyIn.Seconds()))...)
		b.judge(max(left, started) <= quietCPU, fmt.Sprintf("%.2f s, %.2f s after a start", left, started),
			"%d queues with a message each: at most %.0f s of CPU a minute, on average", b.quiet, quietCPU)
		b.judge(stopped.Seconds() <= quietStop, fmt.Sprintf("%s s", figure(stopped.Seconds())), "a stop with them: at most %.0f s", quietStop)
		return nil
	})
}
