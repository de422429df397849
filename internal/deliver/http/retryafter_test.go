package httpsender

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/deliver"
)

// longest is as much as counts.
const longest = 365 * 24 * time.Hour

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
		if got := deliver.RetryAfter(h, now); got != tt.want {
			t.Errorf("Retry-After %q, Date %q: %s, want %s", tt.value, tt.date, got, tt.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "Sun, 01 Mar 2026 10:00:00 GMT")
	f.Add("Sun, 01 Mar 2026 10:01:40 GMT", "")
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		if got := deliver.RetryAfter(h, time.Unix(0, 0)); got < 0 || got > longest {
			t.Errorf("%s", got)
		}
	})
}

func TestRetryAfterCountsOnSomeStatuses(t *testing.T) {
	for _, on := range []bool{true, false} {
		for status, want := range map[int]time.Duration{429: 7 * time.Second, 503: 7 * time.Second, 500: 0, 502: 0, 200: 0} {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
			})
			if !on {
				want = 0
			}
			got := send(t, newSender(t, Options{AllowPrivate: true, Retry429: true, RetryAfter: on}), server.URL, nil)
			if got.RetryAfter != want || got.Status != status {
				t.Errorf("status %d, on %v: %+v, want %s", status, on, got, want)
			}
		}
	}
}

func TestRoots(t *testing.T) {
	server, _ := serveTLS(t, func(http.ResponseWriter, *http.Request) {}, nil)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	roots, err := Roots(own)
	if err != nil {
		t.Fatal(err)
	}
	if got := send(t, newSender(t, Options{AllowPrivate: true, TLS: &tls.Config{RootCAs: roots}}), server.URL, nil); got.Class != deliver.Success {
		t.Errorf("with its certificate: %+v", got)
	}
	if got := send(t, newSender(t, Options{AllowPrivate: true}), server.URL, nil); !strings.HasPrefix(got.Detail, "TLS: ") {
		t.Errorf("without its certificate: %+v", got)
	}
	for _, bad := range []string{"", "nothing", strings.ReplaceAll(string(own), "CERTIFICATE", "PRIVATE KEY")} {
		if _, err := Roots([]byte(bad)); err == nil {
			t.Errorf("roots of %.20q", bad)
		}
	}
}
