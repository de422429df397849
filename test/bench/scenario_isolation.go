package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// backlogOfHanging is how many messages each web hook that hangs is owed: more
// than the server can have under way to all of them.
const backlogOfHanging = 10

// runIsolation measures how long it takes from a publish to the request at a live
// web hook: alone, and beside many that accept requests and never answer.
func runIsolation(ctx context.Context, b *bench) error {
	specs := b.of(subject, peer)
	if len(specs) == 0 {
		fmt.Fprintln(b.progress, "# isolation: the references have no topics")
		return nil
	}
	servers, stop, err := startAll(ctx, specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	h, err := listenHooks()
	if err != nil {
		return err
	}
	defer h.close()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title: "Isolation",
		note: fmt.Sprintf("From the start of a publish to the request at one live web hook with raw delivery, one message after the other, "+
			"beside web hooks of other hosts that accept requests and never answer, and are owed %d messages each.", backlogOfHanging),
		header: []string{"hanging", "server", "p50 ms", "× alone", "p99 ms", "max ms", "messages/s", "other cores", "RSS MB"},
	}
	b.report.tables = append(b.report.tables, t)
	alone := map[string]float64{}
	for _, hanging := range b.hanging {
		for _, s := range servers {
			if err := b.hang(ctx, s, h, from, hanging); err != nil {
				return err
			}
		}
		results, err := b.compare(ctx, "isolation", fmt.Sprintf("hanging %d", hanging), b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
			return b.isolationWindow(ctx, s, h, from)
		})
		if err != nil {
			return err
		}
		for _, x := range results {
			if hanging == 0 {
				alone[x.server.name] = x.P50
			}
			t.add(fmt.Sprint(hanging), x.server.name, figure(x.P50), figure(ratio(x.P50, alone[x.server.name])),
				figure(x.P99), figure(x.Max), figure(x.Throughput), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
		}
	}
	return nil
}

// hang subscribes n web hooks that hang to a topic, and publishes to it.
func (b *bench) hang(ctx context.Context, s *server, h *hooks, from texts, n int) error {
	if n == 0 {
		return nil
	}
	c := newConn(s.host)
	defer c.close()
	topic, err := makeTopic(c, b.newName())
	if err != nil {
		return err
	}
	for i := range n {
		if err := h.subscribe(ctx, c, topic, 1+i, "/hanging"); err != nil {
			return err
		}
	}
	p := newPublisher(c, topic, 1)
	for range backlogOfHanging {
		if err := p.publish(from); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) isolationWindow(ctx context.Context, s *server, h *hooks, from texts) (out sample, more map[string]float64, err error) {
	c := newConn(s.host)
	defer c.close()
	topic, err := makeTopic(c, b.newName())
	if err != nil {
		return out, nil, err
	}
	if err := h.subscribe(ctx, c, topic, 0, "/live"); err != nil {
		return out, nil, err
	}
	p := newPublisher(c, topic, 2)
	out, err = measure(ctx, s, b.warm, b.window, []step{func() (work, error) {
		if err := p.publish(from); err != nil {
			return work{}, err
		}
		select {
		case <-h.arrived:
			return work{messages: 1}, nil
		case <-time.After(20 * time.Second):
			return work{}, errors.New("a message did not come to the live web hook")
		case <-ctx.Done():
			return work{}, ctx.Err()
		}
	}})
	if err != nil {
		return out, nil, err
	}
	return out, nil, dropTopic(c, topic)
}
