package wire

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/sigv4"
)

// early is the size of a body, in bytes, above which the access key is checked before the
// body is read: unknown callers cannot upload much.
const early = 64 << 10

// errUnsigned is what sigv4 says of a request that has no signature.
var errUnsigned = fault.New(fault.MissingAuthentication, "")

// admitBody refuses a large body before it is read, where its head shows that it will
// be refused.
func (x *exchange) admitBody() error {
	switch {
	case x.handler.Authentic == nil, x.r.ContentLength >= 0 && x.r.ContentLength < early:
		return nil
	case x.call.Protocol == protocolQuery: // what is asked for is in the body
		return nil
	case x.op != nil && x.op.Open && !sigv4.Signed(x.r):
		return nil
	}
	request := x.signed()
	return x.handler.Authentic.Examine(&request)
}

// arrived takes the body as it was sent, which is what is signed. The operation is known
// by now, except in Query, where the request is authenticated once it is.
func (x *exchange) arrived(body []byte) error {
	if x.handler.Authentic != nil && sigv4.Signed(x.r) {
		x.payload = sha256.Sum256(body)
	}
	if x.call.Protocol == protocolQuery {
		return nil
	}
	return x.authenticate("")
}

// authenticate finds out who calls. version is Query's parameter SignatureVersion.
func (x *exchange) authenticate(version string) error {
	if x.handler.Authentic == nil {
		x.believe()
		return nil
	}
	if err := x.checkScheme(version); err != nil {
		return err
	}
	request := x.signed()
	who, err := x.handler.Authentic.Verify(&request)
	if err != nil {
		if x.op == nil || !x.op.Open || !errors.Is(err, errUnsigned) {
			return err
		}
		who = &caller.Caller{}
	} else {
		// By what was verified, not by what was read before.
		scope := request.Scope
		x.call.Region = x.handler.DefaultRegion
		if scope.Region != x.call.Region {
			x.call.Region = strings.Clone(scope.Region)
		}
		x.call.AccessKey, x.call.Account, x.call.SessionToken = scope.AccessKey, who.Account, request.SessionToken
	}
	x.call.Caller = who
	return nil
}

// believe identifies the caller by the access key alone: its owner, or, for a key that
// nobody was given, the account that it names.
func (x *exchange) believe() {
	if known := x.handler.Known; known != nil && x.call.AccessKey != "" {
		const token = "X-Amz-Security-Token"
		given := ""
		if sent := x.r.Header[token]; len(sent) > 0 {
			given = sent[0]
		}
		if given == "" && strings.Contains(x.r.URL.RawQuery, token) {
			given = x.r.URL.Query().Get(token)
		}
		if who := known(x.call.AccessKey, given); who != nil {
			x.call.Caller, x.call.Account, x.call.SessionToken = who, who.Account, given
			return
		}
	}
	x.call.Caller = x.handler.callers.get(x.call.Account, x.call.AccessKey)
}

// signed is the request as it was signed, and what its scope must say.
func (x *exchange) signed() sigv4.Request {
	request := sigv4.Of(x.r)
	request.Payload, request.Exact, request.Default = x.payload, true, x.handler.DefaultRegion
	if x.call.Service != "" {
		request.Service = x.call.Service
	}
	service, region := api.HostParts(x.r.Host)
	if isAWSRegion(region) && x.handler.byName[service] != nil {
		request.Region = region
	}
	return request
}

// areas are how the names of AWS's regions begin.
var areas = []string{"af-", "ap-", "ca-", "cn-", "eu-", "il-", "me-", "mx-", "sa-", "us-"}

// isAWSRegion reports that a name that has the form of a region's is not that of a
// network's own.
func isAWSRegion(name string) bool {
	for _, area := range areas {
		if strings.HasPrefix(name, area) {
			return true
		}
	}
	return false
}

// Vouched reports that a request has a signature over Host that is not checked yet, but
// will be before anything is done: all that its head shows is in order.
func (h *Handler) Vouched(r *http.Request) bool {
	if h.Authentic == nil {
		return false
	}
	request := sigv4.Of(r)
	request.Exact, request.Default = true, h.DefaultRegion
	return h.Authentic.Examine(&request) == nil
}

// unverified caches the callers of requests whose signatures are not verified, by their
// access keys: the latest of each slot.
type unverified [64]atomic.Pointer[caller.Caller]

func (u *unverified) get(account, accessKey string) *caller.Caller {
	var sum uint
	for i := range len(accessKey) {
		sum = sum*31 + uint(accessKey[i])
	}
	slot := &u[sum%uint(len(u))]
	if known := slot.Load(); known != nil && known.AccessKey == accessKey && known.Account == account {
		return known
	}
	made := api.Unverified(account, strings.Clone(accessKey))
	slot.Store(made)
	return made
}
