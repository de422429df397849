package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	isolationTimes = 2.0 // of the median latency alone
	livePerSecond  = 100 // publishes to the live endpoint
	hangingEach    = 10  // messages that wait for each endpoint that hangs
	sharedEach     = 5   // publishes a second to the topic with both kinds
)

// runIsolation measures the latency of an endpoint that answers, alone and
// beside many that take a request and never answer it, each at a port of its own.
func runIsolation(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		fmt.Fprintln(b.progress, "# isolation: the references have no topics")
		return nil
	}
	servers, stop, err := startAll(ctx, specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	to, err := newSink()
	if err != nil {
		return err
	}
	defer to.close()
	hanging, err := newSink() // with a server of its own, so that it can end first
	if err != nil {
		return err
	}
	defer hanging.close()
	i := &isolation{bench: b, s: servers[0], to: to, hanging: hanging, from: newTexts(max(b.size, stampSize), false)}
	return i.measure(ctx)
}

type isolation struct {
	*bench
	s           *server
	to, hanging *sink
	from        texts
}

func (i *isolation) measure(ctx context.Context) error {
	t := &table{
		title: "Beside endpoints that hang",
		note: fmt.Sprintf("Raw deliveries to one endpoint that answers; alone, and while %d others, each at a port of its own, take requests and never answer. "+
			"On a topic of its own: %d publishes a second, and %d messages or more wait for each of the others. "+
			"On their topic: %d publishes a second to all. From the beginning of the publish to the delivery.",
			i.bench.hanging, livePerSecond, hangingEach, sharedEach),
		header: []string{"topic", "hanging", "p50 ms", "× alone", "p99 ms", "max ms", "server cores", "other cores", "RSS MB"},
	}
	i.report.tables = append(i.report.tables, t)
	show := func(topic string, hanging int, x, alone sample) {
		t.add(topic, strconv.Itoa(hanging), figure(x.P50), figure(ratio(x.P50, alone.P50)), figure(x.P99), figure(x.Max),
			figure(x.Cores), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
		if hanging > 0 {
			times := ratio(x.P50, alone.P50)
			i.judge(times > 0 && times <= isolationTimes, fmt.Sprintf("%s × (%s against %s ms)", figure(times), figure(x.P50), figure(alone.P50)),
				"beside %d endpoints that hang, %s topic: median within %.0f × of what it is alone", hanging, topic, isolationTimes)
		}
	}
	own, ownTopic, err := i.live(ctx)
	if err != nil {
		return err
	}
	shared, sharedTopic, err := i.live(ctx)
	if err != nil {
		return err
	}
	ownAlone, err := i.watch(ctx, own, ownTopic, "own alone", livePerSecond)
	if err != nil {
		return err
	}
	sharedAlone, err := i.watch(ctx, shared, sharedTopic, "shared alone", sharedEach)
	if err != nil {
		return err
	}
	if err := i.subscribeHanging(ctx, sharedTopic); err != nil {
		return err
	}
	if _, err := i.publishAll(ctx, i.s, sharedTopic, i.from, hangingEach); err != nil {
		return err
	}
	// The first deliveries are on their way; what follows is how it goes on.
	if err := pause(ctx, i.warm); err != nil {
		return err
	}
	ownBeside, err := i.watch(ctx, own, ownTopic, "own beside", livePerSecond)
	if err != nil {
		return err
	}
	sharedBeside, err := i.watch(ctx, shared, sharedTopic, "shared beside", sharedEach)
	if err != nil {
		return err
	}
	show("own", 0, ownAlone, ownAlone)
	show("own", i.bench.hanging, ownBeside, ownAlone)
	show("shared", 0, sharedAlone, sharedAlone)
	show("shared", i.bench.hanging, sharedBeside, sharedAlone)
	return nil
}

// live makes a topic with one endpoint that answers.
func (i *isolation) live(ctx context.Context) (run *sinkRun, topic string, err error) {
	run = i.to.begin()
	run.stamped = true
	topic, err = i.topicWith(ctx, i.s, run, 1, true, func(int) string { return "http://" + i.to.host + run.prefix })
	return run, topic, err
}

// watch publishes by a schedule for some windows.
func (i *isolation) watch(ctx context.Context, run *sinkRun, topic, label string, perSecond float64) (sample, error) {
	one, more, err := i.publishStamped(ctx, i.s, run, topic, i.from, perSecond, time.Duration(i.rounds)*i.window)
	if err == nil {
		err = i.s.alive()
	}
	if err != nil {
		return one, fmt.Errorf("%s: %w", label, err)
	}
	i.note("isolation", label, i.s.name, 0, one, more)
	return one, nil
}

// subscribeHanging adds the endpoints that never answer, once confirmed.
func (i *isolation) subscribeHanging(ctx context.Context, topic string) error {
	run := i.hanging.begin()
	run.hang = make(chan struct{}) // never closed: a wait ends with the request
	c := newConn(i.s.host)
	defer c.close()
	for range i.bench.hanging {
		host, err := i.hanging.listen()
		if err != nil {
			return err
		}
		if err := subscribe(c, topic, "http", "http://"+host+run.prefix, true); err != nil {
			return err
		}
	}
	return run.confirm(ctx, c, i.bench.hanging)
}
