package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// sample is what one measured window showed. A figure of 0 is not known.
type sample struct {
	Seconds    float64 `json:"seconds"`
	Messages   int64   `json:"messages"`
	Requests   int64   `json:"requests"`
	Throughput float64 `json:"messages_per_s"`
	ServerCPU  float64 `json:"server_cpu_us_per_message"`
	ClientCPU  float64 `json:"client_cpu_us_per_message"`
	Cores      float64 `json:"server_cores"`
	// OtherCores is what neither server nor client used: above about 0.2 the
	// throughput and the latencies of the window say little.
	OtherCores float64 `json:"other_cores"`
	latency
	RSS  float64 `json:"rss_mb"`
	Peak float64 `json:"peak_rss_mb"`
}

// step does one request, or several that belong together, and says what that
// was. errDone: there was nothing left to do.
type step func() (work, error)

type work struct {
	messages int
	due      time.Time // the latency counts from it; zero: from the call of the step
}

var errDone = errors.New("done")

// The stages of a window.
const (
	warmingUp int32 = iota
	recording
	stopped
)

// firstWithin is how long a window is extended at most for its first message.
const firstWithin = time.Minute

// tally is what one worker counted.
type tally struct {
	histogram
	messages int64
}

// measure runs each step in a loop of its own for warm and then for length at
// most, which is what it reports, or until the first message. It ends when all steps are done. The first
// error ends it too, and is returned: a benchmark of failures means nothing.
func measure(ctx context.Context, s *server, warm, length time.Duration, steps []step) (sample, error) {
	var stage atomic.Int32
	var wg sync.WaitGroup
	failed := make(chan error, len(steps))
	tallies := make([]tally, len(steps))
	resetPeak(s.pid)
	first := make(chan struct{}) // closed with the first message
	ended := sync.OnceFunc(func() { close(first) })
	var begin usage
	if warm <= 0 {
		stage.Store(recording)
		begin = readUsage(s.pid)
	}
	for i, step := range steps {
		wg.Go(func() {
			t := &tallies[i]
			for stage.Load() != stopped {
				start := time.Now()
				w, err := step()
				if errors.Is(err, errDone) {
					return
				}
				if err != nil {
					failed <- err
					return
				}
				if !w.due.IsZero() {
					start = w.due
				}
				if stage.Load() == recording {
					if t.messages == 0 && w.messages > 0 {
						ended()
					}
					t.add(time.Since(start))
					t.messages += int64(w.messages)
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	wait := func(until <-chan time.Time, or <-chan struct{}) error {
		select {
		case <-until:
			return nil
		case <-or:
			return nil
		case <-finished:
			return nil
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var err error
	if warm > 0 {
		err = wait(time.After(warm), nil)
		begin = readUsage(s.pid)
		stage.Store(recording)
	}
	if err == nil {
		err = wait(time.After(length), nil)
	}
	if err == nil { // a busy machine may need longer for the first
		err = wait(time.After(firstWithin), first)
	}
	stage.Store(stopped)
	end := readUsage(s.pid)
	<-finished // bounded: each request has a deadline
	if err == nil {
		select {
		case err = <-failed:
		default:
		}
	}
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", s.name, err)
	}
	var all tally
	for i := range tallies {
		all.merge(&tallies[i].histogram)
		all.messages += tallies[i].messages
	}
	if all.messages == 0 {
		return sample{}, fmt.Errorf("%s: no request ended within %s", s.name, length)
	}
	return newSample(s, begin, end, &all), nil
}

func newSample(s *server, begin, end usage, t *tally) sample {
	wall := end.at.Sub(begin.at)
	server, client := end.server-begin.server, end.client-begin.client
	out := sample{
		Seconds:    wall.Seconds(),
		Messages:   t.messages,
		Requests:   int64(t.n),
		Throughput: float64(t.messages) / wall.Seconds(),
		Cores:      server.Seconds() / wall.Seconds(),
		latency:    t.latency(),
	}
	if t.messages > 0 {
		out.ServerCPU = microseconds(server) / float64(t.messages)
		out.ClientCPU = microseconds(client) / float64(t.messages)
	}
	out.OtherCores = max(0, (end.machine-begin.machine-server-client).Seconds()/wall.Seconds())
	out.RSS, out.Peak = memory(s.pid)
	return out
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// middle is the median of each figure of several samples.
func middle(samples []sample) sample {
	figure := func(of func(sample) float64) float64 { return medianOf(samples, of) }
	return sample{
		Seconds:    figure(func(s sample) float64 { return s.Seconds }),
		Messages:   int64(figure(func(s sample) float64 { return float64(s.Messages) })),
		Requests:   int64(figure(func(s sample) float64 { return float64(s.Requests) })),
		Throughput: figure(func(s sample) float64 { return s.Throughput }),
		ServerCPU:  figure(func(s sample) float64 { return s.ServerCPU }),
		ClientCPU:  figure(func(s sample) float64 { return s.ClientCPU }),
		Cores:      figure(func(s sample) float64 { return s.Cores }),
		OtherCores: figure(func(s sample) float64 { return s.OtherCores }),
		latency: latency{
			P50:  figure(func(s sample) float64 { return s.P50 }),
			P99:  figure(func(s sample) float64 { return s.P99 }),
			P999: figure(func(s sample) float64 { return s.P999 }),
			Max:  figure(func(s sample) float64 { return s.Max }),
		},
		RSS:  figure(func(s sample) float64 { return s.RSS }),
		Peak: figure(func(s sample) float64 { return s.Peak }),
	}
}

// conns opens n connections to a server; call release when they are not needed
// any more.
func conns(s *server, n int) (all []*conn, release func()) {
	for range n {
		all = append(all, newConn(s.host))
	}
	return all, func() {
		for _, c := range all {
			c.close()
		}
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
