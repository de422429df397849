package functionurl

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/tracing"
	"godwit.dev/godwit/internal/wire"
)

// Operation is what the audit log and, behind "lambda:", policies call an invocation by a URL.
const Operation = "InvokeFunctionUrl"

const (
	start   = time.Minute      // that an invocation may take in addition to the function's timeout
	writing = 30 * time.Second // for the answer
)

// Options are what a Handler works with. All but Authentic, Authorize, Known, Audit, Requests and
// Pace are required.
type Options struct {
	// Find finds a URL by its id; ok is false if there is none.
	Find func(id string) (u function.QualifiedURL, ok bool)
	// Target resolves what is invoked.
	Target func(ctx context.Context, fn arn.ARN, qualifier string) (function.Target, error)
	Pool   invoke.Invoker
	// Authentic verifies the signatures of requests to URLs with AWS_IAM. Nil: they are not
	// verified.
	Authentic *sigv4.Verifier
	// Known is the owner of an access key and session token, where signatures are not verified;
	// nil for an unknown key. May be nil.
	Known func(accessKey, token string) *caller.Caller
	// Authorize refuses a caller without permission; nil: nobody is refused.
	Authorize func(ctx context.Context, r *http.Request, u *function.QualifiedURL, who *caller.Caller) error
	// Admit may refuse an invocation by the account's limits. who is nil of AuthNone.
	Admit func(u *function.QualifiedURL, who *caller.Caller) error
	// Audit is called for each request to a URL once it is answered, but for preflights, as for a
	// call. It must not keep its arguments. May be nil.
	Audit        func(call *api.Call, in any, outcome wire.Outcome)
	Requests     *limit.Budget // bounds the memory of bodies; nil: nothing does
	Pace         wire.Pace     // the minimum rate of bodies; the zero value: wire.DefaultPace
	NewRequestID func() string
	Clock        clock.Clock // of the events' time
	Logger       *slog.Logger
}

// Handler serves function URLs.
type Handler struct{ Options }

// New makes a Handler.
func New(o Options) *Handler {
	if o.Pace == (wire.Pace{}) {
		o.Pace = wire.DefaultPace
	}
	return &Handler{o}
}

// Answers of function URLs to what does not reach the function.
const (
	forbidden   = "Forbidden"
	failed      = "Internal Server Error"
	throttled   = "Rate Exceeded."
	unavailable = "Service Unavailable"
	nowhere     = `{"Message":null}`
)

var tooLarge = fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", maxBody)

// ServeHTTP implements http.Handler, for requests of which Is is true.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	place, _ := Of(r)
	id := h.NewRequestID()
	w.Header().Set("X-Amzn-Requestid", id)
	u, ok := h.Find(place.ID)
	switch {
	case !ok || place.ByHost() && place.Region != u.Function.Region:
		instead(http.StatusNotFound, nowhere).write(w, &place)
		return
	case u.CORS != nil && isPreflight(r):
		preflight(u.CORS, r).write(w, &place)
		return
	}
	var memory limit.Reservation
	defer memory.Release()
	of := asked{place: place, url: &u, id: id, at: h.Clock.Now()}
	a := h.answer(w, r, &of, &memory)
	if u.CORS != nil {
		share(u.CORS, r, a.header)
	}
	a.write(w, &place)
	if h.Audit != nil {
		h.audit(r, &of, a)
	}
}

// audit records a request.
func (h *Handler) audit(r *http.Request, of *asked, a *answer) {
	fn := of.url.Function
	call := api.Call{
		RequestID: of.id, Service: "lambda", Operation: Operation, Region: fn.Region, Account: fn.Account,
		Caller: of.who, RemoteAddr: r.RemoteAddr, Header: r.Header, Time: of.at,
	}
	if of.who == nil {
		call.Caller = &caller.Caller{}
	} else {
		call.AccessKey = of.who.AccessKey
	}
	in := lambda.FunctionInput{FunctionName: fn.String()}
	if of.url.Qualifier != "" {
		in.Qualifier = &of.url.Qualifier
	}
	h.Audit(&call, &in, wire.Outcome{Status: a.status, Code: a.refused, Message: a.why})
}

// answer is the answer to a request that is not a preflight.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, a *asked, memory *limit.Reservation) *answer {
	signed := sigv4.Of(r)
	signed.Exact, signed.Service, signed.Region = true, "lambda", a.url.Function.Region
	iam := a.url.Auth == function.AuthIAM
	if iam && h.Authentic != nil { // before the body of a stranger is read
		if err := h.Authentic.Examine(&signed); err != nil {
			return h.unauthentic(r, a, err)
		}
	}
	if no := h.receive(w, r, a, memory); no != nil {
		return no
	}
	if iam {
		who, err := h.identify(r, a, &signed)
		if err != nil {
			return h.unauthentic(r, a, err)
		}
		a.who = who
	}
	if h.Authorize != nil {
		if err := h.Authorize(r.Context(), r, a.url, a.who); err != nil {
			return h.refuse(r, a, err)
		}
	}
	if err := h.Admit(a.url, a.who); err != nil {
		return h.refuse(r, a, err)
	}
	out, err := h.invoke(w, r, a)
	if err != nil {
		return h.refuse(r, a, err)
	}
	if given, ok := read(out.Payload); ok && out.FunctionError == "" {
		return &given
	}
	return instead(http.StatusBadGateway, failed)
}

// identify is who has signed, or, where signatures are not verified, who says so.
func (h *Handler) identify(r *http.Request, a *asked, signed *sigv4.Request) (*caller.Caller, error) {
	if h.Authentic != nil {
		signed.Payload = sha256.Sum256(a.body)
		return h.Authentic.Verify(signed)
	}
	scope, _ := sigv4.FromRequest(r)
	if h.Known != nil && scope.AccessKey != "" {
		if who := h.Known(scope.AccessKey, r.Header.Get("X-Amz-Security-Token")); who != nil {
			return who, nil
		}
	}
	return api.Unverified(a.url.Function.Account, scope.AccessKey), nil
}

// invoke invokes the function.
func (h *Handler) invoke(w http.ResponseWriter, r *http.Request, a *asked) (invoke.Outcome, error) {
	payload, err := a.encode(r)
	if err != nil {
		return invoke.Outcome{}, err
	}
	in := invoke.Invocation{RequestID: a.id, Payload: payload}
	if trace := r.Header.Get(tracing.XRayHeader); len(trace) <= tracing.MaxHeader {
		in.Trace = trace
	}
	for again := false; ; again = true {
		if in.Target, err = h.Target(r.Context(), a.url.Function, a.url.Qualifier); err != nil {
			return invoke.Outcome{}, err
		}
		until := clock.System.Now().Add(in.Target.Timeout + start)
		c := http.NewResponseController(w)
		_ = c.SetReadDeadline(until) // fails where there is no connection, in tests
		_ = c.SetWriteDeadline(until.Add(writing))
		out, err := h.Pool.Invoke(r.Context(), in)
		if fault.KindOf(err) != fault.ResourceNotFound || again { // else an update has replaced the code meanwhile
			return out, err
		}
	}
}

// unauthentic answers who is not known by a signature.
func (h *Handler) unauthentic(r *http.Request, a *asked, err error) *answer {
	switch fault.KindOf(err) {
	case fault.MissingAuthentication:
		return denied("AccessDeniedException", forbidden, "Missing Authentication Token")
	case fault.SignatureDoesNotMatch, fault.IncompleteSignature, fault.ExpiredToken, fault.Unauthenticated, fault.InvalidSecurity:
		return denied("InvalidSignatureException", refusal.Text(err), refusal.Text(err))
	default:
		return h.refuse(r, a, err)
	}
}

// refuse answers an error before, or instead of, an invocation.
func (h *Handler) refuse(r *http.Request, a *asked, err error) *answer {
	switch kind := fault.KindOf(err); {
	case kind == fault.AccessDenied:
		return denied("AccessDeniedException", forbidden, refusal.Text(err))
	case kind == fault.Throttled:
		a := instead(http.StatusTooManyRequests, message(throttled))
		a.refused = "TooManyRequestsException"
		return a
	case invoke.Refused(err), r.Context().Err() != nil, kind == fault.Unavailable:
		return instead(http.StatusServiceUnavailable, message(unavailable))
	case kind == fault.Internal:
		h.Logger.LogAttrs(r.Context(), slog.LevelError, "a request to a function URL failed",
			slog.String("requestId", a.id), slog.String("function", a.url.Target().String()), slog.Any("error", err))
	}
	return instead(http.StatusBadGateway, failed)
}
