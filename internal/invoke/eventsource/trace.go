package eventsource

import (
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/tracing"
)

// trace begins the span of a batch's invocation: in a trace of its own, with links to the
// senders'. It is nil unless one of these is recorded.
func (p *poller) trace(items []item, in *invoke.Invocation) *tracing.Span {
	if p.Tracer == nil {
		return nil
	}
	var from []tracing.Context
	for i := range items {
		if items[i].trace != "" {
			from = append(from, tracing.FromXRay(items[i].trace))
		}
	}
	queue := p.mapping.Queue.Resource
	s := p.Tracer.Follow(tracing.Consumer, "process "+queue, from)
	if s != nil {
		s.Set(tracing.SQS, tracing.Processes, tracing.Operation("process"), tracing.Destination(queue), tracing.Messages(len(items)))
		s.Set(invoke.AboutFunction(&in.Target)...)
		in.Trace = s.Context().XRay()
	}
	return s
}
