package tracing

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"godwit.dev/godwit/internal/clock"
)

const (
	parent = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"
	xray   = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
)

func TestHeadersNameTheSame(t *testing.T) {
	for name, h := range map[string]http.Header{
		"W3C":              {"Traceparent": {parent}, "Tracestate": {"a=b,c=d"}},
		"W3C before X-Ray": {"Traceparent": {parent}, XRayHeader: {strings.ReplaceAll(xray, "5759", "9999")}},
		"X-Ray":            {XRayHeader: {xray}},
		"X-Ray, otherwise": {XRayHeader: {"Sampled=1; Self=1-2-3;Parent=53995c3f42cd8ad8 ;Root=1-5759e988-bd862e3fe1be46a994272793"}},
		"a W3C of nothing": {"Traceparent": {"00-0-0-01"}, XRayHeader: {xray}},
	} {
		c := FromRequest(h)
		if c.XRay() != xray || c.Traceparent() != parent || !c.Sampled() {
			t.Errorf("%s: %q, %q, sampled %t", name, c.XRay(), c.Traceparent(), c.Sampled())
		}
		told := http.Header{}
		c.Tell(told)
		if again := FromRequest(told); again.Traceparent() != parent || told.Get("Tracestate") != h.Get("Tracestate") {
			t.Errorf("%s is told as %v", name, told)
		}
	}
	unsampled := FromXRay(strings.Replace(xray, "Sampled=1", "Sampled=0", 1))
	if unsampled.Sampled() || !strings.HasSuffix(unsampled.XRay(), "Sampled=0") || !strings.HasSuffix(unsampled.Traceparent(), "-00") {
		t.Errorf("what is not sampled is %q, %q", unsampled.XRay(), unsampled.Traceparent())
	}
	for _, none := range []string{
		"", "Root=1-5759e988-bd862e3fe1be46a994272793", "Parent=53995c3f42cd8ad8;Sampled=1", strings.Replace(xray, "1-57", "2-57", 1),
		"Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8", "Root=1-5759e98-8bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
		strings.Repeat("a=b;", MaxHeader) + xray,
	} {
		c, told := FromXRay(none), http.Header{}
		if c.Tell(told); c.XRay() != "" || c.Traceparent() != "" || c.Sampled() || len(told) != 0 {
			t.Errorf("%.100q is %q", none, c.XRay())
		}
	}
}

func FuzzFromXRay(f *testing.F) {
	f.Add(xray)
	f.Add("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=?")
	f.Fuzz(func(t *testing.T, header string) {
		c := FromXRay(header)
		if again := FromXRay(c.XRay()); again.XRay() != c.XRay() || strings.ContainsAny(c.XRay()+c.Traceparent(), "\r\n") {
			t.Errorf("%q is %q, and that %q", header, c.XRay(), again.XRay())
		}
	})
}

// ended keeps spans.
type ended struct{ all []sdk.ReadOnlySpan }

func (e *ended) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (e *ended) OnEnd(s sdk.ReadOnlySpan)                   { e.all = append(e.all, s) }
func (e *ended) ForceFlush(context.Context) error           { return nil }
func (e *ended) Shutdown(context.Context) error             { return nil }

func TestWhatIsSampled(t *testing.T) {
	for _, ratio := range []float64{0, 1} {
		e := &ended{}
		tracer := New(Options{Clock: clock.NewVirtual(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)), Ratio: ratio, Processor: e, Version: "1"})
		sampled := FromXRay(xray)
		unsampled := FromXRay(strings.Replace(xray, "Sampled=1", "Sampled=0", 1))
		for name, tt := range map[string]struct {
			span *Span
			want bool
		}{
			"a request of nobody's trace":       {tracer.Begin(Server, "a", Context{}), ratio == 1},
			"a request of a sampled trace":      {tracer.Begin(Server, "a", sampled), true},
			"a request of one that is not":      {tracer.Begin(Server, "a", unsampled), false},
			"within a sampled trace":            {tracer.Within(Client, "a", sampled), true},
			"within one that is not":            {tracer.Within(Client, "a", unsampled), false},
			"within none":                       {tracer.Within(Client, "a", Context{}), false},
			"what follows from a sampled trace": {tracer.Follow(Consumer, "a", []Context{{}, unsampled, sampled}), true},
			"what follows from one that is not": {tracer.Follow(Consumer, "a", []Context{unsampled, {}}), false},
			"what follows from nothing":         {tracer.Follow(Consumer, "a", nil), false},
			"what is asked of no tracer":        {(*Tracer)(nil).Begin(Server, "a", sampled), false},
			"what is within no tracer's trace":  {(*Tracer)(nil).Within(Server, "a", sampled), false},
			"what follows without any tracer":   {(*Tracer)(nil).Follow(Server, "a", []Context{sampled}), false},
		} {
			before := len(e.all)
			tt.span.Set(Attempt(1))
			tt.span.Link(unsampled)
			tt.span.Fail("server-error", "no")
			tt.span.Name("b")
			if got := tt.span.Context().Sampled(); got != tt.want || tt.span.Recorded() != tt.want {
				t.Errorf("ratio %v, %s: sampled %t, recorded %t", ratio, name, got, tt.span.Recorded())
			}
			if tt.span.End(); len(e.all)-before > 1 || (len(e.all) > before) != tt.want {
				t.Errorf("ratio %v, %s: %d spans", ratio, name, len(e.all)-before)
			}
		}
		for _, s := range e.all {
			linked := len(s.Links()) == 1 && s.Links()[0].SpanContext.TraceID().String() == sampled.span.TraceID().String()
			if linked == s.Parent().IsValid() && (linked || ratio == 0) {
				t.Errorf("%v has parent %v and links %v: it is below what it belongs to, or linked to what it follows from", s.Name(), s.Parent(), s.Links())
			}
			if linked && s.SpanContext().TraceID().String() == sampled.span.TraceID().String() {
				t.Error("what is linked to a trace is in it")
			}
			if s.StartTime().Year() != 2024 || s.EndTime().Before(s.StartTime()) {
				t.Errorf("it lasts from %s to %s", s.StartTime(), s.EndTime())
			}
		}
	}
}

// TestOffCostsNothing: what is asked of a nil tracer and span makes no garbage.
func TestOffCostsNothing(t *testing.T) {
	var tracer *Tracer
	h := http.Header{XRayHeader: {xray}}
	n := testing.AllocsPerRun(100, func() {
		s := tracer.Begin(Server, "request", Context{})
		if s.Recorded() {
			t.Error("it is recorded")
		}
		s.Link(Context{})
		s.End()
		_ = s.Context().XRay()
		_ = h
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
