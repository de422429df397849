// Package fault holds the closed set of ways in which a command can be refused.
//
// Rings 0 to 3 refuse with a Rule of theirs, and the fields that it is about; sigv4 alone,
// which speaks a protocol of the wire, has sentences. Package api/refusal makes AWS's
// sentence of a rule, and package wire the error code, the status and the body of a protocol.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Kind says what went wrong. Kinds are named after AWS's error shapes where
// AWS has one.
type Kind uint8

// The kinds. Internal is the zero value on purpose: an unclassified
// error is our fault, not the caller's.
const (
	Internal Kind = iota // our fault: HTTP 500

	// Any service.
	InvalidAction         // the action is unknown, or is not built yet
	MissingAction         // the request names no action
	MalformedInput        // the body cannot be read as the protocol or the shape
	RequestTooLarge       // the body is larger than any request may be: HTTP 413
	RequestTimeout        // the body came too slowly: HTTP 408, and SDKs try it again
	MissingParameter      // a required member is absent
	InvalidParameter      // a member's value is out of range
	AccessDenied          // a policy forbids it
	Unauthenticated       // the access key or the session token is not known
	MissingAuthentication // nothing is signed
	SignatureDoesNotMatch // the signature is not that of the request and the key, or is out of date
	IncompleteSignature   // what says how the request is signed cannot be read
	ExpiredToken          // the session has ended
	Unavailable           // the resource's owner cannot answer now: HTTP 503
	Throttled             // the resource's owner asks for less
	InsufficientStorage   // the disk is full: HTTP 507
	OptInRequired         // reserved for regions and accounts that are not served

	// SQS.
	QueueDoesNotExist
	QueueNameExists
	QueueDeletedRecently
	PurgeQueueInProgress
	InvalidAttributeName
	InvalidAttributeValue
	InvalidMessageContents
	ReceiptHandleIsInvalid
	MessageNotInflight
	OverLimit
	EmptyBatchRequest
	TooManyEntriesInBatchRequest
	BatchEntryIdsNotDistinct
	InvalidBatchEntryID
	BatchRequestTooLong
	UnsupportedOperation
	InvalidAddress
	InvalidSecurity
	ResourceNotFound
	KMSNotFound // the key that should encrypt does not exist

	// SNS.
	NotFound
	ParameterValueInvalid
	SubscriptionLimitExceeded
	TopicLimitExceeded
	FilterPolicyLimitExceeded
	EndpointDisabled
	PlatformApplicationDisabled
	TagLimitExceeded
	InvalidState        // the resource must be changed first
	ReplayLimitExceeded // of replays under way
	OptedOut            // a phone number that wants no messages
	UserError           // what a number's state in the sandbox forbids
	Verification        // a one-time password is wrong

	// Lambda.
	ResourceConflict      // the resource is there already, or in a state that forbids it
	PreconditionFailed    // a revision that the request names is not the latest
	CodeStorageExceeded   // of an account's code
	PolicyLengthExceeded  // of a resource's policy
	CodeSigningNotFound   // a code signing configuration that is named does not exist
	ResourceInUse         // the resource is being changed
	InvalidRequestContent // a payload is not JSON
	InvalidRuntime        // the function's runtime cannot run here
	InvalidZipFile        // the function's code cannot be unpacked
	FunctionNotReady      // the function's environment could not be made

	// CloudWatch.
	ValidationFailed            // a member breaks its shape's constraint
	InvalidParameterCombination // members that do not go together
	InvalidNextToken            // not a token of this server
	InvalidFormat               // a document within a member cannot be read
	LimitExceeded               // there are as many as there may be
	Conflict                    // the resource has changed meanwhile

	// CloudWatch Logs.
	ResourceAlreadyExists
	TooManyTags

	// IAM and STS.
	NoSuchEntity
	EntityAlreadyExists
	DeleteConflict          // something depends on what is to be deleted
	MalformedPolicyDocument // that cannot be read, or locks everyone out
	InvalidInput            // a member's value does not go with what there is
	PolicyNotAttachable     // to what it should be attached to
	PackedPolicyTooLarge    // a session's policies and tags
	ExpiredIdentityToken    // an identity provider's token, whose time is over
	InvalidIdentityToken    // an identity provider's token
	IDPRejectedClaim        // and what it says
	IDPCommunicationError   // the identity provider does not answer

	// KMS, and what SQS and SNS report of it.
	KMSAccessDenied    // no policy or grant lets the caller use the key
	KMSDisabled        // the key is disabled
	KMSInvalidState    // the key is in a state that forbids it
	KMSInvalidKeyUsage // the key is for something else

	// KMS alone.
	IncorrectKey      // the ciphertext is another key's
	InvalidCiphertext // not a ciphertext, or not for the context
	InvalidGrantToken // not a token of a grant
	InvalidAliasName  // a name that no alias of a customer has
	InvalidARN        // not an ARN of a key
	InvalidMarker     // not a marker of the list
	InvalidTag        // a tag, or how many there are
	InvalidSignature  // the signature is not the message's
	InvalidMAC        // nor is the authentication code
	DryRun            // it would have been done

	// CloudFormation.
	InsufficientCapabilities // a template does what was not acknowledged

	kinds // keep last: the number of kinds
)

// Kinds returns every kind, for tests that demand a mapping for each.
func Kinds() []Kind {
	all := make([]Kind, 0, kinds)
	for k := range kinds {
		all = append(all, k)
	}
	return all
}

// Rule is one way in which a command is refused, a variable of the package whose rule it
// is. It is the error itself where it has no fields.
type Rule struct {
	kind Kind
	name string
}

// NewRule makes a rule. The name is for logs and starts with the package's.
func NewRule(kind Kind, name string) *Rule { return &Rule{kind: kind, name: name} }

// FaultKind is the kind of every refusal by the rule.
func (r *Rule) FaultKind() Kind { return r.kind }

func (r *Rule) Error() string { return r.name }

// With refuses something by the rule. The fields are what api/refusal has a place for in
// the sentence, in its order; an error among them is a refusal that this one is about.
func (r *Rule) With(fields ...any) error { return &Refusal{Rule: r, Fields: fields} }

// Refusal is a rule with its fields. errors.Is finds the rule in it.
type Refusal struct {
	Rule   *Rule
	Fields []any
}

func (r *Refusal) Error() string {
	return r.Rule.name + ": " + strings.TrimSuffix(fmt.Sprintln(r.Fields...), "\n")
}

// Unwrap returns the rule.
func (r *Refusal) Unwrap() error { return r.Rule }

// Error is a refusal in words: its kind, and the text that the caller sees. The text
// never holds a message body or a secret. Below ring 4 only sigv4 makes them.
type Error struct {
	Kind    Kind
	Message string
	// Reason is a word for programs, where AWS has one beside the text.
	Reason string
	// Untyped says that the answer does not tell whose fault it is, where the
	// protocol has a member for that.
	Untyped bool
}

// New makes a refusal with the given text.
func New(kind Kind, message string) *Error { return &Error{Kind: kind, Message: message} }

// Newf makes a refusal with a formatted text.
func Newf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Excerpt is what a refusal repeats of a text that a client sent: at most so many bytes,
// as whole characters, and more behind it if that is not all. What is not UTF-8 becomes
// U+FFFD.
func Excerpt(text string, limit int, more string) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit] + more
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// WithoutType returns the refusal with Untyped set.
func (e *Error) WithoutType() *Error {
	untyped := *e
	untyped.Untyped = true
	return &untyped
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is match any refusal of the same kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind
}

// FaultKind is e.Kind.
func (e *Error) FaultKind() Kind { return e.Kind }

type refusal interface {
	error
	FaultKind() Kind
}

// KindOf returns the kind of err, Internal if it is not a refusal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[refusal](err); ok {
		return e.FaultKind()
	}
	return Internal
}

// Is reports whether err is a refusal.
func Is(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}
