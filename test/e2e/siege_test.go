package e2e_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/test/soak"
)

// The life of a process between two kills.
const (
	lifeLeast = 200 * time.Millisecond
	lifeMost  = 1500 * time.Millisecond
	lives     = 5
)

// server is one that is killed and started again on the same data.
type server struct {
	p     *process
	dying atomic.Bool // p is being killed

	seed  uint64
	place uint64 // of what draws next
}

// random is a source of its own for each place that draws.
func (s *server) random() *rand.Rand {
	s.place++
	return soak.Rand(s.seed, s.place)
}

// attacker is a load of some kind that knows what it was promised.
type attacker interface {
	prepare(t *testing.T)
	attack(ctx context.Context, clients *sync.WaitGroup)
	worked(lives int) error // nil: it has done enough for so many lives to prove something
	check(t *testing.T)     // once the server is not killed any more
}

// TestKill9 kills the server at random moments while clients send, publish, receive,
// delete and purge, send and receive in order, and invoke a function. Then it accounts
// for all that was acknowledged.
func TestKill9(t *testing.T) {
	soak.Campaign(t, 1, func(t *testing.T, seed uint64) {
		addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
		s := &server{seed: seed}
		queues := newSiege(t, s)
		attackers := []attacker{queues, newFIFOSiege(s), newFunctionSiege(t, s)}
		s.p = startAt(t, addr, data)
		for _, a := range attackers {
			a.prepare(t)
		}
		r := s.random()
		for life := range lives {
			ctx, cancel := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			s.dying.Store(false)
			for _, a := range attackers {
				a.attack(ctx, &clients)
			}
			pass(ctx, lifeLeast+time.Duration(r.Int64N(int64(lifeMost-lifeLeast))))
			for _, a := range attackers { // also on a machine that is slow
				eventually(t, "there is load", func() (bool, error) {
					err := a.worked(life + 1)
					return err == nil, err
				})
			}
			s.dying.Store(true)
			s.p.kill()
			cancel()
			clients.Wait()
			queues.killed()
			s.p = startAt(t, addr, data)
		}
		for _, a := range attackers {
			a.check(t)
		}
		s.p.kill()
	})
}
