package shard

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// TestFinishedAreBounded: however many deliveries end after many attempts, memory
// holds a bounded number of these, those of the subscriptions that had news of late.
func TestFinishedAreBounded(t *testing.T) {
	r := newFinishedCache(time.Hour)
	const each = historyFirst + historyLast
	now := start.UnixMilli()
	sub := func(i int) arn.ARN { return topicARN(fmt.Sprint(i)) }
	kept := finishedAttempts / each
	for i := range 2 * kept / finishedPerSubscription {
		for range 2 * finishedPerSubscription { // which overwrites the first of them
			r.add(sub(i), &finished{at: now, total: each, attempts: make([]Attempt, each), state: DeliveryDropped})
		}
	}
	deliveries := 0
	for i := range 2 * kept / finishedPerSubscription {
		n := len(r.of(start, sub(i), 2*finishedPerSubscription))
		if late := i >= kept/finishedPerSubscription; late != (n == finishedPerSubscription) || !late && n > 0 {
			t.Errorf("of subscription %d %d deliveries are kept", i, n)
		}
		deliveries += n
	}
	if deliveries != kept || r.attempts != kept*each {
		t.Errorf("%d deliveries with %d attempts are kept, want %d with %d", deliveries, r.attempts, kept, kept*each)
	}
}
