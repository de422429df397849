package settings

import (
	"errors"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/fault"
)

// An archive policy is of 1 to 365 days, as a string or a number, or none.
func TestArchive(t *testing.T) {
	for _, tt := range []struct {
		document string
		days     int
		refused  *fault.Rule
	}{
		{"", 0, nil},
		{"{}", 0, nil},
		{`{"MessageRetentionPeriod":"1"}`, 1, nil},
		{`{"MessageRetentionPeriod":365}`, 365, nil},
		{`{"MessageRetentionPeriod":"0"}`, 0, ErrArchiveDays},
		{`{"MessageRetentionPeriod":366}`, 0, ErrArchiveDays},
		{`{"MessageRetentionPeriod":"1.5"}`, 0, ErrArchiveDays},
		{`{"MessageRetentionPeriod":null}`, 0, ErrArchiveDays},
		{`{"MessageRetentionPeriod":"1","Another":"2"}`, 0, ErrMember},
		{`{"MessageRetentionPeriod":"1"} {}`, 0, ErrDocument},
		{`{"MessageRetentionPeriod":"1"`, 0, ErrDocument},
		{"null", 0, ErrDocument},
		{"[]", 0, ErrDocument},
	} {
		policy, err := checkArchive(tt.document)
		if tt.refused == nil && err != nil || tt.refused != nil && !errors.Is(err, tt.refused) {
			t.Errorf("%s: %v", tt.document, err)
		}
		if days := Retention(policy); days != time.Duration(tt.days)*24*time.Hour {
			t.Errorf("%s: %v", tt.document, days)
		}
	}
}

// A replay policy is an object of at most 4,096 bytes; an empty one is none.
func TestReplayDocuments(t *testing.T) {
	const policy = `{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00Z"}`
	for document, want := range map[string]struct {
		there   bool
		refused *fault.Rule
	}{
		"{}": {false, nil}, "null": {false, ErrDocument}, "": {false, ErrDocument}, policy: {true, nil},
		policy + strings.Repeat(" ", 4096-len(policy)): {true, nil},
		policy + strings.Repeat(" ", 4097-len(policy)): {false, ErrDocument},
	} {
		p, err := ParseReplay(document)
		if (p != nil) != want.there || want.refused == nil && err != nil || want.refused != nil && !errors.Is(err, want.refused) {
			t.Errorf("%.80s: %+v, %v", document, p, err)
		}
	}
}
