// Package tracing says what the server does as spans of OpenTelemetry. It alone knows of
// that SDK; package otlp below it sends the spans away.
//
// What is asked of the server belongs to its caller's trace. What the server does later by
// itself (an attempt at a delivery, a batch for a function) is a trace of its own which is
// linked to what it follows from, since a trace that waited for the last retry could last
// for weeks. The link is durable: a message keeps its context as its AWSTraceHeader. What
// is linked to is sampled exactly if that was.
//
// A nil *Tracer and a nil *Span do nothing: tracing is off. Whoever would have to make
// something for a span asks first whether there is one.
package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"godwit.dev/godwit/internal/clock"
)

// nowhere has no span.
var nowhere = context.Background()

// Kind says how a span stands to others.
type Kind = trace.SpanKind

// The kinds.
const (
	Server   = trace.SpanKindServer   // a request that was answered
	Client   = trace.SpanKindClient   // a request to somebody, who answers at once
	Producer = trace.SpanKindProducer // something was handed over, to be worked on later
	Consumer = trace.SpanKindConsumer // what was handed over is worked on
)

// Options are what a Tracer is made of. Clock and Processor are required.
type Options struct {
	Clock clock.Clock // of the moments at which spans begin; how long they take is real time
	// Ratio is the share of requests that begin a trace, 0 to 1. A request that belongs to
	// a trace is sampled if its caller was.
	Ratio     float64
	Processor sdk.SpanProcessor // what becomes of spans that have ended
	Version   string            // the server's
}

// Tracer begins spans. Nil: it does not.
type Tracer struct {
	tracer trace.Tracer
	clock  clock.Clock
}

// New makes a tracer. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are added
// the server beside its name, godwit, and version.
func New(o Options) *Tracer {
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sampler{sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))}),
		sdk.WithResource(resourceOf(o.Version)),
		sdk.WithSpanProcessor(o.Processor),
	)
	return &Tracer{provider.Tracer("godwit.dev/godwit", trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(schema)), o.Clock}
}

// sampler takes what is linked to something: that is sampled, or no span would have been
// asked for.
type sampler struct{ requests sdk.Sampler }

func (s sampler) Description() string { return "Linked," + s.requests.Description() }

func (s sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if len(p.Links) > 0 {
		return sdk.SamplingResult{Decision: sdk.RecordAndSample}
	}
	return s.requests.ShouldSample(p)
}

// Attribute is an attribute of a span; see its constructors.
type Attribute = attribute.KeyValue

// Span is something that the server does, until End. One goroutine has it.
type Span struct {
	span  trace.Span
	at    time.Time // by the server's clock
	began time.Time // in real time
}

// Begin begins a span below its parent; nowhere begins a trace.
func (t *Tracer) Begin(kind Kind, name string, parent Context, all ...Attribute) *Span {
	if t == nil {
		return nil
	}
	return t.begin(trace.ContextWithSpanContext(nowhere, parent.span), kind, name, all)
}

// Within begins a span below a parent that is sampled; nil below any other.
func (t *Tracer) Within(kind Kind, name string, parent Context, all ...Attribute) *Span {
	if t == nil || !parent.Sampled() {
		return nil
	}
	return t.Begin(kind, name, parent, all...)
}

// Follow begins a trace of what follows from others, and is linked to those that are
// sampled. It is nil if none is.
func (t *Tracer) Follow(kind Kind, name string, from []Context, all ...Attribute) *Span {
	if t == nil {
		return nil
	}
	var links []trace.Link
	for _, c := range from {
		if c.Sampled() {
			links = append(links, trace.Link{SpanContext: c.span})
		}
	}
	if len(links) == 0 {
		return nil
	}
	return t.begin(nowhere, kind, name, all, trace.WithLinks(links...))
}

func (t *Tracer) begin(ctx context.Context, kind Kind, name string, all []Attribute, more ...trace.SpanStartOption) *Span {
	s := &Span{at: t.clock.Now(), began: clock.System.Now()}
	more = append(more, trace.WithSpanKind(kind), trace.WithTimestamp(s.at), trace.WithAttributes(all...))
	_, s.span = t.tracer.Start(ctx, name, more...)
	return s
}

// Recorded reports that it is worth telling something of the span.
func (s *Span) Recorded() bool { return s != nil && s.span.IsRecording() }

// Context is where the span stands; nowhere for nil.
func (s *Span) Context() Context {
	if s == nil {
		return Context{}
	}
	return Context{s.span.SpanContext()}
}

// Name renames the span.
func (s *Span) Name(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Set tells something of the span.
func (s *Span) Set(all ...Attribute) {
	if s != nil {
		s.span.SetAttributes(all...)
	}
}

// Link links the span to what it deals with, if that is sampled.
func (s *Span) Link(to Context) {
	if s != nil && to.Sampled() {
		s.span.AddLink(trace.Link{SpanContext: to.span})
	}
}

// Fail notes what kind of failure the span came to, in few words of a small set, and why,
// without a body, a secret or an address.
func (s *Span) Fail(kind, why string) {
	if s != nil {
		s.span.SetAttributes(ErrorType(kind))
		s.span.SetStatus(codes.Error, why)
	}
}

// End ends the span. What is set on it later is lost.
func (s *Span) End() {
	if s != nil {
		s.span.End(trace.WithTimestamp(s.at.Add(clock.System.Now().Sub(s.began))))
	}
}
