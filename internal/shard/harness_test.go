package shard_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/topic"
)

// queueIn is a queue that a shard has, whose lock is held.
func queueIn(sh interface{ OfQueues() *queues.Shard }, a arn.ARN) *queues.Queue {
	qs, _ := sh.OfQueues().Queue(a)
	return qs
}

// pump is a consumer that does its work when told to: it carries SQS
// deliveries to their queues, and lets the script decide about the rest.
type pump struct {
	engine *shard.Engine
	mu     sync.Mutex
	ready  []arn.ARN
	decide func(d *backlog.Delivery) // for what is no SQS delivery
	every  bool                      // or for all
	newID  func() message.ID
}

func (p *pump) Ready(sub arn.ARN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.ready, sub) {
		p.ready = append(p.ready, sub)
	}
}

// run takes until nothing is due.
func (p *pump) run(t testing.TB) (made int) {
	for {
		p.mu.Lock()
		if len(p.ready) == 0 {
			p.mu.Unlock()
			return made
		}
		slices.SortFunc(p.ready, func(a, b arn.ARN) int { return strings.Compare(a.Resource, b.Resource) })
		sub := p.ready[0]
		p.ready = p.ready[1:]
		p.mu.Unlock()
		for more := true; more; {
			var ds []*backlog.Delivery
			var err error
			ds, more, err = p.engine.Take(sub, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range ds {
				made++
				p.deliver(t, d)
			}
		}
	}
}

func (p *pump) deliver(t testing.TB, d *backlog.Delivery) {
	a := backlog.Attempt{At: time.UnixMilli(1), Outcome: "success"}
	if d.Subscription.Protocol != topic.SQS || p.every {
		p.decide(d)
		return
	}
	dest, err := arn.Parse(d.Subscription.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if d.Message.Notice.Replayed && d.Message.Notice.Sequence%5 == 4 && d.Attempt == 1 { // its group waits for the next one
		a.Outcome = "server-error"
		p.engine.Retry(d, a, p.engine.Clock.Now().Add(time.Second))
		return
	}
	m, _ := p.render(d.Message)
	if err := p.engine.Transfer(context.Background(), d, a, dest, m, backlog.DeliveryDelivered, ""); err != nil {
		p.engine.Drop(d, a, err.Error())
	}
}

// render is what a queue gets of a notification.
func (p *pump) render(n *message.Message) (*message.Message, error) {
	m := &message.Message{ID: p.newID(), Sender: n.Sender, Group: n.Group, Dedup: n.Dedup, Body: n.Body}
	m.Seal()
	return m, nil
}

// script draws a random history of commands and runs it on engines; what each
// command answers goes to a transcript.
type script struct {
	t        testing.TB
	rand     *rand.Rand
	clock    *clock.Virtual
	engine   *shard.Engine
	pump     *pump
	ids      int
	rendered int
	handles  []string
	queues   []string
	topics   []string
	out      []string

	subscribed arn.ARN // b's subscription; zero without one
	ordered    arn.ARN // a.fifo's
	web        arn.ARN // the subscription of an endpoint
	paused     bool    // the endpoint's subscription is
}

var queueB = queues.QueueSpec{ARN: shardtest.QueueARN("b"), Attributes: map[string]string{"MessageRetentionPeriod": "60"}}

func newScript(t testing.TB, seed uint64, c *clock.Virtual) *script {
	s := &script{t: t, rand: rand.New(rand.NewPCG(seed, 1)), clock: c, queues: []string{"a", "b", "dlq", "a.fifo", "dlq.fifo"}, topics: []string{"t"}}
	s.pump = &pump{newID: s.nextID, decide: s.decide}
	return s
}

// nextID is the id of what a queue gets of a notification; what the script draws does not
// hang on how many there were.
func (s *script) nextID() message.ID {
	s.rendered++
	return shardtest.MessageID(1_000_000 + s.rendered)
}

func (s *script) attach(e *shard.Engine) {
	s.engine, s.pump.engine = e, e
	e.SetConsumer("sns", s.pump)
	s.pump.run(s.t)
}

func (s *script) say(format string, args ...any) { s.out = append(s.out, fmt.Sprintf(format, args...)) }

// decide fails three attempts of each HTTP delivery, a second apart, and then
// drops it or delivers it.
func (s *script) decide(d *backlog.Delivery) {
	a := backlog.Attempt{At: s.clock.Now(), Outcome: "server-error", Status: 503}
	s.say("attempt %d of %s", d.Attempt, d.Message.Body)
	switch {
	case d.Message.Notice.Kind != message.Notification:
		s.engine.Delivered(d, a)
	case d.Attempt < 4:
		s.engine.Retry(d, a, s.clock.Now().Add(time.Second))
	case len(d.Message.Body)%2 == 0:
		s.engine.Delivered(d, a)
	default:
		s.engine.Drop(d, a, "exhausted")
	}
}

func (s *script) setup() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("dlq")}))
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("a"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("dlq").String() + `","maxReceiveCount":2}`, "VisibilityTimeout": "5",
	}}))
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("dlq.fifo"), Attributes: map[string]string{"FifoQueue": "true"}}))
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("a.fifo"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("dlq.fifo").String() + `","maxReceiveCount":2}`, "FifoQueue": "true",
	}}))
	must(s.engine.CreateQueue(ctx, queueB))
	must(s.engine.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t.fifo"), Attributes: map[string]string{
		"FifoTopic": "true", "ArchivePolicy": `{"MessageRetentionPeriod":"1"}`,
	}}))
	// Not of a standard queue: which tenant is to wait a restart forgets.
	shardtest.Subscribe(s.t, s.engine, "t.fifo", "dlq.fifo", "00000000-0000-4000-8000-000000000004")
	s.ordered = shardtest.Subscribe(s.t, s.engine, "t.fifo", "a.fifo", "00000000-0000-4000-8000-000000000005")
	s.setupTopic()
	s.settle()
}

// setupTopic creates the topic t with three subscriptions, the same ones each time.
func (s *script) setupTopic() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(s.engine.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}))
	shardtest.Subscribe(s.t, s.engine, "t", "a", "00000000-0000-4000-8000-000000000001")
	s.subscribed = shardtest.Subscribe(s.t, s.engine, "t", "b", "00000000-0000-4000-8000-000000000002")
	sub, err := s.engine.Subscribe(ctx, topic.Subscribe{
		Topic: shardtest.TopicARN("t"), Owner: shardtest.Account, Protocol: "http", Endpoint: "http://127.0.0.1:1/x",
		ID: "00000000-0000-4000-8000-000000000003", Token: "secret",
	})
	must(err)
	_, err = s.engine.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: "secret"})
	must(err)
	s.web, s.paused = sub.ARN, false
	s.say("subscribed %s", sub.ARN)
}

// settle lets everything that is due happen, in the order of time.
func (s *script) settle() {
	for {
		made := s.pump.run(s.t)
		s.engine.Background.Wait()
		if made == 0 {
			return
		}
	}
}

// step runs one random command.
func (s *script) step() {
	ctx := context.Background()
	q := shardtest.QueueARN(s.queues[s.rand.IntN(len(s.queues))])
	switch n := s.rand.IntN(100); {
	case n < 30:
		msgs := make([]queues.Outgoing, 1+s.rand.IntN(5))
		for i := range msgs {
			s.ids++
			msgs[i] = queues.Outgoing{Message: shardtest.NewMessage(s.ids, fmt.Sprintf("sent %d", s.ids)), Delay: -1}
			if q.FIFO() {
				msgs[i].Message.Group, msgs[i].Message.Dedup = fmt.Sprint(s.rand.IntN(3)), fmt.Sprint(s.ids-s.rand.IntN(2))
			} else if s.rand.IntN(4) == 0 {
				msgs[i].Delay = time.Duration(s.rand.IntN(3000)) * time.Millisecond
			}
		}
		r, err := s.engine.Send(ctx, q, msgs)
		s.say("send to %s: %v %v", q.Resource, r, err)
	case n < 60:
		got, err := s.engine.Receive(ctx, queues.ReceiveRequest{
			Queue: q, Max: 1 + s.rand.IntN(10), Visibility: time.Duration(s.rand.IntN(4000)) * time.Millisecond,
		})
		s.say("receive from %s: %v", q.Resource, err)
		for _, m := range got {
			s.say("  %s %s receives %d source %q seq %d", m.ID, m.Body, m.Receives, m.Source, m.Sequence)
			s.handles = append(s.handles, q.Resource+" "+m.ReceiptHandle)
		}
	case n < 75 && len(s.handles) > 0:
		name, h, _ := strings.Cut(s.handles[s.rand.IntN(len(s.handles))], " ")
		errs, err := s.engine.DeleteMessages(ctx, shardtest.QueueARN(name), []string{h})
		s.say("delete from %s: %v %v", name, cmp.Or(errs...) != nil, err)
	case n < 82 && len(s.handles) > 0:
		name, h, _ := strings.Cut(s.handles[s.rand.IntN(len(s.handles))], " ")
		errs, err := s.engine.ChangeVisibility(ctx, shardtest.QueueARN(name), []queues.VisibilityChange{{Handle: h, Timeout: time.Duration(s.rand.IntN(3)) * time.Second}})
		for _, err := range errs {
			s.say("change in %s: %v", name, err != nil)
		}
		_ = err
	case n < 86:
		s.ids++
		r, err := s.engine.Publish(ctx, shardtest.TopicARN("t.fifo"), shard.Publication{
			ID: shardtest.MessageID(s.ids), Body: fmt.Appendf(nil, "in order %d", s.ids), Group: fmt.Sprint(s.rand.IntN(3)),
			Dedup: fmt.Sprint("once ", s.ids-s.rand.IntN(2)),
		})
		s.say("publish in order: %v %v", r, err)
	case n < 90:
		s.ids++
		_, err := s.engine.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(s.ids), Body: []byte(fmt.Sprintf("published %d", s.ids))})
		s.say("publish: %v", err)
	case n < 95:
		s.reconfigure()
	default:
		d := time.Duration(s.rand.IntN(8000)) * time.Millisecond
		for range 8 { // in pieces, so that the pump gets its turn
			if _, err := s.clock.Advance(ctx, d/8); err != nil {
				s.t.Fatal(err)
			}
			s.settle()
		}
	}
	s.settle()
	for _, name := range s.queues {
		info, err := s.engine.QueueInfo(ctx, shardtest.QueueARN(name))
		s.say("%s: %+v %v", name, info.Counts, err)
		tasks, err := s.engine.MoveTasks(ctx, shardtest.QueueARN(name), 2)
		s.say("tasks %+v %v", tasks, err != nil)
	}
}

// reconfigure changes what there is: the queue b, its subscription,
// attributes of the queue a, b's policy, or the topic t, which is deleted and
// created again.
func (s *script) reconfigure() {
	ctx := context.Background()
	switch s.rand.IntN(10) {
	default:
		s.operate()
	case 3:
		s.togglePause()
	case 4:
		for _, sub := range []arn.ARN{s.web, s.ordered} {
			n, err := s.engine.RetryAllNow(ctx, sub)
			s.say("retried %d %v", n, err)
		}
	case 5:
		s.evict(s.web, shardtest.QueueARN("dlq"))
		s.evict(s.ordered, shardtest.QueueARN("dlq.fifo"))
	case 7:
		policy := "{}"
		if s.rand.IntN(4) > 0 {
			from := s.clock.Now().Add(-time.Duration(s.rand.IntN(20)) * time.Second)
			policy = fmt.Sprintf(`{"PointType":"Timestamp","StartingPoint":"%s"}`, from.Format(time.RFC3339Nano))
		}
		s.say("replay %s: %v", policy, s.engine.SetSubscriptionAttribute(ctx, s.ordered, "ReplayPolicy", policy))
		s.engine.Background.Wait() // else it is open how far it has come when the pump begins
	case 8: // with what waits in its backlogs
		s.say("delete t: %v", s.engine.DeleteTopic(ctx, shardtest.TopicARN("t")))
		s.setupTopic()
	case 0:
		err := s.engine.DeleteQueue(ctx, queueB.ARN)
		s.say("delete b: %v", err)
		if err != nil {
			s.say("create b: %v", s.engine.CreateQueue(ctx, queueB))
		}
	case 1:
		if !s.subscribed.IsZero() {
			s.say("unsubscribe b: %v", s.engine.Unsubscribe(ctx, topic.Unsubscribe{Subscription: s.subscribed, Authenticated: true}))
			s.subscribed = arn.ARN{}
			return
		}
		s.ids++
		s.subscribed = shardtest.Subscribe(s.t, s.engine, "t", "b", fmt.Sprintf("00000000-0000-4000-8000-%012d", s.ids))
	case 2:
		err := s.engine.SetQueueAttributes(ctx, shardtest.QueueARN("a"), map[string]string{
			"RedrivePolicy":          fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":%d}`, shardtest.QueueARN("dlq"), 1+s.rand.IntN(3)),
			"MessageRetentionPeriod": fmt.Sprint(60 + s.rand.IntN(60)),
		})
		s.say("configure a: %v", err)
	case 6:
		// Not of a: ids are drawn in the order of subscriptions, and a forbidden
		// delivery draws one later where publishes are delivered at once.
		doc := [...]string{"", admitting(queueB.ARN, shardtest.TopicARN("t")), admitting(queueB.ARN, shardtest.TopicARN("u"))}[s.rand.IntN(3)]
		s.say("policy of b: %v", s.engine.SetQueueAttributes(ctx, queueB.ARN, map[string]string{"Policy": doc}))
	}
}
