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
)

// Subscribe asks for a subscription.
type Subscribe struct {
	Topic      arn.ARN
	Owner      string // the account that asks
	Principal  string // the ARN of whoever asks; empty: the account's root
	Protocol   string
	Endpoint   string
	Attributes map[string]string
	Draft      *filter.Draft // what Draft made of Attributes; may be nil

	// Next is the sequence of the topic's next message, for FIFO topics.
	Next uint64

	// For the case that the subscription is new:
	ID          string // unique, a UUID
	Incarnation uint64 // of its backlog
	// For the case that it has to be confirmed:
	Token string // a secret that only its endpoint gets
	// Refused is why no confirmation may be mailed to the endpoint, if it is a mail
	// address; nil: one may.
	Refused error
	// Missing says that there is no such endpoint of a push platform.
	Missing bool
}

// maxStreams is how many delivery streams an account may subscribe to a topic. Source: the
// quotas of SNS.
const maxStreams = 5

// Subscribed is the answer to Subscribe.
type Subscribed struct {
	Subscription *Subscription
	Created      bool
	// Confirm asks for a SubscriptionConfirmation with the command's token.
	Confirm bool
}

// Subscribe adds an endpoint to a topic, or finds it if it is there already
// and differs in nothing that cmd names. An endpoint that is still pending
// gets a new token in place of the old one. It fails with NotFound or
// InvalidParameter, or where one of the Limits is reached.
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
	if existing, ok := t.endpoints[address{protocol, cmd.Endpoint}]; ok {
		return s.subscribeAgain(now, existing, cmd, b)
	}
	sub := &Subscription{
		ARN:           t.ARN.Subscription(cmd.ID),
		Protocol:      protocol,
		Endpoint:      strings.Clone(cmd.Endpoint), // else it may keep a whole request in memory
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

// intern spares a copy of the account for the usual case that it owns both.
func (t *Topic) intern(owner string) string {
	if owner == t.ARN.Account {
		return t.ARN.Account
	}
	return strings.Clone(owner)
}

// internPrincipal is a principal that the subscriptions to a topic share when they come
// one after the other; nil for the account's root.
func (t *Topic) internPrincipal(owner, principal string) *string {
	if principal == "" || principal == rootOf(owner) {
		return nil
	}
	if t.principal == nil || *t.principal != principal {
		t.principal = new(strings.Clone(principal))
	}
	return t.principal
}

func rootOf(account string) string { return "arn:" + arn.Partition + ":iam::" + account + ":root" }

// deadLetters is a queue that does not keep a whole document in memory, and that
// the subscriptions to a topic share when they come one after the other.
func (t *Topic) deadLetters(queue arn.ARN) *arn.ARN {
	if t.redrive == nil || *t.redrive != queue {
		t.redrive = &arn.ARN{
			Service: "sqs", Region: t.ARN.Region, Account: t.intern(queue.Account), Resource: strings.Clone(queue.Resource),
		}
	}
	return t.redrive
}

// Confirm asks to confirm a subscription by its token.
type Confirm struct {
	Topic arn.ARN
	Token string
	// Authenticated says that the request is signed.
	Authenticated bool
	// AuthenticateOnUnsubscribe needs a signed request.
	AuthenticateOnUnsubscribe bool
	// Next is the sequence of the topic's next message, for FIFO topics.
	Next uint64
	// Incarnation is of the subscription's backlog if it is restored.
	Incarnation uint64
}

// Confirmed is the answer to Confirm.
type Confirmed struct {
	Subscription *Subscription
	// Restored says that the subscription had been removed; Dropped is the
	// incarnation of the backlog that it had then.
	Restored bool
	Dropped  uint64
}

// unknownToken refuses a token that nothing goes by. What no token could be has a text
// of its own, as AWS's tokens are hexadecimal.
func unknownToken(token string) error {
	if strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return ErrNoToken
	}
	return ErrToken
}

// Token makes the token of a subscription to a topic: a secret, which should be 288
// hexadecimal digits, with what finds the topic in the place of its first ones. A short
// secret is a token as it is, which only goes with its topic's name.
func (s *State) Token(t arn.ARN, secret string) string {
	if len(secret) <= 2*tokenLead {
		return secret
	}
	return hex.EncodeToString(append(binary.BigEndian.AppendUint16(nil, s.shard), tagOf(t)...)) + secret[2*tokenLead:]
}

// The bytes that a token begins with: its topic's shard and tag.
const (
	tagSize   = 8
	tokenLead = 2 + tagSize
)

// ShardOfToken is the shard of the topic that a token is of, if that is known.
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

// TopicOfToken finds the topic that has the subscription of a token: the one that is
// named, or any other.
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

// ConfirmSubscription opens a pending subscription for deliveries, or restores
// one whose removal the token is from. The token of one that is confirmed
// already finds it and changes nothing. It fails with InvalidParameter or
// AccessDenied, or where one of the Limits is reached.
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

// Pause stops the deliveries of a subscription, if it has any to come, until
// Resume. One that is paused stays so since it was. It fails with NotFound.
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

// confirmed notes who has confirmed a subscription.
func (sub *Subscription) confirmed(cmd Confirm) {
	sub.Pending = false
	sub.Authenticated = cmd.Authenticated
	sub.AuthenticateOnUnsubscribe = cmd.AuthenticateOnUnsubscribe
}
