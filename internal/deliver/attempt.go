package deliver

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

// attempt makes one attempt and concludes it. parked is a dead letter whose
// queue cannot take it now; slow says that the host hung.
func (s *Scheduler) attempt(d *shard.Delivery) (parked *move, slow bool) {
	if !s.engine.Current(d) {
		s.engine.Release(d) // nobody is to get it any more
		return nil, false
	}
	r, err := s.request(d)
	at, began := s.clock.Now(), s.options.System.Now()
	deadline := deadlineOf(d)
	if expired(deadline, at) { // between the choice and now
		return s.fail(d, shard.Attempt{}, Event{GaveUp: true}, reasonExpired), false
	}
	out := Outcome{Class: ServerError, Detail: "internal error: no signature"}
	if err == nil {
		r.At = at
		out = s.send(r)
	}
	slow = s.options.System.Now().Sub(began) >= slowAfter
	if s.attempts.Err() != nil && out.Class != Success {
		// Cut off by Stop: it says nothing about the endpoint, and does not count.
		s.engine.Release(d)
		return nil, slow
	}

	a := shard.Attempt{At: at, Outcome: out.Class.String(), Status: out.Status, Detail: out.Detail, Latency: out.Latency}
	j := spread{}
	if s.options.Jitter != nil && s.options.JitterShare > 0 && out.Class == ServerError {
		j = spread{share: s.options.JitterShare, r: s.options.Jitter.Float64()}
	}
	switch next := decide(d.Retry, d.Attempt, out, s.clock.Now(), deadline, j); next.Step {
	case Done:
		if !out.Settled {
			s.engine.Delivered(d, a)
		}
		s.tell(d, Event{Made: true, Attempt: a, Provider: out.Provider, State: shard.DeliveryDelivered})
	case Again:
		s.engine.Retry(d, a, next.Due)
		s.tell(d, Event{Made: true, Attempt: a, Provider: out.Provider, State: shard.DeliveryPending, NextAttempt: next.Due})
	case Fail:
		parked = s.fail(d, a, Event{GaveUp: true, Made: true, Attempt: a, Provider: out.Provider}, next.Reason)
	}
	return parked, slow
}

// send makes the attempt itself, within its time.
func (s *Scheduler) send(r *Request) Outcome {
	sender, ok := s.options.Senders[r.Subscription.Protocol]
	if !ok || r.Message.Notice == nil {
		return Outcome{Class: ClientError, Detail: "there is no way to deliver such a message"}
	}
	ctx, cancel := context.WithTimeout(s.attempts, s.options.Timeout)
	defer cancel()
	return sender.Send(ctx, r)
}

// Signer signs envelopes: *signing.Signer.
type Signer interface {
	// Key is the id of the key that signs now.
	Key() [16]byte
	// Sign puts into a body the signature that it lacks, the same each time.
	// While the first key is being made it waits.
	Sign(body []byte, u *message.Unsigned) error
}

// issuer is this server as the envelope of m shows it.
func (s *Scheduler) issuer(m *message.Message) envelope.Issuer {
	o := envelope.Issuer{URL: s.options.PublicURL}
	if s.options.Signer != nil && m.Notice != nil && envelope.Signed(m) {
		o.Key = s.options.Signer.Key()
	}
	return o
}

// request prepares an attempt. What leaves this process is rendered and signed
// here, outside of the attempt's time; what goes to a queue is signed when it is
// received.
func (s *Scheduler) request(d *shard.Delivery) (*Request, error) {
	r := &Request{Delivery: d, Issuer: s.issuer(d.Message), NewID: s.options.NewID}
	sender, ok := s.options.Senders[d.Subscription.Protocol]
	if r.Issuer.Key == [16]byte{} || !ok || sender.Local() {
		return r, nil
	}
	var unsigned *message.Unsigned
	r.body, unsigned = envelope.Body(d.Message, r.Issuer)
	if envelope.Reuse(r.body, unsigned, d.Signature) {
		return r, nil
	}
	err := s.options.Signer.Sign(r.body, unsigned)
	if err == nil {
		d.Signature = envelope.Keep(r.body, unsigned)
	}
	return r, err
}

// move is a dead letter that waits for its queue. It is kept in memory, with the
// delivery still leased: a restart forgets why it failed, and it gets one more
// attempt, which is no loss.
type move struct {
	d      *shard.Delivery
	a      shard.Attempt // not in the history yet; zero if none was made
	reason string        // why the delivery failed
	at     time.Time
}

// fail ends a delivery for good: it becomes a dead letter if its subscription
// has a queue for those, and is dropped if not. Only notifications become dead
// letters. a is the last attempt, zero if there was none; e is what is to be told
// of how it came to that. parked is returned if the queue cannot take it now.
func (s *Scheduler) fail(d *shard.Delivery, a shard.Attempt, e Event, reason string) (parked *move) {
	n, dest := d.Message.Notice, d.Subscription.DeadLetters()
	if n == nil || n.Kind != message.Notification || dest.IsZero() {
		s.drop(d, a, e, reason)
		return nil
	}
	m := envelope.DeadLetter(d.Message, s.options.NewID(), s.issuer(d.Message), d.Subscription.Protocol == topic.SQS)
	out := TransferOutcome(s.engine.Transfer(s.attempts, d, a, dest, m, shard.DeliveryDeadLetter, reason))
	e.Redrive, e.Redrive.ID = out.Provider, m.ID
	switch out.Class {
	case Success:
		e.State, e.Reason = shard.DeliveryDeadLetter, reason
		s.tell(d, e)
	case ClientError:
		e.RedriveFailed = true
		s.drop(d, a, e, reason+"; dead-letter queue: "+out.Detail)
	case ServerError:
		if s.attempts.Err() != nil {
			s.engine.Release(d)
			return nil
		}
		e.State, e.RedriveFailed, e.Reason = shard.DeliveryPending, true, reason+"; dead-letter queue: "+out.Detail
		s.tell(d, e)
		return &move{d: d, a: a, reason: reason, at: s.clock.Now().Add(redriveWait)}
	}
	return nil
}

func (s *Scheduler) drop(d *shard.Delivery, a shard.Attempt, e Event, reason string) {
	s.engine.Drop(d, a, reason)
	e.State, e.Reason = shard.DeliveryDropped, reason
	s.tell(d, e)
}

// park keeps a dead letter for its next try. The caller has the lock.
func (s *Scheduler) park(b *backlog, m *move) {
	if !s.stopping {
		b.parked = append(b.parked, m)
		return
	}
	b.working++
	s.mu.Unlock()
	s.engine.Release(m.d)
	s.mu.Lock()
	b.working--
}

// retryMoves begins another try at the parked dead letters that are due, one
// after the other. The caller has the lock.
func (s *Scheduler) retryMoves(b *backlog, now time.Time) {
	if b.moving {
		return
	}
	for i, m := range b.parked {
		if m.at.After(now) {
			continue
		}
		b.parked = append(b.parked[:i:i], b.parked[i+1:]...)
		b.moving = true
		s.work(b, func() { b.moving = false }, func() *move {
			return s.fail(m.d, m.a, Event{}, m.reason) // the failure itself has been told
		})
		return
	}
}
