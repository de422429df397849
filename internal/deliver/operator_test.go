package deliver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

// TestRecall: what waits for its host or its throttle goes back, uncounted; what
// is under way continues, and the rest is taken again when the engine says so.
func TestRecall(t *testing.T) {
	for name, throttle := range map[string]int{"host": 0, "throttle": 1} {
		synctest.Test(t, func(t *testing.T) {
			answer := make(chan struct{})
			r := newRig(t, clock.System, func(_ context.Context, r *Request) Outcome {
				<-answer
				return Outcome{Class: Success}
			}, func(o *Options) { o.HostLimit = 1 })
			sub := testSub("a", "host", topic.HTTP, testDLQ)
			r.add(sub, retry.DefaultHTTP, throttle)
			r.publish(sub.ARN, 5)
			synctest.Wait()
			before := r.leased()
			r.dispatcher.Recall(sub.ARN)
			synctest.Wait()
			if n := r.leased(); before != 2 || n != 1 {
				t.Errorf("%s: %d deliveries were taken, %d after the recall; want 2, and the one under way", name, before, n)
			}
			close(answer)
			synctest.Wait()
			if n := len(r.results()); n != 1 {
				t.Errorf("%s: %d attempts were made, want the one under way", name, n)
			}
			for _, en := range r.subs[sub.ARN].entries {
				if en.receives != 0 || en.leased {
					t.Errorf("%s: message %d counts %d attempts", name, idOf(en.m), en.receives)
				}
			}
			r.dispatcher.Ready(sub.ARN)
			wait(t, 10*time.Second)
			if n := len(r.results()); n != 5 {
				t.Errorf("%s: %d of 5 were delivered in the end", name, n)
			}
			r.dispatcher.Recall(sub.ARN) // of nothing
		})
	}
}

// TestNothingGoesToWhomIsGone: what waits for its host is not delivered once its
// subscription is deleted.
func TestNothingGoesToWhomIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		r := newRig(t, clock.System, func(context.Context, *Request) Outcome {
			<-answer
			return Outcome{Class: Success}
		}, func(o *Options) { o.HostLimit = 1 })
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, retry.DefaultHTTP, 0)
		r.publish(sub.ARN, 5)
		synctest.Wait()
		before := r.leased()
		r.mu.Lock()
		delete(r.subs, sub.ARN)
		r.mu.Unlock()
		close(answer)
		synctest.Wait()
		if n := len(r.sender.attempts()); before != 2 || n != 1 || r.leased() != 0 {
			t.Errorf("%d attempts were made with %d deliveries taken, want the one under way and 2; %d are left", n, before, r.leased())
		}
	})
}

// slowTake lets a lease from a backlog be seen while it is under way.
type slowTake struct {
	*engine
	begun, proceed chan struct{}
}

func (e *slowTake) Take(sub arn.ARN, limit int) ([]*shard.Delivery, bool, error) {
	taken, more, err := e.engine.Take(sub, limit)
	e.begun <- struct{}{}
	<-e.proceed
	return taken, more, err
}

// TestRecallOfALeaseUnderWay: the messages of a lease that began before are released, too.
func TestRecallOfALeaseUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowTake{begun: make(chan struct{}), proceed: make(chan struct{})}
		r := newRig(t, clock.System, succeed, func(o *Options) {
			slow.engine = o.Engine.(*engine)
			o.Engine = slow
		})
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, retry.DefaultHTTP, 0)
		r.publish(sub.ARN, 1)
		<-slow.begun
		r.dispatcher.Recall(sub.ARN)
		slow.proceed <- struct{}{}
		synctest.Wait()
		if r.leased() != 0 || len(r.sender.attempts()) != 0 {
			t.Errorf("%d are leased, %d attempts were made", r.leased(), len(r.sender.attempts()))
		}
		r.dispatcher.Ready(sub.ARN)
		<-slow.begun
		slow.proceed <- struct{}{}
		synctest.Wait()
		if len(r.results()) != 1 {
			t.Error("not delivered when the engine said so")
		}
	})
}
