// Package space keeps a store from filling its file system completely, as then not even a
// delete could be written.
//
// Below a floor of free space the guard is low: the caller refuses new data, while deletes
// continue. A reserve file (ballast) holds back space for them: when the space is nearly
// exhausted all the same, the guard removes the file, and makes it again once there is space
// for it and the floor.
package space

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
)

// Usage is the space on a file system, in bytes.
type Usage struct {
	Free  int64 // to us: without the part reserved for root
	Total int64
}

// Options configure a guard; the zero value is valid.
type Options struct {
	// Reserve is the size of the reserve file in bytes; default 64 MiB.
	Reserve int64
	// Floor is how many bytes must be free, beside the reserve, for the guard not to be low;
	// default 128 MiB. A file system smaller than four floors has a floor of a quarter of its
	// size, and a reserve of an eighth at most: deletes need space on a small one, too.
	Floor int64
	// Clock paces the checks; default clock.System.
	Clock clock.Clock
	// Statfs reports the space on the file system of a directory; default is the operating
	// system's.
	Statfs func(dir string) (Usage, error)
	// Logger gets one line for each change of state; nil discards them.
	Logger *slog.Logger
}

const (
	defaultReserve = 64 << 20
	defaultFloor   = 128 << 20

	// smallFloors is the number of floors below which a file system is small.
	smallFloors = 4

	// interval is the time between two checks. The default floor is more than the 100 MB that
	// sends may write in a second. With a lower floor the time is proportionally shorter, down
	// to shortest; functions of WhileLow are called once per interval.
	interval = time.Second
	shortest = 20 * time.Millisecond

	reserveFile = "godwit-reserve"
)

// Guard watches the file system of one directory.
type Guard struct {
	dir   string
	o     Options
	low   atomic.Bool
	state atomic.Pointer[state]

	whileLow atomic.Pointer[func()]

	mu       sync.Mutex // guards what follows, and one change of state at a time
	timer    clock.Timer
	closed   bool
	warned   bool           // the reserve cannot be made, which was logged
	checking sync.WaitGroup // checks that are scheduled or running
}

// state is the result of the last check.
type state struct {
	usage   Usage
	floor   int64 // bytes
	reserve int64 // bytes the reserve file should have
	held    bool  // the file exists
	err     error // why the check failed
}

// Open makes the directory dir if it does not exist, checks its file system
// once, makes the reserve file if there is space for it, and continues to check
// once a second until Close. It fails if the first check does.
func Open(dir string, o Options) (*Guard, error) {
	o.defaults()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("free space: %w", err)
	}
	g := &Guard{dir: dir, o: o}
	g.state.Store(&state{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check()
	if err := g.state.Load().err; err != nil {
		return nil, err
	}
	g.schedule()
	return g, nil
}

func (o *Options) defaults() {
	if o.Reserve == 0 {
		o.Reserve = defaultReserve
	}
	if o.Floor == 0 {
		o.Floor = defaultFloor
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Statfs == nil {
		o.Statfs = statfs
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// RequireFree fails with ErrNoSpace if a directory's file system has less than need bytes free
// above the floor of a guard with default options.
func RequireFree(dir string, need int64) error {
	usage, err := statfs(dir)
	if err != nil {
		return fmt.Errorf("free space: %w", err)
	}
	floor := usage.floor(defaultFloor)
	if usage.Free-need < floor {
		return fmt.Errorf("%w in %s: %s are free, of which %s are to stay so, and %s are needed", ErrNoSpace, dir, size(usage.Free), size(floor), size(need))
	}
	return nil
}

// floor is the free space required with the default limit: less on a small file system.
func (u *Usage) floor(limit int64) int64 { return min(limit, u.Total/smallFloors) }

// ErrNoSpace reports too little free space.
var ErrNoSpace = errors.New("there is not enough free space")

func statfs(dir string) (Usage, error) {
	u, err := vfs.Default.GetDiskUsage(dir)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Free: int64(u.AvailBytes), Total: int64(u.TotalBytes)}, nil
}

// Low reports whether free space is too low to accept data. It costs one atomic load.
func (g *Guard) Low() bool { return g.low.Load() }

// Health reports whether enough space is free, and how much.
func (g *Guard) Health() (ok bool, message string) {
	s := g.state.Load()
	free := fmt.Sprintf("%s of %s free on the file system of %s", size(s.usage.Free), size(s.usage.Total), g.dir)
	switch {
	case s.err != nil:
		return false, s.err.Error()
	case g.low.Load():
		return false, fmt.Sprintf("disk space is low: %s; sends are refused until %s are free", free, size(s.enough()))
	default:
		return true, free
	}
}

// WhileLow sets a function that is called after each check that finds the guard low, to reclaim
// space. The next check is a second after f returned.
func (g *Guard) WhileLow(f func()) { g.whileLow.Store(&f) }

// Release gives the reserve up at once, for a write that found the disk full, and makes the
// guard low. It may be called while writes to the store wait for it, and after Close.
func (g *Guard) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := *g.state.Load()
	s.usage.Free = 0
	g.adopt(s)
}

// Close ends the checks. The reserve file stays.
func (g *Guard) Close() {
	g.mu.Lock()
	g.closed = true
	stopped := g.timer.Stop()
	g.mu.Unlock()
	if stopped {
		g.checking.Done()
	}
	g.checking.Wait()
}

// schedule sets the timer for the next check; g.mu is held.
func (g *Guard) schedule() {
	if g.closed {
		return
	}
	g.checking.Add(1)
	g.timer = g.o.Clock.AfterFunc(g.pause(), func() {
		defer g.checking.Done()
		g.mu.Lock()
		if g.closed {
			g.mu.Unlock()
			return
		}
		g.check()
		g.mu.Unlock()
		if f := g.whileLow.Load(); f != nil && g.Low() {
			(*f)()
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.schedule()
	})
}

// pause is the time until the next check.
func (g *Guard) pause() time.Duration {
	floor := g.state.Load().floor
	if g.Low() || floor == 0 || floor >= defaultFloor {
		return interval
	}
	return max(shortest, time.Duration(float64(interval)*float64(floor)/defaultFloor))
}

// check reads the free space and acts on the result; g.mu is held.
func (g *Guard) check() {
	before := g.state.Load()
	usage, err := g.o.Statfs(g.dir)
	if err != nil {
		// The result of the last check is the best there is.
		s := *before
		s.err = fmt.Errorf("free space of %s: %w", g.dir, err)
		if before.err == nil {
			g.o.Logger.Error("the free space cannot be determined", "dir", g.dir, "error", err)
		}
		g.state.Store(&s)
		return
	}
	s := state{usage: usage, floor: usage.floor(g.o.Floor), reserve: g.o.Reserve}
	if s.floor < g.o.Floor {
		s.reserve = min(g.o.Reserve, usage.Total/(2*smallFloors))
	}
	g.adopt(s)
}

// exhausted is the free space at which the reserve is given up: what remains is for a second of
// deletes.
func (s *state) exhausted() int64 { return s.floor / 4 }

// enough is the free space at which the guard is no longer low. It is above the floor so that
// the state does not change with each message; without the reserve there must be space for that
// too.
func (s *state) enough() int64 {
	n := s.floor + s.floor/8
	if !s.held {
		n += s.reserve
	}
	return n
}

// adopt takes over the state s, but for s.held; g.mu is held.
func (g *Guard) adopt(s state) {
	low := s.usage.Free < s.floor
	info, err := os.Stat(g.path())
	// A file of another size is from another configuration, or was truncated.
	s.held = err == nil && info.Size() == s.reserve
	switch {
	case s.usage.Free < s.exhausted() && err == nil:
		g.remove(&s, info.Size())
	case s.usage.Free >= s.enough() && !s.held && s.reserve > 0:
		g.make(&s)
	}
	low = low || g.low.Load() && s.usage.Free < s.enough()
	g.state.Store(&s)
	if g.low.Swap(low) == low {
		return
	}
	if low {
		g.o.Logger.Error("disk space is low: sends are refused, deletes go on",
			"dir", g.dir, "freeBytes", s.usage.Free, "floorBytes", s.floor)
	} else {
		g.o.Logger.Info("there is disk space again: sends are accepted", "dir", g.dir, "freeBytes", s.usage.Free)
	}
}

func (g *Guard) path() string { return filepath.Join(g.dir, reserveFile) }

func (g *Guard) remove(s *state, size int64) {
	if err := os.Remove(g.path()); err != nil {
		g.o.Logger.Error("the reserve of disk space cannot be released", "dir", g.dir, "error", err)
		return
	}
	s.held = false
	s.usage.Free += size
	g.o.Logger.Warn("disk space is exhausted: the reserve was released", "dir", g.dir, "reserveBytes", size)
}

// make makes the reserve file. A failure is only logged: the margin is smaller then.
func (g *Guard) make(s *state) {
	if err := allocate(g.path(), s.reserve); err != nil {
		if !g.warned {
			g.warned = true
			g.o.Logger.Warn("the reserve of disk space cannot be made", "dir", g.dir, "error", err)
		}
		return
	}
	g.warned = false
	s.held = true
	s.usage.Free -= s.reserve
}

// allocate makes a file that takes size bytes on the disk. Its size is set last: an incomplete
// file is not taken for a reserve.
func allocate(path string, size int64) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = preallocate(f, size)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// size formats bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.0f GiB", float64(n)/(1<<30))
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d KiB", n>>10)
	}
}
