package async

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/consume"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// Engine has the state; *shard.Engine implements it.
type Engine interface {
	TakeEvents(function arn.ARN, limit int) (taken []*shard.QueuedEvent, more bool, err error)
	EventDone(ev *shard.QueuedEvent)
	RetryEvent(ev *shard.QueuedEvent, due time.Time)
	ReleaseEvent(ev *shard.QueuedEvent)
	// MoveEvent moves the event in the name of a caller; nil: the root of the function's
	// account.
	MoveEvent(ctx context.Context, ev *shard.QueuedEvent, dest arn.ARN, m *message.Message, who *caller.Caller) error
	// EncryptFor encrypts a message for an encrypted queue.
	EncryptFor(queue arn.ARN, who *caller.Caller, source arn.ARN, m *message.Message) error

	Function(ctx context.Context, function arn.ARN, qualifier string) (function.Target, error)
	// EventInvoke is the retry configuration of a function, version or alias; zero: the
	// default.
	EventInvoke(ctx context.Context, function arn.ARN, qualifier string) (function.EventInvoke, error)

	Send(ctx context.Context, queue arn.ARN, messages []shard.SendEntry) ([]shard.SendResult, error)
	// MaxMessageSize bounds a message to a topic, with its attributes, in bytes.
	MaxMessageSize(topic arn.ARN) int
	Publish(ctx context.Context, topic arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)
	InvokeAsync(ctx context.Context, function arn.ARN, ev function.Event) error
}

// Options are the dependencies and settings of a Dispatcher. Engine, Invoker and Clock are
// required.
type Options struct {
	Engine  Engine
	Invoker invoke.Invoker // must not wait for concurrency
	Clock   clock.Clock    // of delays and ages
	Logger  *slog.Logger
	// Limit bounds all attempts in flight; the default is 1,000. FunctionLimit bounds those
	// of one function; the default is 100, and its reserved concurrency is a further bound.
	Limit, FunctionLimit int
	Events               invoke.Events     // may be nil
	Tracer               *tracing.Tracer   // nil: no tracing
	NewID                func() message.ID // of messages and chained events; the default is random
	// Explain describes, in dead letters, why a function could not run; the default is the
	// error's text.
	Explain func(error) string
	// Acting checks that a function's role allows to send to a queue, topic or function; nil:
	// all roles do.
	Acting invoke.Acting
}

const (
	// throttleWait is how long no event of a function is leased after a throttle, as others
	// would be throttled, too.
	throttleWait = time.Second
)

// Dispatcher runs functions with events: it is the Consumer of functions' queues. Each event
// in memory has reserved capacity, because payloads are large.
type Dispatcher struct {
	*consume.Consumer

	options Options
	engine  Engine
	clock   clock.Clock
	logger  *slog.Logger
	pool    *consume.Pool
}

// New makes a dispatcher. It does nothing until the engine notifies it of due events.
func New(o Options) *Dispatcher {
	o.Limit = cmp.Or(o.Limit, 1000)
	o.FunctionLimit = cmp.Or(o.FunctionLimit, 100)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Explain == nil {
		o.Explain = error.Error
	}
	if o.NewID == nil {
		o.NewID = func() message.ID { return message.ID(uuid.New()) }
	}
	d := &Dispatcher{options: o, engine: o.Engine, clock: o.Clock, logger: o.Logger, pool: consume.ReservingPool(o.Limit)}
	d.Consumer = consume.New(consume.Options{
		Lease: d.lease, Clock: o.Clock, Logger: o.Logger, Pools: []*consume.Pool{d.pool},
	})
	return d
}

// lease leases events of a function, and looks up the bound of concurrent attempts, before
// the first attempt ends.
func (d *Dispatcher) lease(ctx context.Context, name arn.ARN, maximum int) (all []consume.Work, more bool, err error) {
	taken, more, err := d.engine.TakeEvents(name, maximum)
	if len(taken) == 0 {
		return nil, more, err
	}
	limit := 0
	if t, gone := d.engine.Function(ctx, name, ""); gone == nil {
		limit = d.options.FunctionLimit
		if t.Reserved != nil {
			limit = min(limit, *t.Reserved)
		}
		limit = max(limit, 1)
	}
	for _, ev := range taken {
		all = append(all, &event{Dispatcher: d, ev: ev, limit: limit})
	}
	return all, more, err
}
