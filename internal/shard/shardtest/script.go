package shardtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/topic"
)

// Script draws a random history of commands and runs it on engines; what each
// command answers goes to a transcript.
type Script struct {
	t        testing.TB
	rand     *rand.Rand
	clock    *clock.Virtual
	engine   *shard.Engine
	Pump     *Pump
	ids      int
	rendered int
	handles  []string
	Queues   []string
	Out      []string

	subscribed arn.ARN // b's subscription; zero without one
	ordered    arn.ARN // a.fifo's
	web        arn.ARN // the subscription of an endpoint
	paused     bool    // the endpoint's subscription is
}

var queueB = queues.QueueSpec{ARN: QueueARN("b"), Attributes: map[string]string{"MessageRetentionPeriod": "60"}}

// NewScript makes one on a clock, without an engine.
func NewScript(t testing.TB, seed uint64, c *clock.Virtual) *Script {
	s := &Script{t: t, rand: rand.New(rand.NewPCG(seed, 1)), clock: c, Queues: []string{"a", "b", "dlq", "a.fifo", "dlq.fifo"}}
	s.Pump = &Pump{NewID: s.NextID, Decide: s.decide}
	return s
}

// NextID is the id of what a queue gets of a notification; what the script draws does not
// hang on how many there were.
func (s *Script) NextID() message.ID {
	s.rendered++
	return MessageID(1_000_000 + s.rendered)
}

// Attach continues with an engine, whose consumer it becomes.
func (s *Script) Attach(e *shard.Engine) {
	s.engine, s.Pump.Engine = e, e
	e.SetConsumer("sns", s.Pump)
	s.Pump.Run(s.t)
}

func (s *Script) say(format string, args ...any) { s.Out = append(s.Out, fmt.Sprintf(format, args...)) }

// decide fails three attempts of each HTTP delivery, a second apart, and then
// drops it or delivers it.
func (s *Script) decide(d *backlog.Delivery) {
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

// Setup makes what the history is about.
func (s *Script) Setup() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: QueueARN("dlq")}))
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: QueueARN("a"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + QueueARN("dlq").String() + `","maxReceiveCount":2}`, "VisibilityTimeout": "5",
	}}))
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: QueueARN("dlq.fifo"), Attributes: map[string]string{"FifoQueue": "true"}}))
	must(s.engine.CreateQueue(ctx, queues.QueueSpec{ARN: QueueARN("a.fifo"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + QueueARN("dlq.fifo").String() + `","maxReceiveCount":2}`, "FifoQueue": "true",
	}}))
	must(s.engine.CreateQueue(ctx, queueB))
	must(s.engine.CreateTopic(ctx, topic.CreateTopic{ARN: TopicARN("t.fifo"), Attributes: map[string]string{
		"FifoTopic": "true", "ArchivePolicy": `{"MessageRetentionPeriod":"1"}`,
	}}))
	// Not of a standard queue: which tenant is to wait a restart forgets.
	Subscribe(s.t, s.engine, "t.fifo", "dlq.fifo", "00000000-0000-4000-8000-000000000004")
	s.ordered = Subscribe(s.t, s.engine, "t.fifo", "a.fifo", "00000000-0000-4000-8000-000000000005")
	s.setupTopic()
	s.RunDue()
}

// setupTopic creates the topic t with three subscriptions, the same ones each time.
func (s *Script) setupTopic() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(s.engine.CreateTopic(ctx, topic.CreateTopic{ARN: TopicARN("t")}))
	Subscribe(s.t, s.engine, "t", "a", "00000000-0000-4000-8000-000000000001")
	s.subscribed = Subscribe(s.t, s.engine, "t", "b", "00000000-0000-4000-8000-000000000002")
	sub, err := s.engine.Subscribe(ctx, topic.Subscribe{
		Topic: TopicARN("t"), Owner: Account, Protocol: "http", Endpoint: "http://127.0.0.1:1/x",
		ID: "00000000-0000-4000-8000-000000000003", Token: "secret",
	})
	must(err)
	_, err = s.engine.ConfirmSubscription(ctx, topic.Confirm{Topic: TopicARN("t"), Token: "secret"})
	must(err)
	s.web, s.paused = sub.ARN, false
	s.say("subscribed %s", sub.ARN)
}

// RunDue runs everything that is due, in the order of time.
func (s *Script) RunDue() {
	for {
		made := s.Pump.Run(s.t)
		s.engine.AwaitIdle()
		if made == 0 {
			return
		}
	}
}

// Step runs one random command.
func (s *Script) Step() {
	ctx := context.Background()
	q := QueueARN(s.Queues[s.rand.IntN(len(s.Queues))])
	switch n := s.rand.IntN(100); {
	case n < 30:
		msgs := make([]queues.SendEntry, 1+s.rand.IntN(5))
		for i := range msgs {
			s.ids++
			msgs[i] = queues.SendEntry{Message: NewMessage(s.ids, fmt.Sprintf("sent %d", s.ids)), Delay: -1}
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
		errs, err := s.engine.DeleteMessages(ctx, QueueARN(name), []string{h})
		s.say("delete from %s: %v %v", name, cmp.Or(errs...) != nil, err)
	case n < 82 && len(s.handles) > 0:
		name, h, _ := strings.Cut(s.handles[s.rand.IntN(len(s.handles))], " ")
		errs, err := s.engine.ChangeVisibility(ctx, QueueARN(name), []queues.VisibilityChange{{Handle: h, Timeout: time.Duration(s.rand.IntN(3)) * time.Second}})
		for _, err := range errs {
			s.say("change in %s: %v", name, err != nil)
		}
		_ = err
	case n < 86:
		s.ids++
		r, err := s.engine.Publish(ctx, TopicARN("t.fifo"), shard.Publication{
			ID: MessageID(s.ids), Body: fmt.Appendf(nil, "in order %d", s.ids), Group: fmt.Sprint(s.rand.IntN(3)),
			Dedup: fmt.Sprint("once ", s.ids-s.rand.IntN(2)),
		})
		s.say("publish in order: %v %v", r, err)
	case n < 90:
		s.ids++
		_, err := s.engine.Publish(ctx, TopicARN("t"), shard.Publication{ID: MessageID(s.ids), Body: []byte(fmt.Sprintf("published %d", s.ids))})
		s.say("publish: %v", err)
	case n < 95:
		s.reconfigure()
	default:
		d := time.Duration(s.rand.IntN(8000)) * time.Millisecond
		for range 8 { // in pieces, so that the pump runs in between
			if _, err := s.clock.Advance(ctx, d/8); err != nil {
				s.t.Fatal(err)
			}
			s.RunDue()
		}
	}
	s.RunDue()
	for _, name := range s.Queues {
		info, err := s.engine.QueueInfo(ctx, QueueARN(name))
		s.say("%s: %+v %v", name, info.Counts, err)
		tasks, err := s.engine.MoveTasks(ctx, QueueARN(name), 2)
		s.say("tasks %+v %v", tasks, err != nil)
	}
}

// reconfigure changes what there is: the queue b, its subscription,
// attributes of the queue a, b's policy, or the topic t, which is deleted and
// created again.
func (s *Script) reconfigure() {
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
		s.evict(s.web, QueueARN("dlq"))
		s.evict(s.ordered, QueueARN("dlq.fifo"))
	case 7:
		policy := "{}"
		if s.rand.IntN(4) > 0 {
			from := s.clock.Now().Add(-time.Duration(s.rand.IntN(20)) * time.Second)
			policy = fmt.Sprintf(`{"PointType":"Timestamp","StartingPoint":"%s"}`, from.Format(time.RFC3339Nano))
		}
		s.say("replay %s: %v", policy, s.engine.SetSubscriptionAttribute(ctx, s.ordered, "ReplayPolicy", policy))
		s.engine.AwaitIdle() // else it is open how far it has come when the pump begins
	case 8: // with what waits in its backlogs
		s.say("delete t: %v", s.engine.DeleteTopic(ctx, TopicARN("t")))
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
		s.subscribed = Subscribe(s.t, s.engine, "t", "b", fmt.Sprintf("00000000-0000-4000-8000-%012d", s.ids))
	case 2:
		err := s.engine.SetQueueAttributes(ctx, QueueARN("a"), map[string]string{
			"RedrivePolicy":          fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":%d}`, QueueARN("dlq"), 1+s.rand.IntN(3)),
			"MessageRetentionPeriod": fmt.Sprint(60 + s.rand.IntN(60)),
		})
		s.say("configure a: %v", err)
	case 6:
		// Not of a: ids are drawn in the order of subscriptions, and a forbidden
		// delivery draws one later where publishes are delivered at once.
		doc := [...]string{"", Admitting(queueB.ARN, TopicARN("t")), Admitting(queueB.ARN, TopicARN("u"))}[s.rand.IntN(3)]
		s.say("policy of b: %v", s.engine.SetQueueAttributes(ctx, queueB.ARN, map[string]string{"Policy": doc}))
	}
}

// operate is what an operator does in a random history: purge a queue, start
// and cancel a move task.
func (s *Script) operate() {
	ctx := context.Background()
	switch s.rand.IntN(4) {
	case 0:
		q := QueueARN(s.Queues[s.rand.IntN(len(s.Queues))])
		s.say("purge %s: %v", q.Resource, s.engine.PurgeQueue(ctx, q))
	case 1, 2:
		s.ids++
		spec := transfer.MoveTaskSpec{ID: fmt.Sprint("task ", s.ids), Source: QueueARN("dlq"), Rate: s.rand.IntN(2) * (1 + s.rand.IntN(4))}
		if s.rand.IntN(4) > 0 {
			spec.Destination = QueueARN([]string{"a", "b"}[s.rand.IntN(2)])
		}
		s.say("start %+v: %v", spec, s.engine.StartMoveTask(ctx, spec))
	case 3:
		id := "none"
		if tasks, err := s.engine.MoveTasks(ctx, QueueARN("dlq"), 1); err == nil && len(tasks) > 0 {
			id = tasks[0].ID
		}
		moved, err := s.engine.CancelMoveTask(ctx, QueueARN("dlq"), id)
		s.say("cancel %s: %d %v", id, moved, err)
	}
}

// togglePause is a step of a random history.
func (s *Script) togglePause() {
	ctx := context.Background()
	if s.paused = !s.paused; s.paused {
		s.say("pause: %v", s.engine.Pause(ctx, s.web))
	} else {
		s.say("resume: %v", s.engine.Resume(ctx, s.web))
	}
	info, err := s.engine.Backlog(ctx, s.web)
	s.say("backlog: %d due, %d waiting, oldest %s, %v", info.Due, info.Waiting, info.Oldest, err)
}

// evict is a step of a random history: one of the waiting deliveries goes to the
// dead-letter queue, or nowhere.
func (s *Script) evict(sub, dlq arn.ARN) {
	ctx := context.Background()
	ids, err := s.engine.Next(ctx, &backlog.Waiting{Subscription: sub})
	// Not their ids: what a publish delivers itself has no sequence in the backlog.
	s.say("waiting: %d %v", len(ids), err)
	if len(ids) == 0 {
		return
	}
	d, err := s.engine.Peek(ctx, sub, ids[s.rand.IntN(len(ids))])
	if err != nil {
		s.t.Fatal(err)
	}
	state := backlog.DeliveryDeadLetter
	m, _ := s.Pump.Render(d.Message)
	if s.rand.IntN(2) == 0 {
		dlq, m, state = arn.ARN{}, nil, backlog.DeliveryDropped
	}
	wait, err := s.engine.Remove(ctx, d, dlq, m, state, "a test")
	wait()
	s.say("evicted %s after %d: %s, %v", d.Message.Body, d.Attempt, state, err)
}
