// Package poison ends the process where a panic cuts off what has to be done as a whole:
// memory may then be ahead of the disk, or contradict itself, and only a restart brings
// it together. A lock that is held means that something is half done; so it is the lock
// that is guarded. A panic that passes no guarded lock costs its request only.
package poison

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// ErrPoisoned is why what a panic has left half done is not gone on with.
var ErrPoisoned = errors.New("a command has panicked half-way, and memory may be ahead of the disk")

// End logs a panic that has cut something off, with the stack of the goroutine that
// calls it, and ends the process through fatal; nil does not end it.
func End(logger *slog.Logger, fatal func(error), cause any) {
	if logger != nil {
		logger.Error("a command has panicked: godwit ends, and is to be started again", "panic", cause, "stack", string(debug.Stack()))
	}
	if fatal != nil {
		fatal(fmt.Errorf("%w: %v", ErrPoisoned, cause))
	}
}

// Guard guards the locks of one owner. After a panic none of them can be taken. The
// guard of nil notices no panics.
type Guard struct {
	logger   *slog.Logger
	fatal    func(error)
	poisoned atomic.Bool
}

// New makes a guard. fatal ends the process; it should not return to a caller that
// could answer a request. Both may be nil.
func New(logger *slog.Logger, fatal func(error)) *Guard { return &Guard{logger: logger, fatal: fatal} }

// Lock locks mu. It panics with ErrPoisoned once a panic has passed one of the guard's
// locks.
func (g *Guard) Lock(mu *sync.Mutex) {
	mu.Lock()
	if g != nil && g.poisoned.Load() {
		mu.Unlock()
		panic(ErrPoisoned)
	}
}

// Unlock unlocks mu, and ends the process if a panic passes. It is to be deferred, and
// by nobody else: only so it sees the panic.
func (g *Guard) Unlock(mu *sync.Mutex) {
	cause := recover()
	if cause != nil {
		g.end(cause)
	}
	mu.Unlock()
	if cause != nil {
		panic(cause)
	}
}

// Whole ends the process if a panic passes: for what has to be done as a whole, and
// holds no lock all the while. It is to be deferred.
func (g *Guard) Whole() {
	if cause := recover(); cause != nil {
		g.end(cause)
		panic(cause)
	}
}

func (g *Guard) end(cause any) {
	if g != nil && !g.poisoned.Swap(true) {
		End(g.logger, g.fatal, cause)
	}
}
