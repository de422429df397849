package consume

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
)

// counted counts the timers that are set.
type counted struct {
	*clock.Virtual

	set atomic.Int64
}

func (c *counted) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.set.Add(1)
	return &countedTimer{c.Virtual.AfterFunc(d, func() { c.set.Add(-1); f() }), c}
}

type countedTimer struct {
	clock.Timer

	of *counted
}

func (t *countedTimer) Stop() bool {
	stopped := t.Timer.Stop()
	if stopped {
		t.of.set.Add(-1)
	}
	return stopped
}

// However many backlogs wait for their moments, there is one timer, and each goes on at its own moment.
func TestMomentsOfManyBacklogs(t *testing.T) {
	const backlogs = 2*momentsAtOnce + 3
	clk := &counted{Virtual: clock.NewVirtual(start)}
	pool := RemotePool(50, 5000)
	var mu sync.Mutex
	leased, at := map[arn.ARN]int{}, map[arn.ARN][]time.Time{}
	c := New(Options{
		Lease: func(_ context.Context, name arn.ARN, _ int) ([]Work, bool, error) {
			mu.Lock()
			defer mu.Unlock()
			leased[name]++
			return []Work{&limited{pool: pool, done: func() {
				mu.Lock()
				defer mu.Unlock()
				at[name] = append(at[name], clk.Now())
			}}}, leased[name] < 3, nil
		},
		Clock: clk, Logger: slog.New(slog.DiscardHandler), Pools: []*Pool{pool},
	})
	defer c.Stop(context.Background())
	began := map[arn.ARN]time.Time{}
	for i := range backlogs {
		if i%100 == 99 {
			advance(t, clk.Virtual, time.Millisecond)
		}
		name := named(fmt.Sprint("q", i))
		began[name] = clk.Now()
		c.Ready(name)
	}
	advance(t, clk.Virtual, 500*time.Millisecond)
	if n := clk.set.Load(); n != 1 {
		t.Errorf("%d timers are set for %d backlogs", n, backlogs)
	}
	advance(t, clk.Virtual, 10*time.Second)
	mu.Lock()
	defer mu.Unlock()
	for name, first := range began {
		if got := at[name]; len(got) != 3 || !got[0].Equal(first) || !got[1].Equal(first.Add(time.Second)) || !got[2].Equal(first.Add(2*time.Second)) {
			t.Fatalf("%s was ready at %s, and had attempts at %s", name, first, got)
		}
	}
	if n := clk.set.Load(); n != 0 || !c.Idle() {
		t.Errorf("%d timers are set at the end", n)
	}
}
