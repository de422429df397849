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
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/poison"
)

// Options are what a Pool is made of. Process and Remote are required.
type Options struct {
	Process Runner // of functions whose code is here
	Remote  Runner // of functions whose code is a URL
	Log     Log    // nil: what functions print is not kept
	Events  Events // may be nil
	Logger  *slog.Logger
	// Clock stamps what is logged; the functions' own time is the machine's.
	Clock clock.Clock
	// Concurrency is how many invocations of an account run at once in a
	// region, beside those of functions that have their own share; 0: 1,000.
	Concurrency int
	// Reserved gives the sum of the shares of an account's functions, which
	// no other may use; nil: none has one.
	Reserved func(region, account string) int
	// Environments bounds the environments in all, and with them the
	// invocations under way; 0: 1,000.
	Environments int
	// Idle is how long an environment waits for its next invocation before it
	// is ended; 0: 5 minutes.
	Idle time.Duration
	// Starts bounds the environments that start at once; 0: two for each
	// processor, at least 4.
	Starts int
	// Guard ends the process where a panic leaves an invocation half done.
	Guard *poison.Guard
}

// Pool runs functions. A function that is idle, and has been for a while, costs
// nothing: what the pool knows of it goes with its last environment.
type Pool struct {
	Options
	starts chan struct{} // a token for each environment that may start
	ending chan struct{} // closed when the pool stops

	mu      sync.Mutex
	limits  limits
	groups  map[groupKey]*group
	current map[versionKey]*group // the group of a version's latest build
	idle    list.List             // of *slot, the longest idle first
	slots   map[*slot]struct{}    // all environments
	live    int                   // environments that do not end yet
	expiry  clock.Timer           // of the first of idle; nil: none
	stopped bool
	work    sync.WaitGroup // invocations, starts and ends under way
}

// versionKey names a version of a function in one of its lives.
type versionKey struct {
	function    string // ARN
	version     string
	incarnation uint64
}

// groupKey names what stays the same through the life of an environment.
type groupKey struct {
	versionKey
	build string
}

// group is the environments of a version's build.
type group struct {
	key     groupKey
	target  function.Target // of its latest invocation
	retired bool            // a later build has come
	idle    []*slot         // the latest used last
	waiters []*waiter       // for an environment, in their order
	size    int             // environments
}

// slot is an environment in its group.
type slot struct {
	group   *group
	env     Environment
	stream  *stream
	element *list.Element // in Pool.idle; nil: it is not idle
	since   time.Time     // when it became so, by the machine's clock
	ending  bool
}

// waiter is an invocation that waits for an environment.
type waiter struct{ ready chan started }

// started is what a start came to: an environment, or why there is none.
type started struct {
	slot    *slot
	failure *Failure
	err     error
}

// New makes a pool, which must be stopped.
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
	return &Pool{
		Options: o,
		starts:  make(chan struct{}, o.Starts),
		ending:  make(chan struct{}),
		limits:  newLimits(o),
		groups:  map[groupKey]*group{},
		current: map[versionKey]*group{},
		slots:   map[*slot]struct{}{},
	}
}

// Invoke runs a function once. A function that fails is an Outcome. An error is
// a throttle (see Throttled), which comes at once, or the server's failure. The
// end of ctx ends the wait for an environment; a function that runs goes on.
func (p *Pool) Invoke(ctx context.Context, in Invocation) (Outcome, error) {
	in.began = p.Clock.Now()
	a, err := p.admit(&in)
	if err != nil {
		if !errors.Is(err, ErrStopping) {
			p.emit(&in, Throttles, 1)
		}
		return Outcome{}, err
	}
	defer p.work.Done()
	defer p.Guard.Whole() // it counts, and has an environment
	p.emitEvent(&in, Event{Kind: ConcurrentExecutions, Value: float64(a.running.Function), Concurrency: a.running})

	var out Outcome
	s := a.slot
	if s == nil {
		s, out, err = p.await(ctx, a.group, a.waiter, &in)
	}
	if s != nil {
		out, err = p.run(s, &in)
	}
	p.leave(a.use, &in)
	return out, err
}

// admitted is an invocation that counts, and is one of work: the caller must call leave.
type admitted struct {
	use     *usage
	running Concurrency
	group   *group
	slot    *slot   // its environment; nil: it waits
	waiter  *waiter // for one
}

// admit counts an invocation and finds it an environment, or a place to wait. It fails
// with ErrStopping and throttles.
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

// Running is how many invocations of a function run, or wait for an environment.
func (p *Pool) Running(fn arn.ARN) int {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	if use := p.limits.functions[fn]; use != nil {
		return use.running
	}
	return 0
}

// group finds or makes the group of a target. A new build ends what is left
// of the earlier one. The pool is locked.
func (p *Pool) group(t *function.Target) *group {
	key := groupKey{versionKey{t.Function.String(), t.Version, t.Incarnation}, t.Build}
	g := p.groups[key]
	if g != nil {
		return g
	}
	g = &group{key: key, target: *t}
	p.groups[key] = g
	if before := p.current[key.versionKey]; before != nil {
		before.retired = true
		for len(before.idle) > 0 {
			p.end(before.idle[len(before.idle)-1])
		}
	}
	p.current[key.versionKey] = g
	return g
}

// take takes the environment of g that was used last, nil if none is idle. Those that are
// not usable any more end. The pool is locked.
func (p *Pool) take(g *group) *slot {
	last := len(g.idle) - 1
	for ; last >= 0 && !g.idle[last].env.Usable(); last-- {
		p.end(g.idle[last])
	}
	if last < 0 {
		return nil
	}
	s := g.idle[last]
	g.idle[last] = nil
	g.idle = g.idle[:last]
	p.idle.Remove(s.element)
	s.element = nil
	return s
}

// wait lines up for an environment and starts one. The pool is locked.
func (p *Pool) wait(g *group) *waiter {
	w := &waiter{ready: make(chan started, 1)}
	g.waiters = append(g.waiters, w)
	p.work.Add(1)
	go p.start(g)
	return w
}

// await waits for an environment: one that was started for the caller, or that
// another one gave back before.
func (p *Pool) await(ctx context.Context, g *group, w *waiter, in *Invocation) (*slot, Outcome, error) {
	var got started
	select {
	case got = <-w.ready:
	case <-ctx.Done():
		if p.cancelWait(g, w) {
			return nil, Outcome{}, context.Cause(ctx)
		}
		got = <-w.ready
	case <-p.ending:
		if p.cancelWait(g, w) {
			return nil, Outcome{}, ErrStopping
		}
		got = <-w.ready
	}
	if got.failure != nil {
		return nil, p.failedStart(in, got), nil
	}
	if got.err != nil {
		return nil, Outcome{}, p.explain(in, got.err)
	}
	return got.slot, Outcome{}, nil
}

// cancelWait takes a waiter out of its line; false: it has been served.
func (p *Pool) cancelWait(g *group, w *waiter) bool {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	for i, other := range g.waiters {
		if other == w {
			g.waiters = append(g.waiters[:i:i], g.waiters[i+1:]...)
			p.forget(g)
			return true
		}
	}
	return false
}

// serve gives the first waiter what it waits for; false: there is none. The
// pool is locked.
func (g *group) serve(s started) bool {
	if len(g.waiters) == 0 {
		return false
	}
	w := g.waiters[0]
	g.waiters[0] = nil
	g.waiters = g.waiters[1:]
	w.ready <- s
	return true
}

// start starts an environment for the first invocation that waits when it is ready.
func (p *Pool) start(g *group) {
	defer p.work.Done()
	select {
	case p.starts <- struct{}{}:
	case <-p.ending:
		return
	}
	defer func() { <-p.starts }()
	s, target := p.place(g)
	if s == nil {
		return
	}
	runner := p.Process
	if target.Remote() {
		runner = p.Remote
	}
	s.stream = newStream(p.Log, p.Clock, &target)
	env, err := runner.Open(&target, s.stream)
	var failure *Failure
	switch stopped := p.fill(s, env); {
	case err != nil:
	case stopped:
		err = ErrStopping
	default:
		failure, err = env.Start()
	}
	if err != nil || failure != nil {
		p.abandon(s, started{slot: s, failure: failure, err: err})
		return
	}
	p.release(s)
}

// place makes room for an environment, and tells what is to run in it; nil: nobody
// waits for it any more.
func (p *Pool) place(g *group) (*slot, function.Target) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	if len(g.waiters) == 0 || p.stopped {
		p.forget(g)
		return nil, function.Target{}
	}
	for p.live >= p.Environments && p.idle.Len() > 0 {
		p.end(p.idle.Front().Value.(*slot))
	}
	s := &slot{group: g}
	g.size++
	p.live++
	p.slots[s] = struct{}{}
	return s, g.target
}

// fill puts an environment, or nil, into its place.
func (p *Pool) fill(s *slot, env Environment) (stopped bool) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	s.env = env
	return p.stopped
}

// abandon gives up an environment that does not start, and tells the waiter.
func (p *Pool) abandon(s *slot, why started) {
	p.refuse(s.group, why)
	p.close(s)
}

func (p *Pool) refuse(g *group, why started) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	if why.err != nil {
		why.slot = nil
	}
	g.serve(why)
}

// recycle takes back an environment that has run. One that is not usable any more is
// closed, and another is started if somebody waits.
func (p *Pool) recycle(s *slot) {
	if s.env.Usable() {
		p.release(s)
	} else {
		p.close(s)
	}
}

// release puts an environment where the next invocation finds it.
func (p *Pool) release(s *slot) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	g := s.group
	if g.serve(started{slot: s}) {
		return
	}
	s.since = clock.System.Now()
	s.element = p.idle.PushBack(s)
	g.idle = append(g.idle, s)
	if p.stopped || g.retired {
		p.end(s)
		return
	}
	if p.expiry == nil {
		p.expiry = clock.System.AfterFunc(p.Idle, p.expire)
	}
}

// end ends an idle environment. The pool is locked.
func (p *Pool) end(s *slot) {
	g := s.group
	for i, other := range g.idle {
		if other == s {
			g.idle = append(g.idle[:i], g.idle[i+1:]...)
			break
		}
	}
	p.idle.Remove(s.element)
	s.element = nil
	s.ending = true
	p.live--
	p.work.Go(func() { p.close(s) })
}

// close ends an environment that is not in use.
func (p *Pool) close(s *slot) {
	if s.env != nil {
		s.env.Close()
	}
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	delete(p.slots, s)
	if !s.ending {
		p.live--
	}
	s.group.size--
	p.forget(s.group)
}

// forget drops a group without environments and waiters. The pool is locked.
func (p *Pool) forget(g *group) {
	if g.size > 0 || len(g.waiters) > 0 {
		return
	}
	if p.groups[g.key] == g {
		delete(p.groups, g.key)
	}
	if p.current[g.key.versionKey] == g {
		delete(p.current, g.key.versionKey)
	}
}

// expire ends what has been idle for long enough.
func (p *Pool) expire() {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	p.expiry = nil
	now := clock.System.Now()
	for e := p.idle.Front(); e != nil && !p.stopped; e = p.idle.Front() {
		s := e.Value.(*slot)
		if left := p.Idle - now.Sub(s.since); left > 0 {
			p.expiry = clock.System.AfterFunc(left, p.expire)
			return
		}
		p.end(s)
	}
}

// run runs an invocation in an environment and gives it back.
func (p *Pool) run(s *slot, in *Invocation) (Outcome, error) {
	// One whose process has ended starts another, before the function's time
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

// explain logs what only the operator can mend. What is a refusal already, or
// comes of stopping, needs no explanation.
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

// finish makes the outcome of what a function did, and tells of it.
func (p *Pool) finish(log *stream, in *Invocation, r *Result) Outcome {
	out := Outcome{Payload: r.Payload, Duration: r.Duration, Billed: billed(r)}
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

// Stop ends the pool. Invocations under way may finish until ctx ends; then
// they are cut off. When it returns, no environment is left.
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

// endIdle lets no further invocation in, and ends the environments that are idle.
func (p *Pool) endIdle() {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	if !p.stopped {
		p.stopped = true
		close(p.ending)
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
			go s.env.Close() // its user closes it too, and is waited for
		}
	}
}
