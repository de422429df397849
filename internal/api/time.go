package api

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Time is a time in an operation's shapes, in epoch milliseconds. Each protocol encodes it in
// its own form.
type Time int64

// TimeOf is t, rounded down to the millisecond.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Std is the time as a time.Time, in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// ErrTime is the error for a time that is not between the years 1 and 9999.
var ErrTime = errors.New("api: not a timestamp")

const (
	firstTime = -62135596800
	endOfTime = 253402300800
)

// timeOfSeconds converts epoch seconds, rounded to the nearest millisecond.
func timeOfSeconds(seconds float64) (Time, error) {
	if !(seconds >= firstTime && seconds < endOfTime) {
		return 0, ErrTime
	}
	return Time(math.Round(seconds * 1000)), nil
}

// ParseTime parses a time in the form of ISO 8601 or HTTP, or epoch seconds.
func ParseTime(s string) (Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02", time.RFC1123} {
		if t, err := time.Parse(layout, s); err == nil {
			return TimeOf(t), nil
		}
	}
	seconds, err := ParseDouble(s)
	if err != nil {
		return 0, ErrTime
	}
	return timeOfSeconds(seconds)
}

// UnmarshalJSON decodes epoch seconds, or a text for ParseTime.
func (t *Time) UnmarshalJSON(text []byte) (err error) {
	if len(text) > 0 && text[0] == '"' {
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		*t, err = ParseTime(s)
		return err
	}
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return err
	}
	*t, err = timeOfSeconds(seconds)
	return err
}

// AppendSeconds appends the time in epoch seconds, always with a fraction, as AWS does
// (".0").
func (t Time) AppendSeconds(dst []byte) []byte {
	if t%1000 == 0 {
		return append(strconv.AppendInt(dst, int64(t)/1000, 10), ".0"...)
	}
	return strconv.AppendFloat(dst, float64(t)/1000, 'f', -1, 64)
}

// MarshalJSON encodes epoch seconds.
func (t Time) MarshalJSON() ([]byte, error) { return t.AppendSeconds(nil), nil }

// AppendISO appends the time in the form of ISO 8601, with milliseconds if there are any.
func (t Time) AppendISO(dst []byte) []byte {
	if t%1000 == 0 {
		return t.Std().AppendFormat(dst, "2006-01-02T15:04:05Z")
	}
	return t.Std().AppendFormat(dst, clock.ISO8601)
}
