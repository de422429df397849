package async

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
)

// record is a destination's record of an event. Members and their order are AWS's. Source:
// the Lambda developer guide, "Capturing records of asynchronous invocations".
type record struct {
	Version         string           `json:"version"`
	Timestamp       string           `json:"timestamp"`
	RequestContext  requestContext   `json:"requestContext"`
	RequestPayload  json.RawMessage  `json:"requestPayload,omitempty"`
	ResponseContext *responseContext `json:"responseContext,omitempty"`
	ResponsePayload json.RawMessage  `json:"responsePayload,omitempty"`
}

type requestContext struct {
	RequestID              string             `json:"requestId"`
	FunctionARN            string             `json:"functionArn"`
	Condition              function.Condition `json:"condition"`
	ApproximateInvokeCount int                `json:"approximateInvokeCount"`
}

type responseContext struct {
	StatusCode      int    `json:"statusCode"`
	ExecutedVersion string `json:"executedVersion"`
	FunctionError   string `json:"functionError,omitempty"`
}

// record is the record of the event for its destination.
func (e *event) record() *record {
	p := &e.ev.Progress
	qualifier := e.ev.Qualifier
	if qualifier == "" {
		qualifier = function.Latest
	}
	r := &record{
		Version: "1.0", Timestamp: e.clock.Now().UTC().Format(clock.ISO8601),
		RequestContext: requestContext{
			RequestID: uuid.UUID(e.ev.ID).String(), FunctionARN: e.ev.Function.Qualify(qualifier).String(),
			Condition: p.Condition, ApproximateInvokeCount: p.Attempts,
		},
		RequestPayload: asJSON(e.ev.Payload),
	}
	if p.Response != nil {
		r.ResponseContext = &responseContext{StatusCode: http.StatusOK, ExecutedVersion: p.Response.Version, FunctionError: p.Response.Error}
		r.ResponsePayload = asJSON(p.Response.Payload)
	}
	return r
}

func encode(r *record) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		panic(err) // raw members were validated
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// asJSON is a payload as a JSON value; text that is not JSON becomes a string.
func asJSON(payload []byte) json.RawMessage {
	if len(payload) == 0 {
		return nil
	}
	if json.Valid(payload) {
		return payload
	}
	text, err := json.Marshal(string(payload))
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return text
}

// errorMessage is the member errorMessage of a failed function's payload.
func errorMessage(payload []byte) string {
	var said struct {
		ErrorMessage string `json:"errorMessage"`
	}
	_ = json.Unmarshal(payload, &said) // an invalid one is an empty message
	return said.ErrorMessage
}

// cut truncates a text to n bytes, between characters, and drops characters that message
// attributes cannot have.
func cut(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
