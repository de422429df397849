package prom

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

// scrape is what Prometheus reads of Godwit's own, without comments.
func scrape(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatal(w.Code, err, string(body))
	}
	samples := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(line, "godwit_") {
			samples[name+"}"] = value
		}
	}
	return samples
}

func sent(name string, n int) shard.QueueEvent {
	return shard.QueueEvent{Queue: arn.Queue("r", "a", name), Kind: shard.MessagesSent, Messages: n, Bytes: 10 * n}
}

// queues tell m of their events.
func queues(m *Metrics) *monitor.Queues { return monitor.NewQueues(nil, m.Queue, func() {}) }

// Beyond the bound, queues and topics are counted as one; what is gone makes room.
func TestSeriesAreBounded(t *testing.T) {
	errs := map[string]error{}
	m := New(Options{Series: 2, Gauges: Gauges{
		Queue: func(a arn.ARN) (shard.QueueGauges, error) {
			return shard.QueueGauges{Counts: queue.Counts{Visible: 7}, OldestAge: time.Minute}, errs[a.Resource]
		},
		Topic: func(a arn.ARN) bool { return errs[a.Resource] == nil },
	}})
	q := queues(m)
	for i := range 5 {
		q.Add(sent(fmt.Sprint("q", i), i+1))
		m.Published(arn.Topic("r", "a", fmt.Sprint("t", i)), 1, 5, 0, 0)
	}
	check := func(got map[string]string, want map[string]string) {
		t.Helper()
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s is %q, want %q", name, got[name], value)
			}
		}
	}
	const sentOf = `godwit_sqs_messages_sent_total{account="%s",queue="%s",region="%s"}`
	got := scrape(t, m)
	check(got, map[string]string{
		fmt.Sprintf(sentOf, "a", "q0", "r"):                                        "1",
		fmt.Sprintf(sentOf, "a", "q1", "r"):                                        "2",
		fmt.Sprintf(sentOf, "a", "q2", "r"):                                        "",
		fmt.Sprintf(sentOf, "", "other", ""):                                       "12",
		`godwit_sqs_messages{account="a",queue="q0",region="r",state="visible"}`:   "7",
		`godwit_sqs_oldest_message_age_seconds{account="a",queue="q0",region="r"}`: "60",
		`godwit_sns_messages_published_total{account="",region="",topic="other"}`:  "3",
	})
	errs["q0"], errs["q1"], errs["t0"] = fault.New(fault.QueueDoesNotExist, ""), fault.New(fault.Unavailable, ""), fault.New(fault.NotFound, "")
	scrape(t, m)
	q.Add(sent("q4", 1))
	m.Published(arn.Topic("r", "a", "t4"), 1, 5, 0, 0)
	got = scrape(t, m)
	check(got, map[string]string{
		fmt.Sprintf(sentOf, "a", "q0", "r"):                                       "",
		fmt.Sprintf(sentOf, "a", "q1", "r"):                                       "2",
		`godwit_sqs_messages{account="a",queue="q1",region="r",state="visible"}`:  "", // its owner does not tell
		fmt.Sprintf(sentOf, "a", "q4", "r"):                                       "1",
		`godwit_sns_messages_published_total{account="a",region="r",topic="t0"}`:  "",
		`godwit_sns_messages_published_total{account="a",region="r",topic="t1"}`:  "1",
		`godwit_sns_messages_published_total{account="a",region="r",topic="t4"}`:  "1",
		`godwit_sns_messages_published_total{account="",region="",topic="other"}`: "3",
	})
	if m.queues.other.Left.Load() {
		t.Error("while there is no room, those who are counted as other ask for it")
	}
	errs["q0"], errs["q4"] = nil, fault.New(fault.QueueDoesNotExist, "")
	q.Add(sent("q0", 1)) // there is no room for it
	scrape(t, m)
	q.Add(sent("q0", 1))
	q.Add(sent("q0", 2))
	q.Add(sent("q4", 1))
	check(scrape(t, m), map[string]string{
		fmt.Sprintf(sentOf, "a", "q0", "r"):  "3",
		fmt.Sprintf(sentOf, "a", "q4", "r"):  "",
		fmt.Sprintf(sentOf, "", "other", ""): "14",
	})
	delete(errs, "q4")
	errs["q0"] = fault.New(fault.QueueDoesNotExist, "")
	scrape(t, m)
	delete(errs, "q0")
	q.Add(sent("q0", 1)) // it was made again
	check(scrape(t, m), map[string]string{fmt.Sprintf(sentOf, "a", "q0", "r"): "1"})
}

// Queues that hold messages have series from the start, up to half of the bound, without being
// used: else nobody would be told of a queue that stalls once the process was started again.
func TestHoldingQueuesHaveSeries(t *testing.T) {
	m := New(Options{Series: 3, Gauges: Gauges{Queue: func(arn.ARN) (shard.QueueGauges, error) {
		return shard.QueueGauges{Counts: queue.Counts{Visible: 7}, OldestAge: time.Hour}, nil
	}}})
	m.Resume([]arn.ARN{arn.Queue("r", "a", "q0"), arn.Queue("r", "a", "q1"), arn.Queue("r", "a", "q2")})
	queues(m).Add(sent("used", 1))
	got := scrape(t, m)
	for queue, want := range map[string]string{"q0": "3600", "q1": "3600", "q2": "", "used": "3600"} {
		if age := got[fmt.Sprintf(`godwit_sqs_oldest_message_age_seconds{account="a",queue="%s",region="r"}`, queue)]; age != want {
			t.Errorf("the age of %s is %q, want %q", queue, age, want)
		}
	}
	if deleted := got[`godwit_sqs_messages_deleted_total{account="a",queue="q0",region="r"}`]; deleted != "0" {
		t.Errorf("the alert needs how many were deleted, and has %q", deleted)
	}
}

// Functions are bounded likewise, and have histograms of their own.
func TestFunctions(t *testing.T) {
	errs := map[string]error{}
	m := New(Options{Series: 2, Gauges: Gauges{Function: func(fn arn.ARN) (FunctionGauges, error) {
		return FunctionGauges{Running: 3, Due: 1, Waiting: 2}, errs[fn.FunctionName()]
	}}})
	for i := range 4 {
		fn := arn.Function("r", "a", fmt.Sprint("f", i))
		m.Function(fn, "Invocations", 1)
		m.Function(fn, "ConcurrentExecutions", 7)
		for _, ms := range []float64{1, 2, 700, 2_000_000} {
			m.Function(fn, "Duration", ms)
		}
	}
	got := scrape(t, m)
	of := func(name, fn, more string) string {
		return fmt.Sprintf(`godwit_lambda_%s{account="a",function="%s"%s,region="r"}`, name, fn, more)
	}
	for name, want := range map[string]string{
		of("invocations_total", "f0", ""): "1", of("invocations_total", "f2", ""): "",
		`godwit_lambda_invocations_total{account="",function="other",region=""}`: "2",
		of("running", "f1", ""): "3",
		`godwit_lambda_async_events{account="a",function="f0",region="r",state="waiting"}`:       "2",
		`godwit_lambda_duration_seconds_bucket{account="a",function="f0",region="r",le="0.001"}`: "1",
		`godwit_lambda_duration_seconds_bucket{account="a",function="f0",region="r",le="0.5"}`:   "2",
		`godwit_lambda_duration_seconds_bucket{account="a",function="f0",region="r",le="1"}`:     "3",
		`godwit_lambda_duration_seconds_bucket{account="a",function="f0",region="r",le="+Inf"}`:  "4",
		of("duration_seconds_sum", "f0", ""):                                                     "2000.703",
		`godwit_lambda_duration_seconds_count{account="",function="other",region=""}`:            "8",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	errs["f0"] = fault.New(fault.ResourceNotFound, "")
	scrape(t, m)
	m.Function(arn.Function("r", "a", "f3"), "Errors", 1)
	if got = scrape(t, m); got[of("errors_total", "f3", "")] != "1" || got[of("invocations_total", "f0", "")] != "" {
		t.Error("a function that is gone makes no room")
	}
}

// Once anything happens over a protocol, all that may come of it is there, from 0 on:
// a rate does not see how a counter appears.
func TestOutcomesBeginAtZero(t *testing.T) {
	m := New(Options{Series: 1})
	m.Attempt(arn.Topic("r", "a", "t"), topic.HTTP, Success, time.Millisecond)
	got := scrape(t, m)
	of := func(name, outcome, protocol string) string {
		return fmt.Sprintf(`godwit_sns_%s{account="a",outcome="%s",protocol="%s",region="r",topic="t"}`, name, outcome, protocol)
	}
	for name, want := range map[string]string{
		of("delivery_attempts_total", "success", "http"): "1", of("delivery_attempts_total", "client-error", "http"): "0",
		of("delivery_attempts_total", "server-error", "http"): "0", of("deliveries_total", "delivered", "http"): "0",
		of("deliveries_total", "dead-letter", "http"): "0", of("deliveries_total", "dropped", "http"): "0",
		of("deliveries_total", "dropped", "sqs"): "",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// A queue that is FIFO has no noisy groups; what is reported of the server itself has no
// labels.
func TestFIFOAndServer(t *testing.T) {
	m := New(Options{
		Series: 2, Low: func() bool { return true },
		Gauges: Gauges{Logs: func() (bytes, dropped int64) { return 5, 6 }, Queue: func(arn.ARN) (shard.QueueGauges, error) {
			return shard.QueueGauges{Counts: queue.Counts{Visible: 7}}, nil
		}},
	})
	q := queues(m)
	q.Add(sent("q", 1))
	q.Add(sent("q.fifo", 1))
	got := scrape(t, m)
	for name, want := range map[string]string{
		`godwit_sqs_messages{account="a",queue="q.fifo",region="r",state="visible"}`:       "7",
		`godwit_sqs_noisy_groups{account="a",queue="q",region="r"}`:                        "0",
		`godwit_sqs_noisy_groups{account="a",queue="q.fifo",region="r"}`:                   "",
		`godwit_sqs_quiet_messages{account="a",queue="q.fifo",region="r",state="visible"}`: "",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, sample := range []string{"godwit_disk_low 1", "godwit_logs_bytes 5", "godwit_logs_dropped_total 6"} {
		if !strings.Contains(w.Body.String(), "\n"+sample+"\n") {
			t.Errorf("there is no sample %s", sample)
		}
	}
}

// What happens often allocates nothing.
func TestNoAllocation(t *testing.T) {
	m := New(Options{Series: 1})
	e, name := sent("q", 1), arn.Topic("r", "a", "t")
	fn := arn.Function("r", "a", "f")
	q, requests := queues(m), m.Requests("sqs", "SendMessage")
	q.Add(e) // which takes the only place
	for what, f := range map[string]func(){
		"a queue's event":      func() { q.Add(e) },
		"a publish":            func() { m.Published(name, 1, 10, 1, 1) },
		"an attempt":           func() { m.Attempt(name, topic.HTTP, ServerError, time.Millisecond) },
		"the end of one":       func() { m.Ended(name, topic.HTTP, Dropped) },
		"a request":            func() { requests.Add("", time.Millisecond) },
		"a request that fails": func() { requests.Add("x", time.Millisecond) },
		"a sync":               func() { m.Synced(time.Millisecond) },
		"an invocation":        func() { m.Function(fn, "Invocations", 1) },
		"its duration":         func() { m.Function(fn, "Duration", 1.5) },
		"a queue of the rest":  func() { q.Add(shard.QueueEvent{Queue: arn.Queue("r", "a", "x"), Kind: shard.MessagesReceived}) },
	} {
		f()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
	got := scrape(t, m)
	for _, name := range []string{
		`godwit_sns_delivery_attempts_total{account="a",outcome="server-error",protocol="http",region="r",topic="t"}`,
		`godwit_sns_deliveries_total{account="a",outcome="dropped",protocol="http",region="r",topic="t"}`,
		`godwit_sns_deliveries_total{account="a",outcome="delivered",protocol="sqs",region="r",topic="t"}`,
		`godwit_requests_total{code="",operation="SendMessage",service="sqs"}`,
		`godwit_requests_total{code="x",operation="SendMessage",service="sqs"}`,
		`godwit_sqs_empty_receives_total{account="",queue="other",region=""}`,
	} {
		if got[name] != "102" { // once before, once by AllocsPerRun itself
			t.Errorf("%s is %q", name, got[name])
		}
	}
}

func BenchmarkQueue(b *testing.B) {
	m := New(Options{Series: 1000})
	q, e := queues(m), sent("q", 1)
	e.Slot = &shard.Slot{}
	b.ReportAllocs()
	for b.Loop() {
		q.Add(e)
	}
}

// A deleted source leaves no series, and takes no place of those that there are.
func TestPostsToDeletedSources(t *testing.T) {
	m := New(Options{Posts: []string{"signature"}})
	there := map[string]bool{}
	m.Watch(Gauges{Source: func(name string) bool { return there[name] }})
	for i := range maxPosted {
		name := fmt.Sprint("s", i)
		there[name] = true
		m.Posted(name, "")
	}
	m.Posted("", "signature")
	clear(there)
	there["new"] = true
	m.Posted("new", "signature")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, want := range []string{`godwit_ingest_refused_total{reason="signature",source="new"} 1`, `godwit_ingest_refused_total{reason="signature",source=""} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, `source="s1"`) {
		t.Error("a deleted source has series")
	}
}

// All that is collected is described: a registry that checks it refuses the rest.
func TestDescribed(t *testing.T) {
	m := New(Options{Posts: []string{"signature"}})
	m.Watch(Gauges{
		Network: func() FunctionNetwork { return FunctionNetwork{Refused: map[string]int64{"limit": 1}} },
		Jobs:    func() map[string]int { return map[string]int{"retry": 1} },
		Source:  func(string) bool { return true },
	})
	m.JobStepped("retry", 1, 1)
	m.JobEnded("retry", "completed")
	m.Posted("orders", "")
	m.Posted("orders", "signature")
	strict := prometheus.NewPedanticRegistry()
	strict.MustRegister(m)
	if _, err := strict.Gather(); err != nil {
		t.Error(err)
	}
}
