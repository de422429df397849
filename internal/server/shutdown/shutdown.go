// Package shutdown stops what a server has started, in reverse order and in bounded time.
package shutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Stack remembers how to stop what was started, and stops it in reverse
// order. A set-up that fails half-way and a server that ends use the same one.
// The zero value is empty.
type Stack struct {
	mu    sync.Mutex
	stops []namedStop
}

type namedStop struct {
	name string
	stop func(context.Context) error
}

// Push adds the function that stops what has just been started.
func (s *Stack) Push(name string, stop func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, namedStop{name, stop})
}

// cutOff is how long what is stopped may take beyond the end of the context, to
// cut off what it waits for.
const cutOff = 4 * time.Second

// ErrAbandoned reports that parts did not stop in time.
var ErrAbandoned = errors.New("what was not through in time was left alone; the next start recovers all that was acknowledged")

// Unwind stops everything, last first. A failure is kept and does not keep
// the rest from being stopped, nor does the end of ctx: each stop is to give
// up waiting on its own. One that has not by cutOff later is left alone, and
// so is all that it may use, which comes after it. All that was not through in time is
// one failure, ErrAbandoned. What was stopped is forgotten.
func (s *Stack) Unwind(ctx context.Context) error {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := clock.System.AfterFunc(cutOff, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})()
	var failures []error
	var abandoned []string
	end := func() error {
		if len(abandoned) > 0 {
			failures = append(failures, fmt.Errorf("stopping %s: %w", strings.Join(abandoned, ", "), ErrAbandoned))
		}
		return errors.Join(failures...)
	}
	for {
		next, ok := s.pop()
		if !ok {
			return end()
		}
		stopped := make(chan error, 1)
		go func() { stopped <- next.stop(ctx) }()
		select {
		case err := <-stopped:
			switch {
			case err == nil:
			case ctx.Err() != nil && isLate(err):
				abandoned = append(abandoned, next.name)
			default:
				failures = append(failures, fmt.Errorf("stopping %s: %w", next.name, err))
			}
		case <-late.Done():
			abandoned = append(abandoned, next.name)
			for {
				rest, ok := s.pop()
				if !ok {
					return end()
				}
				abandoned = append(abandoned, rest.name)
			}
		}
	}
}

// isLate reports whether an error says nothing but that a context has ended.
func isLate(err error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(wrapped.Unwrap(), func(e error) bool { return !isLate(e) })
	case interface{ Unwrap() error }:
		return isLate(wrapped.Unwrap())
	}
	return err == context.DeadlineExceeded || err == context.Canceled //nolint:errorlint // of a leaf
}

func (s *Stack) pop() (namedStop, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.stops) - 1
	if last < 0 {
		return namedStop{}, false
	}
	top := s.stops[last]
	s.stops = s.stops[:last]
	return top, true
}
