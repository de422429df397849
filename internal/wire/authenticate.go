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

// admitBody refuses a large body before it is read, if the head shows that the request will be
// refused.
func (x *exchange) admitBody() error {
	switch {
	case x.handler.Authentic == nil, x.r.ContentLength >= 0 && x.r.ContentLength < early:
		return nil
	case x.call.Protocol == protocolQuery: // the operation is in the body
		return nil
	case x.op != nil && x.op.Open && !sigv4.Signed(x.r):
		return nil
	}
	request := x.signed()
	return x.handler.Authentic.Examine(&request)
}

// arrived authenticates the request once its body is read: the signature covers the body as it
// was sent. A Query request is authenticated later, once its operation is known.
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
		// Only verified values are used from here on, not those read from the head.
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

// believe identifies the caller by the access key alone, without a signature: the owner of the
// key, or, of an unknown key, the account that the key names.
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

// signed is the request to be verified, and the scope that it must have.
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

// areas are the prefixes of AWS's region names.
var areas = []string{"af-", "ap-", "ca-", "cn-", "eu-", "il-", "me-", "mx-", "sa-", "us-"}

// isAWSRegion reports that a name is that of an AWS region, not a label of a private host name.
func isAWSRegion(name string) bool {
	for _, area := range areas {
		if strings.HasPrefix(name, area) {
			return true
		}
	}
	return false
}

// Vouched reports that a request has a signature that covers Host, and whose other fields in the
// head are valid. The signature itself is verified later, before the request takes effect.
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
