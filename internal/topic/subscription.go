package topic

import (
	"crypto/sha256"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic/endpoint"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/internal/topic/settings"
)

// Protocol is the protocol of deliveries to an endpoint.
type Protocol = endpoint.Protocol

// The supported protocols.
const (
	SQS       = endpoint.SQS
	HTTP      = endpoint.HTTP
	HTTPS     = endpoint.HTTPS
	Lambda    = endpoint.Lambda
	Email     = endpoint.Email
	EmailJSON = endpoint.EmailJSON
	SMS       = endpoint.SMS
	Firehose  = endpoint.Firehose

	Application = endpoint.Application
	// Protocols is how many there are; they are numbered from 0.
	Protocols = endpoint.Protocols
)

// TokenLife is how long a token can confirm a subscription.
const TokenLife = 48 * time.Hour

// Subscription is an endpoint that gets the messages of a topic. Callers read
// it; only commands change it.
type Subscription struct {
	ARN arn.ARN
	// Endpoint is the address of deliveries. It may contain credentials, and must not be shown:
	// see ShownEndpoint.
	Endpoint string
	Owner    string // the account of the subscriber
	Created  int64  // epoch milliseconds
	// Incarnation identifies the backlog of the subscription's deliveries.
	Incarnation uint64
	// PausedAt is when an operator stopped deliveries, in epoch milliseconds; 0: they are not
	// stopped. ResumedAt is when they last resumed; 0: they were never stopped.
	PausedAt, ResumedAt int64
	Settings

	principal    *string // the ARN of the subscriber, shared; nil: the owner's root
	topic        *Topic
	replay       *Replay       // nil if there never was one: see Progress
	confirmation *confirmation // nil if it never needed a token

	// Small fields are adjacent to save memory: there may be millions of subscriptions.

	Protocol Protocol
	// Pending says that the endpoint has not confirmed yet: it gets no messages.
	Pending bool
	// Authenticated says that the confirmation was a signed request.
	Authenticated bool
	// AuthenticateOnUnsubscribe refuses an Unsubscribe without a signature.
	AuthenticateOnUnsubscribe bool
	removed                   bool // see Unsubscribe; not among its topic's subscriptions then
}

// Settings are the attributes of a subscription that can be set.
type Settings struct {
	Raw      bool
	Scope    filter.Scope
	Filter   *filter.Policy            // nil: all messages match
	Delivery *retry.SubscriptionPolicy // nil: the topic's
	Redrive  *arn.ARN                  // the dead-letter queue, immutable; nil: none
	Replay   *settings.ReplayPolicy    // nil: none
	Role     *string                   // the role for deliveries to a stream, shared; nil: none
}

// confirmation is the token that confirms a subscription, or restores it. Only its hash is
// stored: a reader of the store cannot confirm in another's name.
type confirmation struct {
	Token   tokenHash
	Expires time.Time
}

type tokenHash [sha256.Size]byte

func hashToken(token string) tokenHash { return sha256.Sum256([]byte(token)) }

// ID is the last part of the ARN, after the topic's.
func (sub *Subscription) ID() string {
	return sub.ARN.Resource[strings.LastIndexByte(sub.ARN.Resource, ':')+1:]
}

// Topic is the topic of the subscription.
func (sub *Subscription) Topic() *Topic { return sub.topic }

// RetryPolicy is the schedule by which failed deliveries are retried.
func (sub *Subscription) RetryPolicy() retry.Policy {
	if sub.Protocol.Mail() || sub.Protocol.Device() {
		return retry.CustomerManaged
	}
	if !sub.Protocol.Configurable() {
		return retry.AWSManaged
	}
	return sub.effective().Policy
}

// Throttle is the bound on attempts per second, retries included. ok is false
// if there is none.
func (sub *Subscription) Throttle() (perSecond int, ok bool) {
	if sub.Protocol.Mail() {
		return mailsPerSecond, true
	}
	if !sub.Protocol.Configurable() {
		return 0, false
	}
	perSecond = sub.effective().MaxReceivesPerSecond
	return perSecond, perSecond > 0
}

// ContentType is the Content-Type of notifications over HTTP/S.
func (sub *Subscription) ContentType() string { return sub.effective().ContentType }

func (sub *Subscription) effective() retry.Effective {
	return retry.Resolve(sub.topic.Delivery, sub.Delivery, sub.Raw)
}

// Principal is the ARN of the subscriber.
func (sub *Subscription) Principal() string {
	if sub.principal == nil {
		return arn.Root(sub.Owner).String()
	}
	return *sub.principal
}

// DeadLetters is the dead-letter queue; zero: there is none.
func (s *Settings) DeadLetters() arn.ARN {
	if s.Redrive == nil {
		return arn.ARN{}
	}
	return *s.Redrive
}

// Progress is the progress of the replay that Settings ask for.
func (sub *Subscription) Progress() Replay {
	if sub.replay == nil {
		return Replay{}
	}
	return *sub.replay
}

// ShownEndpoint is the endpoint without the credentials inside it.
func (sub *Subscription) ShownEndpoint() string { return endpoint.Shown(sub.Protocol, sub.Endpoint) }

func (sub *Subscription) place() place { return place{sub.Owner, sub.ARN.Region} }
