package otlp

import (
	"encoding/json"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The encoded parts of ExportTraceServiceRequest. Source: opentelemetry-proto,
// trace/v1/trace.proto, in the JSON form that the OTLP specification defines: ids in
// hexadecimal digits, 64-bit numbers as strings, kinds as numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl,omitempty"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Scope     scope  `json:"scope"`
		Spans     []span `json:"spans"`
		SchemaURL string `json:"schemaUrl,omitempty"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		ParentSpanID string     `json:"parentSpanId,omitempty"`
		TraceState   string     `json:"traceState,omitempty"`
		Flags        uint32     `json:"flags,omitempty"`
		Name         string     `json:"name"`
		Kind         int        `json:"kind"`
		Start        string     `json:"startTimeUnixNano"`
		End          string     `json:"endTimeUnixNano"`
		Attributes   []keyValue `json:"attributes,omitempty"`
		Dropped      int        `json:"droppedAttributesCount,omitempty"`
		Links        []link     `json:"links,omitempty"`
		DroppedLinks int        `json:"droppedLinksCount,omitempty"`
		Status       *status    `json:"status,omitempty"`
	}
	link struct {
		TraceID    string `json:"traceId"`
		SpanID     string `json:"spanId"`
		TraceState string `json:"traceState,omitempty"`
		Flags      uint32 `json:"flags,omitempty"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string  `json:"stringValue,omitempty"`
		Bool   *bool    `json:"boolValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
)

// kinds are the numbers of SpanKind.
var kinds = map[trace.SpanKind]int{
	trace.SpanKindInternal: 1, trace.SpanKindServer: 2, trace.SpanKindClient: 3, trace.SpanKindProducer: 4, trace.SpanKindConsumer: 5,
}

// Flags: it is known whether a context came from another process, and it did.
const hasIsRemote, isRemote = 0x100, 0x200

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// encode makes the body of a request. All spans are of one tracer.
func encode(spans []sdk.ReadOnlySpan) ([]byte, error) {
	first := spans[0]
	of := first.InstrumentationScope()
	all := scopeSpans{Scope: scope{of.Name, of.Version}, SchemaURL: of.SchemaURL, Spans: make([]span, len(spans))}
	for i, s := range spans {
		all.Spans[i] = spanOf(s)
	}
	return json.Marshal(request{[]resourceSpans{{
		Resource: resource{attributesOf(first.Resource().Attributes())}, SchemaURL: first.Resource().SchemaURL(), ScopeSpans: []scopeSpans{all},
	}}})
}

func spanOf(s sdk.ReadOnlySpan) span {
	own, parent := s.SpanContext(), s.Parent()
	out := span{
		TraceID: own.TraceID().String(), SpanID: own.SpanID().String(), TraceState: own.TraceState().String(),
		Flags: flagsOf(own) &^ isRemote, Name: s.Name(), Kind: kinds[s.SpanKind()],
		Start: strconv.FormatInt(s.StartTime().UnixNano(), 10), End: strconv.FormatInt(s.EndTime().UnixNano(), 10),
		Attributes: attributesOf(s.Attributes()), Dropped: s.DroppedAttributes(), DroppedLinks: s.DroppedLinks(),
	}
	if parent.IsValid() {
		out.ParentSpanID = parent.SpanID().String()
		out.Flags |= flagsOf(parent) & isRemote
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links, link{
			TraceID: l.SpanContext.TraceID().String(), SpanID: l.SpanContext.SpanID().String(),
			TraceState: l.SpanContext.TraceState().String(), Flags: flagsOf(l.SpanContext),
		})
	}
	if s.Status().Code == codes.Error {
		out.Status = &status{statusError, s.Status().Description}
	}
	return out
}

func flagsOf(c trace.SpanContext) uint32 {
	flags := uint32(c.TraceFlags()) | hasIsRemote
	if c.IsRemote() {
		flags |= isRemote
	}
	return flags
}

func attributesOf(all []attribute.KeyValue) (out []keyValue) {
	for _, a := range all {
		out = append(out, keyValue{string(a.Key), valueOf(a.Value)})
	}
	return out
}

func valueOf(v attribute.Value) value {
	switch v.Type() {
	case attribute.BOOL:
		return value{Bool: new(v.AsBool())}
	case attribute.INT64:
		return value{Int: new(strconv.FormatInt(v.AsInt64(), 10))}
	case attribute.FLOAT64:
		return value{Double: new(v.AsFloat64())}
	default:
		return value{String: new(v.String())}
	}
}
