package queue

import (
	"maps"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/dedup"
)

// maxAttempts bounds the attempts that are remembered at once.
const maxAttempts = 4096

// attempts caches the results of receives by their ReceiveRequestAttemptId, for dedup.Life. It is
// bounded by maxAttempts, and in memory only: a restart forgets it. The zero value is empty.
// Source: ReceiveMessage in the SQS API reference.
type attempts struct{ byID map[string]*attempt }

// attempt is the result of one receive.
type attempt struct {
	at     int64 // when it was made
	due    int64 // when its leases run out
	leases []Lease
	// repeated says that the receive was repeated: who asked first may have failed, and who
	// repeats it has the leases.
	repeated bool
}

func (a *attempts) remember(id string, got *attempt) {
	if len(a.byID) >= maxAttempts {
		maps.DeleteFunc(a.byID, func(_ string, old *attempt) bool { return got.at-old.at >= dedup.Life })
	}
	if a.byID == nil {
		a.byID = map[string]*attempt{}
	}
	if len(a.byID) < maxAttempts {
		a.byID[id] = got
	}
}

// recall finds the result of an attempt; nil: it is not cached.
func (a *attempts) recall(now int64, id string) *attempt {
	if got := a.byID[id]; got != nil && now-got.at < dedup.Life {
		return got
	}
	return nil
}

// giveUp notes that a receive with an attempt's id failed for one of its leases, which a repeat does
// not get any more. It returns false if a repeat has got it already: then the lease must stay.
func (a *attempts) giveUp(now int64, id string, l Lease) bool {
	got := a.recall(now, id)
	if got == nil || !slices.Contains(got.leases, l) {
		return true
	}
	if got.repeated {
		return false
	}
	got.leases = slices.DeleteFunc(got.leases, func(o Lease) bool { return o == l })
	if len(got.leases) == 0 {
		delete(a.byID, id)
	}
	return true
}

// repeat answers a retried receive with the same messages and leases, and restarts their
// visibility timeouts; false if one of them has changed since.
func (q *Machine) repeat(b *mutation.Batch, now int64, c *Receive, r *Result) bool {
	if q.g == nil || c.Attempt == "" {
		return false
	}
	a := q.g.attempts.recall(now, c.Attempt)
	if a == nil {
		return false
	}
	for _, l := range a.leases {
		if s := q.leases.Get(l.Sequence); s == nil || s.Due != a.due || leaseOf(s) != l {
			return false
		}
	}
	a.due, a.repeated, r.Repeated = now+c.Visibility, true, true
	for _, l := range a.leases {
		s := q.leases.Get(l.Sequence)
		q.endLease(b, now, s)
		q.grant(b, now, s, a.due)
	}
	r.Leases = slices.Clone(a.leases)
	return true
}

// remember caches the result of a receive with an attempt's id.
func (q *Machine) remember(now int64, c *Receive, r *Result) {
	if q.g != nil && c.Attempt != "" && len(r.Leases) > 0 {
		q.g.attempts.remember(c.Attempt, &attempt{at: now, due: now + c.Visibility, leases: slices.Clone(r.Leases)})
	}
}
