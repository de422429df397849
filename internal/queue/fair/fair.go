// Package fair finds the noisy tenants of a shared queue: those with a large share of the
// messages in flight, or of the recent processing time. Messages of the other tenants are
// received first. Source: "Amazon SQS fair queues" in the SQS developer guide.
package fair

const (
	noisyShare    = 10 // a tenth
	noisyInFlight = 30
	minute        = 60_000 // ms
)

// Shares are the shares of the tenants that have messages in flight, or had recently. The
// zero value has no tenant.
type Shares[K comparable] struct {
	of     map[K]*share
	busy   int64 // of all messages, also those without a tenant
	minute int64 // when busy was last halved
}

type share struct {
	inFlight int
	busy     int64 // processing time, halved every minute, in ms
}

// Leased notes that a message of a tenant was received at now, in epoch milliseconds.
func (s *Shares[K]) Leased(tenant K, now int64) { s.count(tenant, now, 1, 0) }

// Released notes that its lease has ended, after busy ms.
func (s *Shares[K]) Released(tenant K, now, busy int64) { s.count(tenant, now, -1, busy) }

// ReleasedAlone notes that the lease of a message without a tenant has ended. Such a message is
// a tenant of its own, which is never noisy.
func (s *Shares[K]) ReleasedAlone(now, busy int64) {
	s.forget(now)
	s.busy += busy
}

func (s *Shares[K]) count(tenant K, now int64, n int, busy int64) {
	s.ReleasedAlone(now, busy)
	one := s.of[tenant]
	if one == nil {
		if s.of == nil {
			s.of = map[K]*share{}
		}
		one = &share{}
		s.of[tenant] = one
	}
	one.inFlight += n
	one.busy += busy
	if one.inFlight <= 0 && one.busy == 0 {
		delete(s.of, tenant)
	}
}

// forget halves the processing times for every minute that has passed: an exponential decay.
func (s *Shares[K]) forget(now int64) {
	minutes := min(now/minute-s.minute, 63)
	if minutes <= 0 {
		return
	}
	s.minute = now / minute
	s.busy >>= minutes
	for tenant, one := range s.of {
		if one.busy >>= minutes; one.busy == 0 && one.inFlight <= 0 {
			delete(s.of, tenant)
		}
	}
}

// None reports that no tenant has a share.
func (s *Shares[K]) None() bool { return len(s.of) == 0 }

// Noisy reports whether a tenant is noisy, if inFlight messages are in flight in all.
func (s *Shares[K]) Noisy(tenant K, inFlight int) bool {
	one := s.of[tenant]
	return one != nil && s.noisy(one, inFlight)
}

func (s *Shares[K]) noisy(one *share, inFlight int) bool {
	return one.inFlight >= noisyInFlight && one.inFlight*noisyShare > inFlight || one.busy*noisyShare > s.busy
}

// Count counts the tenants that have messages in flight, and lists the noisy ones, which are
// fewer than twenty.
func (s *Shares[K]) Count(inFlight int) (holding int, noisy []K) {
	for tenant, one := range s.of {
		if one.inFlight > 0 {
			holding++
		}
		if s.noisy(one, inFlight) {
			noisy = append(noisy, tenant)
		}
	}
	return holding, noisy
}

// InFlight is how many messages of some tenants are in flight.
func (s *Shares[K]) InFlight(tenants ...K) (n int) {
	for _, tenant := range tenants {
		if one := s.of[tenant]; one != nil {
			n += one.inFlight
		}
	}
	return n
}
