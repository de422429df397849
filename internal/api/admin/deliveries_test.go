package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

type lister struct {
	limit int
	infos []shard.DeliveryInfo
	err   error
}

const subscriptionName = "arn:aws:sns:us-east-1:000000000000:t:6d6b8f6e-0000-4000-8000-000000000001"

func (l *lister) Deliveries(_ context.Context, sub arn.ARN, limit int) ([]shard.DeliveryInfo, error) {
	if sub.String() != subscriptionName {
		return nil, fault.New(fault.NotFound, "Subscription does not exist")
	}
	l.limit = limit
	return l.infos, l.err
}

func get(t *testing.T, h http.Handler, query string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_godwit/deliveries?"+query, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestDeliveries(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 0, 0, 5_000_000, time.UTC)
	l := &lister{infos: []shard.DeliveryInfo{
		{
			MessageID: "m1", State: shard.DeliveryPending, Attempts: 2, PublishedAt: at, NextAttemptAt: at.Add(time.Minute),
			History: []shard.Attempt{
				{At: at, Outcome: "server-error", Status: 503, Detail: "HTTP 503 Service Unavailable", Latency: 1500 * time.Microsecond},
				{At: at.Add(time.Second), Outcome: "server-error", Detail: "connection refused"},
			},
		},
		{MessageID: "m2", State: shard.DeliveryDeadLetter, PublishedAt: at, FinishedAt: at.Add(time.Hour), Reason: "expired"},
	}}
	status, got := get(t, admin.Deliveries(l), "subscription="+subscriptionName)
	want := `{"deliveries":[` +
		`{"messageId":"m1","state":"pending","attempt":2,"nextAttemptAt":"2024-02-29T12:01:00.005Z","publishedAt":"2024-02-29T12:00:00.005Z","finishedAt":null,"attempts":[` +
		`{"at":"2024-02-29T12:00:00.005Z","outcome":"server-error","status":503,"latencyMs":1.5,"detail":"HTTP 503 Service Unavailable"},` +
		`{"at":"2024-02-29T12:00:01.005Z","outcome":"server-error","status":0,"latencyMs":0,"detail":"connection refused"}]},` +
		`{"messageId":"m2","state":"dead-letter","attempt":0,"nextAttemptAt":null,"publishedAt":"2024-02-29T12:00:00.005Z","finishedAt":"2024-02-29T13:00:00.005Z","reason":"expired","attempts":[]}]}`
	if d := cmp.Diff(want, got); d != "" || status != http.StatusOK {
		t.Errorf("status %d (-want +got):\n%s", status, d)
	}
	if l.limit != 100 {
		t.Errorf("limit %d by default", l.limit)
	}
	l.infos = nil
	if status, got := get(t, admin.Deliveries(l), "limit=1000&subscription="+subscriptionName); status != 200 || got != `{"deliveries":[]}` || l.limit != 1000 {
		t.Errorf("status %d, limit %d, %s", status, l.limit, got)
	}
}

func TestDeliveriesRefuses(t *testing.T) {
	l := &lister{}
	for query, want := range map[string]int{
		"":                                       400,
		"subscription=x":                         400,
		"subscription=arn:aws:sns:us-east-1:0:t": 400,
		"subscription=arn:aws:sns:us-east-1:0:t:gone":       404,
		"subscription=" + subscriptionName + "&limit=0":     400,
		"subscription=" + subscriptionName + "&limit=1001":  400,
		"subscription=" + subscriptionName + "&limit=three": 400,
	} {
		status, got := get(t, admin.Deliveries(l), query)
		var answer struct{ Error string }
		if err := json.Unmarshal([]byte(got), &answer); err != nil || status != want || answer.Error == "" {
			t.Errorf("%q: status %d, %s; want %d", query, status, got, want)
		}
	}
	l.err = errors.New("secret path of the store")
	if status, got := get(t, admin.Deliveries(l), "subscription="+subscriptionName); status != 500 || strings.Contains(got, "secret") {
		t.Errorf("status %d, %s", status, got)
	}
}

type setter map[string]string

func (s setter) SetFault(a arn.ARN, f string) error {
	s[a.String()] = f
	return nil
}

func TestFaults(t *testing.T) {
	const name = "arn:aws:sqs:us-east-1:000000000000:q"
	s := setter{}
	faults := func(s admin.FaultSetter) http.Handler {
		return admin.Faults(s, development.ParseFault, func(_ context.Context, _ arn.ARN, fault string) string {
			return map[string]string{"throttled": "there is none"}[fault]
		})
	}
	for _, f := range []string{"unavailable", "throttled", "none"} {
		status, answer := call(t, faults(s), "POST", `{"arn":"`+name+`","fault":"`+f+`"}`)
		if status != 200 || s[name] != f || answer["fault"] != f || answer["arn"] != name {
			t.Errorf("%s: status %d, answer %v, set %v", f, status, answer, s)
		}
		if note, said := answer["note"]; said != (f == "throttled") || said && note != "there is none" {
			t.Errorf("%s: it is noted %q", f, note)
		}
	}
	for _, f := range []string{"unavailable", "throttled", "internal", "denied", "none"} {
		const all = "arn:aws:sns:us-east-1:000000000000:*"
		status, _ := call(t, faults(s), "POST", `{"arn":"`+all+`","fault":"`+f+`"}`)
		if status != 200 || s[all] != f {
			t.Errorf("%s of a service: status %d, set %v", f, status, s)
		}
	}
	clear(s)
	for _, body := range []string{
		``, `{}`, `{"arn":"q","fault":"none"}`, `{"arn":"` + name + `"}`, `{"arn":"` + name + `","fault":"slow"}`,
		`{"arn":"arn:aws:sns:us-east-1:0:t","fault":"none"}`, `{"arn":"` + name + `","fault":"none","x":1}`,
		`{"arn":"` + name + `","fault":"internal"}`, `{"arn":"` + name + `","fault":"denied"}`,
		`{"arn":"arn:aws:kms:us-east-1:000000000000:*","fault":"none"}`,
	} {
		if status, answer := call(t, faults(s), "POST", body); status != 400 || answer["error"] == "" || len(s) != 0 {
			t.Errorf("%s: status %d, answer %v", body, status, answer)
		}
	}
	if status, _ := call(t, faults(nil), "POST", `{"arn":"`+name+`","fault":"none"}`); status != 403 {
		t.Errorf("outside development: status %d", status)
	}
}
