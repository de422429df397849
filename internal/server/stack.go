package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// stack remembers how to stop what was started, and stops it in reverse
// order. A set-up that fails half-way and a server that ends use the same one.
// The zero value is empty.
type stack struct {
	mu    sync.Mutex
	stops []namedStop
}

type namedStop struct {
	name string
	stop func(context.Context) error
}

// push adds the way to stop what has just been started.
func (s *stack) push(name string, stop func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, namedStop{name, stop})
}

// unwind stops everything, last first. A failure is kept and does not keep
// the rest from being stopped, nor does the end of ctx: each stop is to give
// up waiting on its own. What was stopped is forgotten.
func (s *stack) unwind(ctx context.Context) error {
	var failures []error
	for {
		next, ok := s.pop()
		if !ok {
			return errors.Join(failures...)
		}
		if err := next.stop(ctx); err != nil {
			failures = append(failures, fmt.Errorf("stopping %s: %w", next.name, err))
		}
	}
}

func (s *stack) pop() (namedStop, bool) {
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
