package invoke

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/tracing"
)

// Options are the dependencies and settings of a Pool. Process and Remote are required.
type Options struct {
	Process Runner // of functions with their code here
	Remote  Runner // of functions with a URL as their code
	Log     Log    // nil: output is dropped
	Events  Events // may be nil
	Logger  *slog.Logger
	// Clock is the clock of log events; functions run in the machine's time.
	Clock clock.Clock
	// Concurrency bounds the concurrent invocations of an account in a region, without
	// functions with reserved concurrency; 0: 1,000.
	Concurrency int
	// Reserved returns the sum of an account's reserved concurrency; nil: none is reserved.
	Reserved func(region, account string) int
	// Environments bounds all environments, and so all concurrent invocations; 0: 1,000.
	Environments int
	// Idle is the idle timeout of an environment; 0: 5 minutes.
	Idle time.Duration
	// Starts bounds the concurrent starts of environments; 0: two for each processor, at
	// least 4.
	Starts int
	// Tracer makes a span of each invocation with a recorded trace; nil: no tracing.
	Tracer *tracing.Tracer
	// Guard ends the process if a panic leaves the pool in an inconsistent state.
	Guard *poison.Guard
}

// Pool runs functions. A function that was idle for a while uses no memory: its state is
// dropped with its last environment.
type Pool struct {
	Options
	starts chan struct{} // a token for each concurrent start

	lifetime context.Context // ends when the pool stops
	endLife  context.CancelFunc

	mu      sync.Mutex
	limits  limits
	groups  map[groupKey]*group
	current map[versionKey]*group // the group of a version's latest build
	idle    list.List             // of *slot, longest idle first
	slots   map[*slot]struct{}    // all environments
	live    int                   // environments, without those that are ending
	expiry  clock.Timer           // of the first in idle; nil: none
	stopped bool
	work    sync.WaitGroup // invocations, starts and ends in progress
}

// New makes a pool. The caller must call Stop.
func New(o Options) *Pool {
	if o.Concurrency == 0 {
		o.Concurrency = 1000
	}
	if o.Environments == 0 {
		o.Environments = 1000
	}
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	if o.Starts == 0 {
		o.Starts = max(4, 2*runtime.GOMAXPROCS(0))
	}
	p := &Pool{
		Options: o,
		starts:  make(chan struct{}, o.Starts),
		limits:  newLimits(o),
		groups:  map[groupKey]*group{},
		current: map[versionKey]*group{},
		slots:   map[*slot]struct{}{},
	}
	p.lifetime, p.endLife = context.WithCancel(context.Background())
	return p
}

// Invoke runs a function once. A failure of the function is an Outcome. An error is a
// throttle (see Throttled), without delay, or internal. When ctx ends, Invoke stops waiting
// for an environment; a running function continues.
func (p *Pool) Invoke(ctx context.Context, in Invocation) (Outcome, error) {
	span := p.trace(&in)
	out, err := p.invoke(ctx, &in)
	EndSpan(span, &out, err)
	return out, err
}

func (p *Pool) invoke(ctx context.Context, in *Invocation) (Outcome, error) {
	in.began = p.Clock.Now()
	a, err := p.admit(in)
	if err != nil {
		if !errors.Is(err, ErrStopping) {
			p.emit(in, Throttles, 1)
		}
		return Outcome{}, err
	}
	defer p.work.Done()
	defer p.Guard.Whole() // it is counted, and has an environment
	p.emitEvent(in, Event{Kind: ConcurrentExecutions, Value: float64(a.running.Function), Concurrency: a.running})

	var out Outcome
	s := a.slot
	if s == nil {
		s, out, err = p.await(ctx, a.group, a.waiter, in)
	}
	if s != nil {
		out, err = p.run(s, in)
	}
	p.leave(a.use, in)
	return out, err
}

// admitted is an invocation that is counted in limits and in work: the caller must call
// leave.
type admitted struct {
	use     *usage
	running Concurrency
	group   *group
	slot    *slot   // its environment; nil: it has to wait
	waiter  *waiter // with slot nil
}

// admit counts an invocation, and takes an idle environment or adds a waiter. It fails with
// ErrStopping and throttles.
func (p *Pool) admit(in *Invocation) (a admitted, err error) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	if p.stopped {
		return a, ErrStopping
	}
	if a.use, a.running, err = p.limits.admit(&in.Target); err != nil {
		return a, err
	}
	p.work.Add(1)
	a.group = p.group(&in.Target)
	if a.slot = p.take(a.group); a.slot == nil {
		a.waiter = p.wait(a.group)
	}
	return a, nil
}

// leave undoes admit.
func (p *Pool) leave(use *usage, in *Invocation) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	p.limits.leave(use, &in.Target)
}

// Running is the number of invocations of a function that run, or wait for an environment.
func (p *Pool) Running(fn arn.ARN) int {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	if use := p.limits.functions[fn]; use != nil {
		return use.running
	}
	return 0
}

// run runs an invocation in an environment, and releases that.
func (p *Pool) run(s *slot, in *Invocation) (Outcome, error) {
	// If its process has ended, a new one is started here, before the function's timeout
	// begins.
	if in.Tail {
		s.stream.starting()
	}
	failure, err := s.env.Start()
	if err != nil {
		p.close(s)
		return Outcome{}, p.explain(in, err)
	}
	if failure != nil {
		out := p.failedStart(in, started{slot: s, failure: failure})
		p.recycle(s)
		return out, nil
	}
	s.stream.begin(in, true)
	r, err := s.env.Run(&Work{
		RequestID: in.RequestID, Payload: in.Payload, ClientContext: in.ClientContext, Trace: in.Trace,
		FunctionARN: in.Target.ARN().String(),
	})
	if err != nil {
		s.stream.end(in, &Result{Failure: &Failure{Type: "Runtime.Unknown", Message: "the server failed", Status: StatusError}}, 0)
		p.close(s)
		return Outcome{}, p.explain(in, err)
	}
	out := p.finish(s.stream, in, &r)
	p.recycle(s)
	return out, nil
}

// explain logs internal errors, for the operator. Errors of package fault, and those caused
// by Stop, are not logged.
func (p *Pool) explain(in *Invocation, err error) error {
	if !fault.Is(err) {
		p.Logger.Error("a function cannot be run", "function", in.Target.Function.String(), "error", err)
	}
	return err
}

// failedStart is the outcome of an invocation whose environment did not start.
func (p *Pool) failedStart(in *Invocation, s started) Outcome {
	s.slot.stream.begin(in, false)
	return p.finish(s.slot.stream, in, &Result{Failure: s.failure})
}

// finish makes the outcome of a result, and reports it.
func (p *Pool) finish(log *stream, in *Invocation, r *Result) Outcome {
	out := Outcome{Payload: r.Payload, Billed: billed(r)}
	if r.Failure != nil {
		out.FunctionError = Unhandled
		out.Payload = r.Failure.body(in.RequestID)
	} else if len(out.Payload) == 0 {
		out.Payload = []byte("null")
	}
	out.LogTail = log.end(in, r, out.Billed)
	if in.Tail && len(r.LogTail) > 0 {
		out.LogTail = r.LogTail
	}
	p.emit(in, Invocations, 1)
	p.emit(in, Duration, float64(r.Duration)/float64(time.Millisecond))
	failed := 0.0
	if r.Failure != nil {
		failed = 1
	}
	p.emit(in, Errors, failed)
	return out
}

func (p *Pool) emit(in *Invocation, kind EventKind, value float64) {
	p.emitEvent(in, Event{Kind: kind, Value: value})
}

func (p *Pool) emitEvent(in *Invocation, e Event) {
	if p.Events != nil {
		e.Function, e.Qualifier, e.Version, e.At = in.Target.Function, in.Target.Qualifier, in.Target.Version, in.began
		p.Events(e)
	}
}

// Stop ends the pool. Running invocations may finish until ctx ends; then they are killed. On
// return no environment is left.
func (p *Pool) Stop(ctx context.Context) error {
	p.endIdle()
	done := make(chan struct{})
	go func() {
		p.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	p.cutOff()
	<-done
	return context.Cause(ctx)
}

// endIdle refuses further invocations, and ends the idle environments.
func (p *Pool) endIdle() {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	if !p.stopped {
		p.stopped = true
		p.endLife()
	}
	for e := p.idle.Front(); e != nil; e = p.idle.Front() {
		p.end(e.Value.(*slot))
	}
	if p.expiry != nil {
		p.expiry.Stop()
		p.expiry = nil
	}
}

// cutOff ends all environments.
func (p *Pool) cutOff() {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	for s := range p.slots {
		if s.env != nil {
			go s.env.Close() // the environment's user also closes it, and Stop waits for that
		}
	}
}
