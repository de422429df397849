package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// lineWorld is a directWorld whose line is held up, so that publishers gather.
type lineWorld struct {
	*directWorld
	line *line
	all  sync.WaitGroup
}

func newLineWorld(t *testing.T, o Options) *lineWorld {
	w := &lineWorld{directWorld: newDirectWorld(t, o)}
	w.line = &w.shardOf(topicARN("direct")).line
	w.line.busy = true
	return w
}

// publishLater puts a publisher into the line and calls done with its answer.
func (w *lineWorld) publishLater(t arn.ARN, done func([]SendResult, error), ps ...Publication) {
	w.line.mu.Lock()
	n := len(w.line.waiting)
	w.line.mu.Unlock()
	w.all.Go(func() { done(w.Publish(context.Background(), t, ps...)) })
	for waiting := n; waiting == n; runtime.Gosched() {
		w.line.mu.Lock()
		waiting = len(w.line.waiting)
		w.line.mu.Unlock()
	}
}

// neighbour is a topic in the shard of the topic "direct".
func (w *lineWorld) neighbour(format string) arn.ARN {
	for i := 0; ; i++ {
		if a := topicARN(fmt.Sprintf(format, i)); w.shardOf(a) == w.shardOf(topicARN("direct")) {
			return a
		}
	}
}

// TestPublishersGoTogether: those who wait with messages for one topic share a
// commit, in the order in which they came, and each gets its own answer.
func TestPublishersGoTogether(t *testing.T) {
	ctx := context.Background()
	var commits atomic.Int64
	w := newLineWorld(t, Options{Clock: clock.NewVirtual(start), Observe: func([]byte) { commits.Add(1) }})
	defer w.Close()
	gone := w.neighbour("gone-%d")
	w.log.flush()
	before := commits.Load()
	accepted := func(id int) func([]SendResult, error) {
		return func(got []SendResult, err error) {
			if err != nil || len(got) == 0 || got[0].ID != messageID(id) {
				t.Errorf("publisher %d got %v, %v", id, got, err)
			}
		}
	}
	publication := func(id int) Publication {
		return Publication{ID: messageID(id), Body: []byte{byte('a' + id)}}
	}
	w.publishLater(topicARN("direct"), accepted(0), publication(0))
	w.publishLater(gone, func(_ []SendResult, err error) {
		if !errors.Is(err, topic.ErrNoTopic) {
			t.Error("publish to no topic:", err)
		}
	}, publication(9))
	w.publishLater(topicARN("direct"), accepted(1), publication(1), publication(2))
	w.publishLater(topicARN("direct"), func(got []SendResult, err error) {
		if err != nil || len(got) != 0 {
			t.Errorf("publisher of nothing got %v, %v", got, err)
		}
	})
	w.publishLater(topicARN("direct"), accepted(3), publication(3))
	w.line.leave()
	w.all.Wait()
	if n := commits.Load() - before; n != 1 {
		t.Errorf("%d commits", n)
	}
	got, err := w.Receive(ctx, ReceiveRequest{Queue: w.queue, Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	for _, m := range got {
		order += string(m.Body)
	}
	if order != "abcd" {
		t.Errorf("received %q", order)
	}
	if w.line.busy || len(w.line.waiting) != 0 {
		t.Error("somebody still has the turn")
	}
}

// TestCompanyIsBounded: no turn is for more than companyMost.
func TestCompanyIsBounded(t *testing.T) {
	l := &line{busy: true}
	for range companyMost + 1 {
		l.waiting = append(l.waiting, &publisher{topic: topicARN("t"), turn: make(chan []*publisher, 1)})
	}
	next := l.waiting[0]
	l.leave()
	if n := len(<-next.turn); n != companyMost || len(l.waiting) != 1 {
		t.Errorf("%d in the turn, %d left", n, len(l.waiting))
	}
}

// TestFIFOPublishersGoAlone: what one of them is refused is not refused to others.
func TestFIFOPublishersGoAlone(t *testing.T) {
	w := newLineWorld(t, Options{Clock: clock.NewVirtual(start)})
	defer w.Close()
	fifo := w.neighbour("ordered-%d.fifo")
	if err := w.CreateTopic(context.Background(), topic.CreateTopic{ARN: fifo, Attributes: map[string]string{"FifoTopic": "true"}}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	answers := make([]string, 3)
	for i, dedup := range []string{"x", "", "x"} {
		w.publishLater(fifo, func(got []SendResult, err error) {
			mu.Lock()
			defer mu.Unlock()
			answers[i] = fmt.Sprint(err != nil, len(got) > 0 && got[0].ID == messageID(1))
		}, Publication{ID: messageID(i + 1), Group: "g", Dedup: dedup, Body: []byte("a")})
	}
	w.line.leave()
	w.all.Wait()
	// The third is a duplicate of the first, and gets its answer.
	if got := strings.Join(answers, ", "); got != "false true, true false, false true" {
		t.Error(got)
	}
}

// TestPublishersTogetherLoseNothing: whatever changes meanwhile, each message
// arrives once in each queue that was subscribed all the time.
func TestPublishersTogetherLoseNothing(t *testing.T) {
	const publishers, each, queues = 12, 40, 5
	ctx := context.Background()
	w := newDirectWorld(t, Options{Clock: clock.System})
	defer w.Close()
	pump := &pump{engine: w.Engine, newID: w.options.NewID}
	w.SetConsumer("sns", pump)
	var all []arn.ARN
	for i := range queues {
		q := queueARN(fmt.Sprint("all-", i))
		if err := w.CreateQueue(ctx, QueueSpec{ARN: q}); err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
		subscribe(t, w.Engine, "direct", q.Resource, subscriptionID(10+i))
	}
	stop := make(chan struct{})
	var changing, publishing sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			value := fmt.Sprint(i%2 == 0)
			if err := w.SetSubscriptionAttribute(ctx, w.sub, "RawMessageDelivery", value); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				m := Publication{ID: message.ID{1, byte(p), byte(i)}, Body: fmt.Appendf(nil, "%d-%d", p, i)}
				if got, err := w.Publish(ctx, topicARN("direct"), m); err != nil || got[0].ID != m.ID {
					t.Error(got, err)
				}
			}
		})
	}
	publishing.Wait()
	close(stop)
	changing.Wait()
	pump.run(t)
	for _, q := range all {
		seen := map[string]int{}
		for {
			got, err := w.Receive(ctx, ReceiveRequest{Queue: q, Max: 10, Visibility: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				break
			}
			for _, m := range got {
				seen[string(m.Body)]++
			}
		}
		once := 0
		for _, n := range seen {
			if n == 1 {
				once++
			}
		}
		if once != publishers*each || len(seen) != once {
			t.Errorf("%s: %d of %d messages once, %d in all", q.Resource, once, publishers*each, len(seen))
		}
	}
}
