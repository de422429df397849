package sns

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// tracePublish records the messages and their target in the request's span.
func tracePublish(call *api.Call, to arn.ARN, all ...shard.Publication) {
	if !call.Span.Recorded() {
		return
	}
	call.Span.Name("send " + to.Resource)
	call.Span.Set(tracing.SNS, tracing.Sends, tracing.Operation(call.Operation), tracing.Destination(to.Resource))
	if len(all) == 1 {
		call.Span.Set(tracing.MessageID(all[0].ID.String()), tracing.BodySize(len(all[0].Body)))
	} else {
		call.Span.Set(tracing.Messages(len(all)))
	}
}
