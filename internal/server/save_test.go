package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

// Who saves gives up when their time is over. What is still being written then ends before the kernel is
// closed, as the journal is closed after it.
func TestClosingAwaitsWhatIsSaved(t *testing.T) {
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.System})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	if err := saveWithin(t.Context(), k, func() error { return nil }); err != nil {
		t.Error(err)
	}
	failed := errors.New("it fails")
	if err := saveWithin(t.Context(), k, func() error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	began, release := make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	go func() {
		<-began
		cancel()
	}()
	err := saveWithin(ctx, k, func() error {
		close(began)
		<-release
		ended.Store(true)
		return nil
	})
	if !errors.Is(err, context.Canceled) || ended.Load() {
		t.Fatal(err, "it has ended:", ended.Load())
	}
	closed := make(chan error, 1)
	go func() { closed <- k.Close() }()
	passed, _ := clock.After(clock.System, 20*time.Millisecond)
	select {
	case <-closed:
		close(release)
		t.Fatal("the kernel is closed before all is saved")
	case <-passed:
	}
	close(release)
	if err := <-closed; err != nil || !ended.Load() {
		t.Error(err, "it has ended:", ended.Load())
	}
	if err := saveWithin(t.Context(), k, func() error { return nil }); !errors.Is(err, errSavedAtClose) {
		t.Error("of a closed kernel:", err)
	}
}
