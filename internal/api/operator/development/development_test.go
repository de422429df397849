package development_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

func status(err error) int {
	refused, ok := errors.AsType[*rest.Refusal](err)
	if !ok {
		return 0
	}
	return refused.Status
}

// A virtual clock goes from timer to timer, and what they left is durable when that is reported.
func TestClock(t *testing.T) {
	c, synced, ran := clock.NewVirtual(shardtest.Start), 0, 0
	d := development.New(development.Options{Clock: c, Virtual: c, Sync: func() { synced++ }})
	c.AfterFunc(time.Hour, func() { ran++ })
	c.AfterFunc(30*time.Hour, func() { ran++ })
	now, err := d.GetClock(t.Context(), nil, nil)
	if err != nil || now.Clock != "virtual" || !now.Now.Equal(shardtest.Start) || now.Next == nil || !now.Next.Equal(shardtest.Start.Add(time.Hour)) {
		t.Errorf("the clock is %+v, %v", now, err)
	}
	got, err := d.AdvanceClock(t.Context(), nil, &development.AdvanceClock{Advance: "1d"})
	if err != nil || got.Ran != 1 || ran != 1 || synced != 1 || !got.Now.Equal(shardtest.Start.Add(24*time.Hour)) || !got.Next.Equal(shardtest.Start.Add(30*time.Hour)) {
		t.Errorf("a day later: %+v, %v; %d ran, %d synced", got, err, ran, synced)
	}
	for _, by := range []string{"", "soon", "-1h"} {
		if _, err := d.AdvanceClock(t.Context(), nil, &development.AdvanceClock{Advance: by}); status(err) != http.StatusBadRequest {
			t.Errorf("by %q: %v", by, err)
		}
	}
	system := development.New(development.Options{Clock: clock.System})
	if now, err := system.GetClock(t.Context(), nil, nil); err != nil || now.Clock != "system" || now.Next != nil {
		t.Errorf("the machine's clock is %+v, %v", now, err)
	}
	if _, err := system.AdvanceClock(t.Context(), nil, &development.AdvanceClock{Advance: "1h"}); status(err) != http.StatusConflict {
		t.Errorf("it is advanced: %v", err)
	}
}

func TestParseFault(t *testing.T) {
	const of = ":us-east-1:000000000000:"
	for _, tt := range []struct {
		arn, fault string
		ok         bool
	}{
		{"arn:aws:sqs" + of + "orders", "unavailable", true},
		{"arn:aws:sqs" + of + "orders", "none", true},
		{"arn:aws:sqs" + of + "*", "internal", true},
		{"arn:aws:sqs" + of + "orders", "internal", false}, // of all of a service only
		{"arn:aws:sqs" + of, "unavailable", false},
		{"arn:aws:lambda" + of + "function:f", "throttled", true},
		{"arn:aws:lambda" + of + "function:f:3", "throttled", false},
		{"arn:aws:lambda" + of + "*", "denied", true},
		{"arn:aws:firehose" + of + "deliverystream/d", "unavailable", true},
		{"arn:aws:firehose" + of + "d", "unavailable", false},
		{"arn:aws:sns" + of + "direct/sms", "unavailable", true},
		{"arn:aws:sns" + of + "direct/fax", "unavailable", false},
		{"arn:aws:sns" + of + "app/GCM/shop", "unavailable", true},
		{"arn:aws:sns" + of + "orders", "unavailable", false}, // topics take what they are given
		{"arn:aws:s3:::bucket", "unavailable", false},
		{"orders", "unavailable", false},
		{"arn:aws:sqs" + of + "orders", "broken", false},
	} {
		got, err := development.ParseFault(tt.arn, tt.fault)
		if (err == nil) != tt.ok || !tt.ok && status(err) != http.StatusBadRequest || tt.ok && got.String() != tt.arn {
			t.Errorf("%s %s: %v, %v", tt.arn, tt.fault, got, err)
		}
	}
}

// What breaks things on purpose is refused in production, and what is in force is reported.
func TestFaults(t *testing.T) {
	e := shardtest.Open(t, shard.Options{
		Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { _ = e.Close() })
	production, d := development.New(development.Options{Engine: e, Production: true}), development.New(development.Options{Engine: e})
	queue := shardtest.QueueARN("orders").String()
	if _, err := production.SetFault(t.Context(), nil, &development.Fault{ARN: queue, Fault: "unavailable"}); status(err) != http.StatusForbidden {
		t.Errorf("in production: %v", err)
	}
	if _, err := production.Reset(t.Context(), nil, &development.Reset{Account: shardtest.Account}); status(err) != http.StatusForbidden {
		t.Errorf("a reset in production: %v", err)
	}
	inForce := func() string {
		t.Helper()
		out, err := d.ListFaults(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range out.Faults {
			all = append(all, f.ARN+" "+f.Fault)
		}
		return strings.Join(all, ", ")
	}
	all := "arn:aws:lambda:us-east-1:000000000000:*"
	for _, f := range []development.Fault{{ARN: queue, Fault: "unavailable"}, {ARN: all, Fault: "throttled"}, {ARN: queue, Fault: "throttled"}} {
		if _, err := d.SetFault(t.Context(), nil, &f); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := inForce(), all+" throttled, "+queue+" throttled"; got != want {
		t.Errorf("in force are %s, want %s", got, want)
	}
	if _, err := d.SetFault(t.Context(), nil, &development.Fault{ARN: queue, Fault: "none"}); err != nil {
		t.Error(err)
	}
	if got, want := inForce(), all+" throttled"; got != want {
		t.Errorf("in force are %s, want %s", got, want)
	}
}
