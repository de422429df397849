// Package eventsource runs event-source mappings: it polls queues for functions. A mapping with an
// empty queue costs one waiting receive.
package eventsource

import (
	"context"
	"log/slog"
	"sync"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// Engine has mappings, functions and queues; *shard.Engine implements it.
type Engine interface {
	Mapping(ctx context.Context, a arn.ARN) (mapping.Mapping, error)
	Mappings(ctx context.Context) ([]mapping.Mapping, error)
	SetMappingWatcher(changed func(a arn.ARN, now *mapping.Mapping))
	SetCreationWatcher(created func(arn.ARN))
	Function(ctx context.Context, fn arn.ARN, qualifier string) (function.Target, error)
	QueueConfig(ctx context.Context, a arn.ARN) (queue.Config, error)
	MayDecrypt(ctx context.Context, queue arn.ARN, who *caller.Caller) error
	Receive(ctx context.Context, req shard.ReceiveRequest) ([]shard.Received, error)
	DeleteMessages(ctx context.Context, a arn.ARN, handles []string) ([]error, error)
	ChangeVisibility(ctx context.Context, a arn.ARN, changes []shard.VisibilityChange) ([]error, error)
	ReleaseMessages(ctx context.Context, a arn.ARN, handles []string) error
}

// Options are the dependencies of Pollers.
type Options struct {
	Engine Engine
	Pool   invoke.Invoker
	Clock  clock.Clock
	Logger *slog.Logger
	Tracer *tracing.Tracer // nil: no tracing
	// Acting checks that a function's role allows to poll its queue: before and after each
	// receive, and before messages are deleted. Nil: all roles do.
	Acting invoke.Acting
	// Draining is closed when the server begins to stop. Then no batch begins: the engine's
	// receives no longer wait, so that pollers would spin. Nil: never.
	Draining <-chan struct{}
	// Released is closed when polling may start; nil: at once.
	Released <-chan struct{}
}

// Pollers polls queues for all active mappings.
type Pollers struct {
	Options

	mu      sync.Mutex
	running map[arn.ARN]*poller
	changed map[arn.ARN]bool                 // mappings to be followed
	busy    busy                             // while changed is not empty
	missing map[arn.ARN]map[*poller]struct{} // missing queues and functions, and the pollers that need them
	wake    chan struct{}
	stop    context.CancelFunc
	over    chan struct{}

	attempts context.Context // ends when Stop's ctx does
	cutOff   context.CancelFunc
}

// Start starts pollers for the mappings and their later changes, until Stop.
func Start(o Options) (*Pollers, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pollers{
		Options: o, running: map[arn.ARN]*poller{}, changed: map[arn.ARN]bool{}, missing: map[arn.ARN]map[*poller]struct{}{},
		busy: busy{clock: o.Clock}, wake: make(chan struct{}, 1), stop: cancel, over: make(chan struct{}),
	}
	p.attempts, p.cutOff = context.WithCancel(context.Background())
	if o.Released == nil {
		if err := p.begin(ctx); err != nil {
			cancel()
			p.cutOff()
			return nil, err
		}
	}
	go func() {
		if o.Released != nil {
			p.awaitRelease(ctx)
		}
		p.run(ctx)
	}()
	go func() {
		select {
		case <-o.Draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return p, nil
}

// awaitRelease calls begin when Released is closed.
func (p *Pollers) awaitRelease(ctx context.Context) {
	select {
	case <-p.Released:
	case <-ctx.Done():
		return
	}
	if err := p.begin(ctx); err != nil && ctx.Err() == nil {
		p.Logger.Error("functions are not fed from their queues: the event-source mappings cannot be read; restart", "error", err)
	}
}

// begin starts pollers for the existing mappings, and follows changes.
func (p *Pollers) begin(ctx context.Context) error {
	p.Engine.SetMappingWatcher(p.change)
	p.Engine.SetCreationWatcher(p.created)
	all, err := p.Engine.Mappings(ctx)
	for i := range all {
		p.change(all[i].ARN, &all[i])
	}
	return err
}

// Stop stops polling and makes messages visible that no invocation has. Invocations may
// finish until ctx ends; then their messages become visible, too, and the error is ctx's.
func (p *Pollers) Stop(ctx context.Context) error {
	p.stop()
	defer p.cutOff()
	select {
	case <-p.over:
		return nil
	case <-ctx.Done():
	}
	p.cutOff()
	<-p.over
	return ctx.Err()
}

// change marks a mapping as changed. A poller that no longer fits stops polling at once.
func (p *Pollers) change(a arn.ARN, now *mapping.Mapping) {
	p.mu.Lock()
	p.changed[a] = true
	p.busy.set(true)
	if before := p.running[a]; before != nil && !before.serves(now) {
		before.cancel()
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// noteMissing records whether a poller's queue or function is missing.
func (p *Pollers) noteMissing(one *poller, missing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole, _, _ := one.mapping.Function.SplitFunction()
	for _, a := range [...]arn.ARN{one.mapping.Queue, whole} {
		switch {
		case !missing:
			if delete(p.missing[a], one); len(p.missing[a]) == 0 {
				delete(p.missing, a)
			}
		case p.missing[a] == nil:
			p.missing[a] = map[*poller]struct{}{one: {}}
		default:
			p.missing[a][one] = struct{}{}
		}
	}
}

// created wakes the pollers that were missing a queue or a function.
func (p *Pollers) created(a arn.ARN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := range p.missing[a] {
		one.mu.Lock()
		one.wakeUp(one.found)
		one.mu.Unlock()
	}
}

func (p *Pollers) run(ctx context.Context) {
	defer close(p.over)
	var ending sync.WaitGroup
	defer ending.Wait()
	for {
		select {
		case <-ctx.Done():
			p.mu.Lock()
			defer p.mu.Unlock()
			p.busy.end()
			return
		case <-p.wake:
		}
		p.mu.Lock()
		changed := p.changed
		p.changed = map[arn.ARN]bool{}
		p.mu.Unlock()
		for a := range changed {
			p.follow(ctx, &ending, a)
		}
		p.mu.Lock()
		p.busy.set(len(p.changed) > 0)
		p.mu.Unlock()
	}
}

// follow starts, replaces or stops a mapping's poller. An ending poller may still have
// invocations: the next one does not wait for them, because their messages are not visible.
func (p *Pollers) follow(ctx context.Context, ending *sync.WaitGroup, a arn.ARN) {
	m, err := p.Engine.Mapping(ctx, a)
	if err != nil && ctx.Err() == nil && fault.KindOf(err) != fault.ResourceNotFound {
		p.Logger.Error("an event-source mapping cannot be read", slog.String("mapping", a.String()), slog.Any("error", err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.running[a]; before != nil {
		if err == nil && before.serves(&m) && before.ctx.Err() == nil {
			return // the change needs nothing
		}
		before.cancel()
		delete(p.running, a)
	}
	if err != nil || !m.Active() || p.changed[a] { // if it has changed again, follow is called again
		return
	}
	if next := p.newPoller(ctx, m); next != nil {
		p.running[a] = next
		ending.Go(func() { next.run(next.ctx) })
	}
}

func (p *Pollers) newPoller(ctx context.Context, m mapping.Mapping) *poller {
	made := &poller{Options: &p.Options, pollers: p, mapping: m, freed: make(chan struct{}, 1), found: make(chan struct{}, 1)}
	for _, pattern := range m.Filters {
		f, err := CompileFilter(pattern)
		if err != nil { // it was compiled before it was stored
			p.Logger.Error("a filter of an event-source mapping cannot be read", slog.String("mapping", m.ARN.String()), slog.Any("error", err))
			return nil
		}
		made.filters = append(made.filters, f)
	}
	made.limit = min(firstBatches, made.bound())
	made.busy.clock = p.Clock
	made.busy.set(true)
	made.ctx, made.cancel = context.WithCancel(ctx)
	return made
}
