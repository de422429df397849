package journal

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// leading is a journal with few callers, of a store whose syncs can be stopped.
type leading struct {
	*Journal
	store  *storetest.Gated
	shut   bool
	stream *Stream
	syncs  atomic.Int32
}

func startLeading(t *testing.T) *leading {
	t.Helper()
	l := &leading{store: &storetest.Gated{Store: memory.New()}}
	l.Journal = Open(Options{Store: l.store, Synced: func(time.Duration) { l.syncs.Add(1) }})
	t.Cleanup(l.Close)
	l.stream = open(t, l.Journal, 1)
	return l
}

func (l *leading) append(when Durability, value string) *Commit {
	return l.Append(when, Change{Stream: l.stream, Batch: storetest.Sets("k", value)})
}

// leadSlowly has a caller sync a commit, which does not end before the store is opened.
func (l *leading) leadSlowly() *Commit {
	l.shut = true
	l.store.Shut()
	c := l.append(Awaited, "led")
	go c.Wait()
	synctest.Wait()
	return c
}

// durable expects all commits durable after as many syncs, which begin at once.
func (l *leading) durable(t *testing.T, syncs int32, commits ...*Commit) {
	t.Helper()
	if l.shut {
		l.shut = false
		l.store.Open()
	}
	synctest.Wait()
	for i, c := range commits {
		if !c.Durable() {
			t.Errorf("commit %d is not durable", i)
		}
	}
	if n := l.syncs.Load(); n != syncs {
		t.Errorf("%d syncs, want %d", n, syncs)
	}
}

func TestLeader(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, l *leading){
		"the caller syncs": func(t *testing.T, l *leading) {
			c := l.leadSlowly()
			if l.syncer != leader {
				t.Errorf("%v syncs", l.syncer)
			}
			l.durable(t, 1, c)
			if l.syncer != nobody {
				t.Errorf("%v syncs when all is done", l.syncer)
			}
		},
		"a caller that does not wait yet": func(t *testing.T, l *leading) {
			c := l.append(Awaited, "1")
			if synctest.Wait(); c.Durable() {
				t.Error("synced before anybody waits")
			}
			c.Wait()
			l.durable(t, 1, c)
		},
		"a caller that does not wait at all": func(t *testing.T, l *leading) {
			a, b := l.append(Awaited, "1"), l.append(Eager, "2")
			l.durable(t, 1, a, b)
		},
		"a caller that gives up": func(t *testing.T, l *leading) {
			c := l.append(Awaited, "1")
			c.StartSync()
			l.durable(t, 1, c)
			led := l.leadSlowly()
			during := l.append(Awaited, "2")
			during.StartSync()
			l.durable(t, 3, led, during)
			(*Commit)(nil).StartSync()
		},
		"what is lazy comes with it": func(t *testing.T, l *leading) {
			a, b := l.append(Awaited, "1"), l.append(Lazy, "2")
			<-after(LazyDelay)
			l.durable(t, 1, a, b)
		},
		"callers during the sync": func(t *testing.T, l *leading) {
			led := l.leadSlowly()
			a, b := l.append(Awaited, "1"), l.append(Awaited, "2")
			go a.Wait()
			l.durable(t, 2, led, a, b)
		},
		"a reader applies what is waited for": func(t *testing.T, l *leading) {
			led := l.leadSlowly()
			c := l.append(Awaited, "1")
			if got := get(t, l.stream.Reader(), "k"); got != "1" {
				t.Errorf("read %q", got)
			}
			l.durable(t, 2, led, c)
		},
		"what is waited for behind what is lazy": func(t *testing.T, l *leading) {
			led := l.leadSlowly()
			lazy := l.append(Lazy, "1")
			l.Flush()
			c := l.append(Awaited, "2")
			go c.Wait()
			l.durable(t, 2, led, lazy, c)
		},
		"what becomes durable while somebody asks what follows": func(t *testing.T, l *leading) {
			c := l.append(Lazy, "1")
			c.want.Store(1)
			l.mu.Lock()
			called, over := 0, make(chan struct{})
			go func() { c.Then(func() { called++ }); close(over) }()
			<-c.enough // it has not seen it durable
			c.durable.Store(true)
			l.mu.Unlock()
			if <-over; called != 1 {
				t.Errorf("called %d times", called)
			}
		},
		"what is due during the sync": func(t *testing.T, l *leading) {
			led := l.leadSlowly()
			lazy := l.append(Lazy, "1")
			<-after(2 * LazyDelay)
			l.durable(t, 2, led, lazy)
		},
		"a leader and the journal's goroutine": func(t *testing.T, l *leading) {
			led := l.leadSlowly()
			l.signal()
			synctest.Wait() // it waits for the leader
			c := l.append(Awaited, "1")
			go c.Wait()
			l.durable(t, 2, led, c)
			next := l.append(Awaited, "2")
			go next.Wait()
			l.durable(t, 3, next)
		},
		"many callers": func(t *testing.T, l *leading) {
			l.delay.expectedWaiters.Store(delayMinWaiters)
			c := l.append(Awaited, "1")
			go c.Wait()
			<-after(delayTime)
			if l.durable(t, 1, c); c.unled.Load() {
				t.Error("it was left to the caller")
			}
		},
		"what follows it": func(t *testing.T, l *leading) {
			var called atomic.Int32
			follow := func() { called.Add(1) }
			led := l.leadSlowly()
			c := l.append(Awaited, "1")
			led.Then(follow)
			c.Then(follow)
			if led.Then(follow); called.Load() != 0 {
				t.Error("called before it is durable")
			}
			if l.durable(t, 2, led, c); called.Load() != 3 {
				t.Errorf("%d of 3 called", called.Load())
			}
			led.Then(follow)
			if (*Commit)(nil).Then(follow); called.Load() != 5 {
				t.Error("not called at once though it is durable")
			}
		},
		"closed": func(t *testing.T, l *leading) {
			c := l.append(Awaited, "1")
			l.Close()
			c.Wait()
			l.durable(t, 1, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, startLeading(t)) })
		})
	}
}

// Whatever callers do, and whoever syncs, each commit is durable soon after it was appended.
func TestSyncersTakeTurns(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			l := startLeading(t)
			var all sync.WaitGroup
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, 0))
				for range 30 {
					l.store.Shut()
					<-after(time.Duration(r.IntN(int(LazyDelay))))
					l.store.Open()
					<-after(time.Duration(r.IntN(int(LazyDelay))))
				}
			})
			for worker := range uint64(12) {
				r := rand.New(rand.NewPCG(seed, 1+worker))
				all.Go(func() {
					for i := range 40 {
						began := clock.System.Now()
						when := Durability(r.IntN(3))
						c := l.append(when, strconv.Itoa(i))
						switch r.IntN(5) {
						case 0:
							_ = get(t, l.stream.Reader(), "k")
						case 1:
							l.AwaitIfSlow(c)
						case 2:
							<-after(time.Duration(r.IntN(int(2 * LazyDelay))))
						case 3:
							l.signal()
						}
						if when == Awaited || r.IntN(4) > 0 {
							c.Wait()
						} else {
							<-after(4 * LazyDelay)
						}
						if took := clock.System.Now().Sub(began); !c.Durable() || took > 10*LazyDelay {
							t.Errorf("seed %d: after %v: durable %v", seed, took, c.Durable())
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// applying is a store that holds up a reader's commits while they are applied.
type applying struct {
	*storetest.Gated
	gate chan struct{} // nil: open
}

func (a *applying) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	if a.gate != nil {
		<-a.gate
	}
	return a.Gated.Apply(sync, batches...)
}

// Who waits for a commit that a reader applies while a leader syncs another is answered: the
// leader sees it at its end.
func TestLeaderSeesWhatIsBeingApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &applying{Gated: &storetest.Gated{Store: memory.New()}}
		j := Open(Options{Store: s})
		defer j.Close()
		a := open(t, j, 1)
		s.Shut()
		led := a.Append(Awaited, 0, storetest.Sets("k", "1"))
		over := make(chan struct{})
		go func() { led.Wait(); close(over) }()
		synctest.Wait()
		c := a.Append(Awaited, 0, storetest.Sets("k", "2"))
		go c.Wait()
		s.gate = make(chan struct{})
		go j.Flush()
		synctest.Wait()
		s.Open()
		<-over
		close(s.gate)
		if synctest.Wait(); !c.Durable() {
			t.Error("the leader has left it")
		}
	})
}

// A lazy commit that a reader applies when the timer of another runs has a timer of its own.
func TestTimerOfWhatIsBeingApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &applying{Gated: &storetest.Gated{Store: memory.New()}, gate: make(chan struct{})}
		j := Open(Options{Store: s})
		defer j.Close()
		c := open(t, j, 1).Append(Lazy, 0, storetest.Sets("k", "1"))
		go j.Flush()
		synctest.Wait()
		if j.syncDue(); !j.lazyTimer {
			t.Error("it has no timer")
		}
		close(s.gate)
		<-after(LazyDelay)
		if synctest.Wait(); !c.Durable() {
			t.Error("not durable")
		}
	})
}
