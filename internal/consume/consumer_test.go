package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
)

// source is backlogs in memory, whose messages come to what attempt says.
type source struct {
	t       *testing.T
	clock   clock.Clock
	pool    *Pool
	plan    Plan
	attempt func(ctx context.Context, m *msg) Result
	handed  bool // what has ended is taken
	fail    bool // leases

	consumer *Consumer

	mu       sync.Mutex
	backlogs map[arn.ARN][]*msg
	log      []string
	leased   int
	most     int // leased at once
}

// msg is a message of a backlog, and the work at it.
type msg struct {
	*source
	backlog arn.ARN
	name    string
	due     time.Time
	leased  bool
	ended   bool
}

func newSource(t *testing.T, c clock.Clock, p *Pool) *source {
	s := &source{t: t, clock: c, pool: p, backlogs: map[arn.ARN][]*msg{}, handed: true}
	s.consumer = New(Options{Lease: s.lease, Clock: c, Logger: slog.New(slog.DiscardHandler), Pools: []*Pool{p}})
	t.Cleanup(func() {
		if err := s.consumer.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if s.leased != 0 || p.inflight != 0 {
			t.Errorf("%d are leased after Stop, %d in the pool", s.leased, p.inflight)
		}
	})
	return s
}

func named(name string) arn.ARN { return arn.Queue("r", "a", name) }

func (s *source) add(backlog string, names ...string) {
	s.mu.Lock()
	for _, n := range names {
		s.backlogs[named(backlog)] = append(s.backlogs[named(backlog)], &msg{source: s, backlog: named(backlog), name: n, due: s.clock.Now()})
	}
	s.mu.Unlock()
	s.consumer.Ready(named(backlog))
}

func (s *source) lease(_ context.Context, backlog arn.ARN, limit int) (taken []Work, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail {
		s.note("unreadable")
		return nil, false, errors.New("unreadable")
	}
	for _, m := range s.backlogs[backlog] {
		switch {
		case m.leased || m.due.After(s.clock.Now()):
		case len(taken) == limit:
			return taken, true, nil
		default:
			m.leased = true
			s.leased++
			s.most = max(s.most, s.leased)
			taken = append(taken, m)
		}
	}
	return taken, false, nil
}

func (s *source) note(what string) { s.log = append(s.log, what) }

// conclude ends a lease, which must be there.
func (m *msg) conclude(what string, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.leased {
		m.t.Errorf("%s is concluded twice, by %s", m.name, what)
	}
	m.leased = false
	m.source.leased--
	m.note(what + " " + m.name)
	if gone {
		m.backlogs[m.backlog] = slices.DeleteFunc(m.backlogs[m.backlog], func(x *msg) bool { return x == m })
	}
}

func (m *msg) Host() (*Pool, string) { return m.pool, m.backlog.Resource }

func (m *msg) Plan() Plan {
	p := m.plan
	p.Ended = m.ended
	return p
}

func (m *msg) Attempt(ctx context.Context) Result {
	m.mu.Lock()
	m.note("attempt " + m.name)
	m.mu.Unlock()
	v := m.attempt(ctx, m)
	m.ended = v.Disposition == Ended
	return v
}

func (m *msg) Ack() { m.conclude("ack", true) }

func (m *msg) Release() { m.conclude("release", false) }

func (m *msg) Retry(due time.Time) {
	m.due = due
	m.conclude("retry", false)
	m.clock.AfterFunc(due.Sub(m.clock.Now()), func() { m.consumer.Ready(m.backlog) })
}

func (m *msg) HandOver(context.Context) bool {
	m.mu.Lock()
	ok := m.handed
	m.mu.Unlock()
	if ok {
		m.conclude("hand over", true)
	}
	return ok
}

// said is what has happened since it was last asked.
func (s *source) said() (log []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log, s.log = s.log, nil
	return log
}

func (s *source) expect(want ...string) {
	s.t.Helper()
	if got := s.said(); !slices.Equal(got, want) {
		s.t.Errorf("got  %q\nwant %q", got, want)
	}
}

func advance(t *testing.T, v *clock.Virtual, d time.Duration) {
	t.Helper()
	if _, err := v.Advance(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// pools are one of each kind.
func pools() map[string]*Pool {
	return map[string]*Pool{"outside": RemotePool(50, 5000), "local": LocalPool(64, 1024), "reserving": ReservingPool(1000)}
}

// TestConclusions: each result leads to one call, in pools of all kinds.
func TestConclusions(t *testing.T) {
	for name, p := range pools() {
		t.Run(name, func(t *testing.T) {
			v := clock.NewVirtual(start)
			s := newSource(t, v, p)
			step := func(result Result) {
				s.attempt = func(context.Context, *msg) Result { return result }
			}
			step(Result{Disposition: Done})
			s.add("a", "1")
			advance(t, v, 0)
			s.expect("attempt 1", "ack 1")

			step(Result{Disposition: Retry, Due: start.Add(time.Minute)})
			s.add("a", "2")
			advance(t, v, time.Minute-time.Millisecond)
			s.expect("attempt 2", "retry 2")
			step(Result{Disposition: Ended})
			advance(t, v, time.Millisecond)
			s.expect("attempt 2", "hand over 2")

			s.handed = false
			s.add("a", "3")
			advance(t, v, 2*HandOverWait)
			if name == "reserving" { // where it is Attempt that finds it ended
				s.expect("attempt 3", "retry 3", "attempt 3", "retry 3", "attempt 3", "retry 3")
			} else {
				s.expect("attempt 3", "retry 3", "retry 3", "retry 3")
			}
			s.handed = true
			advance(t, v, HandOverWait-time.Millisecond)
			s.expect()
			advance(t, v, time.Millisecond)
			if got := s.said(); len(got) == 0 || got[len(got)-1] != "hand over 3" {
				t.Errorf("got %q", got)
			}

			step(Result{Disposition: Cancelled})
			s.add("a", "4")
			advance(t, v, 0)
			s.expect("attempt 4", "release 4")
			if !s.consumer.Idle() {
				t.Error("a backlog is remembered")
			}
		})
	}
}

// TestPause: what follows an attempt that says so waits, and then continues.
func TestPause(t *testing.T) {
	v := clock.NewVirtual(start)
	s := newSource(t, v, ReservingPool(10))
	s.attempt = func(context.Context, *msg) Result { return Result{Disposition: Done, Pause: time.Second} }
	s.add("a", "1", "2")
	advance(t, v, 999*time.Millisecond)
	s.expect("attempt 1", "ack 1")
	advance(t, v, time.Millisecond)
	s.expect("attempt 2", "ack 2")
}

// TestUnreadable: a backlog that cannot be read is looked at again, and holds up
// nobody, not even the clock.
func TestUnreadable(t *testing.T) {
	v := clock.NewVirtual(start)
	s := newSource(t, v, RemotePool(1, 1))
	s.attempt = func(context.Context, *msg) Result { return Result{Disposition: Done} }
	s.fail = true
	s.add("a", "1")
	advance(t, v, 2*time.Second)
	s.expect("unreadable", "unreadable", "unreadable")
	s.fail = false
	advance(t, v, time.Second)
	s.expect("attempt 1", "ack 1")
}

// TestReserving: no more is leased than may begin, of a backlog as of all, and
// backlogs take turns.
func TestReserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, clock.System, ReservingPool(5))
		s.plan.Limit = 2
		proceed := make(chan struct{})
		s.attempt = func(context.Context, *msg) Result {
			<-proceed
			return Result{Disposition: Done}
		}
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint(i))
		}
		for _, b := range []string{"a", "b", "c"} {
			s.add(b, names...)
		}
		turns := map[string]int{}
		for range 60 {
			synctest.Wait()
			proceed <- struct{}{}
		}
		synctest.Wait()
		for _, l := range s.said() {
			turns[l]++
		}
		if s.most != 5 {
			t.Errorf("up to %d were leased at once, the bound is 5", s.most)
		}
		for _, n := range names {
			if turns["attempt "+n] != 3 || turns["ack "+n] != 3 {
				t.Errorf("%d attempts at the message %s of 3 backlogs", turns["attempt "+n], n)
			}
		}
		if !s.consumer.Idle() {
			t.Error("backlogs are remembered")
		}
	})
}

// TestHangingHostsHoldLittle: where no attempt may begin, one message of each backlog is in
// memory beside those under way.
func TestHangingHostsHoldLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 4
		s := newSource(t, clock.System, RemotePool(50, bound))
		proceed := make(chan struct{})
		s.attempt = func(context.Context, *msg) Result {
			<-proceed
			return Result{Disposition: Done}
		}
		backlogs := []string{"a", "b", "c"}
		for _, b := range backlogs {
			var names []string
			for i := range 20 {
				names = append(names, fmt.Sprint(b, i))
			}
			s.add(b, names...)
			synctest.Wait()
		}
		if s.pool.inflight != bound || s.leased > bound+len(backlogs) {
			t.Errorf("%d are leased for %d attempts of %d backlogs", s.leased, s.pool.inflight, len(backlogs))
		}
		close(proceed)
		synctest.Wait()
		if s.leased != 0 || len(s.said()) != 2*20*len(backlogs) {
			t.Error("not all were delivered")
		}
	})
}

// TestRoomThatIsNotUsed: what was reserved for more messages than there are is free
// again.
func TestRoomThatIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ReservingPool(20)
		s := newSource(t, clock.System, p)
		s.plan.Limit = 15
		proceed := make(chan struct{})
		s.attempt = func(context.Context, *msg) Result {
			<-proceed
			return Result{Disposition: Done}
		}
		for i := range 5 {
			s.add("a", fmt.Sprint(i))
			synctest.Wait()
			if p.inflight != i+1 {
				t.Errorf("%d are reserved for %d attempts", p.inflight, i+1)
			}
		}
		close(proceed)
	})
}

// TestLeasesAheadOfQuickHosts: of a host that answers quickly some messages are leased
// before there is room for them, as many as the pool has room for at most, and of others
// one.
func TestLeasesAheadOfQuickHosts(t *testing.T) {
	for name, c := range map[string]struct {
		result Result
		bound  int
		most   int // leased at once: one is under way
	}{
		"quick":            {Result{Disposition: Done}, 100, 1 + aheadBatch},
		"no room":          {Result{Disposition: Done}, 3, 1 + 2},
		"not quick enough": {Result{Disposition: Done, Took: quickWithin}, 100, 1 + 1},
		"failing":          {Result{Disposition: Retry, Due: clock.Time(1 << 42)}, 100, 1 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := RemotePool(1, c.bound)
				s := newSource(t, clock.System, p)
				proceed := make(chan struct{})
				s.attempt = func(context.Context, *msg) Result {
					<-proceed
					return c.result
				}
				var names []string
				for i := range 20 {
					names = append(names, fmt.Sprint(i))
				}
				s.add("a", names...)
				for range names {
					synctest.Wait()
					proceed <- struct{}{}
				}
				synctest.Wait()
				if s.most != c.most || p.waiting != 0 {
					t.Errorf("up to %d were leased at once, want %d; %d wait", s.most, c.most, p.waiting)
				}
			})
		})
	}
}

// TestEndedNeedsNoRoom: what is only to be handed over waits for no host and no
// throttle.
func TestEndedNeedsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, clock.System, RemotePool(1, 1))
		s.plan.Rate = 1
		proceed := make(chan struct{})
		s.attempt = func(context.Context, *msg) Result {
			<-proceed
			return Result{Disposition: Done}
		}
		s.add("a", "1")
		synctest.Wait()
		s.mu.Lock()
		s.backlogs[named("a")] = append(s.backlogs[named("a")], &msg{source: s, backlog: named("a"), name: "2", ended: true})
		s.mu.Unlock()
		s.consumer.Ready(named("a"))
		synctest.Wait()
		s.expect("attempt 1", "hand over 2")
		close(proceed)
		synctest.Wait()
		s.expect("ack 1")
	})
}

// TestStopTwice: another Stop waits for the same, and one before anything began ends
// at once.
func TestStopTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, clock.System, LocalPool(64, 1024))
		if err := New(Options{Clock: clock.System, Pools: []*Pool{LocalPool(1, 1)}}).Stop(t.Context()); err != nil {
			t.Error(err)
		}
		proceed := make(chan struct{})
		s.attempt = func(context.Context, *msg) Result {
			<-proceed
			return Result{Disposition: Done}
		}
		s.add("a", "1")
		synctest.Wait()
		done := make(chan error)
		for range 2 {
			go func() { done <- s.consumer.Stop(t.Context()) }()
		}
		synctest.Wait()
		select {
		case <-done:
			t.Error("a Stop did not wait")
		default:
		}
		close(proceed)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		s.add("a", "2") // too late
		synctest.Wait()
		s.expect("attempt 1", "ack 1")
	})
}
