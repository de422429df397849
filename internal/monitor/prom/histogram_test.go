package prom

import (
	"slices"
	"testing"
	"time"
)

// A time is counted in the first bucket whose bound is not below it.
func TestBuckets(t *testing.T) {
	for _, b := range []*buckets{requestBuckets, attemptBuckets, syncBuckets, functionBuckets, newBuckets(), newBuckets(1e-9, 2e-9, 3e-9)} {
		if len(b.seconds) > maxBounds {
			t.Fatalf("%v are too many", b.seconds)
		}
		times := []time.Duration{-time.Second, 0, 1, 2, 3, time.Hour, 1 << 62, 1<<63 - 1}
		for digits := range 62 {
			times = append(times, 1<<digits-1, 1<<digits, 1<<digits+1)
		}
		for _, bound := range b.bounds[:len(b.seconds)] {
			times = append(times, bound-1, bound, bound+1)
		}
		for _, took := range times {
			h := histogram{}
			h.observe(b, took)
			want, _ := slices.BinarySearch(b.bounds[:len(b.seconds)], took)
			if h.counts[want].Load() != 1 || h.total() != 1 {
				t.Errorf("%v: %v is counted in %v, want %d", b.bounds, took, &h.counts, want)
			}
		}
	}
}

// Requests are counted by their results, and timed together.
func TestRequests(t *testing.T) {
	m := New(Options{})
	m.Requests("sqs", "DeleteMessage") // of which there are none
	for code, all := range map[string][]time.Duration{"": {time.Millisecond, 2 * time.Millisecond}, "x": {1500 * time.Nanosecond, time.Minute}, "y": {0}} {
		for _, took := range all {
			m.Requests("sqs", "SendMessage").Add(code, took)
		}
	}
	m.Requests("", "").Add("z", time.Second)
	got := scrape(t, m)
	for name, want := range map[string]string{
		`godwit_requests_total{code="",operation="SendMessage",service="sqs"}`:                      "2",
		`godwit_requests_total{code="x",operation="SendMessage",service="sqs"}`:                     "2",
		`godwit_requests_total{code="y",operation="SendMessage",service="sqs"}`:                     "1",
		`godwit_requests_total{code="z",operation="",service=""}`:                                   "1",
		`godwit_requests_total{code="",operation="",service=""}`:                                    "",
		`godwit_requests_total{code="",operation="DeleteMessage",service="sqs"}`:                    "",
		`godwit_request_duration_seconds_count{operation="DeleteMessage",service="sqs"}`:            "",
		`godwit_request_duration_seconds_bucket{operation="SendMessage",service="sqs",le="0.0005"}`: "2",
		`godwit_request_duration_seconds_bucket{operation="SendMessage",service="sqs",le="0.001"}`:  "3",
		`godwit_request_duration_seconds_bucket{operation="SendMessage",service="sqs",le="0.0025"}`: "4",
		`godwit_request_duration_seconds_bucket{operation="SendMessage",service="sqs",le="30"}`:     "4",
		`godwit_request_duration_seconds_bucket{operation="SendMessage",service="sqs",le="+Inf"}`:   "5",
		`godwit_request_duration_seconds_count{operation="SendMessage",service="sqs"}`:              "5",
		`godwit_request_duration_seconds_sum{operation="SendMessage",service="sqs"}`:                "60.003002",
		`godwit_request_duration_seconds_count{operation="",service=""}`:                            "1",
		`godwit_delivery_attempt_duration_seconds_bucket{protocol="http",le="0.005"}`:               "0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
