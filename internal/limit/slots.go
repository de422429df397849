package limit

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Slots bound a number of things in use at once. The zero Slots, and nil, have no bound.
type Slots struct {
	name            string
	slots           chan struct{}
	refused, waited atomic.Int64
}

// NewSlots makes n slots, 1 or more.
func NewSlots(name string, n int) *Slots {
	return &Slots{name: name, slots: make(chan struct{}, max(n, 1))}
}

// Acquire takes a slot, and waits for one until ctx ends.
func (s *Slots) Acquire(ctx context.Context) error {
	if s == nil || s.slots == nil {
		return nil
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	s.waited.Add(1)
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		s.refused.Add(1)
		return ctx.Err()
	}
}

// Release gives a slot back.
func (s *Slots) Release() {
	if s != nil && s.slots != nil {
		<-s.slots
	}
}

// Len is how many slots there are; 0: no bound.
func (s *Slots) Len() int {
	if s == nil {
		return 0
	}
	return cap(s.slots)
}

// Stats reports the use of the slots.
func (s *Slots) Stats() Stats {
	return Stats{
		Name: s.name, Used: int64(len(s.slots)), Limit: int64(cap(s.slots)),
		Refused: s.refused.Load(), Waited: s.waited.Load(),
	}
}

// Dial is the type of net.Dialer's DialContext.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial makes each connection of dial hold a slot until it is closed.
func (s *Slots) Dial(dial Dial) Dial {
	if s.Len() == 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := s.Acquire(ctx); err != nil {
			return nil, err
		}
		c, err := dial(ctx, network, address)
		if err != nil {
			s.Release()
			return nil, err
		}
		return &slotted{Conn: c, release: s.Release}, nil
	}
}

type slotted struct {
	net.Conn
	once    sync.Once
	release func()
}

func (c *slotted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}
