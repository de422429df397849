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
	// skew is how far a request's date may differ from the system's clock, either way.
	skew = 15 * time.Minute
	// maxExpires is the maximum lifetime of a presigned request.
	maxExpires = 604_800 * time.Second
)

// ErrUnknownKey is the error of Keys for an access key that does not exist, or is not active.
var ErrUnknownKey = errors.New("sigv4: nobody has this access key")

// ErrToken is the error of Keys for a session token that does not belong to the access key: it
// is another's, is missing, or there should be none. If the credential is returned with it, the
// signature is checked first, as AWS does.
var ErrToken = errors.New("sigv4: the session token is not this access key's")

// Credential is the credential of an access key. Its secret is hidden in formatted output.
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

// Options configure a Verifier. All are required.
type Options struct {
	// Keys finds the credential of an access key. sessionToken is the request's, empty for
	// none. It is called for every request, and fails with ErrUnknownKey or ErrToken; any other
	// error is a failure of the server.
	Keys func(accessKey, sessionToken string) (Credential, error)
	// System is the machine's clock, which requests' dates are compared with.
	System func() time.Time
	// Now is the clock of Credential.Expires.
	Now func() time.Time
}

// Verifier verifies signatures. It is safe for concurrent use.
type Verifier struct {
	Options
	signing cache
}

// New returns a verifier. It panics if an option is missing, which is a bug.
func New(options Options) *Verifier {
	if options.Keys == nil || options.System == nil || options.Now == nil {
		panic("sigv4: incomplete options")
	}
	return &Verifier{Options: options}
}

// Request has the parts of a request that are, or may be, signed.
type Request struct {
	Method string
	Path   string // as it was sent, not decoded
	Query  string // likewise, without the question mark
	Host   string
	Header http.Header // with canonical names; Host may be missing
	Length int64       // of the body, in bytes
	// Payload is the SHA-256 of the body as it was sent, before any encoding is undone.
	Payload [sha256.Size]byte
	// Service is the required service of the scope; empty: any.
	Service string
	// Region is the required region of the scope. Empty: Default, or any text with the form of
	// a region's name.
	Region, Default string
	// Unsigned allows UNSIGNED-PAYLOAD.
	Unsigned bool
	// Exact allows the path only as it was sent, not with "//", "/./" and "/../" resolved:
	// handlers that act on the path as it was sent need this. One of slashes alone counts as "/"
	// nevertheless.
	Exact bool

	// Scope is the scope of the signature, SessionToken the request's token, if any. Set by
	// Verify and Examine.
	Scope        Scope
	SessionToken string
}

// Of returns the signed parts of an HTTP request, except the payload, which the caller sets.
func Of(r *http.Request) Request {
	path := RawPath(r)
	return Request{
		Method: r.Method, Path: path, Query: r.URL.RawQuery, Host: r.Host,
		Header: r.Header, Length: r.ContentLength,
	}
}

// Signed reports that a request claims to be signed: it has an Authorization header, or
// parameters of a presigned one.
func Signed(r *http.Request) bool {
	return len(r.Header["Authorization"]) > 0 || r.URL.RawQuery != "" && presigned(r.URL.RawQuery)
}

// Verify finds the credential that signed a request. Its errors are faults of kind
// MissingAuthentication, IncompleteSignature, SignatureDoesNotMatch, Unauthenticated or
// ExpiredToken, in this order of checks: both forms at once, missing, incomplete, date, expiry,
// Host not signed, algorithm, form of the credential, scope, key, signature, token. Any other
// error is one of Keys.
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

// Examine makes the checks that need no payload: all but those of the signature and after it.
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

// refused converts an error of Keys to a fault.
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
