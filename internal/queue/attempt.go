package queue

import (
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/mutation"
)

// attemptLife is how long a ReceiveRequestAttemptId is known, in milliseconds.
// Source: ReceiveMessage in the SQS API reference.
const attemptLife = int64(5 * time.Minute / time.Millisecond)

// maxAttempts bounds the attempts that are remembered at once.
const maxAttempts = 4096

// attempt is a receive that can be asked for again. It is forgotten when the
// process ends.
type attempt struct {
	at, due int64
	leases  []Lease
}

// again answers a receive that was made before with the same messages under the
// same leases, whose visibility begins anew; false if one of them has changed.
func (q *Machine) again(b *mutation.Batch, now int64, r *Receive) bool {
	if q.g == nil {
		return false
	}
	a, ok := q.g.attempts[r.Attempt]
	if !ok || now-a.at >= attemptLife {
		return false
	}
	for _, l := range a.leases {
		if s := q.leases[l.Sequence]; s == nil || s.due != a.due || q.leaseOf(s) != l {
			return false
		}
	}
	a.due = now + r.Visibility
	for _, l := range a.leases {
		s := q.leases[l.Sequence]
		q.unlease(b, now, s)
		s.due = a.due
		q.lease(b, now, s)
	}
	q.g.attempts[r.Attempt] = a
	r.Leases = slices.Clone(a.leases)
	return true
}

// remember keeps what a receive with an attempt's id got.
func (q *Machine) remember(now int64, r *Receive) {
	if r.Attempt == "" || len(r.Leases) == 0 {
		return
	}
	if len(q.g.attempts) >= maxAttempts {
		maps.DeleteFunc(q.g.attempts, func(_ string, a attempt) bool { return now-a.at >= attemptLife })
	}
	if q.g.attempts == nil {
		q.g.attempts = map[string]attempt{}
	}
	if len(q.g.attempts) < maxAttempts {
		q.g.attempts[r.Attempt] = attempt{at: now, due: now + r.Visibility, leases: slices.Clone(r.Leases)}
	}
}
