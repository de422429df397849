package consume

import (
	"context"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// waiting is a job that runs until it is let go on.
type waiting struct {
	begun *sync.WaitGroup
	goOn  <-chan struct{}
	ended *sync.WaitGroup
}

func (w waiting) run() { w.begun.Done(); <-w.goOn }
func (w waiting) end() { w.ended.Done() }

// TestWorkers: goroutines whose job has ended take over the next ones, as many as may wait for
// one, and end when the consumer stops.
func TestWorkers(t *testing.T) {
	c := New(Options{Clock: clock.NewVirtual(time.Unix(0, 0))})
	const many = maxIdle + 44
	for range 2 {
		var begun, ended sync.WaitGroup
		begun.Add(many)
		ended.Add(many)
		goOn := make(chan struct{})
		c.mu.Lock()
		before := len(c.idle)
		for range many {
			c.start(waiting{&begun, goOn, &ended})
		}
		if left := len(c.idle); left != 0 {
			t.Errorf("%d of %d goroutines were left waiting", left, before)
		}
		c.mu.Unlock()
		begun.Wait()
		close(goOn)
		ended.Wait()
		c.mu.Lock()
		if n := len(c.idle); n != maxIdle {
			t.Errorf("%d goroutines wait for a job", n)
		}
		c.mu.Unlock()
	}
	if err := c.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(c.idle) > 0 {
		t.Error("goroutines wait behind the end")
	}
}
