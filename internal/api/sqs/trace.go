package sqs

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// traceQueue records the operation and the queue in the request's span. verb is the short
// name of kind.
func traceQueue(call *api.Call, verb string, kind tracing.Attribute, q arn.ARN) {
	if call.Span.Recorded() {
		call.Span.Name(verb + " " + q.Resource)
		call.Span.Set(tracing.SQS, kind, tracing.Operation(call.Operation), tracing.Destination(q.Resource))
	}
}

// traceSent records the sent message in the request's span.
func traceSent(call *api.Call, sent *shard.SendResult, body int) {
	if call.Span.Recorded() {
		call.Span.Set(tracing.MessageID(sent.ID.String()), tracing.BodySize(body))
	}
}

// traceReceived links the request's span to the spans of the senders.
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
