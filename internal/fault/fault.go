// Package fault holds the closed set of ways in which a command can be
// refused. Only package wire turns a kind into an error code, a status and a
// body of one of the protocols; everything below it speaks of kinds.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what went wrong. Kinds are named after AWS's error shapes where
// AWS has one.
type Kind uint8

// The kinds. Internal is the zero value on purpose: an error that nobody
// classified is our fault, not the caller's.
const (
	Internal Kind = iota // our fault: HTTP 500

	// Any service.
	InvalidAction       // the action is unknown, or is not built yet
	MissingAction       // the request names no action
	MalformedInput      // the body cannot be read as the protocol or the shape
	RequestTooLarge     // the body is larger than any request may be: HTTP 413
	MissingParameter    // a required member is absent
	InvalidParameter    // a member's value is out of range
	AccessDenied        // a policy forbids it
	Unauthenticated     // no credentials, or unusable ones
	Unavailable         // the resource's owner cannot answer now: HTTP 503
	Throttled           // the resource's owner asks for less
	InsufficientStorage // the disk has no room for more: HTTP 507
	OptInRequired       // reserved for regions and accounts that are not served

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
	TagLimitExceeded
	InvalidState        // the resource must be changed first
	ReplayLimitExceeded // of replays under way

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
	InvalidNextToken            // no token of ours
	InvalidFormat               // a document within a member cannot be read
	LimitExceeded               // there are as many as there may be
	Conflict                    // the resource has changed meanwhile

	// CloudWatch Logs.
	ResourceAlreadyExists
	TooManyTags

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

// Error is a refusal: its kind, and the text that the caller sees. The text
// never holds a message body or a secret.
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

// Because returns the refusal with a reason.
func (e *Error) Because(reason string) *Error {
	because := *e
	because.Reason = reason
	return &because
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

// KindOf returns the kind of err, Internal if it is not a refusal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
