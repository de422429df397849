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
	leases []sharedLease
}

// sharedLease is a lease of all receives with an attempt's id.
type sharedLease struct {
	Lease
	holders int // receives that have it: the first one, and its repeats, but those that failed
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

// giveUp notes that a receive with an attempt's id failed for one of its leases. It returns false if
// another one with that id has it: then the lease must stay. Else a repeat does not get it any more.
func (a *attempts) giveUp(now int64, id string, l Lease) bool {
	got := a.recall(now, id)
	if got == nil {
		return true
	}
	at := slices.IndexFunc(got.leases, func(o sharedLease) bool { return o.Lease == l })
	if at < 0 {
		return true
	}
	if got.leases[at].holders--; got.leases[at].holders > 0 {
		return false
	}
	got.leases = slices.Delete(got.leases, at, at+1)
	if len(got.leases) == 0 {
		delete(a.byID, id)
	}
	return true
}

// repeat answers a retried receive with the same messages and leases, and restarts their
// visibility timeouts; false if one of them has changed since.
func (q *Machine) repeat(b *mutation.Batch, now int64, c *Receive, r *Result) bool {
	if q.groups == nil || c.Attempt == "" {
		return false
	}
	a := q.groups.attempts.recall(now, c.Attempt)
	if a == nil {
		return false
	}
	for _, l := range a.leases {
		if s := q.leases.Get(l.Sequence); s == nil || s.Due != a.due || leaseOf(s) != l.Lease {
			return false
		}
	}
	a.due = now + c.Visibility
	for i := range a.leases {
		l := &a.leases[i]
		s := q.leases.Get(l.Sequence)
		q.endLease(b, now, s)
		q.grant(b, now, s, a.due)
		l.holders++
		r.Leases = append(r.Leases, l.Lease)
	}
	return true
}

// remember caches the result of a receive with an attempt's id.
func (q *Machine) remember(now int64, c *Receive, r *Result) {
	if q.groups != nil && c.Attempt != "" && len(r.Leases) > 0 {
		got := &attempt{at: now, due: now + c.Visibility, leases: make([]sharedLease, len(r.Leases))}
		for i, l := range r.Leases {
			got.leases[i] = sharedLease{l, 1}
		}
		q.groups.attempts.remember(c.Attempt, got)
	}
}
