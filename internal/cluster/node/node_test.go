package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

const (
	lease   = 1500 * time.Millisecond // the default
	stagger = 300 * time.Millisecond  // between ranks
)

// process is a node that runs in a bubble.
type process struct {
	*node.Node
	way   *simulated.Node
	store store.Store
	end   func() // returns once nothing of it runs

	mu     sync.Mutex // guards what follows
	owned  []uint64   // epochs
	failed []error
}

// run starts a node, which ends with the test.
func run(t *testing.T, log *simulated.Cluster, rank int, change func(*node.Options)) *process {
	t.Helper()
	p := &process{way: log.Node(), store: memory.New()}
	o := node.Options{
		Name: fmt.Sprint("n", rank), Instance: "i", Rank: rank, Log: p.way, Store: p.store, Logger: slog.New(slog.DiscardHandler),
		Own: func(_ context.Context, o *replica.Owner) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.owned = append(p.owned, o.Epoch())
			return nil
		},
	}
	if change != nil {
		change(&o)
	}
	var err error
	if p.Node, err = node.Open(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failed = append(p.failed, err)
		}
	})
	p.end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(p.end)
	synctest.Wait()
	return p
}

func (p *process) failures() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *process) state() node.State {
	s, _ := p.State()
	return s
}

// pass lets time pass, and what it sets off end.
func pass(d time.Duration) {
	over, _ := clock.After(clock.System, d)
	<-over
	synctest.Wait()
}

// expect compares who owns the cell, as each of some nodes sees it.
func expect(t *testing.T, owner string, epoch uint64, ps ...*process) {
	t.Helper()
	for i, p := range ps {
		s := p.state()
		own := s.Owner == fmt.Sprint("n", i)
		if s.Owner != owner || s.Epoch != epoch || s.Own != own || s.Serving != own {
			t.Errorf("node %d: %+v, want owner %q in epoch %d", i, s, owner, epoch)
		}
	}
}

// Who is first in rank takes over what nobody owns, and the next where it falls silent;
// what was written is there.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		ps := []*process{run(t, log, 0, nil), run(t, log, 1, nil), run(t, log, 2, nil)}
		_, changed := ps[2].State()
		pass(lease - time.Millisecond)
		expect(t, "", 0, ps...)
		select {
		case <-changed:
			t.Error("a change is told, and there was none")
		default:
		}
		pass(lease)
		expect(t, "n0", 1, ps...)
		select {
		case <-changed:
		default:
			t.Error("nobody is told of the owner")
		}

		b := new(mutation.Batch)
		b.Set([]byte("k"), []byte("v"))
		if err := ps[0].Owner().Apply(store.Sync, b); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ps[0].end()
		died := clock.System.Now()
		for ps[1].state().Owner != "n1" && clock.System.Now().Sub(died) < time.Minute {
			pass(time.Millisecond)
		}
		if took := clock.System.Now().Sub(died); took < stagger || took > 2*lease+stagger {
			t.Errorf("node 1 took over after %s", took)
		}
		for i, p := range ps[1:] {
			s := p.state()
			if own := i == 0; s.Owner != "n1" || s.Epoch != 2 || s.Own != own || s.Serving != own {
				t.Errorf("node %d: %+v", i+1, s)
			}
			if v, ok, err := p.store.Get(nil, []byte("k")); string(v) != "v" || !ok || err != nil {
				t.Errorf("node %d has %q, %t, %v", i+1, v, ok, err)
			}
		}
		if ps[1].Owner() == nil || ps[2].Owner() != nil {
			t.Error("another is the owner")
		}
	})
}

// A node whose disk is full takes over where nobody else does, and then only.
func TestReluctant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		full := func(o *node.Options) { o.Reluctant = func() bool { return true } }
		ps := []*process{run(t, log, 0, full), run(t, log, 1, nil), run(t, log, 2, full)}
		pass(lease + 2*stagger)
		expect(t, "n1", 1, ps...)
		ps[1].end()
		pass(2*lease + 2*time.Second)
		if s := ps[2].state(); s.Owner != "n0" || s.Epoch != 2 {
			t.Errorf("with full disks only: %+v", s)
		}
	})
}

// An owner that has nothing to do is heard of, so that nobody takes over.
func TestIdleOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		ps := []*process{run(t, log, 0, nil), run(t, log, 1, nil), run(t, log, 2, nil)}
		pass(10 * time.Minute)
		expect(t, "n0", 1, ps...)
		for i, p := range ps {
			if s := p.state(); s.Durable+uint64(time.Minute/lease) < s.Number || s.Durable == 0 {
				t.Errorf("node %d has synced %d of %d records", i, s.Durable, s.Number)
			}
		}
	})
}

// An owner that is cut off is replaced. Once it hears of that it ends, and what it would
// write fails.
func TestOwnerCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		ps := []*process{run(t, log, 0, nil), run(t, log, 1, nil)}
		pass(2 * lease)
		expect(t, "n0", 1, ps...)
		ps[0].way.Cut(true)
		pass(3 * lease)
		if s := ps[1].state(); s.Owner != "n1" || !s.Serving {
			t.Errorf("%+v", s)
		}
		ps[0].way.Cut(false)
		pass(lease)
		if len(ps[0].failures()) == 0 {
			t.Error("who was replaced does not end")
		}
		if s := ps[0].state(); s.Owner != "n1" || s.Own || s.Serving {
			t.Errorf("who was replaced: %+v", s)
		}
		if err := ps[0].Owner().Apply(store.Sync, new(mutation.Batch)); err == nil {
			t.Error("who was replaced may write")
		}
		if f := ps[1].failures(); len(f) > 0 {
			t.Error(f)
		}
	})
}

// A node that cannot reach the log does not stand, and follows once it can.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		way := run(t, log, 0, func(o *node.Options) { o.Log.(*simulated.Node).Cut(true) })
		other := run(t, log, 1, nil)
		pass(time.Minute)
		if s := way.state(); s.Owner != "" || !s.Behind {
			t.Errorf("%+v", s)
		}
		way.way.Cut(false)
		pass(time.Second)
		if s := way.state(); s.Owner != "n1" || s.Own || s.Behind || s.Number != other.state().Number {
			t.Errorf("%+v, and the owner %+v", s, other.state())
		}
		if f := way.failures(); len(f) > 0 {
			t.Error(f)
		}
	})
}

// late is a way to a log whose records come once it is released.
type late struct {
	replog.Log
	released chan struct{}
}

type lateReader struct {
	replog.Reader
	of *late
}

func (l *late) Read(ctx context.Context, from uint64) (replog.Reader, error) {
	r, err := l.Log.Read(ctx, from)
	return lateReader{r, l}, err
}

func (r lateReader) Next(ctx context.Context) (uint64, []byte, error) {
	select {
	case <-r.of.released:
		return r.Reader.Next(ctx)
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

// Who has not read all of the log does not take over, however long nobody is heard.
func TestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		old := run(t, log, 0, nil)
		pass(2 * lease)
		old.end()
		way := &late{Log: log.Node(), released: make(chan struct{})}
		n := run(t, log, 1, func(o *node.Options) { o.Log = way })
		pass(time.Minute)
		if s := n.state(); s.Epoch != 0 || !s.Behind {
			t.Errorf("before it has read the log: %+v", s)
		}
		close(way.released)
		pass(100 * time.Millisecond)
		if s := n.state(); s.Owner != "n0" || s.Epoch != 1 || s.Behind {
			t.Errorf("when it has read the log: %+v", s)
		}
		pass(2 * (lease + stagger))
		if s := n.state(); s.Owner != "n1" || s.Epoch != 2 || !s.Serving {
			t.Errorf("later: %+v", s)
		}
	})
}

// A process that starts again under the same name is not the owner that it was.
func TestAnotherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		old := run(t, log, 0, nil)
		pass(2 * lease)
		old.end()
		again := run(t, log, 0, func(o *node.Options) { o.Instance, o.Store = "another", old.store })
		if s := again.state(); s.Owner != "n0" || s.Own || s.Serving || again.Owner() != nil {
			t.Errorf("at the start: %+v", s)
		}
		pass(2 * lease)
		if s := again.state(); s.Owner != "n0" || s.Epoch != 2 || !s.Own || !s.Serving {
			t.Errorf("later: %+v", s)
		}
	})
}

// A cell that cannot be served ends the process.
func TestNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("no room")
		p := run(t, simulated.New(), 0, func(o *node.Options) {
			o.Own = func(context.Context, *replica.Owner) error { return reason }
		})
		pass(2 * lease)
		if f := p.failures(); len(f) != 1 || !errors.Is(f[0], reason) {
			t.Errorf("failed with %v", f)
		}
		if s := p.state(); s.Serving {
			t.Errorf("%+v", s)
		}
	})
}

// A node that ends waits for what it has begun to start: its store is closed next.
func TestEndsWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var over atomic.Bool
		p := run(t, simulated.New(), 0, func(o *node.Options) {
			o.Own = func(ctx context.Context, _ *replica.Owner) error {
				<-ctx.Done()
				err := clock.Wait(context.WithoutCancel(ctx), clock.System, time.Second) // for undoing it
				over.Store(true)
				return errors.Join(context.Cause(ctx), err)
			}
		})
		pass(2 * lease)
		if s := p.state(); !s.Own || s.Serving {
			t.Errorf("while it starts: %+v", s)
		}
		p.end()
		if !over.Load() || len(p.failures()) > 0 {
			t.Errorf("it has ended before what it started: %v", p.failures())
		}
	})
}

// Only the owner trims the log, and only what everybody has.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		var mu sync.Mutex
		asked, durable := map[int]int{}, uint64(0)
		var ps []*process
		for rank := range 2 {
			ps = append(ps, run(t, log, rank, func(o *node.Options) {
				o.LogLimit = 1 << 40
				o.Members = func(context.Context) []node.Member {
					mu.Lock()
					defer mu.Unlock()
					asked[rank]++
					return []node.Member{{Known: true, Durable: durable}, {Known: true, Durable: durable + 5}}
				}
			}))
		}
		pass(time.Minute)
		if log, err := ps[0].way.Extent(t.Context()); log.First != 1 || err != nil {
			t.Errorf("the log begins at %d, %v", log.First, err)
		}
		mu.Lock()
		durable = 9
		mu.Unlock()
		pass(time.Minute)
		if log, err := ps[0].way.Extent(t.Context()); log.First != 10 || err != nil {
			t.Errorf("the log begins at %d, %v", log.First, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if asked[0] == 0 || asked[1] > 0 {
			t.Errorf("asked: %v", asked)
		}
	})
}

// Where another node has something of the cell, nobody begins it anew.
func TestMayNotBootstrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var may atomic.Bool
		p := run(t, simulated.New(), 0, func(o *node.Options) { o.MayBootstrap = func(context.Context) bool { return may.Load() } })
		pass(time.Minute)
		if s := p.state(); s.Epoch != 0 {
			t.Errorf("%+v", s)
		}
		may.Store(true)
		pass(2 * lease)
		if s := p.state(); s.Owner != "n0" || !s.Serving {
			t.Errorf("%+v", s)
		}
	})
}

// Another process owns the cell once it was handed over, with all that was written before.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		ps := []*process{run(t, log, 0, nil), run(t, log, 1, nil)}
		if err := ps[0].HandOver(t.Context(), ps[1].state().Process); !errors.Is(err, node.ErrNotOwner) {
			t.Errorf("without an owner: %v", err)
		}
		pass(2 * lease)
		b := new(mutation.Batch)
		b.Set([]byte("k"), []byte("v"))
		if err := ps[0].Owner().Apply(store.Sync, b); err != nil {
			t.Fatal(err)
		}
		began := clock.System.Now()
		if err := ps[0].HandOver(t.Context(), ps[1].state().Process); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if took := clock.System.Now().Sub(began); took > 200*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if s := ps[1].state(); s.Owner != "n1" || s.Epoch != 2 || !s.Own || !s.Serving {
			t.Errorf("%+v", s)
		}
		if v, ok, err := ps[1].Owner().Get(nil, []byte("k")); string(v) != "v" || !ok || err != nil {
			t.Errorf("%q, %t, %v", v, ok, err)
		}
		if s := ps[0].state(); s.Own || s.Serving {
			t.Errorf("%+v", s)
		}
	})
}

// A log that ends before what a replica has from it may be one that lags behind; only
// after a while it counts as lost.
func TestLostLog(t *testing.T) {
	for _, heals := range []bool{false, true} {
		t.Run(fmt.Sprint("heals ", heals), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := simulated.New()
				old := run(t, log, 0, nil)
				pass(time.Minute)
				old.end()
				had := old.state().Number
				short := simulated.New()
				p := run(t, short, 1, func(o *node.Options) { o.Store, o.Log = old.store, short.Node() })
				pass(25 * time.Second)
				if f := p.failures(); len(f) > 0 {
					t.Fatalf("ended too early: %v", f)
				}
				if s := p.state(); s.Number != had || s.Own {
					t.Errorf("%+v", s)
				}
				if heals {
					log, err := old.way.Extent(t.Context())
					reader, readErr := old.way.Read(t.Context(), 1)
					if err := errors.Join(err, readErr); err != nil {
						t.Fatal(err)
					}
					for range log.Last {
						_, data, err := reader.Next(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						short.Node().Append(data, func(uint64, error) {})
					}
				}
				pass(time.Minute)
				if f := p.failures(); heals && len(f) > 0 || !heals && (len(f) != 1 || !errors.Is(f[0], replog.ErrLost)) {
					t.Errorf("failed with %v", f)
				}
			})
		})
	}
}

// A replica for which the log no longer has what it needs is of no use.
func TestTrimmedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		way := log.Node()
		for range 3 {
			r := record.Record{Kind: record.Takeover, Epoch: 1, Owner: "n9/i"}
			way.Append(r.AppendTo(nil), func(uint64, error) {})
		}
		if err := way.Trim(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		p := run(t, log, 0, nil)
		pass(time.Second)
		if f := p.failures(); len(f) != 1 || !errors.Is(f[0], replog.ErrTrimmed) {
			t.Errorf("failed with %v", f)
		}
	})
}

// disowning is a Disown that writes behind the end, and returns once it may be through.
func disowning(through <-chan struct{}) func(*node.Options) {
	return func(o *node.Options) {
		o.Disown = func(owner *replica.Owner, reason error) error {
			if owner.Failed() == nil || reason == nil {
				return errors.New("it owns the cell still")
			}
			if through != nil {
				<-through
			}
			b := new(mutation.Batch)
			b.Set([]byte("late"), []byte("v"))
			return errors.Join(owner.Apply(store.Sync, b), owner.Close())
		}
	}
}

// Who has handed the cell over stops what served, follows, and may own it again.
func TestThereAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		through := make(chan struct{})
		ps := []*process{run(t, log, 0, disowning(through)), run(t, log, 1, disowning(nil))}
		pass(2 * lease)
		expect(t, "n0", 1, ps...)
		handOver := func(from, to int) {
			t.Helper()
			if err := ps[from].HandOver(t.Context(), ps[to].state().Process); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		handOver(0, 1)
		if s := ps[0].state(); s.Own || s.Serving || !s.Leaving {
			t.Errorf("while what served is being stopped: %+v", s)
		}
		handOver(1, 0) // before that is through
		if s := ps[0].state(); !s.Own || s.Serving || s.Leaving || len(ps[0].owned) != 1 {
			t.Errorf("owner again, while what served is being stopped: %+v", s)
		}
		close(through)
		synctest.Wait()
		expect(t, "n0", 3, ps...)
		for range 5 {
			handOver(0, 1)
			handOver(1, 0)
		}
		expect(t, "n0", 13, ps...)
		for i, p := range ps {
			if f := p.failures(); len(f) > 0 {
				t.Errorf("node %d: %v", i, f)
			}
			if _, ok, err := p.store.Get(nil, []byte("late")); ok || err != nil {
				t.Errorf("node %d has what was written behind the end, %v", i, err)
			}
		}
		if s := ps[1].state(); s.Leaving || ps[1].Owner() != nil {
			t.Errorf("%+v", s)
		}
	})
}

// An owner that is cut off goes on as a follower once it hears of the next.
func TestOwnerFollowsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		ps := []*process{run(t, log, 0, disowning(nil)), run(t, log, 1, disowning(nil))}
		pass(2 * lease)
		ps[0].way.Cut(true)
		pass(3 * lease)
		ps[0].way.Cut(false)
		pass(lease)
		expect(t, "n1", 2, ps...)
		if f := ps[0].failures(); len(f) > 0 || ps[0].Owner() != nil {
			t.Errorf("who was replaced: %v", f)
		}
		ps[1].end()
		pass(3 * lease)
		if s := ps[0].state(); s.Owner != "n0" || s.Epoch != 3 || !s.Serving {
			t.Errorf("%+v", s)
		}
	})
}

// What does not end ends the process.
func TestNotDisowned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, reason := simulated.New(), errors.New("it hangs")
		ps := []*process{
			run(t, log, 0, func(o *node.Options) { o.Disown = func(*replica.Owner, error) error { return reason } }), run(t, log, 1, nil),
		}
		pass(2 * lease)
		if err := ps[0].HandOver(t.Context(), ps[1].state().Process); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if f := ps[0].failures(); len(f) != 1 || !errors.Is(f[0], reason) {
			t.Errorf("failed with %v", f)
		}
	})
}
