package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	parkWithin   = time.Second // for the last poll to arrive at the server
	wakeInterval = 10 * time.Millisecond
	wakeWithin   = 10 * time.Second
	makeConns    = 16 // connections that create the queues
)

// The targets of idle polls, and of waking one.
const (
	pollMemory       = 100.0 // MB of the server
	pollCores        = 0.02
	pollP50, pollP99 = 1.0, 5.0 // ms
)

// runPoll parks a long poll on each of many queues, watches what they cost
// while nothing happens, and then sends to one after the other.
func runPoll(ctx context.Context, b *bench) error {
	servers, stop, err := startAll(ctx, b.of(subject, earlier, inMemory, peer), b.dir)
	if err != nil {
		return err
	}
	defer stop()
	t := &table{
		title: "Idle long polls",
		note: fmt.Sprintf("%d queues with a connection and a poll of %.0f s on each, watched for %s, then a message every %s to one of them; "+
			"time from the beginning of the send to the end of the receive.", b.pollers, pollWait.Seconds(), b.idle, wakeInterval),
		header: []string{
			"server", "polls", "RSS MB before", "queues made", "parked", "kB/poll",
			"idle CPU % of a core", "wake p50 ms", "p99 ms", "max ms", "other cores",
		},
	}
	b.report.tables = append(b.report.tables, t)
	results, err := b.compare(ctx, "poll", fmt.Sprintf("polls %d", b.pollers), b.pollRounds(), servers, b.pollWindow)
	if err != nil {
		return err
	}
	for _, x := range results {
		kilobytes := (x.more["parked_mb"] - x.more["queues_mb"]) * 1000 / float64(b.pollers)
		idle := unknown
		if x.server.pid != 0 {
			idle = fmt.Sprintf("%.1f", x.more["idle_cores"]*100)
		}
		t.add(x.name, strconv.Itoa(b.pollers),
			figure(x.more["before_mb"]), figure(x.more["queues_mb"]), figure(x.more["parked_mb"]), figure(kilobytes),
			idle, figure(x.P50), figure(x.P99), figure(x.Max), fmt.Sprintf("%.2f", x.OtherCores))
	}
	if x, ok := find(results, subject); ok {
		parked := x.more["parked_mb"]
		b.judge(parked > 0 && parked < pollMemory && x.more["idle_cores"] < pollCores,
			fmt.Sprintf("%s MB, %s %%", figure(parked), figure(x.more["idle_cores"]*100)),
			"%d idle long polls: under %.0f MB resident and %.0f %% of a core", b.pollers, pollMemory, pollCores*100)
		b.judge(x.P50 < pollP50 && x.P99 < pollP99,
			fmt.Sprintf("%s ms, p99 %s", figure(x.P50), figure(x.P99)),
			"from a send to a waiting receive: median under %.0f ms, p99 under %.0f ms", pollP50, pollP99)
	}
	return nil
}

// pollRounds is how often the polls are parked: once shows what they cost, but to compare
// binaries takes more.
func (b *bench) pollRounds() int {
	if len(b.of(earlier)) > 0 {
		return b.rounds
	}
	return 1
}

// pollers are parked polls, one a queue.
type pollers struct {
	conns []*conn
	wg    sync.WaitGroup

	sentAt  []atomic.Int64 // by queue: ns since began
	began   time.Time
	failed  chan error
	parked  atomic.Int64
	closing atomic.Bool

	mu    sync.Mutex
	wakes histogram
	woken chan struct{} // one token for each wake
}

func (b *bench) pollWindow(ctx context.Context, s *server) (out sample, more map[string]float64, err error) {
	before, _ := memory(s.pid)
	urls, err := b.makeQueues(s, b.pollers)
	if err != nil {
		return out, nil, err
	}
	made, _ := memory(s.pid)
	p := startPollers(s, urls)
	defer p.stop()
	for began := time.Now(); p.parked.Load() < int64(len(urls)); {
		if time.Since(began) > requestTimeout {
			return out, nil, fmt.Errorf("%d of %d polls were sent", p.parked.Load(), len(urls))
		}
		if err := pause(ctx, wakeInterval); err != nil {
			return out, nil, err
		}
	}
	if err := pause(ctx, parkWithin); err != nil {
		return out, nil, err
	}
	parked, _ := memory(s.pid)
	begin := readUsage(s.pid)
	if err := pause(ctx, b.idle); err != nil {
		return out, nil, err
	}
	end := readUsage(s.pid)
	idle := newSample(s, begin, end, &tally{})

	if err := b.wake(ctx, s, p, urls); err != nil {
		return out, nil, err
	}
	out = newSample(s, end, readUsage(s.pid), &tally{histogram: p.wakes, messages: int64(b.wakes)})
	more = map[string]float64{
		"before_mb": before, "queues_mb": made, "parked_mb": parked, "idle_cores": idle.Cores,
	}
	more["idle_us"] = idle.Cores * 1e6 / float64(b.pollers) // of a second, a poll
	if s.role == peer || b.pollRounds() > 1 {               // the others are thrown away
		p.stop()
		c := newConn(s.host)
		defer c.close()
		for _, url := range urls {
			if err := dropQueue(c, url); err != nil {
				return out, nil, err
			}
		}
	}
	return out, more, nil
}

func (b *bench) makeQueues(s *server, n int) ([]string, error) {
	names := make([]string, n)
	for i := range names {
		names[i] = b.newName()
	}
	urls := make([]string, n)
	failed := make([]error, makeConns)
	all, release := conns(s, makeConns)
	defer release()
	var next atomic.Int64
	var wg sync.WaitGroup
	for k, c := range all {
		wg.Go(func() {
			for failed[k] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				urls[i], failed[k] = makeQueue(c, names[i])
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return urls, nil
}

func startPollers(s *server, urls []string) *pollers {
	p := &pollers{
		sentAt: make([]atomic.Int64, len(urls)),
		began:  time.Now(),
		failed: make(chan error, len(urls)),
		woken:  make(chan struct{}, len(urls)),
	}
	for i, url := range urls {
		c := newConn(s.host)
		p.conns = append(p.conns, c)
		p.wg.Go(func() {
			if err := p.poll(openQueue(c, url, uint64(i)), i); err != nil && !p.closing.Load() {
				p.failed <- err
			}
		})
	}
	return p
}

// poll polls until its connection is aborted.
func (p *pollers) poll(q *queue, i int) error {
	defer q.c.close()
	var messages []got
	var err error
	p.parked.Add(1)
	for !p.closing.Load() {
		if messages, err = q.receive(messages[:0], 1, int(pollWait.Seconds()), -1); err != nil {
			return err
		}
		if len(messages) == 0 {
			continue // the wait is over
		}
		took := time.Since(p.began) - time.Duration(p.sentAt[i].Load())
		p.mu.Lock()
		p.wakes.add(took)
		p.mu.Unlock()
		p.woken <- struct{}{}
		if err := q.remove([][]byte{append([]byte(nil), messages[0].receipt...)}); err != nil {
			return err
		}
	}
	return nil
}

// wake sends to random queues, never twice to one, and waits for the receives.
func (b *bench) wake(ctx context.Context, s *server, p *pollers, urls []string) error {
	from := newTexts(b.size, b.escapes)
	c := newConn(s.host)
	defer c.close()
	rng := rand.New(rand.NewPCG(4, 4))
	for _, i := range rng.Perm(len(urls))[:b.wakes] {
		p.sentAt[i].Store(int64(time.Since(p.began)))
		if err := openQueue(c, urls[i], uint64(i)).send(from, 1, 0); err != nil {
			return err
		}
		if err := pause(ctx, wakeInterval); err != nil {
			return err
		}
	}
	timeout := time.NewTimer(wakeWithin)
	defer timeout.Stop()
	for n := range b.wakes {
		select {
		case <-p.woken:
		case err := <-p.failed:
			return err
		case <-timeout.C:
			return fmt.Errorf("%d of %d messages reached a poll", n, b.wakes)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *pollers) stop() {
	p.closing.Store(true)
	for _, c := range p.conns {
		c.abort()
	}
	p.wg.Wait()
}
