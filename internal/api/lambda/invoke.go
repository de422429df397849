package lambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
)

// Pool runs functions; *invoke.Pool implements it.
type Pool interface {
	Invoke(ctx context.Context, in invoke.Invocation) (invoke.Outcome, error)
}

// Limits of an invocation.
const (
	maxPayload       = 6 << 20 // bytes
	maxClientContext = 3583    // bytes, in base64
)

// The types of invocations and of logs.
const (
	requestResponse = "RequestResponse"
	event           = "Event"
	dryRun          = "DryRun"

	tailLog = "Tail"
)

// InvokeInput is the input of Invoke.
type InvokeInput struct {
	FunctionName   string  `wire:"uri,required"`
	InvocationType *string `wire:"header=X-Amz-Invocation-Type"`
	LogType        *string `wire:"header=X-Amz-Log-Type"`
	ClientContext  *string `wire:"header=X-Amz-Client-Context"`
	Qualifier      *string `wire:"query=Qualifier"`
	Payload        []byte  `wire:"payload"`
}

// InvokeOutput is the output of Invoke.
type InvokeOutput struct {
	StatusCode      int     `wire:"status"`
	FunctionError   *string `wire:"header=X-Amz-Function-Error"`
	LogResult       *string `wire:"header=X-Amz-Log-Result"`
	ExecutedVersion *string `wire:"header=X-Amz-Executed-Version"`
	Payload         []byte  `wire:"payload"`
}

// invoke answers Invoke.
func (s *Service) invoke(ctx context.Context, call *api.Call, in *InvokeInput) (*InvokeOutput, error) {
	var c request.Constraints
	c.Enum("invocationType", in.InvocationType, event, requestResponse, dryRun)
	c.Enum("logType", in.LogType, "None", tailLog)
	if err := c.Err(); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxLongName)
	if err != nil {
		return nil, err
	}
	kind := api.Deref(in.InvocationType)
	if size := len(in.Payload); kind == event && size > function.MaxEventBytes {
		return nil, fault.Newf(fault.RequestTooLarge, "%d byte payload is too large for the Event invocation type (limit %d bytes)", size, function.MaxEventBytes)
	}
	if err := checkPayload(in.Payload); err != nil {
		return nil, err
	}
	client, err := decodeClientContext(api.Deref(in.ClientContext))
	if err != nil {
		return nil, err
	}
	target, err := s.engine.Function(ctx, n.Function, n.Qualifier)
	if err != nil {
		return nil, err
	}
	trace := call.TraceHeader()
	switch kind {
	case dryRun:
		return &InvokeOutput{StatusCode: http.StatusNoContent}, nil
	case event:
		return s.invokeAsync(ctx, call, n, function.Event{Qualifier: n.Qualifier, Payload: in.Payload, Trace: trace})
	}
	// The deadline allows for the function's timeout, its start, and the rest of the request.
	if call.Extend != nil && target.Timeout > anyTime {
		call.Extend(target.Timeout + startTime)
	}
	invocation := invoke.Invocation{
		Target: target, RequestID: call.RequestID, Payload: in.Payload, ClientContext: client,
		Tail: api.Deref(in.LogType) == tailLog, Trace: trace,
	}
	out, err := s.Pool.Invoke(ctx, invocation)
	if fault.KindOf(err) == fault.ResourceNotFound { // a concurrent update replaced the code
		if invocation.Target, err = s.engine.Function(ctx, n.Function, n.Qualifier); err == nil {
			out, err = s.Pool.Invoke(ctx, invocation)
		}
	}
	if err != nil {
		return nil, err
	}
	return answer(&invocation.Target, &out), nil
}

// invokeAsync accepts an event: it is durable on return. All attempts have the request's id.
func (s *Service) invokeAsync(ctx context.Context, call *api.Call, n request.Named, ev function.Event) (*InvokeOutput, error) {
	id, err := uuid.Parse(call.RequestID)
	if err != nil {
		return nil, err
	}
	ev.ID = id
	if len(ev.Payload) == 0 {
		ev.Payload = []byte("{}")
	}
	if err := s.engine.InvokeAsync(ctx, n.Function, ev); err != nil {
		return nil, err
	}
	return &InvokeOutput{StatusCode: http.StatusAccepted}, nil
}

// startTime is what an invocation may take in addition to the function's timeout. anyTime is
// the largest timeout for which the normal deadline of requests suffices.
const (
	startTime = time.Minute
	anyTime   = 20 * time.Second
)

func answer(t *function.Target, out *invoke.Outcome) *InvokeOutput {
	o := &InvokeOutput{StatusCode: http.StatusOK, ExecutedVersion: &t.Version, Payload: out.Payload}
	if out.FunctionError != "" {
		o.FunctionError = &out.FunctionError
	}
	if len(out.LogTail) > 0 {
		o.LogResult = new(base64.StdEncoding.EncodeToString(out.LogTail))
	}
	return o
}

// checkPayload refuses a payload that is not JSON. An empty one counts as {}. The error
// repeats at most one character of the payload.
func checkPayload(payload []byte) error {
	if len(payload) == 0 || json.Valid(payload) && utf8.Valid(payload) {
		return nil
	}
	why := "Invalid UTF-8"
	if err := json.Unmarshal(payload, new(json.RawMessage)); err != nil {
		why = err.Error()
	}
	return fault.New(fault.InvalidRequestContent, "Could not parse request body into json: "+why)
}

// decodeClientContext decodes the client context.
func decodeClientContext(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	doc, err := base64.StdEncoding.DecodeString(text)
	var object map[string]json.RawMessage
	if err != nil || len(text) > maxClientContext || json.Unmarshal(doc, &object) != nil || object == nil { // null is none
		return nil, fault.New(fault.InvalidRequestContent, "Client context must be a valid Base64-encoded JSON object.")
	}
	return doc, nil
}
