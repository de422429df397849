package tracing

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The headers of requests with the caller's trace context.
const (
	XRayHeader        = "X-Amzn-Trace-Id"
	traceparentHeader = "Traceparent"
	tracestateHeader  = "Tracestate"
)

// MaxHeader is the maximum size of X-Ray's header in bytes; a longer one is ignored.
const MaxHeader = 1024

// Context identifies a span and its trace. The zero value, nowhere, has none.
type Context struct{ span trace.SpanContext }

// FromRequest is the context of a request's caller: from its traceparent, else from X-Ray's
// header. It is nowhere if neither has a trace and a span.
func FromRequest(h http.Header) Context {
	if parents := h[traceparentHeader]; len(parents) == 1 {
		carrier := propagation.MapCarrier{"traceparent": parents[0], "tracestate": strings.Join(h[tracestateHeader], ",")}
		if c := remote(carrier); c.valid() {
			return c
		}
	}
	if given := h[XRayHeader]; len(given) > 0 {
		return FromXRay(given[0])
	}
	return Context{}
}

// remote parses the W3C form. Source: W3C Trace Context, Level 1.
func remote(carrier propagation.TextMapCarrier) Context {
	ctx := propagation.TraceContext{}.Extract(nowhere, carrier)
	return Context{trace.SpanContextFromContext(ctx)}
}

// FromXRay is the context of an X-Ray header, which a message has as its AWSTraceHeader:
// Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1. It is nowhere
// without Root and Parent, and not sampled unless the header says so. Source: "Tracing header"
// in the X-Ray developer guide.
func FromXRay(header string) Context {
	if len(header) > MaxHeader {
		return Context{}
	}
	config := trace.SpanContextConfig{Remote: true}
	for field := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Root":
			config.TraceID = traceID(value)
		case "Parent":
			config.SpanID, _ = trace.SpanIDFromHex(value) // zero if it is invalid
		case "Sampled":
			config.TraceFlags = config.TraceFlags.WithSampled(value == "1")
		}
	}
	if c := (Context{trace.NewSpanContext(config)}); c.valid() {
		return c
	}
	return Context{}
}

// traceID parses 1-8 digits-24 digits; zero if it is invalid.
func traceID(root string) (id trace.TraceID) {
	version, rest, _ := strings.Cut(root, "-")
	seconds, random, _ := strings.Cut(rest, "-")
	if version != "1" || len(seconds) != 8 || len(random) != 24 {
		return id
	}
	id, _ = trace.TraceIDFromHex(seconds + random) // zero if it is invalid
	return id
}

func (c Context) valid() bool { return c.span.IsValid() }

// Sampled reports that the span is recorded, and so are those that follow from it.
func (c Context) Sampled() bool { return c.valid() && c.span.IsSampled() }

// XRay is the context as X-Ray's header; empty for nowhere.
func (c Context) XRay() string {
	if !c.valid() {
		return ""
	}
	id, sampled := c.span.TraceID().String(), "0"
	if c.span.IsSampled() {
		sampled = "1"
	}
	return "Root=1-" + id[:8] + "-" + id[8:] + ";Parent=" + c.span.SpanID().String() + ";Sampled=" + sampled
}

// Traceparent is the context as W3C's header; empty for nowhere.
func (c Context) Traceparent() string {
	if !c.valid() {
		return ""
	}
	return "00-" + c.span.TraceID().String() + "-" + c.span.SpanID().String() + "-" + c.span.TraceFlags().String()
}

// Tell sets both headers of a request; nowhere sets none.
func (c Context) Tell(h http.Header) {
	if !c.valid() {
		return
	}
	h[traceparentHeader], h[XRayHeader] = []string{c.Traceparent()}, []string{c.XRay()}
	if state := c.span.TraceState().String(); state != "" {
		h[tracestateHeader] = []string{state}
	}
}
