package wire

import (
	"net/http"
	"strconv"

	"godwit.dev/godwit/internal/tracing"
)

// endSpan records the answer in the request's span. A client error is no error of a server span.
// Source: semantic conventions for HTTP spans.
func (x *exchange) endSpan() {
	s := x.call.Span
	defer s.End()
	if !s.Recorded() {
		return
	}
	s.Set(tracing.Method(method(x.r.Method)), tracing.Status(x.status), tracing.RequestID(x.call.RequestID), tracing.Account(x.call.Account))
	if x.op != nil {
		s.Set(tracing.AWS, tracing.Call(x.call.Service+"/"+x.call.Operation))
	}
	switch {
	case x.code != "" && x.status < http.StatusInternalServerError:
		s.Set(tracing.ErrorType(x.code))
	case x.code != "":
		s.Fail(x.code, "")
	case x.status >= http.StatusInternalServerError:
		s.Fail(strconv.Itoa(x.status), "")
	}
}

// method is the request's method, if it is a standard one: others are not recorded, so that
// clients cannot make up values.
func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions, http.MethodPatch:
		return name
	}
	return "_OTHER"
}
