package main

import (
	"context"
	"fmt"
)

const (
	isolationTimes  = 2.0 // of the median latency alone
	livePerSecond   = 100 // publishes to the live endpoint
	hangingEach     = 10  // messages that wait for each endpoint that hangs
	sharedPerSecond = 5   // publishes to the topic with both kinds
)

// runIsolation measures the latency of an endpoint that answers on two servers in
// turn: on one it is alone, on the other beside many that take a request and
// never answer it, each at a port of its own.
func runIsolation(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		fmt.Fprintln(b.progress, "# isolation: the references have no topics")
		return nil
	}
	servers, stop, err := startAll(ctx, []spec{specs[0], specs[0]}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	to, err := newSink()
	if err != nil {
		return err
	}
	defer to.close()
	hanging, err := newSink() // which ends before the servers do
	if err != nil {
		return err
	}
	defer hanging.close()

	t := &table{
		title: "Beside endpoints that hang",
		note: fmt.Sprintf("Raw deliveries to one endpoint that answers: alone, and on another server where %d others, each at a port of its own, "+
			"take requests and never answer. Own topic: %d publishes a second, while %d messages or more wait for each of the others. "+
			"Shared: %d publishes a second to all. From the beginning of the publish to the delivery.",
			b.hanging, livePerSecond, hangingEach, sharedPerSecond),
		header: []string{"topic", "endpoint", "p50 ms", "× alone", "p99 ms", "max ms", "publish p50 ms", "server cores", "other cores", "RSS MB"},
	}
	b.report.tables = append(b.report.tables, t)
	var own, shared []contender
	from := newTexts(max(b.size, stampSize), false)
	for i, s := range servers {
		name := [2]string{"alone", "beside"}[i]
		one, _, err := b.liveEndpoint(ctx, name, s, to, from, livePerSecond)
		if err != nil {
			return err
		}
		own = append(own, one)
		two, topic, err := b.liveEndpoint(ctx, name, s, to, from, sharedPerSecond)
		if err != nil {
			return err
		}
		shared = append(shared, two)
		if i == 0 {
			continue
		}
		if err := b.subscribeHanging(ctx, s, hanging, topic); err != nil {
			return err
		}
		if _, err := b.publishAll(ctx, s, topic, from, hangingEach); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		topic      string
		contenders []contender
	}{{"own", own}, {"shared", shared}} {
		results, err := b.contest(ctx, "isolation", kind.topic, b.rounds, kind.contenders)
		if err != nil {
			return err
		}
		alone, beside := results[0], results[1]
		for _, x := range results {
			t.add(kind.topic, x.name, figure(x.P50), figure(ratio(x.P50, alone.P50)), figure(x.P99), figure(x.Max),
				figure(x.more["publish_p50_ms"]), figure(x.Cores), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
		}
		times := ratio(beside.P50, alone.P50)
		b.judge(times > 0 && times <= isolationTimes, fmt.Sprintf("%s × (%s against %s ms)", figure(times), figure(beside.P50), figure(alone.P50)),
			"beside %d endpoints that hang, %s topic: median within %.0f × of what it is alone", b.hanging, kind.topic, isolationTimes)
	}
	return nil
}

// liveEndpoint makes a topic with one endpoint that answers, and says how to
// watch it.
func (b *bench) liveEndpoint(ctx context.Context, name string, s *server, to *sink, from texts, perSecond float64) (contender, string, error) {
	run := to.begin()
	run.stamped = true
	topic, err := b.topicWith(ctx, s, run, 1, true, func(int) string { return "http://" + to.host + run.prefix })
	return contender{name, s, func(ctx context.Context) (sample, map[string]float64, error) {
		if _, _, err := b.publishStamped(ctx, s, run, topic, from, perSecond, b.warm); err != nil {
			return sample{}, nil, err
		}
		return b.publishStamped(ctx, s, run, topic, from, perSecond, b.window)
	}}, topic, err
}

// subscribeHanging adds endpoints that never answer, once confirmed.
func (b *bench) subscribeHanging(ctx context.Context, s *server, hanging *sink, topic string) error {
	run := hanging.begin()
	run.hang = make(chan struct{}) // never closed: a wait ends with the request
	c := newConn(s.host)
	defer c.close()
	for range b.hanging {
		host, err := hanging.listen()
		if err != nil {
			return err
		}
		if err := subscribe(c, topic, "http", "http://"+host+run.prefix, true); err != nil {
			return err
		}
	}
	return run.confirm(ctx, c, b.hanging)
}
