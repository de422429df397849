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

// Engine is what a Dispatcher needs of the state: *shard.Engine.
type Engine interface {
	TakeEvents(function arn.ARN, most int) (taken []*shard.QueuedEvent, more bool, err error)
	EventDone(ev *shard.QueuedEvent)
	RetryEvent(ev *shard.QueuedEvent, due time.Time)
	ReleaseEvent(ev *shard.QueuedEvent)
	// MoveEvent is given the caller that hands the event over; nil: the root of the function's account.
	MoveEvent(ctx context.Context, ev *shard.QueuedEvent, dest arn.ARN, m *message.Message, who *caller.Caller) error
	// EncryptFor encrypts a message for a queue, if it is an encrypted one.
	EncryptFor(queue arn.ARN, who *caller.Caller, source arn.ARN, m *message.Message) error

	Function(ctx context.Context, function arn.ARN, qualifier string) (function.Target, error)
	// EventInvoke is how the events of a function, version or alias are tried: the
	// zero value where nothing was said.
	EventInvoke(ctx context.Context, function arn.ARN, qualifier string) (function.EventInvoke, error)

	Send(ctx context.Context, queue arn.ARN, messages []shard.Outgoing) ([]shard.SendResult, error)
	Publish(ctx context.Context, topic arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)
	InvokeAsync(ctx context.Context, function arn.ARN, ev function.Event) error
}

// Options are what a Dispatcher is made of. Engine, Invoker and Clock are needed;
// everything else has a default.
type Options struct {
	Engine  Engine
	Invoker invoke.Invoker // which does not wait for concurrency
	Clock   clock.Clock    // of delays and ages
	Logger  *slog.Logger
	// Limit bounds the attempts under way in all: 1,000 unless given. FunctionLimit
	// bounds those of one function: 100 unless given, and never more than its
	// reserved concurrency.
	Limit, FunctionLimit int
	Events               invoke.Events     // may be nil
	Tracer               *tracing.Tracer   // nil: nothing is traced
	NewID                func() message.ID // of messages and chained events; random unless given
	// Explain says in words, for a dead letter, why a function could not be run: the
	// error's own unless given.
	Explain func(error) string
	// Acting refuses to hand over what the role of a function may not, to a queue, topic
	// or function; nil: every role may.
	Acting invoke.Acting
}

const (
	// throttleWait is for how long nothing of a function is taken after it was
	// throttled: the others would be, too.
	throttleWait = time.Second
)

// Dispatcher runs functions with events: the Consumer of functions' queues. Each event in
// memory has reserved capacity: payloads are large.
type Dispatcher struct {
	*consume.Consumer

	options Options
	engine  Engine
	clock   clock.Clock
	logger  *slog.Logger
	pool    *consume.Pool
}

// New makes a dispatcher. It does nothing until the engine tells it what is due.
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

// lease takes events of a function, and asks how many attempts at it may be under
// way, without waiting for the first one's end.
func (d *Dispatcher) lease(ctx context.Context, name arn.ARN, most int) (all []consume.Work, more bool, err error) {
	taken, more, err := d.engine.TakeEvents(name, most)
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
