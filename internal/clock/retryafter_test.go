package clock

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const date = "Sun, 01 Mar 2026 10:00:00 GMT" // by the endpoint's clock, which is slow
	for _, tt := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", date, 0},
		{"0", date, 0},
		{"120", date, 2 * time.Minute},
		{" 120 ", "", 2 * time.Minute},
		{"-1", "", 0},
		{"+1", "", 0},
		{"1.5", "", 0},
		{"soon", "", 0},
		{"99999999999999999999999", "", longest},
		{"9223372036", "", longest},
		{"Sun, 01 Mar 2026 10:01:40 GMT", date, 100 * time.Second},
		{"Sun, 01 Mar 2026 12:01:40 GMT", "", 100 * time.Second},
		{"Sun, 01 Mar 2026 12:01:40 GMT", "yesterday", 100 * time.Second},
		{"Sunday, 01-Mar-26 12:01:40 GMT", "", 100 * time.Second},
		{"Sun Mar  1 12:01:40 2026", "", 100 * time.Second},
		{"Sun, 01 Mar 2026 09:00:00 GMT", date, 0}, // it is over
		{"Sun, 01 Mar 9026 09:00:00 GMT", date, longest},
	} {
		h := http.Header{}
		h.Set("Retry-After", tt.value)
		h.Set("Date", tt.date)
		if got := RetryAfter(h, now); got != tt.want {
			t.Errorf("Retry-After %q, Date %q: %s, want %s", tt.value, tt.date, got, tt.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "Sun, 01 Mar 2026 10:00:00 GMT")
	f.Add("Sun, 01 Mar 2026 10:01:40 GMT", "")
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		if got := RetryAfter(h, time.Unix(0, 0)); got < 0 || got > longest {
			t.Errorf("%s", got)
		}
	})
}
