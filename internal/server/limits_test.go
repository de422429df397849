package server

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/limit/conns"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// The limits of a process may outlive a server that has stopped, and keep nothing of it.
func TestLimitsOutliveServer(t *testing.T) {
	cfg := testConfig()
	cfg.FunctionNetwork, cfg.FunctionIsolation, cfg.Data, cfg.MinTransferRate = "none", config.IsolationNone, t.TempDir(), 4096
	limits := NewLimits(cfg, slog.New(slog.DiscardHandler))
	for range 2 {
		s := New(cfg, slog.New(slog.DiscardHandler), func(ctx context.Context, deps Deps) (Parts, error) {
			deps.World.Store = func() (store.Store, func() bool, error) { return memory.New(), nil, nil }
			return Assemble(ctx, deps)
		})
		s.Within(limits)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if limits.storage.Load() == nil {
			t.Error("what functions store is not counted")
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if limits.storage.Load() != nil {
			t.Error("the functions of a server that has stopped are still counted")
		}
		if limits.clients != nil {
			t.Error("the server's own listener is taken for that of the process")
		}
	}
}

// Both listeners follow the division among nodes, whenever they are made.
func TestSetNodes(t *testing.T) {
	limits := NewLimits(config.Config{MaxConnections: 1 << 30, IngestListen: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	at := func() (all []int64) {
		for _, l := range []*conns.Listener{limits.clients, limits.posts} {
			if l != nil {
				all = append(all, l.Stats()[0].Limit, l.Stats()[1].Limit)
			}
		}
		return all
	}
	limits.listen(nil)
	limits.ofPosts(nil)
	one := at()
	limits.SetNodes(4)
	four := at()
	for i := range one {
		if n := four[i] * 4; n > one[i] || n < one[i]-16 {
			t.Errorf("of one node %v, of four %v", one, four)
		}
	}
	limits.ofPosts(nil) // of the next owner
	if now := at(); !slices.Equal(now, four) {
		t.Errorf("%v, and then %v", four, now)
	}
}
