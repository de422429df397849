package invoke

import (
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/tracing"
)

// trace begins the span of an invocation, as a child of the span in its trace header, and
// passes the new span to the function in that header. It is nil if the trace is not recorded.
func (p *Pool) trace(in *Invocation) *tracing.Span {
	if p.Tracer == nil || in.Trace == "" {
		return nil
	}
	s := p.Tracer.Within(tracing.Client, "invoke "+in.Target.Name, tracing.FromXRay(in.Trace))
	if s != nil {
		s.Set(AboutFunction(&in.Target)...)
		s.Set(tracing.Invocation(in.RequestID))
		in.Trace = s.Context().XRay()
	}
	return s
}

// AboutFunction is what spans record of a function.
func AboutFunction(t *function.Target) []tracing.Attribute {
	return []tracing.Attribute{tracing.Function(t.Name), tracing.Region(t.Function.Region), tracing.Account(t.Function.Account)}
}

// EndSpan ends a span with the result of an invocation. Of a failure it records only the
// type: the message is the function's.
func EndSpan(s *tracing.Span, out *Outcome, err error) {
	if s == nil {
		return
	}
	defer s.End()
	switch {
	case Throttled(err):
		s.Fail("throttled", "")
	case err != nil:
		s.Fail("server", "the function could not be run")
	case out.FunctionError != "":
		s.Fail(out.FunctionError, "")
	}
}
