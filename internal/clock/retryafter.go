package clock

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longest bounds a Retry-After; no message lives that long.
const longest = 365 * 24 * time.Hour

// RetryAfter is the delay in a Retry-After header, from now; 0 if there is none, or an
// invalid one. A date is compared with the answer's own Date, if there is one, because clocks
// differ. Source: RFC 9110, 10.2.3.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(longest/time.Second) {
			return longest
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longest)
}
