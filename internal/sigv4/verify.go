package sigv4

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
)

const (
	// Skew is how far a request's date may be from the system's clock, either way.
	Skew = 15 * time.Minute
	// MaxExpires is the longest that a presigned request may be good for.
	MaxExpires = 604_800 * time.Second
)

// ErrUnknownKey is what Keys says of an access key that nobody has, or that is not
// active.
var ErrUnknownKey = errors.New("sigv4: nobody has this access key")

// ErrToken is what Keys says of a session token that is not the access key's: it is
// another's, is missing, or there should be none. With the credential beside it, the
// signature is checked first, as AWS does.
var ErrToken = errors.New("sigv4: the session token is not this access key's")

// Credential is what belongs to an access key. It is never printed with its secret.
type Credential struct {
	Secret string
	Caller *caller.Caller
	// Expires is when a session's credential ends, by Options.Now; zero: never.
	Expires time.Time
	// Revision differs between the secrets that an access key has over time.
	Revision uint64
}

// String hides the secret.
func (c Credential) String() string {
	if c.Caller == nil {
		return "credential of nobody"
	}
	return "credential of " + c.Caller.ARN
}

// GoString hides the secret.
func (c Credential) GoString() string { return c.String() }

// LogValue hides the secret.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Options are what a Verifier is made of. All are required.
type Options struct {
	// Keys gives the credential of an access key. sessionToken is what the request
	// has, empty for none. It is asked for every request, and refuses with
	// ErrUnknownKey or ErrToken; any other error is a failure of the server.
	Keys func(accessKey, sessionToken string) (Credential, error)
	// System is the machine's clock, which requests' dates are held against.
	System func() time.Time
	// Now is the clock of Credential.Expires.
	Now func() time.Time
}

// Verifier verifies signatures. It may be used from many goroutines.
type Verifier struct {
	Options
	signing cache
}

// New returns a verifier. It panics if an option is missing, which is a mistake in the
// program.
func New(options Options) *Verifier {
	if options.Keys == nil || options.System == nil || options.Now == nil {
		panic("sigv4: incomplete options")
	}
	return &Verifier{Options: options}
}

// Request is what of a request is signed, or may be.
type Request struct {
	Method string
	Path   string // as it was sent, not decoded
	Query  string // likewise, without the question mark
	Host   string
	Header http.Header // with canonical names; Host may be missing
	Length int64       // of the body, in bytes
	// Payload is the SHA-256 of the body as it was sent, before any encoding is undone.
	Payload [sha256.Size]byte
	// Service is what the scope must name; empty: anything.
	Service string
	// Region is what the scope must name. Empty: Default, or whatever has the form of a
	// region's name.
	Region, Default string
	// Unsigned admits UNSIGNED-PAYLOAD.
	Unsigned bool
	// Exact admits the path as it was sent only, not as it is after "//", "/./" and
	// "/../" have been resolved: what acts on the path as it was sent needs this.
	Exact bool

	// Scope is what the request was signed for, SessionToken the token that it came with,
	// if any. Set by Verify and Examine.
	Scope        Scope
	SessionToken string
}

// Of returns what of an HTTP request is signed. The payload is left to the caller.
func Of(r *http.Request) Request {
	path := rawPath(r)
	return Request{
		Method: r.Method, Path: path, Query: r.URL.RawQuery, Host: r.Host,
		Header: r.Header, Length: r.ContentLength,
	}
}

// Signed reports that a request claims to be signed: it has an Authorization header,
// or parameters of a presigned one.
func Signed(r *http.Request) bool {
	return len(r.Header["Authorization"]) > 0 || r.URL.RawQuery != "" && presigned(r.URL.RawQuery)
}

// Verify finds out who has made a request. What it refuses with is a fault of kind
// MissingAuthentication, IncompleteSignature, SignatureDoesNotMatch, Unauthenticated or
// ExpiredToken, in this order of checks: both forms at once, missing, incomplete, date,
// expiry, Host not signed, algorithm, form of the credential, scope, key, signature,
// token. Any other error is one of Keys.
func (v *Verifier) Verify(r *Request) (*caller.Caller, error) {
	var c claims
	credential, err := v.examine(r, &c)
	wrongToken := errors.Is(err, ErrToken) && credential.Secret != ""
	switch {
	case err != nil && !wrongToken:
		return nil, refused(err)
	case !v.matches(r, &c, &credential):
		return nil, errMismatch
	case wrongToken:
		return nil, errUnknown
	case !credential.Expires.IsZero() && !v.Now().Before(credential.Expires):
		return nil, errExpired
	}
	return credential.Caller, nil
}

// Examine makes the checks that need no payload, which are all but those of the
// signature and of what comes after it.
func (v *Verifier) Examine(r *Request) error {
	var c claims
	_, err := v.examine(r, &c)
	return refused(err)
}

func (v *Verifier) examine(r *Request, c *claims) (Credential, error) {
	if err := c.read(r); err != nil {
		return Credential{}, err
	}
	if err := c.check(r, v.System()); err != nil {
		return Credential{}, err
	}
	r.Scope, r.SessionToken = c.scope, c.token
	return v.Keys(c.scope.AccessKey, c.token)
}

// refused turns what Keys says into a refusal.
func refused(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnknownKey), errors.Is(err, ErrToken):
		return errUnknown
	case fault.Is(err):
		return err
	default:
		return fmt.Errorf("sigv4: looking an access key up: %w", err)
	}
}
