package node_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// An owner whose store takes no write still tells what state it is in, and hands over: the others
// have the log. Not in a bubble of synctest, for which who waits for a lock does not wait.
func TestHandOverOfABlockedStore(t *testing.T) {
	log := simulated.New()
	st := storetest.NewFull(memory.New())
	start := func(name string, st store.Store) *node.Node {
		n, err := node.Open(node.Options{
			Name: name, Instance: "i", Log: log.Node(), Store: st, Logger: slog.New(slog.DiscardHandler), Lease: time.Minute,
			Own:    func(context.Context, *replica.Owner) error { return nil },
			Disown: func(*replica.Owner, error) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = n.Run(ctx) })
		t.Cleanup(func() { cancel(); running.Wait() })
		return n
	}
	owner, other := start("a", st), start("b", memory.New())
	t.Cleanup(st.Free)
	until := func(p *node.Node, so func(node.State) bool) {
		t.Helper()
		for {
			s, changed := p.State()
			if so(s) {
				return
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatalf("%+v", s)
			}
		}
	}
	serves := func(s node.State) bool { return s.Own && s.Serving }
	taken := record.Record{Kind: record.Takeover, Epoch: 1, Owner: "a/i"}
	log.Node().Append(taken.AppendTo(nil), func(uint64, error) {})
	until(owner, serves)
	until(other, func(s node.State) bool { return s.Epoch == 1 })

	st.Fill()
	write := func() {
		b := new(mutation.Batch)
		b.Set([]byte("k"), nil)
		_ = owner.Owner().Apply(store.Sync, b)
	}
	go write()
	for !st.Waits() {
		runtime.Gosched()
	}
	go write() // which is on its way behind the first one
	ended := make(chan error, 1)
	go func() {
		for range 100 {
			if s, _ := owner.State(); !serves(s) || owner.Owner().Failed() != nil {
				ended <- errors.New("it owns the state no more")
				return
			}
			runtime.Gosched()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		ended <- owner.HandOver(ctx, "b/i")
	}()
	over, stop := clock.After(clock.System, 10*time.Second)
	defer stop()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the handover: %v", err)
		}
		until(other, serves)
	case <-over:
		t.Error("it tells no state, or its handover does not end")
	}
}
