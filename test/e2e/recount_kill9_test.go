package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestRecountKill9 kills the server while it counts, step by step, the messages of a large FIFO queue that a
// longer delay hides again. The next start counts anew; no message comes before its time, each comes once,
// and those of a group in order.
func TestRecountKill9(t *testing.T) {
	t.Parallel()
	const groups, each, kills, wanted = 20, 1000, 20, 2 // 20 steps
	addr, dir := freeAddress(t), t.TempDir()
	p := startAt(t, addr, dir)
	queue := p.createQueue(t, "line.fifo", "FifoQueue", "true", "VisibilityTimeout", "3600") // each is received once, however long that takes

	var began [groups][each]time.Time
	first := time.Now()
	var senders sync.WaitGroup
	for g := range groups {
		senders.Go(func() {
			for n := 0; n < each; n += 10 {
				entries := make([]object, 10)
				for i := range entries {
					began[g][n+i] = time.Now()
					entries[i] = object{"Id": fmt.Sprint(i), "MessageBody": fmt.Sprint(g, " ", n+i), "MessageGroupId": fmt.Sprint(g), "MessageDeduplicationId": fmt.Sprint(g, "-", n+i)}
				}
				var out struct{ Failed []object }
				if err := p.sqs(t.Context(), "SendMessageBatch", object{"QueueUrl": queue, "Entries": entries}, &out); err != nil || len(out.Failed) > 0 {
					t.Error(err, out.Failed)
					return
				}
			}
		})
	}
	senders.Wait()
	last := time.Now()

	setDelay := func(d time.Duration) {
		t.Helper()
		p.mustSQS(t, "SetQueueAttributes", object{"QueueUrl": queue, "Attributes": object{"DelaySeconds": strconv.Itoa(int(d / time.Second))}}, nil)
	}
	hidden := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprint(n, " are delayed"), func() (bool, error) {
			counts := p.counts(t, queue)
			return counts == [3]int{groups*each - n, 0, n}, fmt.Errorf("%v", counts)
		})
	}
	hidden(0)
	round, underWay := 0, 0
	for ; round < kills && underWay < wanted; round++ {
		setDelay(10 * time.Minute)
		if p.counts(t, queue)[2] == 0 { // until it has ended the former counts hold
			underWay++
		}
		p.kill()
		p = startAt(t, addr, dir)
		hidden(groups * each)
		setDelay(0)
		hidden(0)
	}
	if underWay < wanted {
		t.Errorf("it was under way at %d of %d kills", underWay, round)
	}

	delay := (time.Since(first) + 5*time.Second).Truncate(time.Second)
	setDelay(delay + 10*time.Minute)
	p.kill()
	p = startAt(t, addr, dir)
	setDelay(delay)
	var next [groups]int
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for left := groups * each; left > 0; {
		got, err := p.receive(ctx, queue, 1)
		if err != nil {
			t.Fatalf("%d have not come: %v", left, err)
		}
		now, entries := time.Now(), make([]object, len(got))
		for i, m := range got {
			g, n := numbered(m.Body)
			if n != next[g] {
				t.Fatalf("message %d of group %d comes, want number %d", n, g, next[g])
			}
			if due := began[g][n].Add(delay); now.Before(due.Add(-time.Millisecond)) {
				t.Fatalf("message %d of group %d comes %s before its time", n, g, due.Sub(now))
			}
			next[g]++
			entries[i] = object{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle}
		}
		if left -= len(got); len(got) > 0 {
			p.mustSQS(t, "DeleteMessageBatch", object{"QueueUrl": queue, "Entries": entries}, nil)
		} else if now.After(last.Add(delay + 5*time.Second)) {
			t.Fatalf("%d have not come %s after their time", left, now.Sub(last.Add(delay)))
		}
	}
	eventually(t, "the queue is empty", func() (bool, error) {
		counts := p.counts(t, queue)
		return counts == [3]int{}, fmt.Errorf("%v", counts)
	})
	t.Logf("of %d kills, %d while it was under way; %d messages were due after %s", round, underWay, groups*each, delay)
}
