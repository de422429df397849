package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// The range of an archive's retention, in days.
const (
	minArchive = 1
	maxArchive = 365
)

// checkArchive accepts the number of days as a string, as AWS documents it, or as a number. An
// empty object is no policy.
func checkArchive(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	policy := members(value)
	if policy == nil {
		return "", ErrDocument.With(Archive)
	}
	for _, name := range slices.Sorted(maps.Keys(policy)) {
		if name != "MessageRetentionPeriod" {
			return "", ErrMember.With(Archive, name)
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

// Retention is the retention of an archive policy that Check has returned; 0 without a policy.
func Retention(policy string) time.Duration {
	days, _ := text(members(policy)["MessageRetentionPeriod"])
	n, _ := strconv.Atoi(days)
	return time.Duration(n) * 24 * time.Hour
}

// members parses a JSON object; nil if document is none.
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

// text parses a JSON string; ok is false for anything else.
func text(value json.RawMessage) (s string, ok bool) {
	ok = len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil
	return s, ok
}
