package shard

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard/backlog"
)

// TestFinishedAreBounded: however many deliveries end after many attempts, memory
// holds a bounded number of these, those of the subscriptions that had news of late.
func TestFinishedAreBounded(t *testing.T) {
	r := backlog.NewFinishedCache(time.Hour)
	const each = backlog.HistoryFirst + backlog.HistoryLast
	now := start.UnixMilli()
	sub := func(i int) arn.ARN { return topicARN(fmt.Sprint(i)) }
	kept := backlog.FinishedAttempts / each
	for i := range 2 * kept / backlog.FinishedPerSubscription {
		for range 2 * backlog.FinishedPerSubscription { // which overwrites the first of them
			r.Add(sub(i), &backlog.Finished{At: now, Total: each, Attempts: make([]backlog.Attempt, each), State: backlog.DeliveryDropped})
		}
	}
	deliveries := 0
	for i := range 2 * kept / backlog.FinishedPerSubscription {
		n := len(r.Of(start, sub(i), 2*backlog.FinishedPerSubscription))
		if late := i >= kept/backlog.FinishedPerSubscription; late != (n == backlog.FinishedPerSubscription) || !late && n > 0 {
			t.Errorf("of subscription %d %d deliveries are kept", i, n)
		}
		deliveries += n
	}
	if deliveries != kept || r.Attempts != kept*each {
		t.Errorf("%d deliveries with %d attempts are kept, want %d with %d", deliveries, r.Attempts, kept, kept*each)
	}
}
