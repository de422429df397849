package wire

import (
	"net/http"
	"strconv"

	"godwit.dev/godwit/internal/tracing"
)

// endSpan tells the request's span how it was answered. A mistake of the caller's is no
// error of a server's span. Source: semantic conventions for HTTP spans.
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

// method is a request's method, if it is one that is known: what callers make up is not recorded.
func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions, http.MethodPatch:
		return name
	}
	return "_OTHER"
}
