package topic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"
)

const attrArchive = "ArchivePolicy"

// The range of an archive's retention, in days.
const (
	minArchive = 1
	maxArchive = 365
)

// members reads a JSON object; nil if document is none.
func members(document string) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader([]byte(document)))
	if err := dec.Decode(&object); err != nil || object == nil {
		return nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return object
}

// text reads a JSON string; ok is false for anything else.
func text(value json.RawMessage) (s string, ok bool) {
	ok = len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil
	return s, ok
}

// checkArchive takes the number of days as a string, as AWS documents it, or as
// a number. An empty object is no policy.
func checkArchive(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	policy := members(value)
	if policy == nil {
		return "", ErrDocument.With(attrArchive)
	}
	for _, name := range slices.Sorted(maps.Keys(policy)) {
		if name != "MessageRetentionPeriod" {
			return "", ErrMember.With(attrArchive, name)
		}
	}
	days, ok := policy["MessageRetentionPeriod"]
	if !ok {
		return "", nil
	}
	digits, quoted := text(days)
	if !quoted {
		digits = string(days)
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < minArchive || n > maxArchive {
		return "", ErrArchiveDays.With(minArchive, maxArchive)
	}
	return `{"MessageRetentionPeriod":"` + strconv.Itoa(n) + `"}`, nil
}

// retentionOf reads what checkArchive gave; 0 without a policy.
func retentionOf(policy string) time.Duration {
	days, _ := text(members(policy)["MessageRetentionPeriod"])
	n, _ := strconv.Atoi(days)
	return time.Duration(n) * 24 * time.Hour
}

// retain notes from when on the archive holds all messages, when its policy
// becomes another one: what a shorter retention has dropped does not come back.
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

// ArchiveBegins is the time from which on messages are in the topic's archive:
// no earlier one can be replayed. ok is false if it keeps none.
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

// Archives yields the topics that keep an archive, in order.
func (s *State) Archives() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range s.order.Items {
			if t.Retention > 0 && !yield(t) {
				return
			}
		}
	}
}
