package backlog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
)

// TestFinishedAreBounded: however many deliveries end after many attempts, memory
// holds a bounded number of these, those of the subscriptions that had news recently.
// start is when the test begins.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestFinishedAreBounded(t *testing.T) {
	r := newFinishedCache(time.Hour)
	const each = historyFirst + historyLast
	now := start.UnixMilli()
	sub := func(i int) arn.ARN { return arn.Topic("us-east-1", "000000000000", fmt.Sprint(i)) }
	kept := finishedAttempts / each
	for i := range 2 * kept / finishedPerSubscription {
		for range 2 * finishedPerSubscription { // which overwrites the first of them
			r.Add(sub(i), &Finished{at: now, total: each, attempts: make([]Attempt, each), state: DeliveryDropped})
		}
	}
	deliveries := 0
	for i := range 2 * kept / finishedPerSubscription {
		n := len(r.Of(start, sub(i), 2*finishedPerSubscription))
		if late := i >= kept/finishedPerSubscription; late != (n == finishedPerSubscription) || !late && n > 0 {
			t.Errorf("of subscription %d %d deliveries are kept", i, n)
		}
		deliveries += n
	}
	if deliveries != kept || r.attempts != kept*each {
		t.Errorf("%d deliveries with %d attempts are kept, want %d with %d", deliveries, r.attempts, kept, kept*each)
	}
}

// TestHistoryRecords: a record without a cause is that of the version before, byte
// for byte; damage costs what is behind it.
func TestHistoryRecords(t *testing.T) {
	one := []Attempt{{At: time.UnixMilli(5).UTC(), Outcome: "server-error", Status: 503, Detail: "no", Latency: time.Millisecond}}
	plain := History{Total: 1, First: one, Kept: []byte("s")}
	if got, want := plain.Encode(), "\x02\x01s\x01\x0a\x0cserver-error\xf7\x03\x02no\xe8\x07"; string(got) != want {
		t.Errorf("encoded as %q, want %q", got, want)
	}
	caused := History{Total: 1, First: one, cause: Cause{Reason: "gone", Attempt: 1}}
	for _, h := range []History{{}, plain, caused} {
		record := h.Encode()
		got, err := DecodeHistory(record)
		if d := cmp.Diff(h, got, cmp.AllowUnexported(History{})); d != "" || err != nil {
			t.Errorf("-written +read: %s%v", d, err)
		}
		for n := range record {
			if got, err := DecodeHistory(record[:n]); err == nil && n > 0 && len(got.First) == len(h.First) && h.Total > 0 {
				t.Errorf("%d of %d bytes are read as whole", n, len(record))
			}
		}
	}
	tooLong := strings.Repeat("\xff", 10) + "\x01" // no number of 64 bits
	for _, damaged := range []string{
		"\x02\x01s" + tooLong, "\x03\x01s\x04gone" + tooLong, "\x03\x01s\x04gone\x01" + tooLong, "\x02\x01s\x01" + tooLong,
		"\x02\x01s\x01\x0a\x01x" + tooLong, "\x02\x01s\x01\x0a\x01x\x00\x00" + tooLong,
		"\x02\x01s", "\x03\x01s\x04gone", "\x03\x01s\x04gone\x01",
	} {
		if h, err := DecodeHistory([]byte(damaged)); !errors.Is(err, message.ErrCorrupt) || string(h.Kept) != "s" {
			t.Errorf("%q is read as %+v: %v", damaged, h, err)
		}
	}
	if _, err := DecodeHistory([]byte{4, 0, 0}); err == nil {
		t.Error("a record of a later version is read")
	}
}
