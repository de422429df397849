package fair

import (
	"cmp"
	"maps"
	"slices"
)

// Wait counts the waiting messages of a tenant: those that are not leased, and the scheduled
// ones among them.
type Wait struct{ Messages, Scheduled int64 }

// Waits has the counts of a queue's tenants. They are exact while at most limit tenants have
// waiting messages. Beyond that the tenants with the fewest are forgotten, and count as if they
// had none until they send again.
type Waits[K cmp.Ordered] struct {
	limit   int
	of      map[K]*wait
	changed []K
}

type wait struct {
	Wait
	changed bool
}

// NewWaits makes the Waits of a queue in which nothing waits.
func NewWaits[K cmp.Ordered](limit int) Waits[K] { return Waits[K]{limit: limit} }

// Set restores the persisted count of a tenant.
func (s *Waits[K]) Set(tenant K, w Wait) {
	if s.of == nil {
		s.of = map[K]*wait{}
	}
	s.of[tenant] = &wait{Wait: w}
}

// Of is the sum of the counts of some tenants.
func (s *Waits[K]) Of(tenants ...K) (w Wait) {
	for _, tenant := range tenants {
		if one := s.of[tenant]; one != nil {
			w.Messages += one.Messages
			w.Scheduled += one.Scheduled
		}
	}
	return w
}

// Add adds to the counts of a tenant; the numbers may be negative.
func (s *Waits[K]) Add(tenant K, messages, scheduled int64) {
	one := s.of[tenant]
	switch {
	case one == nil && messages < 0:
		return // it was forgotten
	case one == nil:
		if len(s.of) >= s.limit {
			s.forget()
		}
		s.Set(tenant, Wait{})
		one = s.of[tenant]
	}
	one.Messages = max(one.Messages+messages, 0)
	one.Scheduled = min(max(one.Scheduled+scheduled, 0), one.Messages)
	s.change(tenant, one)
}

func (s *Waits[K]) change(tenant K, one *wait) {
	if !one.changed {
		one.changed = true
		s.changed = append(s.changed, tenant)
	}
}

// forget drops the half of the tenants that has the least, so that memory stays bounded.
func (s *Waits[K]) forget() {
	all := slices.SortedFunc(maps.Keys(s.of), func(a, b K) int {
		return cmp.Or(cmp.Compare(s.of[a].Messages, s.of[b].Messages), cmp.Compare(a, b))
	})
	for _, tenant := range all[:(len(all)+1)/2] {
		one := s.of[tenant]
		one.Wait = Wait{}
		s.change(tenant, one)
	}
	s.drop()
}

// drop removes tenants without messages from memory. They stay among the changed, so that
// their records are deleted.
func (s *Waits[K]) drop() {
	maps.DeleteFunc(s.of, func(_ K, one *wait) bool { return one.Messages == 0 })
}

// ChangedCount is how many tenants Changed would report.
func (s *Waits[K]) ChangedCount() int { return len(s.changed) }

// Changed calls f for each count that has changed since the last call. A zero Wait says that
// the tenant's record is to be deleted.
func (s *Waits[K]) Changed(f func(tenant K, w Wait)) {
	for _, tenant := range s.changed {
		one := s.of[tenant]
		if one == nil {
			f(tenant, Wait{})
			continue
		}
		if f(tenant, one.Wait); one.Messages == 0 {
			delete(s.of, tenant)
		}
		one.changed = false
	}
	s.changed = s.changed[:0]
}
