package wire

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/tracing"
	"godwit.dev/godwit/internal/wire/awsjson"
	"godwit.dev/godwit/internal/wire/awsquery"
	"godwit.dev/godwit/internal/wire/rpccbor"
)

// Options configure a handler. Services, Logger, Clock and the defaults are required.
type Options struct {
	// Services are the services to serve. A request that names none gets an error of the
	// first one.
	Services       []*Service
	Logger         *slog.Logger
	Clock          clock.Clock // what api.Call.Time is read from
	DefaultRegion  string
	DefaultAccount string
	// NewRequestID makes the ids of requests; nil means random UUIDs.
	NewRequestID func() string
	// MaxBody bounds a request's body, in bytes; 0 means defaultMaxBody.
	MaxBody int64
	// Authentic verifies signatures. Nil: they are not verified, and an unsigned request is
	// that of the account's root.
	Authentic *sigv4.Verifier
	// Authorize refuses calls without permission, and sets api.Call.Authorized of others.
	// Nil: permissions are not checked, and handlers refuse other accounts themselves.
	Authorize func(ctx context.Context, call *api.Call, op *api.Operation, in any) error
	// Known is the owner of an access key and session token, if signatures are not verified;
	// nil for an unknown key. May be nil.
	Known func(accessKey, token string) *caller.Caller
	// Admit may refuse a call before its operation runs; may be nil.
	Admit func(call *api.Call) error
	// Observe makes, for each operation, the observer of its requests, called once they are
	// answered, on their goroutines. The operation's name, or both names, are empty
	// where they are not known. May be nil.
	Observe func(service, operation string) Observer
	// Audit is called for each call once it is answered, with its input if that could be
	// decoded. It must not keep its arguments. May be nil.
	Audit func(call *api.Call, in any, outcome Outcome)
	// Tracer makes a span of each request; nil: nothing is traced.
	Tracer *tracing.Tracer
	// Pace is the minimum rate of bodies; the zero value: DefaultPace. Requests and Answers
	// bound the memory of large requests and answers; nil: it is not bounded.
	Pace              Pace
	Requests, Answers *limit.Budget
}

// Observer is called for each request once it is answered.
type Observer func(Observation)

// Canceled is the code of a request whose client closed the connection before the answer, or
// that was cut off when the server stopped.
const Canceled = "Canceled"

// Observation is a request as metrics see it.
type Observation struct {
	Status   int           // HTTP
	Code     string        // of the error in Query's words; empty on success
	Duration time.Duration // real time, long polls included
}

// Outcome is an answer as the audit log sees it.
type Outcome struct {
	Status  int    // HTTP
	Code    string // of the error in Query's words; empty on success
	Message string // the refusal's text
}

// Handler answers the AWS APIs of its services.
type Handler struct {
	Options
	byTarget  map[string]*Service
	byVersion map[string]*Service
	byName    map[string]*Service
	rest      []*Service
	callers   unverified
	base      base
	unknown   Observer      // of requests whose service is not known; nil: none
	large     chan struct{} // holds a token for each large body that is being processed
}

// NewHandler returns a handler. It panics if the options lack what is
// required, which is a mistake in the program.
func NewHandler(options Options) *Handler {
	if len(options.Services) == 0 || options.Logger == nil || options.Clock == nil ||
		options.DefaultRegion == "" || options.DefaultAccount == "" {
		panic("wire: incomplete options")
	}
	if options.NewRequestID == nil {
		options.NewRequestID = uuid.NewString
	}
	if options.MaxBody == 0 {
		options.MaxBody = defaultMaxBody
	}
	if options.Pace == (Pace{}) {
		options.Pace = DefaultPace
	}
	h := &Handler{
		Options:   options,
		byTarget:  make(map[string]*Service),
		byVersion: make(map[string]*Service),
		byName:    make(map[string]*Service),
		large:     make(chan struct{}, maxLarge),
	}
	if options.Observe != nil {
		h.unknown = options.Observe("", "")
	}
	for _, s := range options.Services {
		if options.Observe != nil {
			s.setObservers(options.Observe)
		}
		h.byName[s.Name] = s
		if s.rest {
			h.rest = append(h.rest, s)
		} else if s.Version != "" {
			h.byVersion[s.Version] = s
		}
		if s.TargetPrefix != "" {
			h.byTarget[s.TargetPrefix] = s
		}
	}
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, w: w, r: r, started: clock.System.Now()}
	var in any
	if h.Audit != nil {
		defer func() {
			h.Audit(&x.call, in, Outcome{Status: x.status, Code: x.code, Message: x.refusal.Message})
		}()
	}
	defer x.finish()
	if h.Answers != nil {
		x.memory.Of(h.Answers)
	}
	var out any
	if h.Tracer != nil {
		x.call.Span = h.Tracer.Begin(tracing.Server, "request", tracing.FromRequest(r.Header))
	}
	in, err := x.read()
	if x.call.Span != nil && x.op != nil {
		x.call.Span.Name(x.call.Service + "/" + x.call.Operation)
	}
	if err == nil && h.Authorize != nil {
		err = h.Authorize(r.Context(), &x.call, &x.op.Operation, in)
	}
	if err == nil && h.Admit != nil {
		err = h.Admit(&x.call)
	}
	if held := x.body.Held(); held > limit.Free && x.kept.body == nil {
		x.body.Shrink(held - held/decoded) // the body itself is gone
	}
	if err == nil && x.op.Answer > 0 {
		err = x.memory.Grow(r.Context(), x.op.Answer)
	}
	if err == nil {
		err = r.Context().Err() // the client may have gone meanwhile
	}
	if err == nil {
		out, err = x.op.Invoke(r.Context(), &x.call, in)
	}
	if err != nil {
		x.refuse(err)
		return
	}
	x.answer(out)
}

// Forbid answers a request that must not be served with status 403, in the form of
// its protocol. Its body is not read. The text says why.
func (h *Handler) Forbid(w http.ResponseWriter, r *http.Request, text string) {
	x := &exchange{handler: h, w: w, r: r, started: clock.System.Now()}
	defer x.finish()
	x.identify()
	x.answerError(forbidden, text)
}

// exchange is one request and its answer.
type exchange struct {
	handler *Handler
	w       http.ResponseWriter
	r       *http.Request
	started time.Time
	call    api.Call
	service *Service          // never nil once read has begun
	op      *operation        // nil until it is known
	places  map[string]string // the members in the path of a REST request
	refusal fault.Error       // the fault that is answered; zero: none, or an internal error
	asJSON  bool              // a Query request that accepts its answer in JSON
	unknown string            // the requested operation, if the service does not have it

	absent  absence           // zero: the service is known
	payload [sha256.Size]byte // digest of the body as it was sent, if the request is signed

	headers [3]string          // values of the headers that vary, here to spare allocations
	kept    kept               // until the request is answered
	body    *limit.Reservation // nil: it is small
	memory  limit.Reservation  // of the answer
	status  int                // 0 until an answer is written
	code    string
}

// kept has what a request releases once it is answered.
type kept struct {
	large bool    // a token, as its body is large
	body  *buffer // the body, where the input has parts of it; else nil
}

// identify finds the operation, as far as the request's head names it.
func (x *exchange) identify() {
	x.call = api.Call{
		RequestID:  x.handler.NewRequestID(),
		RemoteAddr: x.r.RemoteAddr,
		Header:     x.r.Header,
		Time:       x.started,
		Memory:     &x.memory,
		Span:       x.call.Span,
	}
	if x.handler.Clock != clock.System {
		x.call.Time = x.handler.Clock.Now()
	}
	x.detect()
}

// read finds the operation and decodes its input.
func (x *exchange) read() (in any, err error) {
	x.identify()
	if x.absent.why != nil {
		return nil, x.absent.why
	}
	if err := x.admitBody(); err != nil {
		return nil, err
	}
	body, err := x.readBody()
	if body != nil {
		defer func() {
			if _, inPlace := in.(awsjson.InPlace); inPlace {
				x.kept.body = body
			} else {
				body.release()
			}
		}()
	}
	if err != nil {
		return nil, err
	}
	return x.decode(body)
}

func (x *exchange) decode(body *buffer) (in any, err error) {
	switch x.call.Protocol {
	case protocolJSON:
		return x.readRPC(body.b, awsjson.Decode)
	case protocolCBOR:
		return x.readRPC(body.b, rpccbor.Decode)
	case protocolREST:
		return x.readREST(body.b)
	default:
		return x.readQuery(body.b)
	}
}

// readRPC decodes the input of an operation that the request's head has named.
func (x *exchange) readRPC(body []byte, decode func(body []byte, in any) error) (any, error) {
	if x.op == nil {
		return nil, x.noAction(x.unknown)
	}
	if x.r.Method != http.MethodPost {
		return nil, x.badMethod()
	}
	if err := x.checkAddress(); err != nil {
		return nil, err
	}
	if err := x.checkScheme(""); err != nil {
		return nil, err
	}
	in := x.op.New()
	if err := decode(body, in); err != nil {
		return nil, err
	}
	return in, x.service.check(x.op, in, body)
}

func (x *exchange) readQuery(body []byte) (any, error) {
	if x.r.Method == http.MethodGet {
		body = nil
	}
	form, err := awsquery.Parse(body, x.r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	err = x.route(form)
	if errors.Is(err, errNothingAsked) {
		return nil, err
	}
	if err := x.authenticate(form.Get("SignatureVersion")); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if x.r.Method != http.MethodPost && x.r.Method != http.MethodGet {
		return nil, x.badMethod()
	}
	if err := x.checkAddress(); err != nil {
		return nil, err
	}
	if err := x.checkScheme(form.Get("SignatureVersion")); err != nil {
		return nil, err
	}
	in := x.op.New()
	if err := awsquery.Decode(form, in); err != nil {
		return nil, err
	}
	if x.onPath() {
		x.setPath(in)
	}
	return in, x.service.check(x.op, in, nil)
}

// badMethod refuses an HTTP method that the protocol does not have.
func (x *exchange) badMethod() error {
	return fault.Newf(x.service.badMethod, "The operation %s is not supported by the method %s.", x.op.Name, printable(x.r.Method))
}

// checkAddress refuses a path that is neither the root nor a resource's.
func (x *exchange) checkAddress() error {
	if x.service.pathMember == "" || !x.onPath() || isQueuePath(x.r.URL.Path) {
		return nil
	}
	return fault.Newf(fault.InvalidAddress, "The address %s is not valid for this endpoint.", printable(x.call.Host+x.r.URL.Path))
}

// checkScheme refuses a signature of a scheme that AWS no longer accepts. version is Query's
// parameter SignatureVersion.
func (x *exchange) checkScheme(version string) error {
	authorization := ""
	if given := x.r.Header["Authorization"]; len(given) > 0 {
		authorization = given[0]
	}
	if sigv4.Superseded(authorization, version) {
		return fault.New(fault.InvalidSecurity, "The request must be signed with Signature Version 4.")
	}
	return nil
}

// refuse answers an error.
func (x *exchange) refuse(err error) {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrClosed)
	if cut {
		// The client has gone, or the server stops, or has: no error of either.
		err = fault.New(fault.Unavailable, "")
	}
	if errors.Is(err, errNothingAsked) {
		x.refuseBare()
		return
	}
	shape, text := x.service.report(err, x.call.Protocol)
	if said, ok := refusal.Of(err); ok {
		x.refusal = *said
	}
	if shape.Status == http.StatusInternalServerError {
		x.handler.Logger.LogAttrs(x.r.Context(), slog.LevelError, "request failed",
			slog.String("requestId", x.call.RequestID), slog.String("service", x.call.Service),
			slog.String("operation", x.call.Operation), slog.Any("error", err))
	}
	x.answerError(shape, text)
	if cut {
		x.code = Canceled
	}
}

// finish turns a panic into an answer, and reports the request to its observer.
func (x *exchange) finish() {
	if x.kept.large {
		<-x.handler.large
	}
	defer x.body.Release()
	defer x.memory.Release()
	if x.kept.body != nil {
		defer x.kept.body.release()
	}
	if cause := recover(); cause != nil {
		if cause == http.ErrAbortHandler { //nolint:errorlint // the very value that net/http asks for
			panic(cause)
		}
		x.handler.Logger.LogAttrs(x.r.Context(), slog.LevelError, "request panicked",
			slog.String("requestId", x.call.RequestID), slog.String("service", x.call.Service),
			slog.String("operation", x.call.Operation), slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
		if x.status != 0 || x.service == nil {
			panic(http.ErrAbortHandler) // a truncated answer must not look complete
		}
		x.answerError(x.service.report(fault.New(fault.Internal, ""), x.call.Protocol))
	}
	if x.call.Span != nil {
		x.endSpan()
	}
	duration := clock.System.Now().Sub(x.started)
	if log := x.handler.Logger; log.Enabled(x.r.Context(), slog.LevelDebug) {
		log.LogAttrs(x.r.Context(), slog.LevelDebug, "request",
			slog.String("requestId", x.call.RequestID), slog.String("service", x.call.Service),
			slog.String("operation", x.call.Operation), slog.Int("status", x.status),
			slog.String("code", x.code), slog.Duration("duration", duration))
	}
	if observer := x.observer(); observer != nil {
		observer(Observation{Status: x.status, Code: x.code, Duration: duration})
	}
}

// observer is the observer of the request.
func (x *exchange) observer() Observer {
	switch {
	case x.op != nil:
		return x.op.observer
	case x.call.Service != "":
		return x.service.observer
	default:
		return x.handler.unknown
	}
}
