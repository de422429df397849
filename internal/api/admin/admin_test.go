package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
)

// call sends body to h, and returns the status and the decoded answer.
func call(t *testing.T, h http.Handler, method, body string) (int, map[string]any) {
	t.Helper()
	return callContext(t.Context(), t, h, method, body)
}

func callContext(ctx context.Context, t *testing.T, h http.Handler, method, body string) (int, map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/_godwit/x", strings.NewReader(body)))
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("answer %q: %v", w.Body, err)
	}
	return w.Code, answer
}

var start = time.Date(2024, 2, 28, 0, 0, 0, 0, time.UTC)

func synced() {}

// What the timers have left for later is synced before the answer.
func TestClockSettles(t *testing.T) {
	v, ran := clock.NewVirtual(start), false
	v.AfterFunc(time.Hour, func() { ran = true })
	synced := false
	status, answer := call(t, admin.Clock(v, func() {
		if synced = true; !ran {
			t.Error("it is synced before the timers have run")
		}
	}), "POST", `{"advance":"1d"}`)
	if status != http.StatusOK || !synced {
		t.Errorf("status %d, answer %v; synced: %v", status, answer, synced)
	}
}

func TestClockAdvances(t *testing.T) {
	v := clock.NewVirtual(start)
	ran := 0
	for _, d := range []time.Duration{time.Hour, 22 * 24 * time.Hour, 24 * 24 * time.Hour} {
		v.AfterFunc(d, func() { ran++ })
	}
	status, answer := call(t, admin.Clock(v, synced), "POST", `{"advance":"23d"}`)
	want := map[string]any{"now": "2024-03-22T00:00:00Z", "ran": 2.0, "next": "2024-03-23T00:00:00Z"}
	if d := cmp.Diff(want, answer); d != "" || status != http.StatusOK || ran != 2 {
		t.Errorf("status %d, %d timers ran, answer (-want +got):\n%s", status, ran, d)
	}
	status, answer = call(t, admin.Clock(v, synced), "POST", `{"advance":"1d"}`)
	want = map[string]any{"now": "2024-03-23T00:00:00Z", "ran": 1.0, "next": nil}
	if d := cmp.Diff(want, answer); d != "" || status != http.StatusOK {
		t.Errorf("status %d, answer (-want +got):\n%s", status, d)
	}
}

func TestReadClock(t *testing.T) {
	v := clock.NewVirtual(start)
	status, answer := call(t, admin.ReadClock(v, v), "GET", "")
	if d := cmp.Diff(map[string]any{"clock": "virtual", "now": "2024-02-28T00:00:00Z", "next": nil}, answer); d != "" || status != http.StatusOK {
		t.Errorf("status %d, answer (-want +got):\n%s", status, d)
	}
	v.AfterFunc(time.Hour, func() {})
	_, answer = call(t, admin.ReadClock(v, v), "GET", "")
	if d := cmp.Diff(map[string]any{"clock": "virtual", "now": "2024-02-28T00:00:00Z", "next": "2024-02-28T01:00:00Z"}, answer); d != "" {
		t.Errorf("with a timer (-want +got):\n%s", d)
	}
	_, answer = call(t, admin.ReadClock(v, nil), "GET", "") // any clock can stand for the machine's
	if d := cmp.Diff(map[string]any{"clock": "system", "now": "2024-02-28T00:00:00Z", "next": nil}, answer); d != "" {
		t.Errorf("of a server on the system clock (-want +got):\n%s", d)
	}
}

type faults map[arn.ARN]string

func (f faults) FaultsInForce() map[arn.ARN]string { return f }

func TestListFaults(t *testing.T) {
	status, answer := call(t, admin.ListFaults(faults{}), "GET", "")
	if d := cmp.Diff(map[string]any{"faults": []any{}}, answer); d != "" || status != http.StatusOK {
		t.Errorf("status %d, answer (-want +got):\n%s", status, d)
	}
	in := faults{}
	for _, name := range []string{"b", "a", "*"} {
		in[arn.ARN{Service: "sqs", Region: "r", Account: "1", Resource: name}] = "throttled"
	}
	_, answer = call(t, admin.ListFaults(in), "GET", "")
	one := func(name string) any {
		return map[string]any{"arn": "arn:aws:sqs:r:1:" + name, "fault": "throttled"}
	}
	if d := cmp.Diff(map[string]any{"faults": []any{one("*"), one("a"), one("b")}}, answer); d != "" {
		t.Errorf("answer (-want +got):\n%s", d)
	}
	if status, _ = call(t, admin.ListFaults(nil), "GET", ""); status != http.StatusForbidden {
		t.Errorf("outside of development: %d", status)
	}
}

// The index has what is served, and nothing else; a browser gets a page.
func TestIndex(t *testing.T) {
	h := admin.Index("1.2", []string{"GET /_godwit/clock", "GET /_godwit/queue", "POST /_godwit/sms/receive", "GET /_godwit/new"})
	status, answer := call(t, h, "GET", "")
	var paths []string
	for _, p := range answer["paths"].([]any) {
		e := p.(map[string]any)
		paths = append(paths, fmt.Sprint(e["method"], " ", e["path"], " ", e["does"] != "", " ", e["successor"]))
	}
	want := []string{
		"GET /_godwit/clock true /_godwit/v1/clock", "GET /_godwit/queue true /_godwit/v1/queue", "POST /_godwit/sms/receive true <nil>", "GET /_godwit/new false <nil>",
	}
	if d := cmp.Diff(want, paths); d != "" || status != http.StatusOK || answer["version"] != "1.2" {
		t.Errorf("status %d, answer %v (-want +got):\n%s", status, answer, d)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/_godwit/", nil)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	page := w.Body.String()
	if kind := w.Header().Get("Content-Type"); kind != "text/html; charset=utf-8" ||
		!strings.Contains(page, `<a href="/_godwit/clock">`) || strings.Contains(page, `<a href="/_godwit/queue">`) || !strings.Contains(page, "/_godwit/queue") ||
		strings.Contains(page, `<a href="/_godwit/sms/receive">`) || !strings.Contains(page, "replaced by <code>/_godwit/v1/clock</code>") {
		t.Errorf("%s: %s", kind, page)
	}
}

func TestClockRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		virtual    bool
		status     int
		want       string
	}{
		{"system clock", `{"advance":"1d"}`, false, http.StatusConflict, "--clock virtual"},
		{"no duration", `{"advance":"tomorrow"}`, true, http.StatusBadRequest, "want a duration"},
		{"nothing to do", `{}`, true, http.StatusBadRequest, "want a duration"},
		{"negative", `{"advance":"-1h"}`, true, http.StatusBadRequest, "want a duration"},
		{"unknown member", `{"advance":"1d","now":1}`, true, http.StatusBadRequest, "now"},
		{"no JSON", `advance=1d`, true, http.StatusBadRequest, "cannot be read"},
		{"two objects", `{"advance":"1d"}{}`, true, http.StatusBadRequest, "follows"},
		{"too large", `{"advance":"` + strings.Repeat("1", 70_000) + `d"}`, true, http.StatusRequestEntityTooLarge, "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v *clock.Virtual
			if tt.virtual {
				v = clock.NewVirtual(start)
			}
			status, answer := call(t, admin.Clock(v, synced), "POST", tt.body)
			if text, _ := answer["error"].(string); status != tt.status || !strings.Contains(text, tt.want) {
				t.Errorf("status %d, error %q; want %d with %q", status, text, tt.status, tt.want)
			}
			if v != nil && !v.Now().Equal(start) {
				t.Error("a refused advance moved the clock")
			}
		})
	}
}

func TestClockTellsWhyItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		v.AfterFunc(time.Minute, func() { v.Hold() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		status, answer := callContext(ctx, t, admin.Clock(v, synced), "POST", `{"advance":"1h"}`)
		if text, _ := answer["error"].(string); status != http.StatusServiceUnavailable || !strings.Contains(text, "1 holds") {
			t.Errorf("status %d, error %q", status, text)
		}
		if answer["now"] != "2024-02-28T00:01:00Z" || answer["ran"] != 1.0 {
			t.Errorf("answer %v does not tell how far the clock got", answer)
		}
	})
}

func TestHealth(t *testing.T) {
	var full error
	h := admin.Health("1.2.3",
		admin.Check{Name: "shards", Failing: func() error { return nil }},
		admin.Check{Name: "storage", Failing: func() error { return full }})

	status, answer := call(t, h, "GET", "")
	if d := cmp.Diff(map[string]any{"status": "ok", "version": "1.2.3"}, answer); d != "" || status != http.StatusOK {
		t.Errorf("status %d, answer (-want +got):\n%s", status, d)
	}

	full = errors.New("2 MB are free, sends are refused")
	status, answer = call(t, h, "GET", "")
	want := map[string]any{
		"status": "failing", "version": "1.2.3",
		"problems": map[string]any{"storage": "2 MB are free, sends are refused"},
	}
	if d := cmp.Diff(want, answer); d != "" || status != http.StatusServiceUnavailable {
		t.Errorf("status %d, answer (-want +got):\n%s", status, d)
	}
}

func TestReady(t *testing.T) {
	draining := make(chan struct{})
	h := admin.Ready(draining)
	if status, answer := call(t, h, "GET", ""); status != http.StatusOK || answer["ready"] != true {
		t.Errorf("status %d, answer %v", status, answer)
	}
	close(draining)
	if status, answer := call(t, h, "GET", ""); status != http.StatusServiceUnavailable || answer["ready"] != false {
		t.Errorf("while draining: status %d, answer %v", status, answer)
	}
}

func TestNotFound(t *testing.T) {
	if status, answer := call(t, admin.NotFound(), "GET", ""); status != http.StatusNotFound || answer["error"] == "" {
		t.Errorf("status %d, answer %v", status, answer)
	}
}
