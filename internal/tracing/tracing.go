// Package tracing records what the server does as spans of OpenTelemetry. It alone uses that
// SDK; package otlp below it exports the spans.
//
// A request belongs to its caller's trace. Later work of the server (an attempt at a delivery,
// a batch for a function) is a trace of its own with a link to its cause, since a trace that
// waited for the last retry could last for weeks. The link is durable: a message stores its
// context as its AWSTraceHeader. A linked trace is sampled if and only if its cause was.
//
// A nil *Tracer and a nil *Span do nothing: tracing is off. Callers check for nil before they
// compute anything for a span.
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

// nowhere is the context without a span.
var nowhere = context.Background()

// Kind is the role of a span.
type Kind = trace.SpanKind

// The kinds.
const (
	Server   = trace.SpanKindServer   // a request that was answered
	Client   = trace.SpanKindClient   // a request to another server, which answers at once
	Producer = trace.SpanKindProducer // something was enqueued for later work
	Consumer = trace.SpanKindConsumer // work on something enqueued
)

// Options configure a Tracer. Clock and Processor are required.
type Options struct {
	Clock clock.Clock // of the times at which spans begin; their durations are real time
	// Ratio is the share of requests that begin a trace, 0 to 1. A request that belongs to
	// a trace is sampled if its caller was.
	Ratio     float64
	Processor sdk.SpanProcessor // gets the spans that have ended
	Version   string            // the server's
}

// Tracer begins spans. A nil one does not.
type Tracer struct {
	tracer trace.Tracer
	clock  clock.Clock
}

// New makes a tracer. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are added to the server's
// name, godwit, and version.
func New(o Options) *Tracer {
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sampler{sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))}),
		sdk.WithResource(resourceOf(o.Version)),
		sdk.WithSpanProcessor(o.Processor),
	)
	return &Tracer{provider.Tracer("godwit.dev/godwit", trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(schema)), o.Clock}
}

// sampler samples all spans with a link: these are only requested if their cause is sampled.
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

// Span is an operation of the server, until End. It is not safe for concurrent use.
type Span struct {
	span  trace.Span
	at    time.Time // by the server's clock
	began time.Time // in real time
}

// Begin begins a span with a parent; with nowhere it begins a trace.
func (t *Tracer) Begin(kind Kind, name string, parent Context, all ...Attribute) *Span {
	if t == nil {
		return nil
	}
	return t.begin(trace.ContextWithSpanContext(nowhere, parent.span), kind, name, all)
}

// Within begins a span with a sampled parent; nil with any other.
func (t *Tracer) Within(kind Kind, name string, parent Context, all ...Attribute) *Span {
	if t == nil || !parent.Sampled() {
		return nil
	}
	return t.Begin(kind, name, parent, all...)
}

// Follow begins a trace caused by others, with links to those that are sampled. It is nil if
// none is.
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

// Recorded reports that the span is recorded, so that setting attributes has an effect.
func (s *Span) Recorded() bool { return s != nil && s.span.IsRecording() }

// Context is the context of the span; nowhere for nil.
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

// Set sets attributes of the span.
func (s *Span) Set(all ...Attribute) {
	if s != nil {
		s.span.SetAttributes(all...)
	}
}

// Link links the span to another context, if that is sampled.
func (s *Span) Link(to Context) {
	if s != nil && to.Sampled() {
		s.span.AddLink(trace.Link{SpanContext: to.span})
	}
}

// Fail notes the kind of a failure, in few words of a small set, and its reason, without a
// body, a secret or an address.
func (s *Span) Fail(kind, why string) {
	if s != nil {
		s.span.SetAttributes(ErrorType(kind))
		s.span.SetStatus(codes.Error, why)
	}
}

// End ends the span. Attributes that are set later are lost.
func (s *Span) End() {
	if s != nil {
		s.span.End(trace.WithTimestamp(s.at.Add(clock.System.Now().Sub(s.began))))
	}
}
