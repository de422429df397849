package source

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard"
)

// How batches are taken. Source: the Lambda developer guide, "Understanding
// polling and scaling for SQS".
const (
	firstBatches = 5                      // under way at once, to begin with
	mostBatches  = 1000                   // and at most, without MaximumConcurrency
	growEvery    = 200 * time.Millisecond // one more under way while there is a backlog: 300 a minute
	maxPayload   = 6 << 20                // bytes of an event
	receiveMost  = 10                     // messages of one receive
	pollWait     = 20 * time.Second       // real time, as every long poll
	visibleMore  = 30 * time.Second       // beyond the window and the function's timeout
)

// How long a poller rests after what is not the messages' fault, in real time,
// doubling.
const (
	firstRest = 100 * time.Millisecond
	longRest  = 10 * time.Second
)

// item is a message of a batch.
type item struct {
	id, handle string
	record     []byte
}

// batch is what one invocation gets.
type batch struct {
	items   []item
	size    int       // of the event, in bytes
	until   time.Time // when others can receive the first of its messages, in real time
	release func()    // lets a virtual clock go on
}

// poller takes messages for one mapping, as it was when the poller was made.
type poller struct {
	*Pollers
	mapping mapping.Mapping
	filters []*Filter
	ctx     context.Context // of its life
	cancel  context.CancelFunc
	over    chan struct{}

	carried []item // received, and too large for the batch before

	mu      sync.Mutex
	running int       // batches under way
	limit   int       // of them
	grown   time.Time // the machine's
	freed   chan struct{}
}

// run takes batches until ctx ends, then waits for those under way.
func (p *poller) run(ctx context.Context) {
	defer close(p.over)
	var batches sync.WaitGroup
	defer batches.Wait()
	defer func() { p.giveBack(p.carried) }()
	rest := firstRest
	for p.admit(ctx) {
		b, err := p.collect(ctx)
		if b == nil {
			p.leave()
			if err != nil && ctx.Err() == nil {
				p.Logger.Debug("an event-source mapping cannot read its queue", slog.String("mapping", p.mapping.ARN.String()), slog.Any("error", err))
				p.pause(ctx, &rest)
			}
			continue
		}
		rest = firstRest
		batches.Go(func() {
			defer p.leave()
			defer b.release()
			p.deliver(ctx, b)
		})
	}
}

// admit waits until another batch may be under way; false is the end.
func (p *poller) admit(ctx context.Context) bool {
	for ctx.Err() == nil {
		p.mu.Lock()
		if p.running < p.limit {
			p.running++
			p.mu.Unlock()
			return true
		}
		// There is more to do than is allowed at once.
		if now := clock.System.Now(); p.limit < p.most() && now.Sub(p.grown) >= growEvery {
			p.grown = now
			p.limit++
			p.mu.Unlock()
			continue
		}
		p.mu.Unlock()
		wake := make(chan struct{})
		timer := clock.System.AfterFunc(growEvery, func() { close(wake) })
		select {
		case <-ctx.Done():
		case <-p.freed:
		case <-wake:
		}
		timer.Stop()
	}
	return false
}

func (p *poller) most() int {
	if p.mapping.Concurrency > 0 {
		return p.mapping.Concurrency
	}
	return mostBatches
}

func (p *poller) leave() {
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// slower lets fewer batches be under way, after the function has failed.
func (p *poller) slower() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.grown = max(p.limit/2, 1), clock.System.Now()
}

// pause rests, in real time.
func (p *poller) pause(ctx context.Context, rest *time.Duration) {
	wake := make(chan struct{})
	timer := clock.System.AfterFunc(*rest, func() { close(wake) })
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	}
	*rest = min(2**rest, longRest)
}

// collect gathers one batch, from whose first message on a virtual clock stands
// still. Nil without an error is none.
func (p *poller) collect(ctx context.Context) (*batch, error) {
	visibility, err := p.visibility(ctx)
	if err != nil {
		return nil, err
	}
	b := &batch{items: p.carried, size: len(`{"Records":[]}`)}
	p.carried = nil
	for i := range b.items {
		b.size += len(b.items[i].record) + 1
	}
	var end time.Time // of the window, in real time
	for begun := len(b.items) > 0; len(b.items) < p.mapping.BatchSize && len(p.carried) == 0; begun = true {
		if begun && b.release == nil {
			end = p.begin(b, visibility)
		}
		wait := pollWait
		if begun {
			if wait = min(wait, end.Sub(clock.System.Now())); wait <= 0 {
				break
			}
		}
		received, err := p.Engine.Receive(ctx, shard.ReceiveRequest{
			Queue: p.mapping.Queue, Max: min(receiveMost, p.mapping.BatchSize-len(b.items)), Visibility: visibility, Wait: wait,
		})
		if err != nil && len(b.items) == 0 {
			if b.release != nil {
				b.release()
			}
			return nil, err
		}
		if err != nil {
			break // what there is can be worked on
		}
		if len(received) == 0 && !begun {
			p.idle()
			return nil, nil
		}
		if b.release == nil {
			end = p.begin(b, visibility)
		}
		p.sort(received, b)
	}
	if b.release == nil { // carried over, and as much as a batch may have
		p.begin(b, visibility)
	}
	if len(b.items) == 0 { // no filter wanted any
		b.release()
		return nil, nil
	}
	return b, nil
}

// begin starts a batch and returns the end of its window, in real time.
func (p *poller) begin(b *batch, visibility time.Duration) (end time.Time) {
	now := clock.System.Now()
	b.release, b.until = p.Clock.Hold(), now.Add(visibility)
	return now.Add(p.mapping.Window)
}

// idle begins anew with few batches: there is no backlog.
func (p *poller) idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = min(firstBatches, p.most())
}

// visibility is how long messages must be hidden. It fails if there is no function,
// or no queue.
func (p *poller) visibility(ctx context.Context) (time.Duration, error) {
	whole, qualifier, _ := p.mapping.Function.SplitFunction()
	target, err := p.Engine.Function(ctx, whole, qualifier)
	if err != nil {
		return 0, err
	}
	cfg, err := p.Engine.QueueConfig(ctx, p.mapping.Queue)
	if needed := p.mapping.Window + target.Timeout; needed > cfg.Visibility {
		return needed + visibleMore, err
	}
	return cfg.Visibility, err
}

// sort adds what was received to a batch: what no filter wants is deleted, and what
// is too much is carried over to the next.
func (p *poller) sort(received []shard.Received, b *batch) {
	var unwanted []string
	for i := range received {
		r := &received[i]
		if !p.wanted(r.Body) {
			unwanted = append(unwanted, r.ReceiptHandle)
			continue
		}
		it := item{id: r.ID.String(), handle: r.ReceiptHandle, record: appendRecord(nil, &p.mapping, r)}
		if len(p.carried) > 0 || len(b.items) > 0 && b.size+len(it.record)+1 > maxPayload {
			p.carried = append(p.carried, it)
			continue
		}
		b.size += len(it.record) + 1
		b.items = append(b.items, it)
	}
	p.remove(unwanted)
}

func (p *poller) wanted(body []byte) bool {
	for _, f := range p.filters {
		if f.Matches(body) {
			return true
		}
	}
	return len(p.filters) == 0
}

// remove deletes messages. One that is not deleted comes again, as any may.
func (p *poller) remove(handles []string) {
	if len(handles) == 0 {
		return
	}
	errs, err := p.Engine.DeleteMessages(context.Background(), p.mapping.Queue, handles)
	for _, each := range append(errs, err) {
		if each != nil && fault.KindOf(each) != fault.QueueDoesNotExist {
			p.Logger.Debug("a message that a function has taken was not deleted", slog.String("queue", p.mapping.Queue.String()), slog.Any("error", each))
		}
	}
}

// giveBack makes messages that no function has seen visible at once.
func (p *poller) giveBack(items []item) {
	changes := make([]shard.VisibilityChange, len(items))
	for i := range items {
		changes[i].Handle = items[i].handle
	}
	if len(changes) > 0 {
		_, _ = p.Engine.ChangeVisibility(context.Background(), p.mapping.Queue, changes) // else they come back by themselves
	}
}

// deliver invokes the function with a batch and deletes what it has taken.
// Throttled, it tries again until others can receive the messages anyway.
func (p *poller) deliver(ctx context.Context, b *batch) {
	rest := firstRest
	for {
		out, err := p.invoke(ctx, b)
		switch {
		case ctx.Err() != nil && err != nil:
			p.giveBack(b.items)
		case invoke.Throttled(err) && clock.System.Now().Before(b.until):
			p.pause(ctx, &rest)
			continue
		case err != nil:
			p.Logger.Warn("a batch could not be given to its function; its messages come again",
				slog.String("mapping", p.mapping.ARN.String()), slog.String("function", p.mapping.Function.String()), slog.Any("error", err))
			p.slower()
		case out.FunctionError == "":
			p.settle(b.items, out.Payload)
		case !p.mapping.ReportFailures:
			p.slower()
		}
		return
	}
}

func (p *poller) invoke(ctx context.Context, b *batch) (invoke.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return invoke.Outcome{}, err
	}
	whole, qualifier, _ := p.mapping.Function.SplitFunction()
	target, err := p.Engine.Function(ctx, whole, qualifier)
	if err != nil {
		return invoke.Outcome{}, err
	}
	payload := append(make([]byte, 0, b.size), `{"Records":[`...)
	for i := range b.items {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = append(payload, b.items[i].record...)
	}
	// It goes on when the server stops: the pool decides how long.
	return p.Pool.Invoke(context.WithoutCancel(ctx), invoke.Invocation{
		Target: target, RequestID: uuid.NewString(), Payload: append(payload, "]}"...),
	})
}

// settle deletes what the function has succeeded with.
func (p *poller) settle(items []item, answer []byte) {
	var bad map[string]bool
	if p.mapping.ReportFailures {
		ids, whole := failed(answer, items)
		if whole {
			return
		}
		bad = ids
	}
	done := make([]string, 0, len(items))
	for i := range items {
		if !bad[items[i].id] {
			done = append(done, items[i].handle)
		}
	}
	p.remove(done)
}
