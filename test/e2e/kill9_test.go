package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// visibility is that of all queues, in the form of attributes too.
const (
	visibility = time.Second
	seconds    = "1"
)

// What the queues are there for.
const (
	plainQueue    = "plain"    // sends
	workQueue     = "work"     // sends; received three times at most
	deadQueue     = "work-dlq" // what work gave up
	rawQueue      = "raw"      // publishes, bare
	envelopeQueue = "envelope" // publishes
	filteredQueue = "filtered" // publishes of two kinds of three
	purgedQueue   = "purged"   // sends; nobody receives, it is purged
)

// Accounting of an entry is by the queue that a message first comes to, so
// that of work-dlq is work's.
var originOf = map[string]string{
	plainQueue: plainQueue, workQueue: workQueue, deadQueue: workQueue,
	rawQueue: rawQueue, envelopeQueue: envelopeQueue, filteredQueue: filteredQueue, purgedQueue: purgedQueue,
}

// publishKinds are the values of the attribute that the filter looks at; the
// last does not get through.
var publishKinds = []string{"confirmed", "canceled", "pending"}

// siege is the load of standard queues and topics on a server that is killed again and
// again.
type siege struct {
	*ledger
	*server
	topic        string
	subscription map[string]string // by queue, and "sink"
	sink         *sink
	next         atomic.Int64 // numbers bodies

	published sync.Map // body → struct{}: acknowledged publishes
}

func newSiege(t *testing.T, on *server) *siege {
	// The endpoint refuses one attempt in eight, so that retries are under way
	// at every kill.
	refuse := on.random()
	s := &siege{ledger: newLedger(), server: on, subscription: map[string]string{}}
	s.sink = newSink(t, func(string) int {
		if refuse.IntN(8) == 0 {
			return 503
		}
		return 200
	})
	return s
}

func (s *siege) prepare(t *testing.T) {
	s.p.createQueue(t, plainQueue, "VisibilityTimeout", seconds)
	s.p.createQueue(t, purgedQueue, "VisibilityTimeout", seconds)
	s.p.createQueue(t, deadQueue, "VisibilityTimeout", seconds)
	s.p.createQueue(t, workQueue, "VisibilityTimeout", seconds,
		"RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN(deadQueue)+`","maxReceiveCount":3}`)
	s.topic = s.p.createTopic(t, "orders")
	for queue, attributes := range map[string][]string{
		rawQueue:      {"RawMessageDelivery", "true"},
		envelopeQueue: nil,
		filteredQueue: {"FilterPolicy", `{"kind":["` + strings.Join(publishKinds[:2], `","`) + `"]}`},
	} {
		s.p.createQueue(t, queue, "VisibilityTimeout", seconds)
		s.subscription[queue] = s.p.subscribe(t, s.topic, "sqs", queueARN(queue), attributes...)
	}
	s.subscription["sink"] = s.p.subscribeSink(t, s.topic, s.sink, "DeliveryPolicy",
		`{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":100,"numNoDelayRetries":5}}`)
}

// attack runs clients until ctx ends or the server is gone.
func (s *siege) attack(ctx context.Context, clients *sync.WaitGroup) {
	run := func(f func(ctx context.Context, r *rand.Rand) error) {
		r := s.random()
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := f(ctx, r); err != nil {
					s.explain(err)
					return
				}
			}
		})
	}
	for range 2 {
		run(s.sendOne(plainQueue))
		run(s.publishOne)
	}
	run(s.sendBatch(plainQueue, 10))
	run(s.sendBatch(workQueue, 2))                             // few enough that what is given back has its turn
	for _, queue := range slices.Sorted(maps.Keys(originOf)) { // the draws repeat
		if queue != purgedQueue {
			run(s.receiver(queue))
		}
	}
	run(s.sendAndPurge)
	run(s.receiver(plainQueue))
	run(s.receiver(workQueue))
}

func (s *siege) worked(lives int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total.owed < 10*lives || s.total.deleted < 4*lives {
		return fmt.Errorf("%d messages are owed, and %d deleted, in %d lives", s.total.owed, s.total.deleted, lives)
	}
	return nil
}

func (s *siege) check(t *testing.T) {
	s.drain(t)
	s.close(t)
}

// explain complains about an error that the kill does not explain.
func (s *siege) explain(err error) {
	if r, ok := errors.AsType[*refusal](err); ok {
		s.note("refused: %v", r)
	} else if !s.dying.Load() {
		s.note("while the server ran: %v", err)
	}
}

// body makes a message that there is only once.
func (s *siege) body(r *rand.Rand, kind string) string {
	return fmt.Sprintf("%s-%07d|%s", kind, s.next.Add(1), strings.Repeat("x", r.IntN(600)))
}

// delay hides one message in ten for a second.
func delay(r *rand.Rand) int {
	if r.IntN(10) == 0 {
		return 1
	}
	return 0
}

// sendOne makes a client that sends messages one by one.
func (s *siege) sendOne(queue string) func(ctx context.Context, r *rand.Rand) error {
	return func(ctx context.Context, r *rand.Rand) error {
		body := s.body(r, "send")
		s.sending(queue, body, false)
		var out struct{ MessageId string }
		err := s.p.sqs(ctx, "SendMessage", object{
			"QueueUrl": s.p.queueURL(queue), "MessageBody": body, "DelaySeconds": delay(r),
		}, &out)
		if err != nil {
			return err
		}
		s.promised(queue, body, out.MessageId)
		return nil
	}
}

// sendAndPurge sends to a queue of its own, and purges it now and then.
func (s *siege) sendAndPurge(ctx context.Context, r *rand.Rand) error {
	if r.IntN(5) > 0 {
		return s.sendOne(purgedQueue)(ctx, r)
	}
	bodies := s.deletingAll(purgedQueue)
	if err := s.p.sqs(ctx, "PurgeQueue", object{"QueueUrl": s.p.queueURL(purgedQueue)}, nil); err != nil {
		return err
	}
	for _, body := range bodies {
		s.deleted(purgedQueue, body)
	}
	return nil
}

// sendBatch makes a client that sends batches of up to a size.
func (s *siege) sendBatch(queue string, most int) func(ctx context.Context, r *rand.Rand) error {
	return func(ctx context.Context, r *rand.Rand) error {
		entries := make([]object, 1+r.IntN(most))
		bodies := map[string]string{}
		for i := range entries {
			id, body := fmt.Sprint("e", i), s.body(r, "batch")
			bodies[id] = body
			entries[i] = object{"Id": id, "MessageBody": body}
			s.sending(queue, body, false)
		}
		var out struct {
			Successful []struct{ Id, MessageId string }
			Failed     []object
		}
		err := s.p.sqs(ctx, "SendMessageBatch", object{"QueueUrl": s.p.queueURL(queue), "Entries": entries}, &out)
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 || len(out.Successful) != len(entries) {
			s.note("SendMessageBatch of %d: %d successful, failed: %v", len(entries), len(out.Successful), out.Failed)
		}
		for _, done := range out.Successful {
			s.promised(queue, bodies[done.Id], done.MessageId)
		}
		return nil
	}
}

func (s *siege) publishOne(ctx context.Context, r *rand.Rand) error {
	which := r.IntN(len(publishKinds))
	kind := publishKinds[which]
	body := s.body(r, kind)
	filtered := which == len(publishKinds)-1
	for queue := range s.subscription {
		if queue != "sink" {
			s.sending(queue, body, queue == filteredQueue && filtered)
		}
	}
	if _, err := s.p.publish(ctx, s.topic, body, kind); err != nil {
		return err
	}
	s.published.Store(body, struct{}{})
	for queue := range s.subscription {
		if queue != "sink" && (queue != filteredQueue || !filtered) {
			s.promised(queue, body, "") // the answer's id is the notification's
		}
	}
	return nil
}

// receiver makes a client that receives from a queue. Most of what it gets it
// deletes; the rest it gives back at once, or forgets.
func (s *siege) receiver(queue string) func(ctx context.Context, r *rand.Rand) error {
	url := s.p.queueURL(queue)
	return func(ctx context.Context, r *rand.Rand) error {
		began := time.Now()
		got, err := s.take(ctx, queue, 1)
		if err != nil {
			return err
		}
		var remove []message
		for _, m := range got {
			fate := r.IntN(10)
			if queue == workQueue {
				fate /= 2 // more of it is to become dead letters
			}
			switch fate {
			case 0, 1:
			case 2, 3:
				if err := s.p.sqs(ctx, "ChangeMessageVisibility", object{
					"QueueUrl": url, "ReceiptHandle": m.ReceiptHandle, "VisibilityTimeout": 0,
				}, nil); err != nil && (!gone(err) || !s.mayBeGone(queue, m, began)) {
					return err
				}
			default:
				remove = append(remove, m)
			}
		}
		if len(remove) > 1 && r.IntN(2) == 0 {
			return s.removeAll(ctx, queue, remove, began)
		}
		for _, m := range remove {
			if err := s.removeOne(ctx, queue, m, began); err != nil {
				return err
			}
		}
		return nil
	}
}

// leased reports that no other receive can have had what one gave that began at some time.
func leased(began time.Time) bool { return time.Since(began) < visibility }

// mayBeGone reports that a message may have left its queue since a receive gave it that began at some
// time: another client deletes it, by the handle of another receive, or it is a dead letter.
func (s *siege) mayBeGone(queue string, m message, began time.Time) bool {
	return s.deletionTried(originOf[queue], m.Body) || queue == workQueue && !leased(began)
}

// gone reports that a call was refused since the message is not there, or on its way to the
// dead-letter queue.
func gone(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && (strings.HasSuffix(r.code, "#MessageNotInflight") ||
		strings.HasSuffix(r.code, "#InvalidParameterValueException") && strings.Contains(r.message, "does not exist"))
}

// take receives and puts what came into the ledger. The bodies of what it
// returns are those that were sent or published.
func (s *siege) take(ctx context.Context, queue string, wait int) ([]message, error) {
	began := time.Now()
	got, err := s.p.receive(ctx, s.p.queueURL(queue), wait)
	if err != nil {
		return nil, err
	}
	for i := range got {
		m := &got[i]
		if queue == envelopeQueue || queue == filteredQueue {
			n, err := openEnvelope(m.Body)
			if err != nil || n.Type != "Notification" {
				s.note("%s: no envelope: %q", queue, m.Body)
			}
			m.Body = n.Message
		}
		s.received(originOf[queue], queue == deadQueue, m.Body, m.MessageId, began)
	}
	return got, nil
}

// removeOne deletes a message that a receive gave that began at some time.
func (s *siege) removeOne(ctx context.Context, queue string, m message, began time.Time) error {
	s.deleting(originOf[queue], m.Body)
	err := s.p.sqs(ctx, "DeleteMessage", object{"QueueUrl": s.p.queueURL(queue), "ReceiptHandle": m.ReceiptHandle}, nil)
	if err != nil {
		return err
	}
	s.removed(queue, m, began)
	return nil
}

// removed notes that a delete was acknowledged. One from work that may have come too late may have
// found the message gone to the dead-letter queue, where it stays.
func (s *siege) removed(queue string, m message, began time.Time) {
	if queue != workQueue || leased(began) {
		s.deleted(originOf[queue], m.Body)
	}
}

func (s *siege) removeAll(ctx context.Context, queue string, messages []message, began time.Time) error {
	entries := make([]object, len(messages))
	for i, m := range messages {
		s.deleting(originOf[queue], m.Body)
		entries[i] = object{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle}
	}
	var out struct{ Successful, Failed []object }
	err := s.p.sqs(ctx, "DeleteMessageBatch", object{"QueueUrl": s.p.queueURL(queue), "Entries": entries}, &out)
	if err != nil {
		return err
	}
	if len(out.Failed) > 0 || len(out.Successful) != len(entries) {
		s.note("DeleteMessageBatch of %d: %d successful, failed: %v", len(entries), len(out.Successful), out.Failed)
	}
	for _, m := range messages {
		s.removed(queue, m, began)
	}
	return nil
}

// drain takes everything out of all queues, once all deliveries have been
// made, and sees that the endpoint has got what was published.
func (s *siege) drain(t *testing.T) {
	for name, subscription := range s.subscription {
		eventually(t, "deliveries to "+name+" are made", func() (bool, error) {
			n := s.p.pending(t, subscription)
			return n == 0, fmt.Errorf("%d are pending", n)
		})
	}
	s.published.Range(func(key, _ any) bool {
		if _, taken := s.sink.count(key.(string)); taken == 0 {
			s.note("the endpoint never took %s, and it is not pending", shorten(key.(string)))
		}
		return true
	})
	// work goes first: what it gives up comes to work-dlq.
	for _, queue := range []string{workQueue, deadQueue, plainQueue, rawQueue, envelopeQueue, filteredQueue, purgedQueue} {
		eventually(t, queue+" is empty", func() (bool, error) {
			for began := time.Now(); time.Since(began) < testTimeout; {
				asked := time.Now()
				got, err := s.take(t.Context(), queue, 0)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) == 0 {
					break
				}
				if err := s.removeAll(t.Context(), queue, got, asked); err != nil {
					t.Fatal(err)
				}
			}
			left := s.p.counts(t, s.p.queueURL(queue))
			return left == [3]int{}, fmt.Errorf("it has %v visible, in flight, delayed", left)
		})
	}
}
