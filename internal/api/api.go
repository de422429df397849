// Package api is shared by the API packages below it: the declaration of operations, and the
// call that a handler answers.
//
// A handler is a function from a typed input to a typed output. It is independent of
// protocols: package wire, above, decodes the input, and encodes the output or the error in
// the caller's protocol.
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

// Call is one request, as handlers see it. It is valid until the handler returns.
type Call struct {
	RequestID string
	Service   string // "sqs", "sns", "monitoring" …
	Operation string // "SendMessage"
	Protocol  string // "json", "cbor", "query" or "rest"
	Region    string // of the credential scope, else of the host, else the default
	Account   string // 12 digits
	AccessKey string // that signed the request; empty: unsigned
	// SessionToken is the request's security token, from a header or the query; empty: none.
	SessionToken string
	// Caller is the caller: the owner of the access key, or, if signatures are not verified,
	// whom the request claims. Never nil in a handler.
	Caller *caller.Caller
	// Authorized says that policies were evaluated, and allow the request on its resources.
	// If not, the handler itself must refuse other accounts.
	Authorized bool
	// Host is scheme://host[:port] of the request, the prefix of queue URLs.
	Host       string
	RemoteAddr string // host:port
	Header     http.Header
	Time       time.Time // when the request came in, by the server's clock
	Within
	// Span is the request's span; nil: the request is not traced.
	Span *tracing.Span
	// Describe returns the service's code and message for err, and whether it is the sender's
	// fault, for the failed entries of a batch. Set by package wire, never nil in a handler.
	Describe func(err error) (code, message string, senderFault bool)
	// Memory is the reservation for the memory of the answer. A handler that reads something
	// large must reserve that first. Nil: unlimited.
	Memory *limit.Reservation
	// Extend sets the request's deadline to d from now, if it is earlier. Nil: deadlines
	// cannot be extended.
	Extend func(d time.Duration)
}

// Within has what is special of a call that is made within the process, in its Caller's name and
// without an access key. The zero value is that of a request.
type Within struct {
	// Inside says that the call is made within the process. Set by package wire.
	Inside bool
	// Once makes a creation idempotent whose name would otherwise be random: with the same
	// value, a second call creates nothing more.
	Once string
	// Via is the service that calls for its caller, as "cloudformation.amazonaws.com"; empty:
	// the caller calls directly.
	Via string
}

// TraceHeader is X-Ray's header for later work of the request: of its span, if that is
// recorded, else the header that the caller sent.
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

// Vouched reports whether somebody is known to stand behind the request: it is signed, or made
// within the process for a caller who was.
func (c *Call) Vouched() bool { return !c.Unsigned() || c.Inside }

// Principal is the caller's ARN, as resources record and show it.
func (c *Call) Principal() string {
	if c.Caller != nil && c.Caller.ARN != "" {
		return c.Caller.ARN
	}
	return Unverified(c.Account, c.AccessKey).ARN
}

// UserID is the unique id of the user or session that calls; the account if it is the root, or
// not known by more than an access key.
func (c *Call) UserID() string {
	if who := c.Caller; who != nil && who.ID != "" && who.ID != who.AccessKey {
		return who.ID
	}
	return c.Account
}

// Unverified is the caller of an access key whose signature is not verified: the user of that
// name, or the account's root if the key is an account's number, empty, or cannot be a user's
// name.
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
	Output reflect.Type // a struct; without fields, the answer is empty, but see Result
	New    func() any   // a pointer to an empty Input
	Invoke func(ctx context.Context, call *Call, in any) (out any, err error)
	// Result says that the XML answer has a result element even if Output has no fields. Some
	// clients require it where AWS's model has it.
	Result bool
	// Everywhere says that the operation is accepted at the URL of an unrelated resource.
	Everywhere bool
	// Open says that the operation accepts unsigned requests.
	Open bool
	// Access returns the permissions that a request requires.
	Access Access
	// Check refuses an input that violates the constraints of the model; nil: only required
	// members are checked. It is called before Access.
	Check func(in any) error
	// Method, Path and Status are the operation's REST form: the HTTP method; the path, with
	// {Name} for members; the status of success.
	Method, Path string
	Status       int
	// MaxBody bounds a request's body, in bytes; 0: the default bound.
	MaxBody int64
	// Answer is the most memory that an answer may use, in bytes, if that is large. It is
	// reserved before the operation runs.
	Answer int64
}

// At returns the operation with its REST form: "GET /path/{Member}".
func (o Operation) At(route string, status int) Operation {
	o.Method, o.Path, _ = strings.Cut(route, " ")
	o.Status = status
	return o
}

// Limit returns the operation with MaxBody set.
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

// Op declares an operation: its name, and the handler, whose types are the shapes. Errors are
// of package fault; any other error is answered as an internal failure, and not disclosed.
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

// Deref is *p, or the zero value if p is nil: for an optional member whose absence means the
// same.
func Deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Pair is one entry of Pairs.
type Pair struct{ Name, Value string }

// Pairs is an output map of strings that keeps its order and needs no map. It is encoded like
// a map[string]string; names must be distinct.
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

// Bytes are the bytes of a text, without a copy. They must not be written to, as those of an
// accepted message never are.
func Bytes(text string) []byte {
	return unsafe.Slice(unsafe.StringData(text), len(text)) //nolint:gosec // see above
}
