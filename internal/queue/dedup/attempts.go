package dedup

import "maps"

// maxAttempts bounds the attempts that are remembered at once.
const maxAttempts = 4096

// Attempts remembers what receives got, by their ReceiveRequestAttemptId, for as
// long as Life; with very many, not all. The zero value remembers none. Source:
// ReceiveMessage in the SQS API reference.
type Attempts[T any] struct {
	got map[string]attempt[T]
}

type attempt[T any] struct {
	at  int64
	got T
}

// Remember keeps what a receive got.
func (a *Attempts[T]) Remember(now int64, id string, got T) {
	if len(a.got) >= maxAttempts {
		maps.DeleteFunc(a.got, func(_ string, old attempt[T]) bool { return now-old.at >= Life })
	}
	if a.got == nil {
		a.got = map[string]attempt[T]{}
	}
	if len(a.got) < maxAttempts {
		a.got[id] = attempt[T]{at: now, got: got}
	}
}

// Recall says what it was.
func (a *Attempts[T]) Recall(now int64, id string) (got T, ok bool) {
	old, ok := a.got[id]
	if !ok || now-old.at >= Life {
		return got, false
	}
	return old.got, true
}
