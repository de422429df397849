package space_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

// fixture is a guard of 8 MiB reserve and 16 MiB floor on a file system
// whose free space the test sets; the reserve file takes of it.
type fixture struct {
	t     *testing.T
	dir   string
	clock *clock.Virtual
	guard *space.Guard
	log   bytes.Buffer

	mu    sync.Mutex
	usage space.Usage
	err   error
}

func newFixture(t *testing.T, free, total int64) *fixture {
	f := &fixture{t: t, dir: filepath.Join(t.TempDir(), "data"), usage: space.Usage{Free: free, Total: total}}
	f.open()
	return f
}

func (f *fixture) options() space.Options {
	return space.Options{
		Reserve: 8 * mib, Floor: 16 * mib,
		Clock:  f.clock,
		Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
		Statfs: func(dir string) (space.Usage, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			u := f.usage
			u.Free -= f.reserve()
			return u, f.err
		},
	}
}

func (f *fixture) open() {
	f.t.Helper()
	f.clock = clock.NewVirtual(time.Unix(0, 0))
	g, err := space.Open(f.dir, f.options())
	if err != nil {
		f.t.Fatal(err)
	}
	f.guard = g
	f.t.Cleanup(func() { g.Close() })
}

// reserve is the size of the reserve file, 0 if there is none.
func (f *fixture) reserve() int64 {
	info, err := os.Stat(filepath.Join(f.dir, "godwit-reserve"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// free sets the free space without the reserve, and lets a check pass.
func (f *fixture) free(free int64) {
	f.t.Helper()
	f.mu.Lock()
	f.usage.Free = free
	f.mu.Unlock()
	f.check()
}

func (f *fixture) check() {
	f.t.Helper()
	if _, err := f.clock.Advance(f.t.Context(), time.Second); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) want(what string, low bool, reserve int64) {
	f.t.Helper()
	if got := f.guard.Low(); got != low {
		f.t.Errorf("%s: low is %v", what, got)
	}
	if got := f.reserve(); got != reserve {
		f.t.Errorf("%s: the reserve has %d bytes, want %d", what, got, reserve)
	}
	if ok, message := f.guard.Health(); ok == low || low != strings.Contains(message, "refused") {
		f.t.Errorf("%s: health is %v, %q", what, ok, message)
	}
}

func TestLifeCycle(t *testing.T) {
	f := newFixture(t, 100*mib, 1000*mib)
	f.want("much room", false, 8*mib)
	f.free(24*mib + 1) // the reserve is part of it
	f.want("just above the floor", false, 8*mib)
	f.free(24*mib - 1)
	f.want("below the floor", true, 8*mib)
	f.free(25 * mib)
	f.want("just above again", true, 8*mib)
	f.free(27 * mib)
	f.want("clearly above again", false, 8*mib)
	f.free(13 * mib)
	f.want("low", true, 8*mib)
	f.free(11 * mib)
	f.want("exhausted", true, 0)
	f.free(13 * mib)
	f.want("not exhausted, but low", true, 0)
	f.free(25 * mib)
	f.want("room for the floor, not for the reserve", true, 0)
	f.free(27 * mib)
	f.want("room for both", false, 8*mib)

	var levels []string
	for line := range strings.Lines(f.log.String()) {
		_, line, _ = strings.Cut(line, "level=")
		level, _, _ := strings.Cut(line, " ")
		levels = append(levels, level)
	}
	// low, again, low, released, again: each change once.
	if d := cmp.Diff([]string{"ERROR", "INFO", "ERROR", "WARN", "INFO"}, levels); d != "" {
		t.Errorf("logged (-want +got):\n%s\n%s", d, &f.log)
	}
}

// The default floor of 128 MiB is looked at once a second, one of 16 MiB eight
// times, for as long as it holds.
func TestChecksKeepUpWithTheFloor(t *testing.T) {
	const pause = time.Second / 8
	f := newFixture(t, 100*mib, 1000*mib)
	f.mu.Lock()
	f.usage.Free = 1 * mib
	f.mu.Unlock()
	if _, err := f.clock.Advance(t.Context(), pause-1); err != nil {
		t.Fatal(err)
	}
	f.want("before the next check", false, 8*mib)
	if _, err := f.clock.Advance(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	f.want("after it", true, 0)

	f.mu.Lock()
	f.usage.Free = 100 * mib
	f.mu.Unlock()
	if _, err := f.clock.Advance(t.Context(), time.Second-1); err != nil {
		t.Fatal(err)
	}
	f.want("low, before the next check", true, 0)
	if _, err := f.clock.Advance(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	f.want("low, after it", false, 8*mib)
}

func TestRelease(t *testing.T) {
	f := newFixture(t, 100*mib, 1000*mib)
	f.guard.Release()
	f.want("released", true, 0)
	f.guard.Release()
	f.want("released twice", true, 0)
	f.check()
	f.want("there was room after all", false, 8*mib)
}

func TestReopen(t *testing.T) {
	f := newFixture(t, 100*mib, 1000*mib)
	f.guard.Close()
	f.free(20 * mib)
	if f.guard.Low() {
		t.Error("a closed guard goes on checking")
	}
	f.open()
	f.want("opened when low, with a reserve", true, 8*mib)
	f.free(2 * mib)
	f.guard.Close()
	f.open()
	f.want("opened when exhausted", true, 0)
	f.guard.Close()
	f.usage.Free = 100 * mib
	if err := os.WriteFile(filepath.Join(f.dir, "godwit-reserve"), make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	f.open()
	f.want("a reserve of another size", false, 8*mib)
	f.guard.Close()
	f.usage.Free = 2 * mib
	if err := os.WriteFile(filepath.Join(f.dir, "godwit-reserve"), make([]byte, 1*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	f.open()
	f.want("one of another size, when exhausted", true, 0)
}

func TestSmallFileSystem(t *testing.T) {
	f := newFixture(t, 40*mib, 40*mib) // the floor is 10 MiB, the reserve 5
	f.want("empty", false, 5*mib)
	f.free(15*mib - 1)
	f.want("below a quarter", true, 5*mib)
	f.free(7 * mib)
	f.want("exhausted", true, 0)
}

func TestStatfsFails(t *testing.T) {
	f := newFixture(t, 100*mib, 1000*mib)
	f.mu.Lock()
	f.err = errors.New("the disk is on fire")
	f.mu.Unlock()
	f.check()
	f.check()
	if f.guard.Low() {
		t.Error("an unknown space counts as low")
	}
	if ok, message := f.guard.Health(); ok || !strings.Contains(message, "on fire") {
		t.Errorf("health is %v, %q", ok, message)
	}
	if n := strings.Count(f.log.String(), "on fire"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if _, err := space.Open(f.dir, f.options()); err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("Open: %v", err)
	}
	f.mu.Lock()
	f.err = nil
	f.mu.Unlock()
	f.check()
	f.want("known again", false, 8*mib)
}

func TestReserveCannotBeMade(t *testing.T) {
	f := newFixture(t, 2*mib, 1000*mib)
	// A directory that is not empty stands in its way.
	if err := os.MkdirAll(filepath.Join(f.dir, "godwit-reserve", "x"), 0o750); err != nil {
		t.Fatal(err)
	}
	f.free(100 * mib)
	f.check()
	if f.guard.Low() {
		t.Error("low although there is room")
	}
	if n := strings.Count(f.log.String(), "cannot be made"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &f.log)
	}
}

func TestWhileLow(t *testing.T) {
	f := newFixture(t, 100*mib, 1000*mib)
	calls := 0
	f.guard.WhileLow(func() {
		calls++
		f.guard.Release() // as a write may that finds the disk full
	})
	f.check()
	if calls != 0 {
		t.Error("called while there is room")
	}
	f.free(9 * mib)
	f.check()
	if calls != 2 {
		t.Errorf("called %d times in 2 checks", calls)
	}
	f.free(100 * mib)
	if calls != 2 {
		t.Error("called when there is room again")
	}
}

func TestCloseTwice(t *testing.T) {
	f := newFixture(t, 100*mib, 1000*mib)
	for range 2 {
		f.guard.Close()
	}
}
