package deliver

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// Class says who is at fault for the outcome of an attempt, which decides what follows.
// Source: message delivery retries in the SNS developer guide.
type Class uint8

// The classes. The zero value is the safe one: an unclassified outcome is retried.
const (
	ServerError Class = iota // retry by the policy
	ClientError              // no retry: to the dead-letter queue at once
	Success                  // done
)

var classNames = [...]string{ServerError: "server-error", ClientError: "client-error", Success: "success"}

// String is the name of the class in a delivery's history.
func (c Class) String() string { return classNames[c] }

// Outcome is the result of an attempt.
type Outcome struct {
	Class   Class
	Status  int           // the HTTP status; 0: there is none
	Detail  string        // why it failed; no body, no secret, no address
	Latency time.Duration // real time until the answer
	// RetryAfter is the endpoint's requested delay, from the end of the attempt; 0: none. It
	// only applies to server-side errors.
	RetryAfter time.Duration
	// Provider is the service's answer, for the delivery status log.
	Provider Provider
	// Text reports a text message; nil for other protocols.
	Text *TextReport
	// Kept is stored for the next attempt; nil: nothing new.
	Kept []byte
	// Throttled says that a delivery stream of this server refuses records for now: the retry
	// policy of customer-managed endpoints applies to the next attempt. Detail is StreamThrottled.
	Throttled bool
	// Concluded says that the attempt itself has concluded the delivery: the engine needs no
	// further call.
	Concluded bool
}

// StreamThrottled is the Detail of an attempt at a throttled stream, by which a delivery's history
// knows it.
const StreamThrottled = "the delivery stream is throttled"

// Service is the service of an endpoint in this process.
type Service byte

// The services.
const (
	SQS Service = iota
	Lambda
	Push
	Firehose
)

// Provider is the answer of a queue, a function or a push platform, for a delivery status
// log.
type Provider struct {
	Service Service
	Status  int        // the HTTP status that the service would answer
	Code    string     // of an error; empty: a success
	Message string     // of a push platform: its name of the message
	ID      message.ID // of the message in the queue, or of the function's event
}

// StatusDetail describes an HTTP status. The reason phrase is the standard's, because the
// endpoint chooses that of the answer.
func StatusDetail(status int) string {
	if text := http.StatusText(status); text != "" {
		return "HTTP " + strconv.Itoa(status) + " " + text
	}
	return "HTTP " + strconv.Itoa(status)
}

// Request is an attempt to be made.
type Request struct {
	*shard.Delivery
	At     time.Time // when the attempt began, by the server's clock
	Issuer envelope.Issuer
	NewID  func() message.ID // returns the id of a message in a queue
	Trace  tracing.Context   // of the attempt; zero: not recorded

	body []byte // made by the Dispatcher, for attempts that leave this process
}

// Body is the body for an HTTP/S endpoint. It is only signed if the Dispatcher has made it.
func (r *Request) Body() []byte {
	if r.body == nil {
		r.body, _ = envelope.Body(r.Message, envelope.Issuer{URL: r.Issuer.URL})
	}
	return r.body
}

// Raw reports whether Body is the message without an envelope.
func (r *Request) Raw() bool { return envelope.Raw(r.Message) }

// Type is the type of the message: Notification, SubscriptionConfirmation,
// UnsubscribeConfirmation.
func (r *Request) Type() string { return envelope.Type(r.Message.Notice.Kind) }

// TellTrace sets the trace headers of a request: of the attempt, or else the publisher's.
func (r *Request) TellTrace(h http.Header) {
	if r.Trace.Sampled() {
		r.Trace.Tell(h)
	} else if r.Message.Trace != "" {
		tracing.FromXRay(r.Message.Trace).Tell(h)
	}
}

// SQS makes the message for a subscribed queue. The error is a client-side one:
// those of envelope.SQS.
func (r *Request) SQS() (*message.Message, error) {
	return envelope.SQS(r.Message, r.NewID(), r.Issuer)
}

// Sender makes attempts over one protocol. It neither retries nor logs; the Dispatcher does.
// Attempts are concurrent. Package sendertest has a test that every sender must pass.
type Sender interface {
	// Host names an endpoint's host. The attempts in flight at one host are limited, so that
	// a slow one does not delay others.
	Host(endpoint string) string
	// Local says that attempts never leave this process. They are cheap and have their own
	// limits.
	Local() bool
	// Send makes one attempt. When ctx ends it returns without delay, with a server-side
	// error unless there is an answer already. Neither an outcome nor the sender's log
	// contains a body, credentials or a query.
	Send(ctx context.Context, r *Request) Outcome
}

// Timed is a Sender that limits its attempts itself, from when they have a slot: they may
// wait for others at the same host, and for late confirmations.
type Timed interface {
	// AttemptTimeout is the timeout of an attempt, in real time, in place of the usual one.
	AttemptTimeout() time.Duration
}

// TransferOutcome is the outcome of a transfer to a queue, by the error of the engine's
// Transfer. An unreachable owner of the queue is server-side; an unknown queue or key, or one
// whose policy denies it, is client-side. Any other error is a bug of ours, and is retried.
func TransferOutcome(err error) Outcome {
	if err == nil {
		return Outcome{Class: Success, Concluded: true, Provider: Provider{Status: 200}}
	}
	class := ServerError
	var detail string
	var p Provider
	switch fault.KindOf(err) {
	case fault.QueueDoesNotExist, fault.NotFound, fault.ResourceNotFound:
		class, detail = ClientError, "the queue does not exist"
		p = Provider{Status: 400, Code: "AWS.SimpleQueueService.NonExistentQueue", Message: "The specified queue does not exist or you do not have access to it."}
	case fault.AccessDenied:
		class, detail = ClientError, "the queue's policy forbids it"
		p = Provider{Status: 403, Code: "AccessDenied", Message: "Access to the resource is denied."}
	case fault.KMSNotFound:
		class, detail = ClientError, "the queue's key does not exist"
		p = Provider{Status: 400, Code: "KMS.NotFoundException", Message: "The key that encrypts the queue's messages does not exist."}
	case fault.KMSAccessDenied:
		class, detail = ClientError, "the key that encrypts the queue's messages does not let SNS use it"
		p = Provider{Status: 400, Code: "KMS.AccessDeniedException", Message: "null (Service: AWSKMS; Status Code: 400; Error Code: AccessDeniedException)"}
	case fault.KMSDisabled:
		class, detail = ClientError, "the key that encrypts the queue's messages is disabled"
		p = Provider{Status: 400, Code: "KMS.DisabledException", Message: "The key that encrypts the queue's messages is disabled."}
	case fault.KMSInvalidState, fault.KMSInvalidKeyUsage:
		class, detail = ClientError, "the key that encrypts the queue's messages cannot be used"
		p = Provider{Status: 400, Code: "KMS.InvalidStateException", Message: "The key that encrypts the queue's messages cannot be used."}
	case fault.InvalidMessageContents, fault.InvalidParameter, fault.RequestTooLarge, fault.UnsupportedOperation:
		class, detail = ClientError, "the queue does not take such a message"
		p = Provider{Status: 400, Code: "InvalidParameterValue", Message: "The message is not one that the queue takes."}
	case fault.Throttled:
		detail = "the queue is throttled"
		p = Provider{Status: 403, Code: "RequestThrottled", Message: "Rate exceeded."}
	case fault.Unavailable:
		detail = "the queue is unavailable"
		p = Provider{Status: 503, Code: "ServiceUnavailable", Message: "The service is unavailable."}
	case fault.InsufficientStorage:
		detail = "the disk has too little space"
		p = Provider{Status: 503, Code: "ServiceUnavailable", Message: "The service is unavailable."}
	default:
		detail = "internal error"
		p = Provider{Status: 500, Code: "InternalFailure", Message: "The request processing has failed because of an unknown error."}
	}
	return Outcome{Class: class, Detail: detail, Provider: p}
}
