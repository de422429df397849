package source

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard"
)

// How batches are taken. Source: the Lambda developer guide, "Understanding
// polling and scaling for SQS".
const (
	firstBatches = 5                      // under way at once, to begin with
	maxBatches   = 1000                   // and at most, without MaximumConcurrency
	growEvery    = 200 * time.Millisecond // one more under way while there is a backlog: 300 a minute
	maxPayload   = 6 << 20                // bytes of an event
	maxReceive   = 10                     // messages of one receive
	pollWait     = 20 * time.Second       // real time, as every long poll
	visibleMore  = 30 * time.Second       // beyond the window and the function's timeout
)

// recordSize is about as much as a record has beside its body, in bytes.
const recordSize = 1024

// How long a poller rests after what is not the messages' fault, in real time,
// doubling.
const (
	firstRest = 100 * time.Millisecond
	longRest  = 10 * time.Second
)

// item is a message of a batch.
type item struct {
	id, handle string
	trace      string // AWSTraceHeader, or empty
	record     []byte
}

// batch is what was received. Its delivery keeps a virtual clock from moving,
// until release.
type batch struct {
	items      []item
	size       int // of their records
	visibility time.Duration
	until      time.Time      // when others can receive them
	caller     *caller.Caller // who receives; nil: the root of the queue's account
	release    func()
}

// busy keeps a virtual clock from moving while there is something to do.
type busy struct {
	clock clock.Clock

	mu      sync.Mutex
	ended   bool
	release func() // nil: the clock can move
}

func (b *busy) set(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case is && b.release == nil && !b.ended:
		b.release = b.clock.Hold()
	case !is && b.release != nil:
		b.release()
		b.release = nil
	}
}

// end lets the clock move for good.
func (b *busy) end() {
	b.set(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// poller takes messages for one mapping, as it was when the poller was made. It keeps
// a virtual clock from moving but while it waits: for a message, for a batch to end,
// or for what it lacks. What ends such a wait takes the hold of the clock.
type poller struct {
	*Pollers
	mapping mapping.Mapping
	filters []*Filter
	ctx     context.Context // of its life
	cancel  context.CancelFunc

	busy busy

	mu        sync.Mutex
	awaits    chan struct{} // what the poller waits for, of those below; nil: for none
	running   int           // batches under way
	throttled int           // of these, that had to wait for the function's concurrency
	limit     int           // of those under way
	grown     time.Time     // the machine's
	freed     chan struct{}

	failing error // why the queue cannot be read, as it is reported

	lacking bool          // the queue or the function, since the latest try; run's
	found   chan struct{} // one of them has been made
}

// run takes batches until ctx ends, then waits for those under way.
func (p *poller) run(ctx context.Context) {
	var batches sync.WaitGroup
	defer batches.Wait()
	defer p.busy.end()
	defer p.lack(false)
	rest := firstRest
	for p.admit(ctx) {
		b, err := p.collect(ctx)
		if b == nil {
			p.leave()
			if err != nil && ctx.Err() == nil {
				p.Logger.Debug("an event-source mapping cannot read its queue", slog.String("mapping", p.mapping.ARN.String()), slog.Any("error", err))
				p.fails(err)
				p.pause(ctx, &rest)
			} else {
				p.fails(nil)
				p.lack(false)
			}
			continue
		}
		rest = firstRest
		p.fails(nil)
		p.lack(false)
		b.release = p.Clock.Hold()
		batches.Go(func() {
			p.deliver(ctx, b)
			p.leave()
			b.release()
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
		// There is more to do than is allowed at once. Batches beyond the function's
		// concurrency would only occupy memory, and be kept from other consumers.
		grows := p.limit < p.bound() && p.throttled == 0
		if now := clock.System.Now(); grows && now.Sub(p.grown) >= growEvery {
			p.grown = now
			p.limit++
			p.mu.Unlock()
			continue
		}
		p.mu.Unlock()
		var over <-chan struct{}
		stop := func() bool { return false }
		if grows {
			over, stop = after(growEvery)
		}
		p.await(ctx, p.freed, over)
		stop()
	}
	return false
}

// await waits for c to be sent on, for over or for the end. A virtual clock can move
// meanwhile.
func (p *poller) await(ctx context.Context, c chan struct{}, over <-chan struct{}) (sent bool) {
	p.mu.Lock()
	if p.awaits = c; len(c) == 0 {
		p.busy.set(false)
	}
	p.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-c:
		sent = true
	case <-over:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaits = nil
	p.busy.set(true)
	return sent
}

// wakeUp sends on c. The caller holds mu.
func (p *poller) wakeUp(c chan struct{}) {
	if p.awaits == c {
		p.busy.set(true)
	}
	select {
	case c <- struct{}{}:
	default:
	}
}

func (p *poller) bound() int {
	if p.mapping.Concurrency > 0 {
		return p.mapping.Concurrency
	}
	return maxBatches
}

func (p *poller) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.wakeUp(p.freed)
}

// slower lets fewer batches be under way, after the function has failed.
func (p *poller) slower() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.grown = max(p.limit/2, 1), clock.System.Now()
}

// throttle counts a batch that has to wait for the function's concurrency, and has
// no other take its place; the result ends that.
func (p *poller) throttle() (through func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.throttled++
	p.limit, p.grown = max(min(p.limit, p.running-1), 1), clock.System.Now()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.throttled--; p.throttled == 0 {
			p.wakeUp(p.freed)
		}
	}
}

// after is closed when d of real time has passed, unless it is stopped before.
func after(d time.Duration) (over <-chan struct{}, stop func() bool) {
	return clock.After(clock.System, d)
}

// pause rests, in real time, and until the queue or the function is made at most. The
// first time it does not: what is lacking may have been made before the poller waited.
func (p *poller) pause(ctx context.Context, rest *time.Duration) {
	if p.lack(true) {
		return
	}
	over, stop := after(*rest)
	defer stop()
	if p.await(ctx, p.found, over) {
		*rest = firstRest
	} else {
		*rest = min(2**rest, longRest)
	}
}

// lack notes whether the queue or the function is lacking; changed says that this is
// news.
func (p *poller) lack(is bool) (changed bool) {
	if changed = p.lacking != is; changed {
		p.lacking = is
		p.lacks(p, is)
	}
	return changed
}

// collect receives one batch. Nil without an error is none.
func (p *poller) collect(ctx context.Context) (*batch, error) {
	b := &batch{}
	visibility, err := p.visibility(ctx, b)
	if err != nil {
		return nil, err
	}
	b.visibility = visibility
	received, err := p.receive(ctx, b)
	if err != nil {
		return nil, err
	}
	if len(received) == 0 {
		p.idle()
		return nil, nil
	}
	b.until = p.Clock.Now().Add(visibility)
	p.sort(received, b)
	if p.mapping.Window > 0 {
		p.fill(ctx, b)
	}
	if len(b.items) == 0 { // no filter wanted any
		return nil, nil
	}
	return b, nil
}

// receive takes up to as many messages as one receive may and the batch lacks. It fails if
// the role has lost the right to by the time that there are some.
func (p *poller) receive(ctx context.Context, b *batch) ([]shard.Received, error) {
	return p.Engine.Receive(ctx, shard.ReceiveRequest{
		Queue: p.mapping.Queue, Max: min(maxReceive, p.mapping.BatchSize-len(b.items)), Visibility: b.visibility, Wait: pollWait,
		Waiting: func(is bool) { p.busy.set(!is) }, Caller: b.caller,
		Admit: func() error { return p.stillMay(ctx) },
	})
}

// may finds the function, and who reads the queue for it. It fails if there is none, or
// its role may not.
func (p *poller) may(ctx context.Context) (function.Target, *caller.Caller, error) {
	whole, qualifier, _ := p.mapping.Function.SplitFunction()
	target, err := p.Engine.Function(ctx, whole, qualifier)
	if err != nil {
		return target, nil, err
	}
	who, err := May(ctx, p.Acting, &target, p.mapping.Queue)
	return target, who, err
}

// fill adds to a batch until its window ends. A virtual clock may move meanwhile.
func (p *poller) fill(ctx context.Context, b *batch) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan func(), 1)
	timer := p.Clock.AfterFunc(p.mapping.Window, func() {
		ended <- p.Clock.Hold()
		cancel()
	})
	for len(b.items) < p.mapping.BatchSize && b.size < maxPayload {
		received, err := p.receive(ctx, b)
		if err != nil { // what there is can be worked on
			break
		}
		p.sort(received, b)
	}
	p.held(timer, ended)()
}

// held ends a wait on the clock: it stops the timer, or takes the hold that the
// timer took when it ran.
func (p *poller) held(timer clock.Timer, ran <-chan func()) (release func()) {
	if timer.Stop() {
		return p.Clock.Hold()
	}
	return <-ran
}

// serves reports that the poller does what is to be done for a mapping; nil is one
// that is gone.
func (p *poller) serves(m *mapping.Mapping) bool {
	return m != nil && m.Active() && m.Function == p.mapping.Function && m.Equal(p.mapping.Settings)
}

// idle starts over with few batches: there is no backlog.
func (p *poller) idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = min(firstBatches, p.bound())
}

// visibility is how long messages of a batch must be hidden; it sets who receives them. It
// fails as may does, or if there is no queue.
func (p *poller) visibility(ctx context.Context, b *batch) (time.Duration, error) {
	target, who, err := p.may(ctx)
	if err != nil {
		return 0, err
	}
	b.caller = who
	p.allowed()
	cfg, err := p.Engine.QueueConfig(ctx, p.mapping.Queue)
	if needed := p.mapping.Window + target.Timeout; needed > cfg.Visibility {
		return needed + visibleMore, err
	}
	return cfg.Visibility, err
}

// sort adds what was received to a batch; what no filter matches is deleted.
func (p *poller) sort(received []shard.Received, b *batch) {
	var unwanted []string
	for i := range received {
		r := &received[i]
		if !p.wanted(r.Body) {
			unwanted = append(unwanted, r.ReceiptHandle)
			continue
		}
		record := appendRecord(make([]byte, 0, len(r.Body)+recordSize), &p.mapping, r)
		b.size += len(record) + 1
		b.items = append(b.items, item{id: r.ID.String(), handle: r.ReceiptHandle, trace: r.Trace, record: record})
	}
	p.remove(unwanted)
}

func (p *poller) wanted(body []byte) bool {
	if len(p.filters) == 0 {
		return true
	}
	c := contentOf(body)
	return slices.ContainsFunc(p.filters, func(f *Filter) bool { return f.matches(c) })
}

// remove deletes messages. One that is not deleted comes again, as any may.
func (p *poller) remove(handles []string) {
	if len(handles) == 0 || !p.mayDelete(context.Background()) {
		return
	}
	errs, err := p.Engine.DeleteMessages(context.Background(), p.mapping.Queue, handles)
	for _, each := range append(errs, err) {
		if each != nil && fault.KindOf(each) != fault.QueueDoesNotExist {
			p.Logger.Debug("a message that a function has taken was not deleted", slog.String("queue", p.mapping.Queue.String()), slog.Any("error", each))
		}
	}
}

// release makes messages visible at once.
func (p *poller) release(items []item) { p.changeVisibility(items, 0) }

// changeVisibility makes messages visible after d.
func (p *poller) changeVisibility(items []item, d time.Duration) {
	changes := make([]shard.VisibilityChange, len(items))
	for i := range items {
		changes[i] = shard.VisibilityChange{Handle: items[i].handle, Timeout: d}
	}
	if len(changes) > 0 {
		_, _ = p.Engine.ChangeVisibility(context.Background(), p.mapping.Queue, changes) // else they come back by themselves
	}
}

// deliver gives the function a batch: in parts, if it is too large for one event.
// What follows a part that failed is given back, so that the order of a group
// stays.
func (p *poller) deliver(ctx context.Context, b *batch) {
	for len(b.items) > 0 {
		n := fitting(b.items)
		part, rest := b.items[:n], b.items[n:]
		if !p.attempt(ctx, b, part) {
			p.release(rest)
			return
		}
		if b.items = rest; len(rest) > 0 {
			b.until = p.Clock.Now().Add(b.visibility)
			p.changeVisibility(rest, b.visibility)
		}
	}
}

// fitting is how many of the items make up one event: at least one.
func fitting(items []item) int {
	size := len(opening + closing)
	for i := range items {
		if size += len(items[i].record) + 1; size > maxPayload && i > 0 {
			return i
		}
	}
	return len(items)
}

// attempt invokes the function with one event and deletes what it has taken; ok says
// that this is all. Throttled, it tries again until others can receive the messages
// anyway.
func (p *poller) attempt(ctx context.Context, b *batch, items []item) (ok bool) {
	rest, waits := firstRest, false
	for {
		out, err := p.invoke(ctx, items)
		switch {
		case ctx.Err() != nil && err != nil:
			p.release(items)
		case invoke.Throttled(err) && p.Clock.Now().Add(rest).Before(b.until):
			if !waits {
				waits = true
				defer p.throttle()()
			}
			p.backOff(ctx, b, &rest)
			continue
		case err != nil:
			p.Logger.Warn("a batch could not be given to its function; its messages come again",
				slog.String("mapping", p.mapping.ARN.String()), slog.String("function", p.mapping.Function.String()), slog.Any("error", err))
			p.slower()
		case out.FunctionError == "":
			return p.acknowledge(items, out.Payload)
		case !p.mapping.ReportFailures:
			p.slower()
		}
		return false
	}
}

// backOff lets the clock continue until a throttled function is tried again.
func (p *poller) backOff(ctx context.Context, b *batch, d *time.Duration) {
	over := make(chan func(), 1)
	timer := p.Clock.AfterFunc(*d, func() { over <- p.Clock.Hold() })
	*d = min(2**d, longRest)
	b.release()
	select {
	case b.release = <-over:
	case <-ctx.Done():
		b.release = p.held(timer, over)
	}
}

// What stands around an event's records.
const opening, closing = `{"Records":[`, `]}`

func (p *poller) invoke(ctx context.Context, items []item) (invoke.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return invoke.Outcome{}, err
	}
	whole, qualifier, _ := p.mapping.Function.SplitFunction()
	target, err := p.Engine.Function(ctx, whole, qualifier)
	if err != nil {
		return invoke.Outcome{}, err
	}
	size := len(opening + closing)
	for i := range items {
		size += len(items[i].record) + 1
	}
	payload := append(make([]byte, 0, size), opening...)
	for i := range items {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = append(payload, items[i].record...)
	}
	// It continues when the poller ends.
	in := invoke.Invocation{Target: target, RequestID: uuid.NewString(), Payload: append(payload, closing...)}
	span := p.trace(items, &in)
	out, err := invoke.Until(p.attempts, p.Pool, in)
	invoke.EndSpan(span, &out, err)
	return out, err
}

// acknowledge deletes what the function has succeeded with; ok says that this is all.
func (p *poller) acknowledge(items []item, answer []byte) (ok bool) {
	var bad map[string]bool
	if p.mapping.ReportFailures {
		ids, whole := failed(answer, items)
		if whole {
			return false
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
	return len(bad) == 0
}
