package eventsource

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

// The limits of polling. Source: the Lambda developer guide, "Understanding polling and
// scaling for SQS".
const (
	firstBatches = 5                      // in flight at first
	maxBatches   = 1000                   // in flight at most, without MaximumConcurrency
	growEvery    = 200 * time.Millisecond // one more in flight while there is a backlog: 300 a minute
	maxPayload   = 6 << 20                // bytes of an event
	maxReceive   = 10                     // messages of one receive
	pollWait     = 20 * time.Second       // real time, as in all long polls
	visibleMore  = 30 * time.Second       // in addition to the window and the function's timeout
)

// recordSize is about the size of a record without its body, in bytes.
const recordSize = 1024

// The backoff of a poller after errors that no message causes, in real time, doubled each
// time.
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

// batch is a batch of received messages. Its delivery stops a virtual clock, until release.
type batch struct {
	items      []item
	size       int // of their records
	visibility time.Duration
	until      time.Time      // the end of their visibility timeout
	caller     *caller.Caller // the receiver; nil: the root of the queue's account
	release    func()
}

// busy stops a virtual clock while there is work.
type busy struct {
	clock clock.Clock

	mu      sync.Mutex
	ended   bool
	release func() // nil: the clock may advance
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

// end lets the clock advance for good.
func (b *busy) end() {
	b.set(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// poller receives messages for one mapping, with settings that do not change. It stops a
// virtual clock except while it waits: for a message, the end of a batch, or a missing queue
// or function. The event that ends such a wait takes the hold of the clock.
type poller struct {
	*Options
	pollers *Pollers
	mapping mapping.Mapping
	filters []*Filter
	ctx     context.Context // ends the poller
	cancel  context.CancelFunc

	busy busy

	mu        sync.Mutex
	awaits    chan struct{} // the channel below that the poller waits for; nil: none
	running   int           // batches in flight
	throttled int           // of these, those that are throttled
	limit     int           // of batches in flight
	grown     time.Time     // when limit was last raised, by the machine's clock
	freed     chan struct{}

	failing trouble // that is reported

	absent bool          // the queue or the function was missing in the last attempt; only run uses it
	found  chan struct{} // one of them was created
}

// run receives batches until ctx ends, then waits for those in flight.
func (p *poller) run(ctx context.Context) {
	var batches sync.WaitGroup
	defer batches.Wait()
	defer p.busy.end()
	defer p.setMissing(false)
	rest := firstRest
	for p.admit(ctx) {
		b, err := p.collect(ctx)
		if b == nil {
			p.leave()
			if err != nil && ctx.Err() == nil {
				p.Logger.Debug("an event-source mapping cannot read its queue", slog.String("mapping", p.mapping.ARN.String()), slog.Any("error", err))
				p.setFailing(err)
				p.pause(ctx, &rest)
			} else {
				p.foundNothing(ctx)
				p.setMissing(false)
			}
			continue
		}
		rest = firstRest
		p.setMissing(false)
		b.release = p.Clock.Hold()
		batches.Go(func() {
			p.deliver(ctx, b)
			p.leave()
			b.release()
		})
	}
}

// admit waits until another batch may be in flight; false: ctx has ended.
func (p *poller) admit(ctx context.Context) bool {
	for ctx.Err() == nil {
		p.mu.Lock()
		if p.running < p.limit {
			p.running++
			p.mu.Unlock()
			return true
		}
		// The backlog exceeds the limit. Beyond the function's concurrency, batches would
		// only use memory and be hidden from other consumers.
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

// await waits for a send on c, for over, or for the end of ctx. Meanwhile a virtual clock may
// advance.
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

// lowerLimit lowers the limit of batches in flight, after the function has failed.
func (p *poller) lowerLimit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.grown = max(p.limit/2, 1), clock.System.Now()
}

// throttle counts a throttled batch, and lowers the limit so that no other replaces it; the
// returned function undoes the count.
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

// after returns a channel that is closed after d of real time, unless it is stopped before.
func after(d time.Duration) (over <-chan struct{}, stop func() bool) {
	return clock.After(clock.System, d)
}

// pause waits for the backoff, in real time, or until the queue or the function is created.
// The first time it returns at once: they may have been created before the poller registered
// its wait.
func (p *poller) pause(ctx context.Context, rest *time.Duration) {
	if p.setMissing(true) {
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

// setMissing records whether the queue or the function is missing; changed says whether that is
// new.
func (p *poller) setMissing(is bool) (changed bool) {
	if changed = p.absent != is; changed {
		p.absent = is
		p.pollers.noteMissing(p, is)
	}
	return changed
}

// collect receives one batch. Nil without an error: there was none.
func (p *poller) collect(ctx context.Context) (*batch, error) {
	b := &batch{}
	visibility, err := p.visibility(ctx, b)
	if err != nil {
		return nil, err
	}
	b.visibility = visibility
	received, err := p.receive(ctx, b)
	if err != nil {
		p.refused(visibility)
		return nil, err
	}
	if len(received) == 0 {
		p.idle()
		return nil, nil
	}
	b.until = p.Clock.Now().Add(visibility)
	p.setFailing(nil)
	p.add(received, b)
	if p.mapping.Window > 0 {
		p.fill(ctx, b)
	}
	if len(b.items) == 0 { // no message matched a filter
		return nil, nil
	}
	return b, nil
}

// receive receives as many messages as a receive allows and the batch needs. It fails if the
// role has lost the permission by the time that messages arrive.
func (p *poller) receive(ctx context.Context, b *batch) ([]shard.Received, error) {
	return p.Engine.Receive(ctx, shard.ReceiveRequest{
		Queue: p.mapping.Queue, Max: min(maxReceive, p.mapping.BatchSize-len(b.items)), Visibility: b.visibility, Wait: pollWait,
		Waiting: func(is bool) { p.busy.set(!is) }, Caller: b.caller,
		Admit: func() error { return p.stillMay(ctx) },
	})
}

// may returns the function, and the caller that receives for it. It fails without a function,
// or if its role does not allow it.
func (p *poller) may(ctx context.Context) (function.Target, *caller.Caller, error) {
	whole, qualifier, _ := p.mapping.Function.SplitFunction()
	target, err := p.Engine.Function(ctx, whole, qualifier)
	if err != nil {
		return target, nil, err
	}
	who, err := May(ctx, p.Acting, &target, p.mapping.Queue)
	return target, who, err
}

// fill adds to a batch until its window ends. Meanwhile a virtual clock may advance.
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
		if err != nil { // continue with the messages of the batch
			break
		}
		p.add(received, b)
	}
	p.endWait(timer, ended)()
}

// endWait ends a wait for the clock: it stops the timer, or takes over the hold of a timer that
// has run.
func (p *poller) endWait(timer clock.Timer, ran <-chan func()) (release func()) {
	if timer.Stop() {
		return p.Clock.Hold()
	}
	return <-ran
}

// serves reports whether the poller still fits a mapping; nil: it was deleted.
func (p *poller) serves(m *mapping.Mapping) bool {
	return m != nil && m.Active() && m.Function == p.mapping.Function && m.Equal(p.mapping.Settings)
}

// idle resets the limit of batches in flight: there is no backlog.
func (p *poller) idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = min(firstBatches, p.bound())
}

// visibility is the visibility timeout of a batch; it also sets the receiver. It fails like
// may, or if there is no queue.
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

// add adds received messages to a batch; those that match no filter are deleted.
func (p *poller) add(received []shard.Received, b *batch) {
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

// commandSize bounds the messages of one command: batches may have 10,000, and a command holds the
// lock of the queue's shard.
const commandSize = 256

// remove deletes messages. If that fails, a message is received again.
func (p *poller) remove(handles []string) {
	if len(handles) == 0 || !p.mayDelete(context.Background()) {
		return
	}
	for part := range slices.Chunk(handles, commandSize) {
		errs, err := p.Engine.DeleteMessages(context.Background(), p.mapping.Queue, part)
		p.logUndeleted(append(errs, err))
	}
}

func (p *poller) logUndeleted(errs []error) {
	for _, err := range errs {
		if err != nil && fault.KindOf(err) != fault.QueueDoesNotExist {
			p.Logger.Debug("a message that a function has taken was not deleted", slog.String("queue", p.mapping.Queue.String()), slog.Any("error", err))
		}
	}
}

// requeue makes messages visible at once that the function may have seen.
func (p *poller) requeue(items []item) { p.changeVisibility(items, 0) }

// release makes messages visible at once that the function has not seen. They were not
// received, then: else a queue's maxReceiveCount would make dead letters of what nobody tried.
func (p *poller) release(items []item) {
	handles := make([]string, len(items))
	for i := range items {
		handles[i] = items[i].handle
	}
	for part := range slices.Chunk(handles, commandSize) {
		_ = p.Engine.ReleaseMessages(context.Background(), p.mapping.Queue, part) // on an error they become visible at their timeout
	}
}

// changeVisibility makes messages visible after d.
func (p *poller) changeVisibility(items []item, d time.Duration) {
	changes := make([]shard.VisibilityChange, len(items))
	for i := range items {
		changes[i] = shard.VisibilityChange{Handle: items[i].handle, Timeout: d}
	}
	for part := range slices.Chunk(changes, commandSize) {
		_, _ = p.Engine.ChangeVisibility(context.Background(), p.mapping.Queue, part) // on an error they become visible at their timeout
	}
}

// deliver invokes the function with a batch, in parts if it is too large for one event. If a
// part fails, the later ones are returned to the queue, to keep the order of a group.
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

// fitting is the number of items that fit into one event, at least one.
func fitting(items []item) int {
	size := len(opening + closing)
	for i := range items {
		if size += len(items[i].record) + 1; size > maxPayload && i > 0 {
			return i
		}
	}
	return len(items)
}

// attempt invokes the function with one event, and deletes the messages that succeeded; ok
// says that all did. If throttled, it retries until the messages become visible anyway.
func (p *poller) attempt(ctx context.Context, b *batch, items []item) (ok bool) {
	rest, waits := firstRest, false
	for {
		out, given, err := p.invoke(ctx, items)
		switch {
		case ctx.Err() != nil && err != nil && given:
			p.requeue(items)
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
			p.lowerLimit()
			if !given {
				p.release(items)
			}
		case out.FunctionError == "":
			return p.acknowledge(items, out.Payload)
		case !p.mapping.ReportFailures:
			p.lowerLimit()
		}
		return false
	}
}

// backOff lets the clock advance until the next attempt after a throttle.
func (p *poller) backOff(ctx context.Context, b *batch, d *time.Duration) {
	over := make(chan func(), 1)
	timer := p.Clock.AfterFunc(*d, func() { over <- p.Clock.Hold() })
	*d = min(2**d, longRest)
	b.release()
	select {
	case b.release = <-over:
	case <-ctx.Done():
		b.release = p.endWait(timer, over)
	}
}

// The JSON around an event's records.
const opening, closing = `{"Records":[`, `]}`

// invoke runs the function with one event; given says whether it may have begun with it.
func (p *poller) invoke(ctx context.Context, items []item) (out invoke.Outcome, given bool, err error) {
	if err := ctx.Err(); err != nil {
		return out, false, err
	}
	whole, qualifier, _ := p.mapping.Function.SplitFunction()
	target, err := p.Engine.Function(ctx, whole, qualifier)
	if err != nil {
		return out, false, err
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
	// The invocation continues when the poller ends.
	in := invoke.Invocation{Target: target, RequestID: uuid.NewString(), Payload: append(payload, closing...)}
	span := p.trace(items, &in)
	out, err = invoke.Until(p.pollers.attempts, p.Pool, in)
	invoke.EndSpan(span, &out, err)
	return out, !invoke.Refused(err), err
}

// acknowledge deletes the messages that succeeded; ok says that all did.
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
