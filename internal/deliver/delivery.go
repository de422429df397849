package deliver

import (
	"context"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/consume"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/internal/tracing"
)

// delivery is the delivery of a message in a subscription's backlog, from its lease until it
// is concluded. It implements consume.Work.
type delivery struct {
	*shard.Delivery
	dispatcher *Dispatcher

	deadline  time.Time     // zero: there is none
	made      shard.Attempt // not in the history yet; zero: there was none
	concluded bool          // the attempt itself has concluded the delivery
	event     Event         // emitted when the delivery is concluded
}

// Host is the host of the subscription's endpoint, which never changes.
func (d *delivery) Host() (pool *consume.Pool, name string) {
	sender, ok := d.dispatcher.options.Senders[d.Subscription.Protocol]
	if !ok {
		return d.dispatcher.local, "" // the attempt will fail with the cause
	}
	endpoint := d.Subscription.Endpoint
	if d.Direct() {
		endpoint = d.Subscription.ARN.String() // all endpoints of a platform application share a host
	}
	name = sender.Host(endpoint)
	if sender.Local() {
		return d.dispatcher.local, name
	}
	return d.dispatcher.outside, name
}

// Plan implements consume.Work.
func (d *delivery) Plan() consume.Plan {
	return consume.Plan{Rate: d.Throttle, Deadline: d.deadline, Ended: !d.Cause.IsZero()}
}

// Attempt sends the message, unless the subscription was deleted.
func (d *delivery) Attempt(ctx context.Context) consume.Result {
	deadline := d.deadline
	if consume.Expired(deadline, d.dispatcher.clock.Now()) {
		return d.fail(expiryOf(d.Delivery))
	}
	if !d.dispatcher.engine.Current(d.Delivery) {
		return consume.Result{Disposition: consume.Cancelled}
	}
	r, err := d.request()
	at, began := d.dispatcher.clock.Now(), d.dispatcher.options.System.Now()
	if consume.Expired(deadline, at) { // expired while it was being signed
		return d.fail(expiryOf(d.Delivery))
	}
	out := Outcome{Class: ServerError, Detail: "internal error: no signature"}
	if err == nil {
		r.At = at
		span := d.beginAttempt()
		r.Trace = span.Context()
		out = d.send(ctx, r)
		d.endAttempt(span, &out)
	}
	took := d.dispatcher.options.System.Now().Sub(began)
	if ctx.Err() != nil && out.Class != Success {
		// Cancelled by Stop: the attempt does not count, as it says nothing about the
		// endpoint.
		return consume.Result{Disposition: consume.Cancelled, Took: took}
	}
	d.made = shard.Attempt{At: at, Outcome: out.Class.String(), Status: out.Status, Detail: out.Detail, Latency: out.Latency}
	d.concluded = out.Concluded
	if out.Kept != nil {
		d.Kept = out.Kept
	}
	if out.Text != nil {
		d.Feedback = out.Text.Feedback
	}
	d.event = Event{Made: true, Attempt: d.made, Provider: out.Provider, Text: out.Text, Conclusion: Conclusion{State: shard.DeliveryPending}}
	next := d.next(out, deadline)
	next.Took = took
	return next
}

// next is what follows an attempt: decide, with what the delivery knows.
func (d *delivery) next(out Outcome, deadline time.Time) consume.Result {
	j := jitter{}
	if d.dispatcher.options.Jitter != nil && d.dispatcher.options.JitterShare > 0 && out.Class == ServerError {
		j = jitter{share: d.dispatcher.options.JitterShare, r: d.dispatcher.options.Jitter.Float64()}
	}
	policy, attempt := d.RetryPolicy, d.Delivery.Attempt
	if out.Throttled { // the attempts at a stream that was out of order are those of the other policy
		policy, attempt = retry.CustomerManaged, d.History.Ended(StreamThrottled)+1
	}
	next := decide(policy, attempt, out, d.dispatcher.clock.Now(), deadline, j)
	if next.Disposition == consume.Ended {
		return d.fail(next.Reason)
	}
	d.event.NextAttempt = next.Due
	return consume.Result{Disposition: next.Disposition, Due: next.Due}
}

// fail records the cause of a permanent failure.
func (d *delivery) fail(reason string) consume.Result {
	d.Cause = shard.Cause{Reason: reason, Attempt: d.Delivery.Attempt}
	d.event.GaveUp = true
	return consume.Result{Disposition: consume.Ended}
}

// send makes the attempt, within its timeout.
func (d *delivery) send(ctx context.Context, r *Request) Outcome {
	sender, ok := d.dispatcher.options.Senders[r.Subscription.Protocol]
	if !ok || r.Message.Notice == nil {
		return Outcome{Class: ClientError, Detail: "there is no way to deliver such a message"}
	}
	if d.Guard != nil && r.Message.Notice.Kind == message.Notification {
		if identifier := d.Guard.DeniedOutbound(string(r.Message.Body), subscriber(d.Delivery)); identifier != "" {
			return Outcome{
				Class: ClientError, Status: http.StatusForbidden, Detail: "the topic's data protection policy denies it: " + identifier,
				Provider: Provider{Status: http.StatusForbidden, Code: "AuthorizationError", Message: "The data protection policy of the topic denies the message."},
			}
		}
	}
	timeout := d.dispatcher.options.Timeout
	if timed, ok := sender.(Timed); ok {
		timeout = timed.AttemptTimeout()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return sender.Send(ctx, r)
}

// subscriber are the names of the subscriber in policies.
func subscriber(d *shard.Delivery) []string {
	owner := d.Subscription.Owner
	return []string{d.Subscription.Principal(), owner, arn.Root(owner).String()}
}

// request prepares an attempt. What leaves this process is rendered and signed here, before
// the attempt's timeout starts; a message to a queue is signed when it is received.
func (d *delivery) request() (*Request, error) {
	r := &Request{Delivery: d.Delivery, Issuer: d.dispatcher.issuer(d.Message), NewID: d.dispatcher.options.NewID}
	sender, ok := d.dispatcher.options.Senders[d.Subscription.Protocol]
	if r.Issuer.Key == [16]byte{} || !ok || sender.Local() || d.Subscription.Protocol.Device() {
		return r, nil
	}
	var unsigned *message.Unsigned
	r.body, unsigned = envelope.Body(d.Message, r.Issuer)
	if envelope.Reuse(r.body, unsigned, d.Kept) {
		return r, nil
	}
	err := d.dispatcher.options.Signer.Sign(r.body, unsigned)
	if err == nil {
		d.Kept = envelope.Keep(r.body, unsigned)
	}
	return r, err
}

// Ack implements consume.Work.
func (d *delivery) Ack() {
	if !d.concluded {
		d.dispatcher.engine.Delivered(d.Delivery, d.made)
	}
	d.emit(shard.DeliveryDelivered, "")
}

// Retry implements consume.Work.
func (d *delivery) Retry(due time.Time) {
	d.dispatcher.engine.Retry(d.Delivery, d.made, due)
	d.emit(shard.DeliveryPending, d.event.Reason)
}

// Release implements consume.Work.
func (d *delivery) Release() { d.dispatcher.engine.Release(d.Delivery) }

// HandOver moves a permanently failed delivery to its dead-letter queue. It is dropped if the
// subscription has none, or if the queue refuses it permanently.
func (d *delivery) HandOver(ctx context.Context) bool {
	reason := d.Cause.Reason
	var span *tracing.Span
	m, dest, err := d.dispatcher.toDeadLetters(d.Delivery, func(m *message.Message, dest arn.ARN) error {
		if span == nil {
			span = d.beginSpan(tracing.Producer, "dead-letter")
		}
		return d.dispatcher.engine.Transfer(ctx, d.Delivery, dest, m, shard.Ending{Attempt: d.made, State: shard.DeliveryDeadLetter, Reason: reason})
	})
	if m == nil {
		d.drop(reason)
		return true
	}
	out := TransferOutcome(err)
	endHandOver(span, dest.Resource, &out)
	if out.Class != Success && ctx.Err() != nil { // cancelled by Stop: it says nothing about the queue
		return false
	}
	d.event.Redrive, d.event.Redrive.ID = out.Provider, m.ID
	switch out.Class {
	case Success:
		d.emit(shard.DeliveryDeadLetter, reason)
		return true
	case ClientError:
		d.event.RedriveFailed = true
		d.drop(reason + "; dead-letter queue: " + out.Detail)
		return true
	default:
		d.event.RedriveFailed, d.event.Reason = true, reason+"; dead-letter queue: "+out.Detail
		return false
	}
}

func (d *delivery) drop(reason string) {
	d.dispatcher.engine.Drop(d.Delivery, d.made, reason)
	d.emit(shard.DeliveryDropped, reason)
}

// emit reports the conclusion of the delivery.
func (d *delivery) emit(state shard.DeliveryState, reason string) {
	d.event.State, d.event.Reason = state, reason
	d.dispatcher.emit(d.Delivery, &d.event)
}
