package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	publishers     = 16 // connections, where their number does not matter
	publishAtMost  = 20_000
	settledWithin  = 2 * time.Minute
	settleInterval = 5 * time.Millisecond
)

// fanoutConns are the numbers of connections that publish.
var fanoutConns = []int{16, 64}

// fanoutTargets are what a publish may cost in the server's CPU, in µs, all its
// deliveries included, by the number of queues.
var fanoutTargets = map[int]float64{1: 45, 10: 80, 100: 560}

// runFanout publishes to topics with more and more queues. The server's CPU
// counts until every queue holds every message. Each case has servers of its
// own: giving back the space of the queues of one case takes CPU half a minute
// later.
func runFanout(ctx context.Context, b *bench) error {
	specs := b.of(subject, earlier, peer)
	if len(specs) == 0 {
		fmt.Fprintln(b.progress, "# fanout: the references have no topics")
		return nil
	}
	from := newTexts(b.size, b.escapes)
	t := &table{
		title: "Fan-out",
		note: "Publish over the Query protocol to queues with raw delivery; " +
			"CPU until every queue holds every message. Lag: from the last answer to the last delivery.",
		header: []string{
			"queues", "conns", "server", "CPU µs/publish", "µs/delivery", "publish/s", "deliveries/s", "lag ms",
			"p50 ms", "p99 ms", "max ms", "other cores", "RSS MB",
		},
	}
	b.report.tables = append(b.report.tables, t)
	for _, queues := range b.subscriptions {
		for _, conns := range fanoutConns {
			if err := b.fanoutCase(ctx, t, specs, from, queues, conns); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) fanoutCase(ctx context.Context, t *table, specs []spec, from texts, queues, conns int) error {
	servers, stop, err := startAll(ctx, specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	label := fmt.Sprintf("queues %d conns %d", queues, conns)
	results, err := b.compare(ctx, "fanout", label, b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
		return b.fanoutWindow(ctx, s, from, queues, conns)
	})
	if err != nil {
		return err
	}
	for _, x := range results {
		t.add(strconv.Itoa(queues), strconv.Itoa(conns), x.name,
			figure(x.ServerCPU), figure(x.ServerCPU/float64(queues)),
			figure(x.more["publishes_per_s"]), figure(x.Throughput*float64(queues)), figure(x.more["lag_ms"]),
			figure(x.P50), figure(x.P99), figure(x.Max), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
	}
	x, ok := find(results, subject)
	if target := fanoutTargets[queues]; ok && target > 0 {
		b.judge(x.ServerCPU > 0 && x.ServerCPU <= target, figure(x.ServerCPU)+" µs",
			"publish to %d raw queues, conns %d: at most %.0f µs of the server's CPU", queues, conns, target)
	}
	return nil
}

func (b *bench) fanoutWindow(ctx context.Context, s *server, from texts, queues, connections int) (out sample, more map[string]float64, err error) {
	c := newConn(s.host)
	defer c.close()
	topic, urls, err := b.makeFanout(c, queues)
	if err != nil {
		return out, nil, err
	}
	all, release := conns(s, connections)
	defer release()
	publishes := int64(max(connections, min(publishAtMost, b.deliveries/queues)))
	var left atomic.Int64
	left.Store(publishes)
	steps := make([]step, len(all))
	for i, c := range all {
		p := newPublisher(c, topic, uint64(i))
		steps[i] = func() (work, error) {
			if left.Add(-1) < 0 {
				return work{}, errDone
			}
			return work{messages: 1}, p.publish(from)
		}
	}
	begin := readUsage(s.pid)
	published, err := measure(ctx, s, 0, phaseWithin, steps)
	if err != nil {
		return out, nil, err
	}
	answered := time.Now()
	for _, url := range urls {
		if err := awaitCount(ctx, openQueue(c, url, 0), s, publishes); err != nil {
			return out, nil, err
		}
	}
	end := readUsage(s.pid)
	out = newSample(s, begin, end, &tally{messages: publishes})
	out.latency = published.latency
	more = map[string]float64{
		"publishes_per_s": published.Throughput,
		"lag_ms":          milliseconds(end.at.Sub(answered)),
	}
	if err := dropTopic(c, topic); err != nil {
		return out, nil, err
	}
	for _, url := range urls {
		if err := dropQueue(c, url); err != nil {
			return out, nil, err
		}
	}
	return out, more, nil
}

func (b *bench) makeFanout(c *conn, queues int) (topic string, urls []string, err error) {
	if topic, err = makeTopic(c, b.newName()); err != nil {
		return "", nil, err
	}
	for range queues {
		url, err := makeQueue(c, b.newName())
		if err != nil {
			return "", nil, err
		}
		a, err := openQueue(c, url, 0).attributes()
		if err != nil {
			return "", nil, err
		}
		if err := subscribe(c, topic, "sqs", a.arn, true); err != nil {
			return "", nil, err
		}
		urls = append(urls, url)
	}
	return topic, urls, nil
}

// awaitCount waits until a queue holds want messages. More than that is an error.
func awaitCount(ctx context.Context, q *queue, s *server, want int64) error {
	var have int64
	for began := time.Now(); time.Since(began) < settledWithin; {
		a, err := q.attributes()
		if err != nil {
			return err
		}
		have = a.visible
		if have == want || have > want && s.role == peer {
			return nil
		}
		if have > want {
			return fmt.Errorf("%d messages delivered, only %d were published", have, want)
		}
		if err := pause(ctx, settleInterval); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d of %d messages delivered after %s", have, want, settledWithin)
}
