package topic

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/topic/endpoint"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/settings"
)

// Subscribe is the command to subscribe an endpoint.
type Subscribe struct {
	Topic      arn.ARN
	Owner      string // the account of the requester
	Principal  string // the ARN of the requester; empty: the account's root
	Protocol   string
	Endpoint   string
	Attributes map[string]string
	Draft      *filter.Draft // result of Draft for Attributes; may be nil

	// Next is the sequence of the topic's next message, for FIFO topics.
	Next uint64

	// If the subscription is new:
	ID          string // unique, a UUID
	Incarnation uint64 // of its backlog
	// If it has to be confirmed:
	Token string // a secret that only its endpoint gets
	// Refused is why no confirmation may be mailed to the endpoint, if it is a mail address;
	// nil: one may.
	Refused error

	// RefusedNew is why no subscription can be added; nil: it can. Subscribing again is none.
	RefusedNew error
	// Missing says that the endpoint of a push platform does not exist.
	Missing bool
}

// maxStreams is how many delivery streams an account may subscribe to a topic. Source: the
// quotas of SNS.
const maxStreams = 5

// Subscribed is the result of Subscribe.
type Subscribed struct {
	Subscription *Subscription
	Created      bool
	// Confirm says that a SubscriptionConfirmation with the command's token is to be sent.
	Confirm bool
}

// Subscribe adds an endpoint to a topic, or finds an existing subscription that agrees with all
// attributes of cmd. A pending endpoint gets a new token instead of the old one. It fails with
// NotFound or InvalidParameter, or if one of the Limits is reached.
func (s *State) Subscribe(now time.Time, cmd Subscribe, b *mutation.Batch) (Subscribed, error) {
	t, err := s.topic(cmd.Topic)
	if err != nil {
		return Subscribed{}, err
	}
	protocol, err := endpoint.ParseProtocol(cmd.Protocol)
	if t.ARN.FIFO() && cmd.Protocol != SQS.String() && err == nil {
		return Subscribed{}, ErrProtocolOfFIFO.With(cmd.Protocol)
	}
	if err != nil {
		return Subscribed{}, err
	}
	confirmed, err := endpoint.Check(protocol, cmd.Endpoint, cmd.Owner, t.ARN)
	if err != nil {
		return Subscribed{}, err
	}
	if cmd.Missing && protocol == endpoint.Application {
		return Subscribed{}, endpoint.ErrPlatform.With(cmd.Endpoint)
	}
	if t.large() && !protocol.Large() {
		return Subscribed{}, ErrLargeProtocols.With(settings.DefaultMessageSize, cmd.Protocol)
	}
	if existing, ok := t.endpoints[addressOf(protocol, cmd.Endpoint)]; ok {
		return s.subscribeAgain(now, existing, cmd, b)
	}
	if cmd.RefusedNew != nil {
		return Subscribed{}, cmd.RefusedNew
	}
	sub := &Subscription{
		ARN:           t.ARN.Subscription(cmd.ID),
		Protocol:      protocol,
		Endpoint:      strings.Clone(cmd.Endpoint), // else it might keep a whole request in memory
		Owner:         t.intern(cmd.Owner),
		principal:     t.internPrincipal(cmd.Owner, cmd.Principal),
		Created:       now.UnixMilli(),
		Incarnation:   cmd.Incarnation,
		Pending:       !confirmed,
		Authenticated: confirmed,
		topic:         t,
	}
	if sub.Settings, err = sub.with(cmd.Attributes, cmd.Draft); err != nil {
		return Subscribed{}, err
	}
	if t.large() && len(t.subscriptions.Items) >= settings.MaxLargeSubscriptions {
		return Subscribed{}, ErrLargeSubscriptions.With(settings.DefaultMessageSize, settings.MaxLargeSubscriptions)
	}
	if err := s.limits.admit(t, sub.Filter != nil); err != nil {
		return Subscribed{}, err
	}
	if own := t.shares[cmd.Owner]; protocol == Firehose && own != nil && own.streams >= maxStreams {
		return Subscribed{}, ErrTooManyStreams.With(maxStreams)
	}
	if err := s.admitReplay(now, sub, sub.Settings); err != nil {
		return Subscribed{}, InAttributes(err)
	}
	if sub.Pending {
		if cmd.Refused != nil && protocol.Mail() {
			return Subscribed{}, cmd.Refused
		}
		sub.confirmation = newConfirmation(now, cmd.Token)
	}
	s.addSubscription(sub)
	sub.beginReplay(cmd.Next)
	s.putSubscription(b, sub)
	return Subscribed{Subscription: sub, Created: true, Confirm: sub.Pending}, nil
}

func (s *State) subscribeAgain(now time.Time, sub *Subscription, cmd Subscribe, b *mutation.Batch) (Subscribed, error) {
	wanted, err := sub.with(cmd.Attributes, cmd.Draft)
	if err != nil {
		return Subscribed{}, err
	}
	for name := range cmd.Attributes {
		if wanted.attribute(name) != sub.attribute(name) {
			return Subscribed{}, ErrSubscribed
		}
	}
	if sub.Pending && !sub.mailedOfLate(now) {
		if cmd.Refused != nil && sub.Protocol.Mail() {
			return Subscribed{}, cmd.Refused
		}
		if sub.confirmation != nil {
			delete(sub.topic.tokens, sub.confirmation.Token)
		}
		s.removeExpiring(sub)
		sub.confirmation = newConfirmation(now, cmd.Token)
		s.addExpiring(sub)
		sub.topic.tokens[sub.confirmation.Token] = sub
		s.putSubscription(b, sub)
		return Subscribed{Subscription: sub, Confirm: true}, nil
	}
	return Subscribed{Subscription: sub}, nil
}

func newConfirmation(now time.Time, token string) *confirmation {
	return &confirmation{Token: hashToken(token), Expires: now.UTC().Truncate(time.Millisecond).Add(TokenLife)}
}

// intern avoids a copy of the account in the usual case that it owns topic and subscription.
func (t *Topic) intern(owner string) string {
	if owner == t.ARN.Account {
		return t.ARN.Account
	}
	return strings.Clone(owner)
}

// internPrincipal is a principal, shared by consecutive subscriptions to a topic; nil for the
// account's root.
func (t *Topic) internPrincipal(owner, principal string) *string {
	if principal == "" || arn.Root(owner).Names(principal) {
		return nil
	}
	if t.principal == nil || *t.principal != principal {
		t.principal = new(strings.Clone(principal))
	}
	return t.principal
}

// deadLetters is a copy of a queue's ARN that does not keep a whole document in memory, shared
// by consecutive subscriptions to a topic.
func (t *Topic) deadLetters(queue arn.ARN) *arn.ARN {
	if t.redrive == nil || *t.redrive != queue {
		t.redrive = &arn.ARN{
			Service: "sqs", Region: t.ARN.Region, Account: t.intern(queue.Account), Resource: strings.Clone(queue.Resource),
		}
	}
	return t.redrive
}

// Confirm is the command to confirm a subscription by its token.
type Confirm struct {
	Topic arn.ARN
	Token string
	// Authenticated says that the request is signed.
	Authenticated bool
	// AuthenticateOnUnsubscribe requires a signed request.
	AuthenticateOnUnsubscribe bool
	// Next is the sequence of the topic's next message, for FIFO topics.
	Next uint64
	// Incarnation is that of the subscription's backlog if it is restored.
	Incarnation uint64
}

// Confirmed is the result of Confirm.
type Confirmed struct {
	Subscription *Subscription
	// Restored says that the subscription had been deleted; Dropped is the incarnation of the
	// backlog that it had then.
	Restored bool
	Dropped  uint64
}

// unknownToken refuses an unknown token. A text that cannot be a token has an error of its own,
// as AWS's tokens are hexadecimal.
func unknownToken(token string) error {
	if strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return ErrNoToken
	}
	return ErrToken
}

// Token makes the token of a subscription to a topic from a secret, which should be 288
// hexadecimal digits: the first ones are replaced by a reference to the topic. A short secret
// is used unchanged; such a token is only valid together with its topic's name.
func (s *State) Token(t arn.ARN, secret string) string {
	if len(secret) <= 2*tokenLead {
		return secret
	}
	return hex.EncodeToString(append(binary.BigEndian.AppendUint16(nil, s.shard), tagOf(t)...)) + secret[2*tokenLead:]
}

// The first bytes of a token: its topic's shard and tag.
const (
	tagSize   = 8
	tokenLead = 2 + tagSize
)

// ShardOfToken is the shard of a token's topic, if the token names it.
func ShardOfToken(token string) (shard uint16, ok bool) {
	lead, ok := leadOf(token)
	if !ok {
		return 0, false
	}
	return binary.BigEndian.Uint16(lead), true
}

func leadOf(token string) ([]byte, bool) {
	if len(token) <= 2*tokenLead {
		return nil, false
	}
	lead, err := hex.DecodeString(token[:2*tokenLead])
	return lead, err == nil
}

type tag [tagSize]byte

// tagOf identifies a topic among those of its shard.
func tagOf(t arn.ARN) []byte {
	sum := sha256.Sum256([]byte(t.String()))
	return sum[:tagSize]
}

// TopicOfToken finds the topic that has the subscription of a token: the named one, or any
// other.
func (s *State) TopicOfToken(named arn.ARN, token string) (arn.ARN, bool) {
	has := func(t *Topic, there bool) bool {
		if !there {
			return false
		}
		_, there = t.tokens[hashToken(token)]
		return there
	}
	if t, there := s.topics[named]; has(t, there) {
		return named, true
	}
	if lead, ok := leadOf(token); ok {
		if t, there := s.tagged[tag(lead[2:])]; has(t, there) {
			return t.ARN, true
		}
	}
	return arn.ARN{}, false
}

// ConfirmSubscription activates a pending subscription, or restores a deleted one by the token
// of its deletion. It is idempotent for a confirmed subscription. It fails with
// InvalidParameter or AccessDenied, or if one of the Limits is reached.
func (s *State) ConfirmSubscription(now time.Time, cmd Confirm, b *mutation.Batch) (Confirmed, error) {
	if cmd.AuthenticateOnUnsubscribe && !cmd.Authenticated {
		return Confirmed{}, ErrConfirmUnsigned
	}
	t, ok := s.topics[cmd.Topic]
	if !ok {
		return Confirmed{}, unknownToken(cmd.Token)
	}
	sub, ok := t.tokens[hashToken(cmd.Token)]
	switch {
	case !ok:
		return Confirmed{}, unknownToken(cmd.Token)
	case cmd.Token == "" || !now.Before(sub.confirmation.Expires):
		return Confirmed{}, ErrToken
	case !sub.Pending && !sub.removed:
		return Confirmed{Subscription: sub}, nil
	}
	if err := s.limits.admit(t, sub.Filter != nil); err != nil {
		return Confirmed{}, err
	}
	if sub.removed {
		return s.restore(sub, cmd, b)
	}
	if sub.Replay != nil && s.limits.Replays > 0 && t.replaying >= s.limits.Replays {
		return Confirmed{}, ErrTooManyReplays
	}
	s.removeExpiring(sub)
	t.count(sub, -1)
	sub.confirmed(cmd)
	sub.beginReplay(cmd.Next)
	t.count(sub, +1)
	s.putSubscription(b, sub)
	return Confirmed{Subscription: sub}, nil
}

// Pause stops the deliveries of a subscription until Resume, unless it is paused already. It
// fails with NotFound.
func (s *State) Pause(now time.Time, name arn.ARN, b *mutation.Batch) (*Subscription, error) {
	sub, ok := s.Subscription(name)
	if !ok {
		return nil, ErrNoSubscription
	}
	if sub.PausedAt == 0 {
		sub.PausedAt = now.UnixMilli()
		s.putSubscription(b, sub)
	}
	return sub, nil
}

// Resume ends a Pause. It fails with NotFound.
func (s *State) Resume(now time.Time, name arn.ARN, b *mutation.Batch) (*Subscription, error) {
	sub, ok := s.Subscription(name)
	if !ok {
		return nil, ErrNoSubscription
	}
	if sub.PausedAt != 0 {
		sub.PausedAt, sub.ResumedAt = 0, now.UnixMilli()
		s.putSubscription(b, sub)
	}
	return sub, nil
}

// confirmed notes the confirmation of a subscription, and whether it was signed.
func (sub *Subscription) confirmed(cmd Confirm) {
	sub.Pending = false
	sub.Authenticated = cmd.Authenticated
	sub.AuthenticateOnUnsubscribe = cmd.AuthenticateOnUnsubscribe
}
