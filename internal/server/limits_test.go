package server

import (
	"context"
	"log/slog"
	"testing"

	"godwit.dev/godwit/internal/config"
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
