package clustered

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/space"
)

// Where there is no room for a copy, the store gives its own if it is damaged, and stays if it
// is only behind the log.
func TestRoomFor(t *testing.T) {
	p := &part{cfg: config.Config{Data: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	kept := filepath.Join(p.cfg.Data, "store")
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	const large = 1 << 40 // bytes, of a file with nothing in it
	sparse, err := os.Create(filepath.Join(kept, "table"))
	if err == nil {
		err = errors.Join(sparse.Truncate(large), sparse.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		reason error
		need   int64
		stays  bool
	}{
		{"a copy that fits", store.ErrDamaged, 0, true},
		{"a store that is only behind", replog.ErrTrimmed, large, true},
		{"a copy that does not fit in its place either", store.ErrDamaged, 1 << 60, true},
		{"a copy that fits in its place", store.ErrDamaged, large, false},
	} {
		// What a file with nothing in it takes is not free once it is gone.
		if err := p.requireSpace(c.need, c.reason); (err == nil) != (c.need == 0) || err != nil && !errors.Is(err, space.ErrNoSpace) {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, err := os.Stat(kept); (err == nil) != c.stays {
			t.Errorf("%s: the store: %v", c.what, err)
		}
	}
	if snapshot.Damaged(p.cfg.Data) == "" {
		t.Error("the store that was removed is not marked as damaged")
	}
}

// TestWatchLog: a node whose part of the log has stopped says so and is to hand over; it ends
// after a minute where there is room, and goes on where the log does.
func TestWatchLog(t *testing.T) {
	data := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := &part{cfg: config.Config{Data: data}, log: slog.New(slog.DiscardHandler), left: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stopped atomic.Bool
		ended := make(chan bool, 1)
		go func() { ended <- p.watchLog(ctx, stopped.Load) }()
		stopped.Store(true)
		pause(ctx, 10*time.Second)
		if !p.logStopped.Load() || len(p.left) != 1 {
			t.Errorf("stopped %v, to hand over %d", p.logStopped.Load(), len(p.left))
		}
		stopped.Store(false)
		pause(ctx, 10*time.Second)
		if p.logStopped.Load() {
			t.Error("the log goes on, and is told to have stopped")
		}
		stopped.Store(true)
		began := clock.System.Now()
		ends := <-ended
		if after := clock.System.Now().Sub(began); !ends || after < time.Minute {
			t.Errorf("it ends: %v, after %v", ends, after)
		}
	})
}
