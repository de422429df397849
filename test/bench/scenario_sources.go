package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// sourceRate is the target of an event-source mapping, in messages a second.
const sourceRate = 20_000.0

var createMapping = operation{service: "lambda", path: "/2015-03-31/event-source-mappings", contentType: "application/json"}

// sourceFunction has a queue with messages feed a function in batches of ten.
func (b *bench) sourceFunction(ctx context.Context, servers []*server, code string) error {
	t := &table{
		title:  "Functions: fed from a queue",
		note:   fmt.Sprintf("%d messages of %d bytes, in batches of ten, from the mapping's creation until the last is deleted; the function has to start, and does no more than to answer. The CPU is that of the server and of the function's processes.", b.deliveries, b.size),
		header: b.loadHeader("runtime"),
	}
	b.report.tables = append(b.report.tables, t)
	from := newTexts(b.size, b.escapes)
	for _, runtime := range []string{library, bareRuntime} {
		results, err := b.compare(ctx, "functions", "fed, "+runtime, b.rounds, servers, func(ctx context.Context, s *server) (out sample, more map[string]float64, err error) {
			err = b.withQueue(s, func(url string) error {
				out, err = b.drain(ctx, s, url, from, code, runtime)
				return err
			})
			return out, nil, err
		})
		if err != nil {
			return err
		}
		for _, x := range results {
			t.add(b.loadCells(x, results, runtime)...)
		}
		if x, ok := find(results, subject); ok {
			b.judge(x.Throughput >= sourceRate, figure(x.Throughput)+"/s", "queue to function, %s: %.0f messages a second", runtime, sourceRate)
		}
	}
	return nil
}

// drain fills a queue, and measures how fast a function empties it.
func (b *bench) drain(ctx context.Context, s *server, url string, from texts, code, runtime string) (sample, error) {
	all, release := conns(s, publishers)
	defer release()
	var left atomic.Int64
	left.Store(int64(b.deliveries))
	steps := make([]step, len(all))
	for i, c := range all {
		q := openQueue(c, url, uint64(i))
		steps[i] = func() (work, error) {
			n := min(maxBatch, int(left.Add(-maxBatch)+maxBatch))
			if n <= 0 {
				return work{}, errDone
			}
			return work{messages: n}, q.send(from, n, 0)
		}
	}
	if _, err := measure(ctx, s, 0, settledWithin, steps); err != nil {
		return sample{}, err
	}
	q, name := openQueue(all[0], url, 0), b.newName()
	if err := makeFunction(all[0], name, code, runtime); err != nil {
		return sample{}, err
	}
	is, err := q.attributes()
	if err != nil {
		return sample{}, err
	}
	if is.visible != int64(b.deliveries) {
		return sample{}, fmt.Errorf("%d messages in the queue, not %d", is.visible, b.deliveries)
	}
	begin := readUsage(s.pid)
	if _, err := all[0].do(&createMapping, []byte(`{"EventSourceArn":`+strconv.Quote(is.arn)+`,"FunctionName":"`+name+`"}`)); err != nil {
		return sample{}, err
	}
	for began := time.Now(); time.Since(began) < settledWithin; {
		if is, err = q.attributes(); err != nil {
			return sample{}, err
		}
		if is.visible+is.inFlight == 0 {
			return newSample(s, begin, readUsage(s.pid), &tally{messages: int64(b.deliveries)}), nil
		}
		if err := pause(ctx, settleInterval); err != nil {
			return sample{}, err
		}
	}
	return sample{}, fmt.Errorf("%d messages are left after %s", is.visible+is.inFlight, settledWithin)
}
