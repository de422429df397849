package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/restjson"
)

// isRESTPath reports whether a path begins with the date of an API, as in REST services:
// /2015-03-31/….
func isRESTPath(path string) bool {
	const date = "/2015-03-31/"
	if len(path) < len(date) {
		return false
	}
	for i := range len(date) {
		if c := path[i]; date[i] == '/' || date[i] == '-' {
			if c != date[i] {
				return false
			}
		} else if c-'0' > 9 {
			return false
		}
	}
	return true
}

// detectREST finds the service and the operation of a request to a path of a
// REST service; false if no service has such paths.
func (x *exchange) detectREST(service string) bool {
	if len(x.handler.rest) == 0 || !isRESTPath(x.r.URL.Path) {
		return false
	}
	x.call.Protocol = protocolREST
	x.call.Extend = x.extend
	for _, s := range x.handler.rest {
		if op, places, ok := s.routes.Find(x.r.Method, x.r.URL.EscapedPath(), x.r.URL.RawQuery); ok {
			x.setService(s)
			x.setOperation(op.Name)
			x.places = places
			return true
		}
	}
	x.setService(x.handler.rest[0])
	if s := x.handler.byName[service]; s != nil && s.rest {
		x.setService(s)
	}
	return true
}

// extend sets the connection's deadlines to d from now. The next request resets them.
func (x *exchange) extend(d time.Duration) {
	until := clock.System.Now().Add(d)
	c := http.NewResponseController(x.w)
	_ = c.SetReadDeadline(until) // fails where there is no connection, in tests
	_ = c.SetWriteDeadline(until)
}

func (x *exchange) readREST(body []byte) (any, error) {
	if x.op == nil {
		return nil, fault.Newf(fault.InvalidAction, "Godwit has no operation of %s at %s %s.", x.service.title(), printable(x.r.Method), printable(x.r.URL.Path))
	}
	if err := x.checkScheme(""); err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.MalformedInput, "The parameters of the URL cannot be read.")
	}
	in := x.op.New()
	if err := restjson.Decode(restjson.Request{Places: x.places, Query: query, Header: x.r.Header, Body: body}, in); err != nil {
		return nil, err
	}
	return in, x.service.check(x.op, in, body)
}

// bodyLimit bounds the body of the request, in bytes.
func (x *exchange) bodyLimit() int64 {
	if x.op != nil && x.op.MaxBody > 0 {
		return x.op.MaxBody
	}
	return x.handler.MaxBody
}

// tooLarge is the refusal of a body above the limit.
func (x *exchange) tooLarge(limit int64) error {
	if x.op == nil || x.op.MaxBody == 0 {
		return fault.Newf(fault.RequestTooLarge, "The request body is larger than %d bytes.", limit)
	}
	name := x.op.Name
	if name == "Invoke" {
		name = "InvokeFunction" // as in AWS's text
	}
	return fault.Newf(fault.RequestTooLarge, "Request must be smaller than %d bytes for the %s operation", limit, name)
}

// answerREST writes the operation's output.
func (x *exchange) answerREST(dst []byte, out any) []byte {
	status := x.op.Status
	if given := restjson.Head(x.w.Header(), out); given != 0 {
		status = given
	}
	dst, empty := restjson.Append(dst, out)
	if empty && status != http.StatusNoContent && x.op.void {
		dst = append(dst, "{}"...)
	}
	x.write(status, dst)
	return dst
}

// appendRESTError appends the body of a refusal.
func (x *exchange) appendRESTError(dst []byte, shape errorShape, text string) []byte {
	_, x.headers[2], _ = strings.Cut(shape.Type, "#")
	x.w.Header()[headerErrorType] = x.headers[2:3:3]
	side := "User"
	if shape.Server {
		side = "Service"
	}
	dst = append(dst, '{')
	if x.refusal.Reason != "" {
		dst = append(dst, `"Reason":`...)
		dst = fastjson.AppendString(dst, x.refusal.Reason)
		dst = append(dst, ',')
	}
	if !shape.Untyped && !x.refusal.Untyped {
		dst = append(dst, `"Type":"`+side+`",`...)
	}
	dst = append(dst, `"`+cmp.Or(shape.Member, "message")+`":`...)
	dst = fastjson.AppendString(dst, text)
	return append(dst, '}')
}

// addRoutes gives a REST service the routes of its operations.
func (s *Service) addRoutes() {
	for _, op := range s.operations {
		if op.Method == "" || !strings.HasPrefix(op.Path, "/") || op.Status == 0 {
			panic(fmt.Sprintf("wire: %s.%s has no route", s.Name, op.Name))
		}
		s.routes.Add(op.Method, op.Path, op)
	}
}
