package rest

import (
	"encoding/base64"
	"strings"
	"time"
)

// After parses the cursor of a list by name.
func After(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	name, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", BadRequest("cursor: it is none of this list")
	}
	return string(name), nil
}

// Next is the cursor after a name; nil: there are no more.
func Next(name string, more bool) *string {
	if !more {
		return nil
	}
	cursor := base64.RawURLEncoding.EncodeToString([]byte(name))
	return &cursor
}

// Matches reports whether a name contains a text, case-insensitive.
func Matches(name, search string) bool {
	return search == "" || strings.Contains(strings.ToLower(name), strings.ToLower(search))
}

// Moment is a time in UTC, to the millisecond; nil for the zero time.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// Optional is nil for "".
func Optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
