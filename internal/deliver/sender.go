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
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/tracing"
)

// Class says who is to blame for the outcome of an attempt. It decides what
// follows. Source: message delivery retries in the SNS developer guide.
type Class uint8

// The classes. The zero value is the one that loses nothing: what nobody
// classified is tried again.
const (
	ServerError Class = iota // the next retry of the policy
	ClientError              // no retry: a dead letter at once
	Success                  // done
)

var classNames = [...]string{ServerError: "server-error", ClientError: "client-error", Success: "success"}

// String is the name of the class in a delivery's history.
func (c Class) String() string { return classNames[c] }

// Outcome is what came of an attempt.
type Outcome struct {
	Class   Class
	Status  int           // the HTTP status; 0 where there is none
	Detail  string        // why it failed, in a few words; no body, no secret, no address
	Latency time.Duration // real time until the answer
	// RetryAfter is how long, from the end of the attempt, the endpoint wants to be
	// left alone; 0: it did not say. It counts for server-side errors only.
	RetryAfter time.Duration
	// Provider is what the queue or function said, for the delivery status log.
	Provider Provider
	// Text reports a text message; nil for everything else.
	Text *TextReport
	// Kept is what the next attempt has to know of this one; nil: nothing more than
	// what it has learned itself.
	Kept []byte
	// Throttled says that a stream of this server takes less for now: the policy of
	// customers' endpoints holds for the next attempt.
	Throttled bool
	// Concluded says that the attempt itself has finished the delivery, so that
	// the engine needs no further call.
	Concluded bool
}

// Service is who answers for an endpoint that stays in this process.
type Service byte

// The services.
const (
	SQS Service = iota
	Lambda
	Push
	Firehose
)

// Provider is the answer of a queue, a function or a push platform in a delivery status log.
type Provider struct {
	Service Service
	Status  int        // as of the HTTP answer that the service would have given
	Code    string     // of an error; empty: a success
	Message string     // of a push platform: what it calls the message
	ID      message.ID // of the message in the queue, or of the function's event
}

// StatusDetail words an HTTP status. The reason phrase is the standard's and not
// the answer's, which is the endpoint's to choose.
func StatusDetail(status int) string {
	if text := http.StatusText(status); text != "" {
		return "HTTP " + strconv.Itoa(status) + " " + text
	}
	return "HTTP " + strconv.Itoa(status)
}

// Request is one attempt to be made.
type Request struct {
	*shard.Delivery
	At     time.Time // when the attempt began, by the server's clock
	Issuer envelope.Issuer
	NewID  func() message.ID // makes the id of a message in a queue
	Trace  tracing.Context   // of the attempt; nowhere: it is not recorded

	body []byte // made by the scheduler, for attempts that leave this process
}

// Body is what an HTTP/S endpoint is sent. A request that no scheduler made is
// not signed.
func (r *Request) Body() []byte {
	if r.body == nil {
		r.body, _ = envelope.Body(r.Message, envelope.Issuer{URL: r.Issuer.URL})
	}
	return r.body
}

// Kept is what the attempts before have kept by an Outcome; nil: nothing.
func (r *Request) Kept() []byte {
	if r.Subscription.Protocol != topic.SMS {
		return nil // it is a signature
	}
	return r.Signature
}

// Raw reports that Body is the bare message.
func (r *Request) Raw() bool { return envelope.Raw(r.Message) }

// Type is the name of what is sent: Notification, SubscriptionConfirmation,
// UnsubscribeConfirmation.
func (r *Request) Type() string { return envelope.Type(r.Message.Notice.Kind) }

// TellTrace sets the headers of a request that say where the attempt stands in a trace; else
// where its publisher did, if it said so.
func (r *Request) TellTrace(h http.Header) {
	if r.Trace.Sampled() {
		r.Trace.Tell(h)
	} else if r.Message.Trace != "" {
		tracing.FromXRay(r.Message.Trace).Tell(h)
	}
}

// SQS makes the message that a subscribed queue gets. The error is a
// client-side one: envelope.ErrTooManyAttributes.
func (r *Request) SQS() (*message.Message, error) {
	return envelope.SQS(r.Message, r.NewID(), r.Issuer)
}

// Sender makes attempts over one protocol. It does not retry, and it logs
// nothing: both are done once, by the Scheduler. Attempts are made concurrently.
// The package sendertest has a test that every sender passes.
type Sender interface {
	// Host names the party that answers for an endpoint. Attempts at one host
	// are limited, and a slow one does not delay others.
	Host(endpoint string) string
	// Local says that attempts never leave this process. They are cheap and have
	// limits of their own.
	Local() bool
	// Send makes one attempt. When ctx ends it returns without delay, with a
	// server-side error unless the answer is there already. Neither an outcome
	// nor a log line of the sender's holds a body, credentials or a query.
	Send(ctx context.Context, r *Request) Outcome
}

// Timed is a Sender whose attempts end in time by themselves, counted from when it is their
// turn: they may wait for others at the same host, and for what a server confirms late.
type Timed interface {
	// AttemptTimeout bounds an attempt, in real time, in place of the usual bound.
	AttemptTimeout() time.Duration
}

// TransferOutcome is the outcome of handing a message to a queue, by the error of
// the engine's Transfer. The queue's owner being out of reach is server-side;
// that the queue or its key is gone, or that it forbids it, is client-side. An
// error that is no refusal is our own fault and is tried again.
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
