package wire

import (
	"cmp"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/wire/awsquery"
)

// The protocols.
const (
	protocolJSON  = "json"
	protocolQuery = "query"
	protocolREST  = "rest"
	protocolCBOR  = "cbor"
)

// detect finds the caller, the service and the protocol, as far as the request's head names
// them.
func (x *exchange) detect() {
	h, r := x.handler, x.r
	scope, signed := sigv4.FromRequest(r)
	region := scope.Region
	if !signed {
		_, region = api.HostParts(r.Host)
		region = cmp.Or(queuePathRegion(r.URL.Path), region)
	}
	// Resources that the request creates keep these strings: clone them, so that they do
	// not keep the request's head in memory.
	x.call.Region, x.call.Account = h.DefaultRegion, h.DefaultAccount
	if region != "" && region != h.DefaultRegion {
		x.call.Region = strings.Clone(region)
	}
	x.call.AccessKey = scope.AccessKey
	if arn.IsAccount(scope.AccessKey) {
		x.call.Account = strings.Clone(scope.AccessKey)
	}
	x.call.Host = h.base.of(r)

	if x.detectTarget() || x.detectAbsent(scope) || x.detectREST(scope.Service) {
		return
	}
	x.call.Protocol = protocolQuery
	if prefix, name, ok := cborPath(r.URL.Path); ok && h.byTarget[prefix] != nil {
		x.call.Protocol = protocolCBOR
		x.setService(h.byTarget[prefix])
		x.setOperation(name)
		return
	}
	if _, named := x.targetOf(); named {
		x.call.Protocol = protocolJSON
		if x.setTarget(r.Header["X-Amz-Target"][0]) {
			return
		}
	} else {
		x.asJSON = strings.Contains(r.Header.Get("Accept"), "application/json")
	}
	if s := h.byName[scope.Service]; s != nil {
		x.setService(s)
		return
	}
	hostService, _ := api.HostParts(r.Host)
	if s := h.byName[hostService]; s != nil {
		x.setService(s)
		return
	}
	if x.detectForeign(scope) {
		return
	}
	x.service = h.Services[0] // for its errors, until the service is known
}

// base caches the base of queue URLs for the host of the latest request: most requests have the
// same host.
type base struct{ latest atomic.Pointer[baseURL] }

type baseURL struct{ host, plain, secure string }

func (b *base) of(r *http.Request) string {
	u := b.latest.Load()
	if u == nil || u.host != r.Host {
		plain := "http://" + r.Host
		u = &baseURL{host: plain[len("http://"):], plain: plain, secure: "https://" + r.Host}
		b.latest.Store(u)
	}
	if r.TLS != nil {
		return u.secure
	}
	return u.plain
}

// detectTarget is detect for most requests: JSON at the root, for a known service.
func (x *exchange) detectTarget() bool {
	target := x.r.Header["X-Amz-Target"]
	if len(target) == 0 || x.r.URL.Path != "/" || !x.setTarget(target[0]) {
		return false
	}
	x.call.Protocol = protocolJSON
	return true
}

// setTarget sets the service and the operation that a header X-Amz-Target names; false if there
// is no such service.
func (x *exchange) setTarget(target string) bool {
	prefix, name, _ := strings.Cut(target, ".")
	s := x.handler.byTarget[prefix]
	if s != nil {
		x.setService(s)
		x.setOperation(name)
	}
	return s != nil
}

// cborPath splits the path of a request in CBOR: /service/<prefix>/operation/<name>.
func cborPath(path string) (prefix, name string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/service/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/operation/")
}

// setService sets the service.
func (x *exchange) setService(s *Service) {
	x.service = s
	x.call.Service = s.Name
	x.call.Describe = s.describe
}

// setOperation sets the operation, if the service has it.
func (x *exchange) setOperation(name string) {
	if x.op = x.service.operations[name]; x.op != nil {
		x.call.Operation = name
	} else {
		x.unknown = name
	}
}

// errNothingAsked answers a GET of a resource's URL without an action.
var errNothingAsked = errors.New("the request has no action")

// route finds the operation of a Query request. Its service is that of the version, else that of
// the credential scope or host, which detect has found, else the first one with the action.
func (x *exchange) route(form awsquery.Form) error {
	h := x.handler
	action := form.Get("Action")
	if s := h.byVersion[form.Get("Version")]; s != nil {
		x.setService(s)
	}
	if action == "" && x.r.Method == http.MethodGet && x.service.pathMember != "" && isQueuePath(x.r.URL.Path) {
		return errNothingAsked
	}
	if action == "" {
		return fault.New(fault.MissingAction, "")
	}
	if x.call.Service == "" {
		for _, s := range h.Services {
			if s.operations[action] != nil && s.Version != "" {
				x.setService(s)
				break
			}
		}
	}
	if x.service.Version != "" {
		x.setOperation(action)
	}
	switch {
	case x.op == nil && x.call.Service != "":
		return x.noAction(action)
	case x.op == nil:
		return fault.Newf(fault.InvalidAction, "Godwit has no action %s; it speaks %s.", printable(action), h.speaks())
	}
	// At a queue's URL only actions on a queue are valid.
	if x.onPath() && x.service.pathMember != "" && x.op.path == nil && !x.op.Everywhere && isQueuePath(x.r.URL.Path) {
		x.op, x.call.Operation = nil, ""
		return fault.Newf(fault.InvalidAction, "The action %s is not valid for this endpoint.", printable(action))
	}
	return nil
}

// onPath reports whether the request went to a resource's path.
func (x *exchange) onPath() bool { return strings.Trim(x.r.URL.Path, "/") != "" }

// isQueuePath reports whether a path has the form of a queue's URL:
// /<account>/<name>, or /queue/<region>/<account>/<name>. Whether the
// queue exists is not checked.
func isQueuePath(path string) bool {
	parts := strings.Split(path, "/")
	if len(parts) == 5 && parts[1] == "queue" && parts[2] != "" {
		parts = parts[2:]
	}
	return len(parts) == 3 && arn.IsAccount(parts[1]) && parts[2] != ""
}

// queuePathRegion is the region of a path of the form /queue/<region>/<account>/<name>; empty:
// there is none.
func queuePathRegion(path string) string {
	rest, ok := strings.CutPrefix(path, "/queue/")
	if !ok || !isQueuePath(path) {
		return ""
	}
	if region, _, _ := strings.Cut(rest, "/"); sigv4.IsRegion(region) {
		return region
	}
	return ""
}

// setPath sets the member that the path stands for, unless the request has it.
func (x *exchange) setPath(in any) {
	f := x.op.path
	if f == nil {
		return
	}
	if v := reflect.ValueOf(in).Elem().Field(f.Index); v.Len() == 0 {
		v.SetString(x.call.Host + x.r.URL.Path)
	}
}

// printable shortens what a client sent, for use in an error's text.
func printable(s string) string {
	const most = 128
	return fault.Excerpt(s, most, "")
}
