package deliver

import (
	"cmp"
	"context"
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

// Engine is what a Dispatcher needs of the state: *shard.Engine.
type Engine interface {
	Take(subscription arn.ARN, most int) (taken []*shard.Delivery, more bool, err error)
	Current(d *shard.Delivery) bool
	Delivered(d *shard.Delivery, a shard.Attempt)
	Retry(d *shard.Delivery, a shard.Attempt, due time.Time)
	Release(d *shard.Delivery)
	Transfer(ctx context.Context, d *shard.Delivery, a shard.Attempt, dest arn.ARN, m *message.Message, state shard.DeliveryState, reason string) error
	Drop(d *shard.Delivery, a shard.Attempt, reason string)
}

// Options are what a Dispatcher is made of. Engine, Clock and Senders are needed;
// everything else has a default.
type Options struct {
	Engine  Engine
	Clock   clock.Clock // of delays, throttles and deadlines; not of timeouts
	Logger  *slog.Logger
	Senders map[topic.Protocol]Sender
	// PublicURL is the address of the server as subscribers reach it. SubscribeURL
	// and UnsubscribeURL begin with it.
	PublicURL string
	// Signer signs envelopes; nil: they go out unsigned.
	Signer Signer
	// Jitter spreads delays by JitterShare, from 0 (not at all) to 1. Source and
	// seed are the caller's; nil means no jitter.
	Jitter      *clock.Jitter
	JitterShare float64
	// HostLimit bounds the attempts under way at one endpoint host: 50 unless
	// given. Limit bounds them in all: 5,000 unless given.
	HostLimit, Limit int
	// Timeout is the real time that an attempt may take: 15 s unless given.
	Timeout time.Duration
	Events  Events            // may be nil
	Tracer  *tracing.Tracer   // nil: nothing is traced
	NewID   func() message.ID // of messages in queues; random unless given
	System  clock.Clock       // measures attempts; the machine's unless given
}

// The pool of attempts that stay in this process.
const (
	localLimit = 64
	localBound = 1024
)

// Dispatcher makes deliveries: the Consumer of subscriptions' backlogs.
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

// lease takes deliveries of a subscription.
func (s *Dispatcher) lease(_ context.Context, subscription arn.ARN, most int) (all []consume.Work, more bool, err error) {
	taken, more, err := s.engine.Take(subscription, most)
	deliveries, all := make([]delivery, len(taken)), make([]consume.Work, len(taken))
	for i, d := range taken {
		deliveries[i] = delivery{Delivery: d, Dispatcher: s, deadline: deadlineOf(d)}
		all[i] = &deliveries[i]
	}
	return all, more, err
}

// Signer signs envelopes: *signing.Signer.
type Signer interface {
	// Key is the id of the key that signs now.
	Key() [16]byte
	// Sign puts into a body the signature that it lacks, the same each time.
	// While the first key is being made it waits.
	Sign(body []byte, u *message.Unsigned) error
}

// issuer is this server as the envelope of m shows it.
func (s *Dispatcher) issuer(m *message.Message) envelope.Issuer {
	o := envelope.Issuer{URL: s.options.PublicURL}
	if s.options.Signer != nil && m.Notice != nil && envelope.Signed(m) {
		o.Key = s.options.Signer.Key()
	}
	return o
}

// deadLetter makes the message that the dead-letter queue of a failed delivery gets;
// nil if it has none. Only notifications become dead letters.
func (s *Dispatcher) deadLetter(d *shard.Delivery) (m *message.Message, dest arn.ARN) {
	n, dest := d.Message.Notice, d.Subscription.DeadLetters()
	if n == nil || n.Kind != message.Notification || dest.IsZero() {
		return nil, arn.ARN{}
	}
	return envelope.DeadLetter(d.Message, s.options.NewID(), s.issuer(d.Message), d.Subscription.Protocol == topic.SQS), dest
}
