package queues_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// poll is an engine with an empty queue "q", and receives that wait at it.
type poll struct {
	*shard.Engine
	t *testing.T
}

func newPoll(t *testing.T, c clock.Clock) poll {
	t.Helper()
	return newPollOf(t, memory.New(), c)
}

func newPollOf(t *testing.T, st store.Store, c clock.Clock) poll {
	t.Helper()
	p := poll{t: t, Engine: shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: c})}
	if err := p.CreateQueue(context.Background(), queues.QueueSpec{ARN: shardtest.QueueARN("q")}); err != nil {
		t.Fatal(err)
	}
	return p
}

// answer is what a receive answered, once it has.
type answer struct{ atomic.Pointer[string] }

func (a *answer) text() string {
	if text := a.Load(); text != nil {
		return *text
	}
	return ""
}

// wait starts a long poll and returns once it waits. Its answer comes to got.
func (p poll) wait(ctx context.Context, limit int, wait, visibility time.Duration) (got *answer) {
	got = &answer{}
	go func() {
		received, err := p.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: limit, Visibility: visibility, Wait: wait})
		bodies := []string{}
		for _, m := range received {
			bodies = append(bodies, fmt.Sprintf("%s×%d", m.Body, m.Receives))
		}
		text := strings.Join(append(bodies, shardtest.Said(err)), " ")
		got.Store(&text)
	}()
	synctest.Wait()
	return got
}

func (p poll) send(delay time.Duration, bodies ...string) {
	p.t.Helper()
	var msgs []queues.SendEntry
	for _, body := range bodies {
		msgs = append(msgs, queues.SendEntry{Message: shardtest.NewMessage(1, body), Delay: delay})
	}
	if _, err := p.Send(context.Background(), shardtest.QueueARN("q"), msgs); err != nil {
		p.t.Fatal(err)
	}
	synctest.Wait()
}

func (p poll) counts() queue.Counts {
	p.t.Helper()
	info, err := p.QueueInfo(context.Background(), shardtest.QueueARN("q"))
	if err != nil {
		p.t.Fatal(err)
	}
	return info.Counts
}

func (p poll) expect(what string, got *answer, want string) {
	p.t.Helper()
	if text := got.text(); text != want {
		p.t.Errorf("%s: %q, want %q", what, text, want)
	}
}

// TestLongPollOrder: receives that wait are served in the order in which they
// came, each with what there is, and without a moment's delay.
func TestLongPollOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t, clock.System)
		defer p.Close()
		ctx := context.Background()
		begun := clock.System.Now()
		first := p.wait(ctx, 1, 20*time.Second, time.Minute)
		second := p.wait(ctx, 10, 20*time.Second, time.Minute)
		third := p.wait(ctx, 10, 20*time.Second, time.Minute)
		p.send(0, "a", "b", "c")
		p.expect("first", first, "a×1 ok")
		p.expect("second", second, "b×1 c×1 ok")
		p.expect("third", third, "")
		p.send(0, "d")
		p.expect("third", third, "d×1 ok")
		if took := clock.System.Now().Sub(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		if c := p.counts(); c.InFlight != 4 || c.Visible != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestLongPollEnds: a wait ends empty when its time is over, not before, and
// when the engine drains.
func TestLongPollEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t, clock.System)
		ctx := context.Background()
		got := p.wait(ctx, 1, 20*time.Second, time.Minute)
		<-shardtest.After(20*time.Second - 1)
		synctest.Wait()
		p.expect("just before", got, "")
		<-shardtest.After(1)
		synctest.Wait()
		p.expect("after 20 s", got, "ok")

		got = p.wait(ctx, 1, 20*time.Second, time.Minute)
		p.Drain()
		synctest.Wait()
		p.expect("drained", got, "ok")
		got = p.wait(ctx, 1, 20*time.Second, time.Minute)
		p.expect("when draining", got, "ok")
		p.Close()
	})
}

// TestLongPollWakes: a delay and a visibility timeout that run out wake a
// receive, to the millisecond.
func TestLongPollWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t, clock.System)
		defer p.Close()
		ctx := context.Background()
		p.send(3*time.Second, "a")
		got := p.wait(ctx, 1, 20*time.Second, 5*time.Second)
		next := p.wait(ctx, 1, 20*time.Second, time.Minute)
		<-shardtest.After(3*time.Second - time.Millisecond)
		synctest.Wait()
		p.expect("before the delay is over", got, "")
		<-shardtest.After(time.Millisecond)
		synctest.Wait()
		p.expect("when the delay is over", got, "a×1 ok")
		<-shardtest.After(5*time.Second - time.Millisecond)
		synctest.Wait()
		p.expect("while it is hidden", next, "")
		<-shardtest.After(time.Millisecond)
		synctest.Wait()
		p.expect("when it is back", next, "a×2 ok")
	})
}

// TestLongPollWakesOnVirtualTime: a receive waits in real time for what comes
// due in virtual time.
func TestLongPollWakesOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.NewVirtual(shardtest.Start)
		p := newPoll(t, now)
		defer p.Close()
		ctx := context.Background()
		advance := func(d time.Duration) {
			t.Helper()
			if _, err := now.Advance(ctx, d); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		p.send(15*time.Minute, "a")
		got := p.wait(ctx, 1, 20*time.Second, 12*time.Hour)
		next := p.wait(ctx, 1, 20*time.Second, time.Minute)
		advance(15*time.Minute - time.Millisecond)
		p.expect("before the delay is over", got, "")
		advance(time.Millisecond)
		p.expect("when the delay is over", got, "a×1 ok")
		advance(12*time.Hour - time.Millisecond)
		p.expect("while it is hidden", next, "")
		advance(24 * time.Hour)
		p.expect("when it is back", next, "a×2 ok")
	})
}

// TestLongPollTellsWhetherItWaits: whoever receives knows that messages are on their
// way before whoever sent them, or moved the clock, goes on.
func TestLongPollTellsWhetherItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.NewVirtual(shardtest.Start)
		p := newPoll(t, now)
		defer p.Close()
		var waits atomic.Bool
		expect := func(what string, want bool) {
			t.Helper()
			if waits.Load() != want {
				t.Errorf("%s: it waits: %v", what, !want)
			}
		}
		poll := func(ctx context.Context) {
			go func() {
				_, _ = p.Receive(ctx, queues.ReceiveRequest{
					Queue: shardtest.QueueARN("q"), Max: 1, Visibility: time.Minute, Wait: 20 * time.Second, Waiting: waits.Store,
				})
			}()
			synctest.Wait()
		}
		poll(t.Context())
		expect("an empty queue", true)
		if _, err := p.Send(t.Context(), shardtest.QueueARN("q"), []queues.SendEntry{{Message: shardtest.NewMessage(1, "a")}}); err != nil {
			t.Fatal(err)
		}
		expect("sent", false)
		poll(t.Context())
		expect("in flight", true)
		if _, err := now.Advance(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		expect("back again", false)
		ctx, cancel := context.WithCancel(t.Context())
		poll(ctx)
		expect("in flight again", true)
		cancel()
		synctest.Wait()
		expect("cancelled", false)
		poll(t.Context())
		if err := p.DeleteQueue(t.Context(), shardtest.QueueARN("q")); err != nil {
			t.Fatal(err)
		}
		expect("the queue is gone", false)
	})
}

// TestLongPollWakesByItsLikes: what another client gives back wakes a receive.
func TestLongPollWakesByItsLikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t, clock.System)
		defer p.Close()
		ctx := context.Background()
		p.send(0, "a")
		held, err := p.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 1, Visibility: time.Hour})
		if err != nil || len(held) != 1 {
			t.Fatal(held, err)
		}
		got := p.wait(ctx, 1, 20*time.Second, time.Minute)
		p.expect("while it is held", got, "")
		if _, err := p.ChangeVisibility(ctx, shardtest.QueueARN("q"), []queues.VisibilityChange{{Handle: held[0].ReceiptHandle}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.expect("when it is given back", got, "a×2 ok")
	})
}

// TestReceiveBehindDeadLetters: a receive that finds more dead letters than one round moves goes on,
// and gets what is behind them; behind more than all its rounds move, one that waits does.
func TestReceiveBehindDeadLetters(t *testing.T) {
	for name, tt := range map[string]struct {
		dead  int
		wait  time.Duration
		want  string
		moved int64
	}{
		"two rounds":             {100, 0, "last×1 ok", 100},
		"two rounds of a poll":   {100, 20 * time.Second, "last×1 ok", 100},
		"more than all":          {300, 0, "ok", 256},
		"more than all, polling": {300, 20 * time.Second, "last×1 ok", 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPoll(t, clock.System)
			defer p.Close()
			dlq := shardtest.QueueARN("dlq")
			if err := p.CreateQueue(t.Context(), queues.QueueSpec{ARN: dlq}); err != nil {
				t.Fatal(err)
			}
			if err := p.SetQueueAttributes(t.Context(), shardtest.QueueARN("q"), redrive(dlq, 1)); err != nil {
				t.Fatal(err)
			}
			p.send(0, slices.Repeat([]string{"dead"}, tt.dead)...)
			for range tt.dead / 10 {
				if _, err := p.Receive(t.Context(), queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 10, Visibility: time.Second}); err != nil {
					t.Fatal(err)
				}
			}
			<-shardtest.After(time.Second)
			p.send(0, "last")
			got := p.wait(t.Context(), 1, tt.wait, time.Minute)
			<-shardtest.After(time.Second)
			synctest.Wait()
			p.expect(name, got, tt.want)
			p.AwaitIdle()
			info, err := p.QueueInfo(t.Context(), dlq)
			if err != nil || info.Counts.Visible != tt.moved {
				t.Errorf("%s: the dead-letter queue has %+v, %v", name, info.Counts, err)
			}
		})
	}
}

// TestLongPollCancelled: a client that goes leaves no lease, and its place in
// the line to the next.
func TestLongPollCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t, clock.System)
		defer p.Close()
		ctx, cancel := context.WithCancel(context.Background())
		gone := p.wait(ctx, 1, 20*time.Second, time.Minute)
		next := p.wait(context.Background(), 1, 20*time.Second, time.Minute)
		cancel()
		synctest.Wait()
		if !errors.Is(ctx.Err(), context.Canceled) || gone.text() != "fault false" {
			t.Errorf("the client that went got %q", gone.text())
		}
		p.send(0, "a")
		p.expect("next", next, "a×1 ok")
		if c := p.counts(); c != (queue.Counts{InFlight: 1}) {
			t.Errorf("%+v", c)
		}
	})
}

// TestLongPollCancelledWhenServed: a client that goes at the moment when it is
// served leaves no lease either, and the message its receive count: whether it
// goes just before, or while the message becomes durable.
func TestLongPollCancelledWhenServed(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprintf("before=%v", before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &storetest.Gated{Store: memory.New()}
				p := newPollOf(t, st, clock.System)
				defer p.Close()
				ctx, cancel := context.WithCancel(context.Background())
				gone := p.wait(ctx, 1, 20*time.Second, time.Minute)
				st.Shut()
				sh := p.Topics.ShardOf(shardtest.QueueARN("q"))
				var leased int64
				sh.View(func() {
					if before { // it notices, but does not come to leave the line
						cancel()
					}
					qs := shardtest.QueueIn(sh, shardtest.QueueARN("q"))
					now := sh.Now()
					sh.Accept(qs, now, queue.Arrival{Record: shardtest.NewMessage(1, "a").AppendRecord(nil), Sent: now})
					sh.Append(journal.Eager)
					leased = qs.Machine.Counts(now).InFlight
				})
				synctest.Wait()
				cancel()
				st.Open()
				synctest.Wait()
				if leased != 1 {
					t.Fatal("the receive was not served")
				}
				p.expect("the client that went", gone, "fault false")
				if c := p.counts(); c != (queue.Counts{Visible: 1}) {
					t.Errorf("it left %+v", c)
				}
				got := p.wait(context.Background(), 1, 0, time.Minute)
				p.expect("the next one", got, "a×1 ok")
			})
		})
	}
}

// TestLongPollEndsWhenServed: a poll whose time is over while its message becomes durable
// returns that message, once it is. Those behind it keep their places in the line.
func TestLongPollEndsWhenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &storetest.Gated{Store: memory.New()}
		p := newPollOf(t, st, clock.System)
		defer p.Close()
		const wait = 20 * time.Second
		got := p.wait(context.Background(), 1, wait, time.Minute)
		behind := p.wait(context.Background(), 1, 2*wait, time.Minute)
		last := p.wait(context.Background(), 1, 2*wait, time.Minute)
		st.Shut()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			p.send(0, "a")
		}()
		over, _ := clock.After(clock.System, wait)
		<-over
		synctest.Wait()
		p.expect("before it is durable", got, "")
		st.Open()
		<-sent
		synctest.Wait()
		p.expect("the poll", got, "a×1 ok")
		p.send(0, "b")
		p.expect("the one behind it", behind, "b×1 ok")
		p.send(0, "c")
		p.expect("the last", last, "c×1 ok")
	})
}
