package deliver

import (
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/tracing"
)

// beginAttempt begins the span of an attempt: in a trace of its own, with a link to the
// publish. It is nil if that is not recorded.
func (d *delivery) beginAttempt() *tracing.Span {
	kind := tracing.Client
	if d.Subscription.Protocol == topic.SQS {
		kind = tracing.Producer
	}
	return d.beginSpan(kind, "deliver")
}

func (d *delivery) beginSpan(kind tracing.Kind, what string) *tracing.Span {
	t := d.dispatcher.options.Tracer
	if t == nil || d.Message.Trace == "" {
		return nil
	}
	of := d.Subscription.ARN
	if t, _, ok := of.SplitSubscription(); ok {
		of = t
	}
	s := t.Follow(kind, what+" "+of.Resource, []tracing.Context{tracing.FromXRay(d.Message.Trace)})
	if s != nil {
		s.Set(tracing.SNS, tracing.Processes, tracing.Operation(what), tracing.Destination(of.Resource), tracing.Subscription(d.Subscription.ARN.String()),
			tracing.MessageID(d.Message.ID.String()), tracing.BodySize(len(d.Message.Body)), tracing.Account(of.Account), tracing.Attempt(d.Delivery.Attempt))
	}
	return s
}

// endAttempt ends the span of an attempt with its outcome. An endpoint is reported as in
// limits and logs: the host of a web hook, not its path.
func (d *delivery) endAttempt(s *tracing.Span, out *Outcome) {
	if s == nil {
		return
	}
	defer s.End()
	s.Set(tracing.Outcome(out.Class.String()))
	if out.Status != 0 {
		s.Set(tracing.Status(out.Status))
	}
	switch d.Subscription.Protocol {
	case topic.HTTP, topic.HTTPS:
		_, host := d.Host()
		s.Set(tracing.Host(host))
	default: // mail addresses and phone numbers are private; queues and functions have their own spans
	}
	if out.Class != Success {
		s.Fail(out.Class.String(), out.Detail)
	}
}

// endHandOver ends the span of a move to a dead-letter queue.
func endHandOver(s *tracing.Span, dead string, out *Outcome) {
	if s == nil {
		return
	}
	defer s.End()
	s.Set(tracing.Outcome(out.Class.String()), tracing.DeadLetters(dead))
	if out.Class != Success {
		s.Fail(out.Class.String(), out.Detail)
	}
}
