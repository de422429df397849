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
