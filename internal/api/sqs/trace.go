package sqs

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// traceQueue tells the request's span what is done with messages of a queue. verb is the short
// name of kind.
func traceQueue(call *api.Call, verb string, kind tracing.Attribute, q arn.ARN) {
	if call.Span.Recorded() {
		call.Span.Name(verb + " " + q.Resource)
		call.Span.Set(tracing.SQS, kind, tracing.Operation(call.Operation), tracing.Destination(q.Resource))
	}
}

// traceSent tells it which message was sent.
func traceSent(call *api.Call, sent *shard.SendResult, body int) {
	if call.Span.Recorded() {
		call.Span.Set(tracing.MessageID(sent.ID.String()), tracing.BodySize(body))
	}
}

// traceReceived links it to where the messages come from.
func traceReceived(call *api.Call, received []shard.Received) {
	if !call.Span.Recorded() {
		return
	}
	call.Span.Set(tracing.Messages(len(received)))
	if len(received) == 1 {
		call.Span.Set(tracing.MessageID(received[0].ID.String()))
	}
	for i := range received {
		call.Span.Link(tracing.FromXRay(received[i].Trace))
	}
}
