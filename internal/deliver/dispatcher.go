package deliver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/consume"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/tracing"
)

// Engine has the state; *shard.Engine implements it.
type Engine interface {
	Take(subscription arn.ARN, limit int) (taken []*shard.Delivery, more bool, err error)
	Current(d *shard.Delivery) bool
	Delivered(d *shard.Delivery, a shard.Attempt)
	Retry(d *shard.Delivery, a shard.Attempt, due time.Time)
	Release(d *shard.Delivery)
	Transfer(ctx context.Context, d *shard.Delivery, dest arn.ARN, m *message.Message, e shard.Ending) error
	Drop(d *shard.Delivery, a shard.Attempt, reason string)
}

// Options are the dependencies and settings of a Dispatcher. Engine, Clock and Senders are
// required.
type Options struct {
	Engine  Engine
	Clock   clock.Clock // of delays, throttles and deadlines; not of timeouts
	Logger  *slog.Logger
	Senders map[topic.Protocol]Sender
	// PublicURL is the server's URL for subscribers, the prefix of SubscribeURL and
	// UnsubscribeURL.
	PublicURL string
	// Signer signs envelopes; nil: they are not signed.
	Signer Signer
	// Jitter spreads delays by JitterShare, from 0 (none) to 1. The caller chooses source and
	// seed; nil means no jitter.
	Jitter      *clock.Jitter
	JitterShare float64
	// HostLimit bounds the attempts in flight at one endpoint host; the default is 50. Limit
	// bounds all attempts in flight; the default is 5,000.
	HostLimit, Limit int
	// Timeout is the timeout of an attempt, in real time; the default is 15 s.
	Timeout time.Duration
	Events  Events            // may be nil
	Tracer  *tracing.Tracer   // nil: no tracing
	NewID   func() message.ID // of messages in queues; the default is random
	System  clock.Clock       // measures attempts; the default is the machine's
}

// The pool of attempts within this process.
const (
	localLimit = 64
	localBound = 1024
)

// Dispatcher makes deliveries: it is the Consumer of subscriptions' backlogs.
type Dispatcher struct {
	*consume.Consumer

	options        Options
	engine         Engine
	clock          clock.Clock
	logger         *slog.Logger
	local, outside *consume.Pool
}

// New makes a dispatcher. It does nothing until the engine notifies it of due messages.
func New(o Options) *Dispatcher {
	o.HostLimit = cmp.Or(o.HostLimit, 50)
	o.Limit = cmp.Or(o.Limit, 5000)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NewID == nil {
		o.NewID = func() message.ID { return message.ID(uuid.New()) }
	}
	if o.System == nil {
		o.System = clock.System
	}
	s := &Dispatcher{
		options: o, engine: o.Engine, clock: o.Clock, logger: o.Logger,
		local: consume.LocalPool(localLimit, localBound), outside: consume.RemotePool(o.HostLimit, o.Limit),
	}
	s.Consumer = consume.New(consume.Options{
		Lease: s.lease, Clock: o.Clock, Logger: o.Logger, Pools: []*consume.Pool{s.local, s.outside}, System: o.System,
	})
	return s
}

// lease leases deliveries of a subscription.
func (s *Dispatcher) lease(_ context.Context, subscription arn.ARN, limit int) (all []consume.Work, more bool, err error) {
	taken, more, err := s.engine.Take(subscription, limit)
	deliveries, all := make([]delivery, len(taken)), make([]consume.Work, len(taken))
	for i, d := range taken {
		deliveries[i] = delivery{Delivery: d, dispatcher: s, deadline: deadlineOf(d)}
		all[i] = &deliveries[i]
	}
	return all, more, err
}

// Signer signs envelopes; *signing.Signer implements it.
type Signer interface {
	// Key is the id of the current key.
	Key() [16]byte
	// Sign inserts the signature into a body. It is the same each time. Sign waits while the
	// first key is being generated.
	Sign(body []byte, u *message.Unsigned) error
}

// issuer is this server as the envelope of m names it.
func (s *Dispatcher) issuer(m *message.Message) envelope.Issuer {
	o := envelope.Issuer{URL: s.options.PublicURL}
	if s.options.Signer != nil && m.Notice != nil && envelope.Signed(m) {
		o.Key = s.options.Signer.Key()
	}
	return o
}

// toDeadLetters gives transfer the message for the dead-letter queue of a failed delivery; nil:
// there is no queue, or nothing for it.
func (s *Dispatcher) toDeadLetters(d *shard.Delivery, transfer func(m *message.Message, dest arn.ARN) error) (m *message.Message, dest arn.ARN, err error) {
	m, dest = s.deadLetter(d)
	if m == nil {
		return nil, dest, nil
	}
	if err = transfer(m, dest); !errors.Is(err, shard.ErrTooLong) {
		return m, dest, err
	}
	raw := envelope.RawDeadLetter(d.Message, m.ID, d.Subscription.Protocol == topic.SQS)
	if raw == nil || raw.Size() >= m.Size() {
		return m, dest, err
	}
	return raw, dest, transfer(raw, dest)
}

// deadLetter makes the message for the dead-letter queue of a failed delivery; nil: there is
// no queue. Only notifications become dead letters.
func (s *Dispatcher) deadLetter(d *shard.Delivery) (m *message.Message, dest arn.ARN) {
	n, dest := d.Message.Notice, d.Subscription.DeadLetters()
	if n == nil || n.Kind != message.Notification || dest.IsZero() {
		return nil, arn.ARN{}
	}
	o := s.issuer(d.Message)
	if s.options.Signer != nil && n.SignatureVersion != 0 { // also of a raw one, which may need an envelope
		o.Key = s.options.Signer.Key()
	}
	return envelope.DeadLetter(d.Message, s.options.NewID(), o, d.Subscription.Protocol == topic.SQS), dest
}
