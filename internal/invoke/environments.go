package invoke

import (
	"container/list"
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
)

// versionKey identifies a version of a function's incarnation.
type versionKey struct {
	function    string // ARN
	version     string
	incarnation uint64
}

// groupKey has what is fixed during an environment's lifetime.
type groupKey struct {
	versionKey
	build string
}

// group has the environments of a version's build.
type group struct {
	key     groupKey
	target  function.Target // of the latest invocation
	retired bool            // there is a later build, or it was deleted
	idle    []*slot         // most recently used last
	waiters []*waiter       // in FIFO order
	size    int             // environments
}

// slot is an environment in its group.
type slot struct {
	group   *group
	env     Environment
	stream  *stream
	element *list.Element // in Pool.idle; nil: not idle
	since   time.Time     // when it became idle, by the machine's clock
	ending  bool
}

// waiter is an invocation that waits for an environment.
type waiter struct{ ready chan started }

// started is the result of a start: an environment, or the error.
type started struct {
	slot    *slot
	failure *Failure
	err     error
}

// group finds or makes the group of a target. A new build retires the group of the old one.
// The pool is locked.
func (p *Pool) group(t *function.Target) *group {
	key := groupKey{versionKey{t.Function.String(), t.Version, t.Incarnation}, t.Build}
	g := p.groups[key]
	if g != nil {
		return g
	}
	g = &group{key: key, target: *t}
	p.groups[key] = g
	if before := p.current[key.versionKey]; before != nil {
		p.retire(before)
	}
	p.current[key.versionKey] = g
	return g
}

// Retire ends the environments of a function that was deleted, or of one of its versions: what they
// have in the background would go on.
func (p *Pool) Retire(fn arn.ARN, version string) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	name := fn.String()
	for key, g := range p.groups {
		if key.function == name && (version == "" || key.version == version) {
			p.retire(g)
		}
	}
}

// retire ends the idle environments of a group now, and the others when they are released. The
// pool is locked.
func (p *Pool) retire(g *group) {
	g.retired = true
	for len(g.idle) > 0 {
		p.end(g.idle[len(g.idle)-1])
	}
}

// take returns the most recently used idle environment of g; nil: there is none. Unusable
// ones are ended. The pool is locked.
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

// wait adds a waiter for an environment and starts one. The pool is locked.
func (p *Pool) wait(g *group) *waiter {
	w := &waiter{ready: make(chan started, 1)}
	g.waiters = append(g.waiters, w)
	p.work.Add(1)
	go p.start(g)
	return w
}

// await waits for an environment: the one started for the caller, or one that is released
// before.
func (p *Pool) await(ctx context.Context, g *group, w *waiter, in *Invocation) (*slot, Outcome, error) {
	var got started
	select {
	case got = <-w.ready:
	case <-ctx.Done():
		if p.cancelWait(g, w) {
			return nil, Outcome{}, context.Cause(ctx)
		}
		got = <-w.ready
	case <-p.lifetime.Done():
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

// cancelWait removes a waiter from the queue; false: it was served.
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

// serve passes the result to the first waiter; false: there is none. The pool is locked.
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

// start starts an environment, and passes it to the first waiter.
func (p *Pool) start(g *group) {
	defer p.work.Done()
	select {
	case p.starts <- struct{}{}:
	case <-p.lifetime.Done():
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
	env, err := runner.Open(p.lifetime, &target, s.stream)
	var failure *Failure
	switch stopped := p.fill(s, env); {
	case stopped:
		err = ErrStopping
	case err != nil:
	default:
		failure, err = env.Start()
	}
	if err != nil || failure != nil {
		p.abandon(s, started{slot: s, failure: failure, err: err})
		return
	}
	p.release(s)
}

// place reserves a slot for an environment, and returns its target; nil: there are no waiters
// any more. If necessary it ends idle environments.
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

// fill sets the environment of a slot, or nil.
func (p *Pool) fill(s *slot, env Environment) (stopped bool) {
	p.Guard.Lock(&p.mu)
	defer p.Guard.Unlock(&p.mu)
	s.env = env
	return p.stopped
}

// abandon drops an environment that did not start, and passes the error to the waiter.
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

// recycle takes back a used environment. An unusable one is closed, and a new one is started
// if there are waiters.
func (p *Pool) recycle(s *slot) {
	if s.env.Usable() {
		p.release(s)
	} else {
		p.close(s)
	}
}

// release makes an environment available for the next invocation.
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

// expire ends environments that have been idle for too long.
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
