package consume

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
)

// BenchmarkRateLimited is a second message for each of 100,000 backlogs that may make one attempt a second:
// each of them waits for its own moment. What it costs is their memory, and the goroutines that their timers
// begin.
func BenchmarkRateLimited(b *testing.B) {
	const backlogs = 100_000
	for b.Loop() {
		pool := RemotePool(500, 5000)
		var left sync.WaitGroup
		left.Add(2 * backlogs)
		var first atomic.Int64
		var mu sync.Mutex
		sent := map[arn.ARN]int{}
		c := New(Options{
			Lease: func(_ context.Context, name arn.ARN, _ int) ([]Work, bool, error) {
				mu.Lock()
				defer mu.Unlock()
				sent[name]++
				return []Work{&limited{pool: pool, done: func() { first.Add(1); left.Done() }}}, sent[name] < 2, nil
			},
			Clock: clock.System, Logger: slog.New(slog.DiscardHandler), Pools: []*Pool{pool},
		})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := clock.System.Now()
		most := 0
		for i := range backlogs {
			c.Ready(named(fmt.Sprint("q", i)))
			if i%100 == 0 {
				most = max(most, runtime.NumGoroutine())
			}
		}
		for first.Load() < backlogs {
			most = max(most, runtime.NumGoroutine())
			passed, _ := clock.After(clock.System, time.Millisecond)
			<-passed
		}
		took := clock.System.Now().Sub(began)
		runtime.ReadMemStats(&after)
		done := make(chan struct{})
		go func() { left.Wait(); close(done) }()
		for over := false; !over; {
			most = max(most, runtime.NumGoroutine())
			passed, _ := clock.After(clock.System, time.Millisecond)
			select {
			case <-done:
				over = true
			case <-passed:
			}
		}
		b.ReportMetric(took.Seconds(), "s/first")
		b.ReportMetric(float64(most), "goroutines")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/backlogs, "B/backlog")
		c.Stop(context.Background())
	}
}

// limited is a message of a backlog that makes one attempt a second.
type limited struct {
	pool *Pool
	done func()
}

func (l *limited) Host() (*Pool, string)          { return l.pool, "h" }
func (l *limited) Plan() Plan                     { return Plan{Rate: 1} }
func (l *limited) Attempt(context.Context) Result { return Result{Disposition: Done} }
func (l *limited) Ack()                           { l.done() }
func (l *limited) Retry(time.Time)                {}
func (l *limited) HandOver(context.Context) bool  { return true }
func (l *limited) Release()                       {}
