package async

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// Engine is what the consumer needs of the state: *shard.Engine.
type Engine interface {
	TakeEvents(function arn.ARN, most int) (taken []*shard.QueuedEvent, more bool, err error)
	EventDone(ev *shard.QueuedEvent)
	RetryEvent(ev *shard.QueuedEvent, due time.Time)
	ReleaseEvent(ev *shard.QueuedEvent)
	MoveEvent(ctx context.Context, ev *shard.QueuedEvent, dest arn.ARN, m *message.Message) error

	Function(ctx context.Context, function arn.ARN, qualifier string) (function.Target, error)
	// EventInvoke is how the events of a function, version or alias are tried: the
	// zero value where nothing was said.
	EventInvoke(ctx context.Context, function arn.ARN, qualifier string) (function.EventInvoke, error)

	Send(ctx context.Context, queue arn.ARN, messages []shard.Outgoing) ([]shard.SendResult, error)
	Publish(ctx context.Context, topic arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)
	InvokeAsync(ctx context.Context, function arn.ARN, ev function.Event) error
}

// Options are what a Consumer is made of. Engine, Invoker and Clock are needed;
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
	Events               invoke.Events     // nil: nobody watches
	NewID                func() message.ID // of messages and chained events; random unless given
}

const (
	// batch is how many events of one function are taken at once: their payloads
	// are in memory from then on.
	batch = 10
	// takers is how many queues are looked at at once.
	takers = 16
	// throttleWait is for how long nothing of a function is taken after it was
	// throttled: the others would be, too.
	throttleWait = time.Second
	// takeWait is the wait after a failure to read a queue.
	takeWait = time.Second
)

// Consumer runs functions with events. It implements shard.Consumer.
type Consumer struct {
	options  Options
	engine   Engine
	clock    clock.Clock
	logger   *slog.Logger
	attempts context.Context // ends when a Stop gives up waiting
	cutOff   context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	lines    map[arn.ARN]*line
	waiting  []*line // to be looked at, as soon as there is room
	takers   int     // looks under way
	running  int     // attempts under way, and those that looks may begin
}

// line is a function that has, or may have, something to do.
type line struct {
	function arn.ARN
	release  func() // of the clock; nil: not held
	rung     bool   // told to be ready since the last look began
	more     bool   // there may be more to take
	listed   bool   // waits to be looked at
	taking   bool   // a look is under way
	working  int    // attempts under way
	limit    int    // of these; 0: not known yet
	from     time.Time
	timer    clock.Timer // at from; nil: none
}

// New makes a consumer. It does nothing until the engine tells it what is due.
func New(o Options) *Consumer {
	o.Limit = cmp.Or(o.Limit, 1000)
	o.FunctionLimit = min(cmp.Or(o.FunctionLimit, 100), o.Limit)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NewID == nil {
		o.NewID = func() message.ID { return message.ID(uuid.New()) }
	}
	c := &Consumer{options: o, engine: o.Engine, clock: o.Clock, logger: o.Logger, lines: map[arn.ARN]*line{}}
	c.attempts, c.cutOff = context.WithCancel(context.Background())
	return c
}

var _ shard.Consumer = (*Consumer)(nil)

// Ready notes that a function's queue has something due.
func (c *Consumer) Ready(function arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return
	}
	l, ok := c.lines[function]
	if !ok {
		l = &line{function: function}
		c.lines[function] = l
	}
	l.rung, l.more = true, true
	c.settle(l)
}

// Stop ends all attempts: nothing new is begun, attempts under way may finish
// until ctx ends and are then cut off, and go back to their queues. The error is
// ctx's if attempts were cut off. Another Stop waits for the same.
func (c *Consumer) Stop(ctx context.Context) error {
	c.mu.Lock()
	c.stopping = true
	for _, l := range c.waiting {
		l.listed = false
	}
	c.waiting = nil
	for _, l := range c.lines {
		l.more = false
		c.settle(l)
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		c.cutOff()
		<-done
	}
	c.cutOff()
	return err
}

// settle does for l what can be done now, after any change of it: it is the one
// place that decides what begins, what is waited for, and whether the clock is
// held. The caller has the lock.
func (c *Consumer) settle(l *line) {
	now := c.clock.Now()
	early := now.Before(l.from)
	if l.more && !l.listed && !l.taking && !early && l.working < c.limitOf(l) {
		l.listed = true
		c.waiting = append(c.waiting, l)
	}
	c.pump()
	c.setTimer(l, now, l.more && early)
	if l.listed || l.taking || l.working > 0 {
		if l.release == nil {
			l.release = c.clock.Hold()
		}
		return
	}
	if l.release != nil {
		l.release()
		l.release = nil
	}
	if l.timer == nil && !l.more && c.lines[l.function] == l {
		delete(c.lines, l.function)
	}
}

// limitOf bounds the attempts of l: one until its limit is known.
func (c *Consumer) limitOf(l *line) int { return max(l.limit, 1) }

// setTimer has l settled at l.from, if that is to be waited for.
func (c *Consumer) setTimer(l *line, now time.Time, wanted bool) {
	if !wanted {
		if l.timer != nil {
			l.timer.Stop()
			l.timer = nil
		}
		return
	}
	if l.timer != nil {
		return // early at worst: it looks again
	}
	var t clock.Timer
	t = c.clock.AfterFunc(l.from.Sub(now), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if l.timer == t {
			l.timer = nil
			c.settle(l)
		}
	})
	l.timer = t
}

// pump begins as many looks as there is room for. The caller has the lock.
func (c *Consumer) pump() {
	for len(c.waiting) > 0 && c.takers < takers && c.running < c.options.Limit {
		l := c.waiting[0]
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		l.listed, l.taking, l.rung = false, true, false
		most := max(min(c.limitOf(l)-l.working, c.options.Limit-c.running, batch), 1)
		c.takers++
		c.running += most
		c.wg.Go(func() { c.take(l, most) })
	}
}

// take begins attempts at up to most events of l.
func (c *Consumer) take(l *line, most int) {
	taken, more, err := c.engine.TakeEvents(l.function, most)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping && len(taken) > 0 {
		c.mu.Unlock()
		for _, ev := range taken {
			c.engine.ReleaseEvent(ev)
		}
		c.mu.Lock()
		taken = nil
	}
	c.takers--
	c.running -= most - len(taken)
	l.taking = false
	l.more = !c.stopping && (more || l.rung)
	if err != nil {
		c.logger.Error("a function's events cannot be read", "function", l.function.String(), "error", err)
		l.more, l.from = !c.stopping, c.clock.Now().Add(takeWait)
	}
	for _, ev := range taken {
		l.working++
		c.wg.Go(func() { c.work(l, ev) })
	}
	c.settle(l)
}

// know notes how many attempts at l may be under way. It is asked for by each
// attempt when it begins, so that nobody waits for the first one's end.
func (c *Consumer) know(l *line, t *function.Target) {
	limit := c.options.FunctionLimit
	if t.Reserved != nil {
		limit = min(limit, *t.Reserved)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.limit != limit {
		l.limit = limit
		c.settle(l)
	}
}

// work makes one attempt.
func (c *Consumer) work(l *line, ev *shard.QueuedEvent) {
	a := attempt{Consumer: c, line: l, ev: ev}
	a.run()
	c.mu.Lock()
	defer c.mu.Unlock()
	l.working--
	c.running--
	if a.throttled {
		l.from = c.clock.Now().Add(throttleWait)
	}
	c.settle(l)
}
