package conns

import (
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// The sets that a connection is in.
const (
	inAll     = iota // all connections
	inAddress        // those of its address
	sets
)

// set is a set of connections, in which an idle one can be found. The listener's mu guards it.
type set struct {
	in      int
	conns   []*Conn
	hand    int       // where in conns the search for an idle one continues
	allBusy time.Time // when no idle one was found

	size    atomic.Int64 // of conns; is read without mu
	streams atomic.Int64 // HTTP/2 requests in progress; not guarded by mu
}

func (s *set) add(c *Conn) {
	c.index[s.in] = len(s.conns)
	s.conns = append(s.conns, c)
	s.size.Add(1)
}

func (s *set) remove(c *Conn) {
	at, end := c.index[s.in], len(s.conns)-1
	last := s.conns[end]
	s.conns[at], last.index[s.in] = last, at
	s.conns[end] = nil
	s.conns = s.conns[:end]
	s.size.Add(-1)
}

// crowded reports whether there are more connections than a bound; 0: there is none.
func (s *set) crowded(most int64) bool { return most > 0 && s.size.Load() > most }

// takeIdle marks as closed the connection that has been idle longest, of some idle ones; nil if
// none is idle.
func (s *set) takeIdle() *Conn {
	if clock.System.Now().Sub(s.allBusy) < pause {
		return nil
	}
	for {
		var oldest *Conn
		for looked, found := 0, 0; looked < len(s.conns) && found < choice; looked++ {
			if s.hand++; s.hand >= len(s.conns) {
				s.hand = 0
			}
			c := s.conns[s.hand]
			if c.state.Load() != idle {
				continue
			}
			found++
			if oldest == nil || c.since.Load() < oldest.since.Load() {
				oldest = c
			}
		}
		if oldest == nil {
			s.allBusy = clock.System.Now()
			return nil
		}
		if oldest.state.CompareAndSwap(idle, closed) { // else it has just got a request
			return oldest
		}
	}
}
