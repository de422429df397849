package deliver

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is a small stand-in for the shards, in memory.
type engine struct {
	t        testing.TB
	clock    clock.Clock
	consumer shard.Consumer
	// refuse is asked before every transfer.
	refuse func(dest arn.ARN) error

	feedback topic.Feedback // of every topic

	mu       sync.Mutex
	subs     map[arn.ARN]*subState
	byLease  map[*shard.Delivery]*entry
	finished []finished
	sequence uint64
}

type subState struct {
	sub      topic.Subscription
	policy   retry.Policy
	throttle int
	entries  []*entry
	told     bool
}

type entry struct {
	m        *message.Message
	sub      *subState
	due      time.Time
	seq      uint64
	receives int
	leased   bool
	history  []shard.Attempt

	signature []byte
	cause     shard.Cause
}

type finished struct {
	id       uint64
	sub      arn.ARN
	state    shard.DeliveryState
	reason   string
	at       time.Time
	attempts []shard.Attempt
	dest     arn.ARN
	m        *message.Message
}

func newEngine(t testing.TB, c clock.Clock) *engine {
	return &engine{t: t, clock: c, subs: map[arn.ARN]*subState{}, byLease: map[*shard.Delivery]*entry{}}
}

func testSub(id, endpoint string, p topic.Protocol, dlq arn.ARN) topic.Subscription {
	s := topic.Subscription{ARN: arn.Topic("us-east-1", "000000000000", "t").Subscription(id), Protocol: p, Endpoint: endpoint}
	s.Redrive = &dlq
	return s
}

var testDLQ = arn.Queue("us-east-1", "000000000000", "dlq")

func (e *engine) add(sub topic.Subscription, p retry.Policy, throttle int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subs[sub.ARN] = &subState{sub: sub, policy: p, throttle: throttle}
}

// publish puts n messages into a backlog; the ids count up.
func (e *engine) publish(sub arn.ARN, n int) {
	e.publishKind(sub, n, message.Notification)
}

func (e *engine) publishKind(sub arn.ARN, n int, kind message.NoticeKind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.subs[sub]
	for range n {
		e.sequence++
		m := &message.Message{
			Sent: e.clock.Now().UnixMilli(), Body: []byte("secret-body"),
			Notice: &message.Notice{Kind: kind, Subscription: sub.String(), Token: "secret-token"},
		}
		binary.BigEndian.PutUint64(m.ID[8:], e.sequence)
		st.entries = append(st.entries, &entry{m: m, sub: st, due: e.clock.Now(), seq: e.sequence})
	}
	e.wake(st)
}

func idOf(m *message.Message) uint64 { return binary.BigEndian.Uint64(m.ID[8:]) }

func (e *engine) due(st *subState) []*entry {
	now := e.clock.Now()
	var out []*entry
	for _, en := range st.entries {
		if !en.leased && !en.due.After(now) {
			out = append(out, en)
		}
	}
	slices.SortStableFunc(out, func(a, b *entry) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq))
	})
	return out
}

func (e *engine) wake(st *subState) {
	if e.consumer != nil && !st.told && len(e.due(st)) > 0 {
		st.told = true
		e.consumer.Ready(st.sub.ARN)
	}
}

func (e *engine) Take(sub arn.ARN, limit int) (taken []*shard.Delivery, more bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	st, ok := e.subs[sub]
	if !ok {
		return nil, false, nil
	}
	due := e.due(st)
	more = len(due) > limit
	st.told = more
	for _, en := range due[:min(limit, len(due))] {
		en.leased = true
		en.receives++
		d := &shard.Delivery{
			Subscription: st.sub, RetryPolicy: st.policy, Throttle: st.throttle, Feedback: e.feedback, Message: en.m, Attempt: en.receives, Kept: en.signature, Cause: en.cause,
		}
		if !d.Cause.IsZero() {
			d.Attempt = d.Cause.Attempt
		}
		e.byLease[d] = en
		taken = append(taken, d)
	}
	return taken, more, nil
}

// end takes back a lease; it must be there.
func (e *engine) end(d *shard.Delivery, a shard.Attempt) *entry {
	en, ok := e.byLease[d]
	if !ok {
		e.t.Errorf("delivery of message %d was concluded twice", idOf(d.Message))
		return &entry{m: d.Message, sub: &subState{}}
	}
	delete(e.byLease, d)
	en.leased = false
	if a.Outcome != "" {
		en.history = append(en.history, a)
	}
	return en
}

func (e *engine) finish(d *shard.Delivery, a shard.Attempt, f finished) {
	en := e.end(d, a)
	en.sub.entries = slices.DeleteFunc(en.sub.entries, func(x *entry) bool { return x == en })
	f.id, f.sub, f.at, f.attempts = idOf(d.Message), d.Subscription.ARN, e.clock.Now(), en.history
	e.finished = append(e.finished, f)
}

func (e *engine) Current(d *shard.Delivery) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.subs[d.Subscription.ARN]
	return ok
}

func (e *engine) Delivered(d *shard.Delivery, a shard.Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finish(d, a, finished{state: shard.DeliveryDelivered})
}

func (e *engine) Drop(d *shard.Delivery, a shard.Attempt, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finish(d, a, finished{state: shard.DeliveryDropped, reason: reason})
}

func (e *engine) Retry(d *shard.Delivery, a shard.Attempt, due time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	en := e.end(d, a)
	en.due, en.signature, en.cause = due, d.Kept, d.Cause
	if wait := due.Sub(e.clock.Now()); wait > 0 {
		e.clock.AfterFunc(wait, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.wake(en.sub)
		})
	} else {
		e.wake(en.sub)
	}
}

func (e *engine) Release(d *shard.Delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(d, shard.Attempt{}).receives--
}

func (e *engine) Transfer(_ context.Context, d *shard.Delivery, dest arn.ARN, m *message.Message, ending shard.Ending) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse != nil {
		if err := e.refuse(dest); err != nil {
			return err
		}
	}
	e.finish(d, ending.Attempt, finished{state: ending.State, reason: ending.Reason, dest: dest, m: m})
	return nil
}

func (e *engine) results() []finished {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.finished)
}

// leased is how many deliveries nobody has concluded.
func (e *engine) leased() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.byLease)
}

func (e *engine) set(refuse func(dest arn.ARN) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuse = refuse
}

func unavailable(arn.ARN) error { return fault.New(fault.Unavailable, "no") }

// sender answers attempts with f, and notes them.
type sender struct {
	clock clock.Clock
	local bool
	f     func(ctx context.Context, r *Request) Outcome

	mu   sync.Mutex
	made []made
}

type made struct {
	id      uint64
	sub     arn.ARN
	attempt int
	at      time.Time
}

func (s *sender) Host(endpoint string) string { return endpoint }
func (s *sender) Local() bool                 { return s.local }

func (s *sender) Send(ctx context.Context, r *Request) Outcome {
	s.mu.Lock()
	s.made = append(s.made, made{idOf(r.Message), r.Subscription.ARN, r.Attempt, s.clock.Now()})
	s.mu.Unlock()
	return s.f(ctx, r)
}

func (s *sender) attempts() []made {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.made)
}

func succeed(context.Context, *Request) Outcome { return Outcome{Class: Success, Status: 200} }

func refuse(context.Context, *Request) Outcome {
	return Outcome{Class: ServerError, Status: 503, Detail: "HTTP 503"}
}

func hang(ctx context.Context, _ *Request) Outcome {
	<-ctx.Done()
	return Outcome{Class: ServerError, Detail: "no answer"}
}

// rig is a dispatcher over the stand-ins.
type rig struct {
	*engine
	sender     *sender
	dispatcher *Dispatcher
}

func newRig(t testing.TB, c clock.Clock, f func(context.Context, *Request) Outcome, change func(*Options)) *rig {
	r := &rig{engine: newEngine(t, c), sender: &sender{clock: c, f: f}}
	o := Options{
		Engine: r.engine, Clock: c, PublicURL: "http://godwit/",
		Senders: map[topic.Protocol]Sender{topic.HTTP: r.sender, topic.HTTPS: r.sender},
	}
	if change != nil {
		change(&o)
	}
	r.dispatcher = New(o)
	r.consumer = r.dispatcher
	t.Cleanup(func() {
		if err := r.dispatcher.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if n := r.leased(); n != 0 {
			t.Errorf("%d deliveries are still leased after Stop", n)
		}
		if !r.dispatcher.Idle() && !t.Failed() {
			t.Error("backlogs are remembered after Stop")
		}
	})
	return r
}

var start = time.Date(2024, 2, 28, 0, 0, 0, 0, time.UTC)

func advance(t testing.TB, v *clock.Virtual, d time.Duration) {
	t.Helper()
	if _, err := v.Advance(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// The stand-in and the real one have the same shape.
var (
	_ Engine = (*engine)(nil)
	_ Engine = (*shard.Engine)(nil)
)
