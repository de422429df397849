package topic

import (
	"iter"
	"time"
)

// retain notes since when the archive has all messages, when its policy changes: messages that
// a shorter retention has removed do not come back.
func (t *Topic) retain(now time.Time, policy string) {
	switch begins, archived := t.ArchiveBegins(now); {
	case policy == "":
		t.archivedFrom = time.Time{}
	case archived:
		t.archivedFrom = begins
	default:
		t.archivedFrom = now.UTC().Truncate(time.Millisecond)
	}
}

// ArchiveBegins is the time of the earliest message that the topic's archive may have: no
// earlier one can be replayed. ok is false if there is no archive.
func (t *Topic) ArchiveBegins(now time.Time) (at time.Time, ok bool) {
	if t.Retention == 0 {
		return time.Time{}, false
	}
	at = now.Add(-t.Retention)
	if at.Before(t.archivedFrom) {
		at = t.archivedFrom
	}
	return at, true
}

// Archives yields the topics with an archive, in order.
func (s *State) Archives() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range s.order.Items {
			if t.Retention > 0 && !yield(t) {
				return
			}
		}
	}
}
