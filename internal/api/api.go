// Package api is what the API packages below it share: how an operation is
// declared, and what a handler knows about the call that it answers.
//
// A handler is a function from a typed input to a typed output. It knows
// nothing of protocols: package wire, above, reads the input from a request
// and writes the output, or the refusal, as the caller's protocol has it.
package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/tracing"
)

// Call is one request, as far as a handler may care. It is valid until the
// handler returns.
type Call struct {
	RequestID string
	Service   string // "sqs", "sns", "monitoring" …
	Operation string // "SendMessage"
	Protocol  string // "json", "cbor", "query" or "rest"
	Region    string // of the credential scope, else of the host, else the default
	Account   string // 12 digits
	AccessKey string // as the caller signed; empty when the request is unsigned
	// SessionToken is what came with the access key, in a header or in the query; empty
	// for none.
	SessionToken string
	// Caller is who calls: where signatures are verified, whose key signed; else who
	// says so. Never nil in a handler.
	Caller *caller.Caller
	// Authorized says that policies were asked, and let the caller do what it asks for,
	// on the resources that it names. Else a handler refuses other accounts itself.
	Authorized bool
	// Host is scheme://host[:port] as the caller addressed us: what queue URLs
	// begin with.
	Host       string
	RemoteAddr string // host:port
	Header     http.Header
	Time       time.Time // when the request came in, by the server's clock
	// Once names what a creation makes, if its name is drawn otherwise: asked again with the
	// same value, it makes nothing more. Only who calls within the process sets it.
	Once string
	// Via is the service that asks for its caller, as "cloudformation.amazonaws.com"; empty: the
	// caller itself asks. Only who calls within the process sets it.
	Via string
	// Span is what traces record of the request; nil where nothing is traced.
	Span *tracing.Span
	// Describe gives the code and text by which this service reports err, and
	// whether the caller is at fault: what a batch says of a failed entry.
	// Set by package wire, never nil in a handler.
	Describe func(err error) (code, message string, senderFault bool)
	// Memory is what the answer holds in memory while it is made and written. Who
	// reads something large for it reserves that first. Nil: any amount.
	Memory *limit.Reservation
	// Extend gives the answer d from now, where requests have less. Nil where none
	// may take longer.
	Extend func(d time.Duration)
}

// TraceHeader is X-Ray's header for what the request leads to later: where the request
// stands in its trace, if that is recorded, else what its caller has sent.
func (c *Call) TraceHeader() string {
	if at := c.Span.Context(); at.Sampled() {
		return at.XRay()
	}
	if given := c.Header[tracing.XRayHeader]; len(given) > 0 && len(given[0]) <= tracing.MaxHeader {
		return given[0]
	}
	return ""
}

// Unsigned reports whether the request carried no credentials.
func (c *Call) Unsigned() bool { return c.AccessKey == "" }

// Principal is the ARN of whoever calls, as resources that note it show it.
func (c *Call) Principal() string {
	if c.Caller != nil && c.Caller.ARN != "" {
		return c.Caller.ARN
	}
	return Unverified(c.Account, c.AccessKey).ARN
}

// Unverified is who an access key is taken for where nobody looks at its signature: the
// user of that name; the account's root where the key is an account's number, can be no
// user's name, or is empty.
func Unverified(account, accessKey string) *caller.Caller {
	of := "arn:" + arn.Partition + ":iam::" + account + ":"
	if accessKey == "" || accessKey == account || !isUserName(accessKey) {
		return &caller.Caller{Kind: caller.Root, Account: account, ARN: of + "root", ID: account, AccessKey: accessKey}
	}
	return &caller.Caller{Kind: caller.User, Account: account, ARN: of + "user/" + accessKey, ID: accessKey, Name: accessKey, AccessKey: accessKey}
}

func isUserName(s string) bool {
	const longest = 128
	return len(s) <= longest && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("+=,.@_-", c)
	})
}

// Operation is a declared operation; make one with Op.
type Operation struct {
	Name   string
	Input  reflect.Type // a struct
	Output reflect.Type // a struct; without fields, the operation answers nothing, but see Result
	New    func() any   // a pointer to an empty Input
	Invoke func(ctx context.Context, call *Call, in any) (out any, err error)
	// Result says that the answer has a result, as XML wraps it, even if Output
	// has no fields. Some clients insist on one where AWS's model has one.
	Result bool
	// Everywhere says that the operation may be asked for at the URL of a resource that
	// it has nothing to do with.
	Everywhere bool
	// Open says that the operation may be asked for without a signature.
	Open bool
	// Access reports what a request needs to be allowed.
	Access Access
	// Check refuses an input that breaks the constraints of the model; nil: only what is
	// required is looked at. It is asked before Access.
	Check func(in any) error
	// Method, Path and Status are how a REST protocol knows the operation: the HTTP
	// method; the path, with places as {Name} for members; the status of success.
	Method, Path string
	Status       int
	// MaxBody bounds the body of a request, in bytes; 0: as any request's.
	MaxBody int64
	// Answer is how much an answer may hold in memory, in bytes, where that is much:
	// it is reserved before the operation runs.
	Answer int64
}

// At returns the operation with its place in a REST protocol: "GET /path/{Member}".
func (o Operation) At(route string, status int) Operation {
	o.Method, o.Path, _ = strings.Cut(route, " ")
	o.Status = status
	return o
}

// Limit returns the operation with a bound of its own on the body of a request.
func (o Operation) Limit(bytes int64) Operation {
	o.MaxBody = bytes
	return o
}

// Holding returns the operation with Answer set.
func (o Operation) Holding(bytes int64) Operation {
	o.Answer = bytes
	return o
}

// WithResult returns the operation with Result set.
func (o Operation) WithResult() Operation {
	o.Result = true
	return o
}

// Anywhere returns the operation with Everywhere set.
func (o Operation) Anywhere() Operation {
	o.Everywhere = true
	return o
}

// Opened returns the operation with Open set.
func (o Operation) Opened() Operation {
	o.Open = true
	return o
}

// Op declares an operation: its name, and the handler, whose types are the
// operation's shapes. Refusals are errors of package fault; any other error
// is answered as an internal failure and its text is not shown.
func Op[In, Out any](name string, handle func(ctx context.Context, call *Call, in *In) (*Out, error)) Operation {
	return Operation{
		Name:   name,
		Input:  reflect.TypeFor[In](),
		Output: reflect.TypeFor[Out](),
		New:    func() any { return new(In) },
		Invoke: func(ctx context.Context, call *Call, in any) (any, error) {
			out, err := handle(ctx, call, in.(*In))
			if err != nil {
				return nil, err
			}
			if out == nil {
				out = new(Out)
			}
			return out, nil
		},
	}
}

// Deref is what p points to, or the zero value if it is nil: an optional member of an
// input whose absence means no more than that.
func Deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Pair is one entry of Pairs.
type Pair struct{ Name, Value string }

// Pairs is an output map of strings that keeps its order and costs no map.
// Codecs write it as they write a map[string]string; names must be distinct.
type Pairs []Pair

// Get returns the value of name, ok false if there is none.
func (p Pairs) Get(name string) (value string, ok bool) {
	for i := range p {
		if p[i].Name == name {
			return p[i].Value, true
		}
	}
	return "", false
}

// Bytes are those of a text, without a copy: they are never written to, as those of a message
// that was accepted are not.
func Bytes(text string) []byte {
	return unsafe.Slice(unsafe.StringData(text), len(text)) //nolint:gosec // see above
}
