package fair

import (
	"cmp"
	"maps"
	"slices"
)

// Wait is what a tenant has waiting: messages that are not leased, and those of them
// that are delayed, or were received and returned.
type Wait struct{ Messages, Scheduled int64 }

// Waits are those of the tenants of a queue. They are exact while no more tenants
// than the limit have something waiting at once. Beyond it those that have least
// are forgotten, and count as if they had nothing until they send again.
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

// Set restores what was written of a tenant.
func (s *Waits[K]) Set(tenant K, w Wait) {
	if s.of == nil {
		s.of = map[K]*wait{}
	}
	s.of[tenant] = &wait{Wait: w}
}

// Of is what some tenants have waiting, all together.
func (s *Waits[K]) Of(tenants ...K) (w Wait) {
	for _, tenant := range tenants {
		if one := s.of[tenant]; one != nil {
			w.Messages += one.Messages
			w.Scheduled += one.Scheduled
		}
	}
	return w
}

// Add notes that a tenant has more waiting; less, with negative numbers.
func (s *Waits[K]) Add(tenant K, messages, scheduled int64) {
	one := s.of[tenant]
	switch {
	case one == nil && messages < 0:
		return // of one that was forgotten
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

// forget makes room: half of the tenants go, those with the least.
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

// drop takes those out of memory that have nothing; they stay among the changed.
func (s *Waits[K]) drop() {
	maps.DeleteFunc(s.of, func(_ K, one *wait) bool { return one.Messages == 0 })
}

// ChangedCount is how many tenants Changed would report.
func (s *Waits[K]) ChangedCount() int { return len(s.changed) }

// Changed reports what has changed since the last call. A tenant with nothing is gone.
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
