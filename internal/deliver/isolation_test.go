package deliver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/test/soak"
)

// TestHangingEndpointsDelayNobody: a thousand endpoints that hang, each with
// more to do than it may have under way, and one that answers.
func TestHangingEndpointsDelayNobody(t *testing.T) {
	for _, hanging := range []int{1000, 6000}[:soak.Size(1, 2)] {
		synctest.Test(t, func(t *testing.T) {
			var underWay, most atomic.Int64
			r := newRig(t, clock.System, func(ctx context.Context, r *Request) Outcome {
				if n := underWay.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer underWay.Add(-1)
				if r.Subscription.Endpoint == "live" {
					return Outcome{Class: Success}
				}
				return hang(ctx, r)
			}, nil)
			live := testSub("live", "live", topic.HTTP, testDLQ)
			r.add(live, retry.DefaultHTTP, 0)
			for i := range hanging {
				sub := testSub(fmt.Sprint(i), fmt.Sprint("hanging", i), topic.HTTP, testDLQ)
				r.add(sub, retry.DefaultHTTP, 0)
				r.publish(sub.ARN, 60)
				if hanging == 1000 {
					synctest.Wait() // each finds what the earlier ones have left
				}
			}
			if hanging > 5000 {
				wait(t, time.Minute) // until it is known who hangs
			}
			for range 60 {
				at := clock.System.Now()
				before := len(r.of(live.ARN))
				r.publish(live.ARN, 20)
				synctest.Wait()
				got := r.of(live.ARN)[before:]
				if len(got) != 20 {
					t.Fatalf("with %d hanging endpoints, %d of 20 messages were delivered at once", hanging, len(got))
				}
				for _, f := range got {
					if !f.at.Equal(at) {
						t.Fatalf("delivered %s late", f.at.Sub(at))
					}
				}
				wait(t, time.Second)
			}
			if n := most.Load(); n > 5000 || n < 3750 {
				t.Errorf("up to %d attempts were under way, the bound is 5,000", n)
			}
		})
	}
}

// TestHangingEndpointsAreTriedOneAfterTheOther: attempts that hung do not begin
// again, and so run out of time again, all at once, be they at as many hosts or at
// a few; none is left out.
func TestHangingEndpointsAreTriedOneAfterTheOther(t *testing.T) {
	t.Run("many hosts", func(t *testing.T) { testHangingEndpoints(t, 2000) })
	t.Run("few hosts", func(t *testing.T) { testHangingEndpoints(t, 100) })
}

func testHangingEndpoints(t *testing.T, hosts int) {
	synctest.Test(t, func(t *testing.T) {
		const hanging = 2000
		begun := map[time.Duration]int{} // attempts by the tenth of a second
		var mu sync.Mutex
		began := clock.System.Now()
		r := newRig(t, clock.System, func(ctx context.Context, r *Request) Outcome {
			mu.Lock()
			begun[clock.System.Now().Sub(began)/(100*time.Millisecond)]++
			mu.Unlock()
			return hang(ctx, r)
		}, nil)
		for i := range hanging {
			sub := testSub(fmt.Sprint(i), fmt.Sprint("hanging", i%hosts), topic.HTTP, testDLQ)
			r.add(sub, retry.DefaultHTTP, 0)
			r.publish(sub.ARN, 1)
		}
		wait(t, 40*time.Second)
		mu.Lock()
		defer mu.Unlock()
		if begun[0] != hanging {
			t.Errorf("%d attempts began at first", begun[0])
		}
		again := 0
		for at, n := range begun {
			if at > 0 {
				again += n
			}
			if at > 0 && n > 7*16 {
				t.Errorf("%d attempts began within a tenth of a second", n)
			}
		}
		if again != hanging {
			t.Errorf("%d attempts began again", again)
		}
	})
}

func (e *engine) of(sub arn.ARN) (out []finished) {
	for _, f := range e.results() {
		if f.sub == sub {
			out = append(out, f)
		}
	}
	return out
}

// TestHostLimit: 50 attempts at once, shared among the host's subscriptions.
func TestHostLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay atomic.Int64
		r := newRig(t, clock.System, func(ctx context.Context, r *Request) Outcome {
			underWay.Add(1)
			defer underWay.Add(-1)
			return hang(ctx, r)
		}, nil)
		big, small := testSub("a", "host", topic.HTTP, testDLQ), testSub("b", "host", topic.HTTP, testDLQ)
		r.add(big, retry.DefaultHTTP, 0)
		r.add(small, retry.DefaultHTTP, 0)
		r.publish(big.ARN, 1000)
		synctest.Wait()
		if n := underWay.Load(); n != 50 {
			t.Errorf("%d attempts under way, want 50", n)
		}
		r.publish(small.ARN, 5)
		turns := func() (n int) {
			for _, a := range r.sender.attempts() {
				if a.sub == small.ARN {
					n++
				}
			}
			return n
		}
		wait(t, 16*time.Second)
		if turns() == 0 {
			t.Error("a small subscription did not have its turn when attempts ended")
		}
		wait(t, time.Minute) // it has at least one turn a round
		if n := turns(); n < 5 || underWay.Load() != 50 {
			t.Errorf("%d of 5 messages of a small subscription had their turn; %d under way", n, underWay.Load())
		}
	})
}

func TestLocalAttempts(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, nil, nil)
	target := arn.Queue("us-east-1", "000000000000", "q")
	r.sender.local = true
	r.sender.f = func(ctx context.Context, q *Request) Outcome {
		m, err := q.SQS()
		if err != nil {
			return Outcome{Class: ClientError}
		}
		return TransferOutcome(r.Transfer(ctx, q.Delivery, target, m, shard.Ending{Attempt: shard.Attempt{At: q.At, Outcome: "success"}, State: shard.DeliveryDelivered}))
	}
	r.dispatcher.options.Senders[topic.SQS] = r.sender
	sub := testSub("a", target.String(), topic.SQS, testDLQ)
	r.add(sub, retry.AWSManaged, 0)
	r.publish(sub.ARN, 1000)
	advance(t, v, 0)
	for _, f := range r.results() {
		if f.state != shard.DeliveryDelivered || f.dest != target || !strings.Contains(string(f.m.Body), "secret-body") {
			t.Fatalf("got %+v", f)
		}
	}
	if n := len(r.results()); n != 1000 {
		t.Fatalf("%d of 1000 arrived", n)
	}

	// The queue is gone: a dead letter at once. Its owner is away: the ladder.
	r.set(func(dest arn.ARN) error {
		if dest == target {
			return fault.New(fault.QueueDoesNotExist, "")
		}
		return nil
	})
	r.publish(sub.ARN, 1)
	advance(t, v, 0)
	if f := r.results()[1000]; f.state != shard.DeliveryDeadLetter || f.dest != testDLQ || len(f.attempts) != 1 {
		t.Errorf("got %+v", f)
	}
	r.set(unavailable)
	r.publish(sub.ARN, 1)
	advance(t, v, 24*time.Hour)
	r.set(nil)
	advance(t, v, 20*time.Second)
	if f := r.results()[1001]; f.state != shard.DeliveryDelivered || len(f.attempts) < 4000 {
		t.Errorf("%s after %d attempts", f.state, len(f.attempts))
	}
}

func TestStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		r := newRig(t, clock.System, func(ctx context.Context, r *Request) Outcome {
			select {
			case <-answer:
				return Outcome{Class: Success}
			case <-ctx.Done():
				return Outcome{Class: ServerError}
			}
		}, nil)
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, retry.DefaultHTTP, 0)
		throttled := testSub("b", "other", topic.HTTP, testDLQ)
		r.add(throttled, retry.DefaultHTTP, 1)
		r.publish(sub.ARN, 200)
		r.publish(throttled.ARN, 5)
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- r.dispatcher.Stop(t.Context()) }()
		synctest.Wait()
		r.publish(sub.ARN, 1) // comes too late
		close(answer)
		if err := <-stopped; err != nil {
			t.Errorf("Stop: %v", err)
		}
		if n := len(r.results()); n != 51 { // 50 and one throttled
			t.Errorf("%d attempts under way were finished, want 51", n)
		}
		if n := r.leased(); n != 0 {
			t.Errorf("%d leases are left", n)
		}
		for _, st := range r.subs {
			for _, en := range st.entries {
				if en.receives != 0 {
					t.Errorf("message %d counts %d receives", idOf(en.m), en.receives)
				}
			}
		}
	})
}

func TestStopCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, clock.System, hang, nil)
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, retry.DefaultHTTP, 0)
		r.publish(sub.ARN, 3)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := clock.System.Now()
		if err := r.dispatcher.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop: %v", err)
		}
		if d := clock.System.Now().Sub(began); d != 2*time.Second {
			t.Errorf("Stop took %s", d)
		}
		for _, en := range r.subs[sub.ARN].entries {
			if en.leased || en.receives != 0 || len(en.history) != 0 {
				t.Errorf("cut off, but counted: %+v", en)
			}
		}
		if len(r.subs[sub.ARN].entries) != 3 {
			t.Error("messages were lost")
		}
	})
}

// TestHoldsTheClock: from Ready until the work is done, and no longer.
func TestHoldsTheClock(t *testing.T) {
	v := clock.NewVirtual(start)
	begun, answer := make(chan struct{}), make(chan struct{})
	r := newRig(t, v, func(context.Context, *Request) Outcome {
		close(begun)
		<-answer
		return Outcome{Class: Success}
	}, nil)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 1)
	r.publish(sub.ARN, 1)
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var held *clock.HeldError
	if _, err := v.Advance(ctx, time.Second); !errors.As(err, &held) || held.Holds != 1 {
		t.Errorf("with an attempt under way: %v", err)
	}
	close(answer)
	advance(t, v, time.Hour)
	if len(r.results()) != 1 {
		t.Error("not delivered")
	}
}
