package deliver

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

// Engine is what the scheduler needs of the state: *shard.Engine.
type Engine interface {
	Take(subscription arn.ARN, most int) (taken []*shard.Delivery, more bool, err error)
	Current(d *shard.Delivery) bool
	Delivered(d *shard.Delivery, a shard.Attempt)
	Retry(d *shard.Delivery, a shard.Attempt, due time.Time)
	Release(d *shard.Delivery)
	Transfer(ctx context.Context, d *shard.Delivery, a shard.Attempt, dest arn.ARN, m *message.Message, state shard.DeliveryState, reason string) error
	Drop(d *shard.Delivery, a shard.Attempt, reason string)
}

// Options are what a Scheduler is made of. Engine, Clock and Senders are needed;
// everything else has a default.
type Options struct {
	Engine  Engine
	Clock   clock.Clock // of delays, throttles and deadlines; not of timeouts
	Logger  *slog.Logger
	Senders map[topic.Protocol]Sender
	// PublicURL is the address of the server as subscribers reach it. SubscribeURL
	// and UnsubscribeURL begin with it.
	PublicURL string
	// Signer signs envelopes; nil: they go out unsigned.
	Signer Signer
	// Jitter spreads delays by JitterShare, from 0 (not at all) to 1. Source and
	// seed are the caller's; nil means no jitter.
	Jitter      *clock.Jitter
	JitterShare float64
	// HostLimit bounds the attempts under way at one endpoint host: 50 unless
	// given. Limit bounds them in all: 5,000 unless given.
	HostLimit, Limit int
	// Timeout is the real time that an attempt may take: 15 s unless given.
	Timeout time.Duration
	Events  Events            // nil: nobody watches
	NewID   func() message.ID // of messages in queues; random unless given
	System  clock.Clock       // measures attempts; the machine's unless given
}

const (
	// localLimit and localBound are the pool of attempts that stay in this
	// process: transfers, which share commits when many are under way.
	localLimit = 64
	localBound = 1024
	// httpBatch is how many messages of one subscription are taken at once for
	// endpoints outside.
	httpBatch = 10
	// takers is how many subscriptions are looked at at once.
	takers = 16
	// maxFailing bounds the dead letters of one subscription on their way, and
	// maxParked those that wait for their queue. At the bound the subscription
	// stands still: its messages wait in the backlog and not in memory.
	maxFailing = 16
	maxParked  = 16
	// redriveWait is how long a dead letter waits for the next try when its queue
	// cannot take it now: the last phase of the AWS-managed policy, without end.
	redriveWait = 20 * time.Second
	// slowAfter is what makes an attempt one that hung.
	slowAfter = 5 * time.Second
	// slowBurst attempts at hosts that hung may begin at once, and as many again
	// every slowPause: 1,000 a second. Four fifths of 5,000 that take 5 s or more
	// are never more than 800 a second.
	slowBurst = 16
	slowPause = 16 * time.Millisecond
	// takeWait is the wait after a failure to read a backlog.
	takeWait = time.Second
)

// Scheduler makes deliveries. It implements shard.Consumer.
type Scheduler struct {
	options  Options
	engine   Engine
	clock    clock.Clock
	logger   *slog.Logger
	attempts context.Context // ends when a Stop gives up waiting
	cutOff   context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	backlogs map[arn.ARN]*backlog
	outside  *pool
	local    *pool
	takes    []*backlog // waiting to be looked at
	takers   int        // at work
	pumping  bool
	// slowTimer says that more attempts at hosts that hung may begin soon.
	slowTimer bool
	heir      bool // a goroutine whose work has ended will take over next
	next      *job
}

// backlog is a subscription that has, or may have, something to do.
type backlog struct {
	arn      arn.ARN
	release  func() // of the clock; nil: not held
	rung     bool   // told to be ready since the last look began
	more     bool   // there may be more to take
	taking   bool   // a look is under way, or lined up
	recalled bool   // what a look finds goes back
	takeAt   time.Time

	waiting []*shard.Delivery // taken and not begun, in order
	host    *host             // nil until the first message is taken
	listed  bool              // lined up at the host
	pace    pace
	working int // attempts and other work under way
	failing int // of these, dead letters after a deadline

	parked  []*move // dead letters whose queue cannot take them now
	moving  bool    // another try is under way
	timer   clock.Timer
	timerAt time.Time
	timerID int
}

// New makes a scheduler. It does nothing until the engine tells it what is due.
func New(o Options) *Scheduler {
	o.HostLimit = cmp.Or(o.HostLimit, 50)
	o.Limit = cmp.Or(o.Limit, 5000)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NewID == nil {
		o.NewID = func() message.ID { return message.ID(uuid.New()) }
	}
	if o.System == nil {
		o.System = clock.System
	}
	s := &Scheduler{
		options: o, engine: o.Engine, clock: o.Clock, logger: o.Logger,
		backlogs: map[arn.ARN]*backlog{},
		outside:  newPool(o.HostLimit, o.Limit), local: newPool(localLimit, localBound),
	}
	s.attempts, s.cutOff = context.WithCancel(context.Background())
	return s
}

var _ shard.Consumer = (*Scheduler)(nil)

// Ready notes that a subscription's backlog has something due.
func (s *Scheduler) Ready(subscription arn.ARN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	b, ok := s.backlogs[subscription]
	if !ok {
		b = &backlog{arn: subscription}
		s.backlogs[subscription] = b
	}
	b.rung, b.more = true, true
	s.settle(b)
}

// Stop ends all deliveries: nothing new is begun, attempts under way may finish
// until ctx ends and are then cut off, and everything else goes back to its
// backlog, due at once. The error is ctx's if attempts were cut off. Another
// Stop waits for the same.
func (s *Scheduler) Stop(ctx context.Context) error {
	for _, d := range s.standStill() {
		s.engine.Release(d)
	}
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		s.cutOff()
		<-done
	}
	s.cutOff()
	return err
}

// standStill lets nothing new begin, and returns what has not begun.
func (s *Scheduler) standStill() (back []*shard.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, b := range s.backlogs {
		back = append(back, b.waiting...)
		for _, m := range b.parked {
			back = append(back, m.d)
		}
		b.waiting, b.parked, b.more = nil, nil, false
		if b.listed {
			b.host.drop(b)
		}
	}
	for _, b := range s.takes {
		b.taking = false
	}
	s.takes = nil
	for _, b := range s.backlogs {
		s.settle(b)
	}
	return back
}

// settle does for b what can be done now, after any change of it: it is the one
// place that decides what begins, what is waited for, and whether the clock is
// held. The caller has the lock.
func (s *Scheduler) settle(b *backlog) {
	now := s.clock.Now()
	if !s.stopping {
		s.failExpired(b, now)
		if len(b.waiting) > 0 && !b.listed && b.pace.allowed(now) != 0 {
			b.host.push(b)
		}
		if b.more && !b.taking && s.wants(b) && !now.Before(b.takeAt) {
			b.taking = true
			s.takes = append(s.takes, b)
			if s.takers < takers {
				s.takers++
				s.wg.Go(s.take)
			}
		}
		s.retryMoves(b, now)
		s.pump()
	}
	s.setTimer(b, now, s.nextMoment(b, now))
	if b.taking || b.listed || b.working > 0 {
		if b.release == nil {
			b.release = s.clock.Hold()
		}
		return
	}
	if b.release != nil {
		b.release()
		b.release = nil
	}
	if b.timer == nil && len(b.waiting) == 0 && len(b.parked) == 0 && !b.more && s.backlogs[b.arn] == b {
		delete(s.backlogs, b.arn)
		if b.host != nil {
			b.host.leave()
		}
	}
}

// wants reports that more messages of b would be of use.
func (s *Scheduler) wants(b *backlog) bool {
	parked := len(b.parked)
	if b.moving {
		parked++
	}
	if len(b.waiting) > 0 || b.failing >= maxFailing || parked >= maxParked {
		return false
	}
	// Half a batch under way: the next look will find room for the other half.
	return b.host == nil || b.host.pool != s.local || b.working <= localLimit/2
}

// portion is how many messages of b to take. What is taken is meant to begin at
// once: what waits in memory has yesterday's policy. But one is always taken, as
// somebody must see its deadline.
func (s *Scheduler) portion(b *backlog, now time.Time) int {
	switch {
	case b.host == nil:
		return 1 // its limits are not known yet
	case b.failing > 0:
		return httpBatch // its neighbours have probably expired, too
	}
	room := b.host.pool.limit - b.host.inflight
	if b.host.pool != s.local {
		room = min(room, httpBatch)
	}
	if n := b.pace.allowed(now); n >= 0 {
		room = min(room, n)
	}
	return max(room, 1)
}

// nextMoment is when b must be settled again though nothing has happened: zero
// if never.
func (s *Scheduler) nextMoment(b *backlog, now time.Time) (at time.Time) {
	if s.stopping {
		return at
	}
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, d := range b.waiting {
		if t := deadlineOf(d); !t.IsZero() {
			sooner(t.Add(time.Millisecond))
		}
	}
	// While a throttle counts, the backlog is remembered, with its last attempt.
	if b.pace.rate > 0 && now.Before(b.pace.next) {
		sooner(b.pace.next)
	}
	if now.Before(b.takeAt) {
		sooner(b.takeAt)
	}
	if !b.moving {
		for _, m := range b.parked {
			sooner(m.at)
		}
	}
	return at
}

// setTimer makes the timer of b due at a moment; zero stops it.
func (s *Scheduler) setTimer(b *backlog, now, at time.Time) {
	if b.timer != nil {
		if b.timerAt.Equal(at) {
			return
		}
		b.timer.Stop()
		b.timer = nil
	}
	b.timerID++ // what has fired and waits for the lock does nothing any more
	b.timerAt = at
	if at.IsZero() {
		return
	}
	id := b.timerID
	b.timer = s.clock.AfterFunc(at.Sub(now), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if b.timerID == id {
			b.timer = nil
			s.settle(b)
		}
	})
}

// take looks into backlogs until none is lined up.
func (s *Scheduler) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.takes) > 0 {
		b := s.takes[0]
		s.takes[0] = nil
		s.takes = s.takes[1:]
		b.rung = false
		most := s.portion(b, s.clock.Now())
		s.mu.Unlock()
		taken, more, err := s.engine.Take(b.arn, most)
		s.mu.Lock()
		s.taken(b, taken, more, err)
	}
	s.takers--
}

// taken notes what a look into b has found. The caller has the lock.
func (s *Scheduler) taken(b *backlog, taken []*shard.Delivery, more bool, err error) {
	b.taking = false
	b.more = more || b.rung
	if err != nil {
		s.logger.Error("a subscription's backlog cannot be read", "subscription", b.arn.String(), "error", err)
		b.more, b.takeAt = true, s.clock.Now().Add(takeWait)
	}
	if s.stopping || b.recalled {
		b.recalled = false
		b.more = b.rung && !s.stopping
		s.giveBack(b, taken)
		taken = nil
	}
	for _, d := range taken {
		s.settleHost(b, d)
		b.pace.limit(d.Throttle)
		b.waiting = append(b.waiting, d)
	}
	s.settle(b)
}

// giveBack returns deliveries that were not begun. The caller has the lock,
// which is open meanwhile.
func (s *Scheduler) giveBack(b *backlog, back []*shard.Delivery) {
	b.working++
	s.mu.Unlock()
	for _, d := range back {
		s.engine.Release(d)
	}
	s.mu.Lock()
	b.working--
}

// Recall gives back what was taken of a subscription and has not begun. Attempts
// under way go on.
func (s *Scheduler) Recall(subscription arn.ARN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.backlogs[subscription]
	if !ok || s.stopping {
		return
	}
	back := b.waiting
	b.waiting, b.more = nil, false
	if b.listed {
		b.host.drop(b)
	}
	b.recalled = b.taking
	s.giveBack(b, back)
	s.settle(b)
}

// settleHost finds the host of b: a subscription's endpoint never changes.
func (s *Scheduler) settleHost(b *backlog, d *shard.Delivery) {
	if b.host != nil {
		return
	}
	sender, ok := s.options.Senders[d.Subscription.Protocol]
	switch {
	case !ok:
		b.host = s.local.join("") // the attempt finds out
	case sender.Local():
		b.host = s.local.join(sender.Host(d.Subscription.Endpoint))
	default:
		b.host = s.outside.join(sender.Host(d.Subscription.Endpoint))
	}
}

// failExpired begins to move what has waited beyond its deadline out of the way:
// without an attempt, and so without its host's or the throttle's leave.
func (s *Scheduler) failExpired(b *backlog, now time.Time) {
	kept := b.waiting[:0]
	for _, d := range b.waiting {
		if !expired(deadlineOf(d), now) {
			kept = append(kept, d)
			continue
		}
		b.failing++
		s.work(b, func() { b.failing-- }, func() *move {
			return s.fail(d, shard.Attempt{}, Event{GaveUp: true}, reasonExpired)
		})
	}
	clear(b.waiting[len(kept):])
	b.waiting = kept
	if len(kept) == 0 && b.listed {
		b.host.drop(b)
	}
}

// pump begins as many attempts as the pools allow.
func (s *Scheduler) pump() {
	if s.pumping {
		return // whoever pumps looks again
	}
	s.pumping = true
	defer func() { s.pumping = false }()
	for {
		h := s.local.next()
		if h == nil {
			h = s.outside.next()
		}
		if h == nil {
			s.goOnSlowly()
			return
		}
		s.begin(h)
	}
}

// goOnSlowly has those hosts that hung go on in a while that may not begin now.
func (s *Scheduler) goOnSlowly() {
	if !s.local.passed && !s.outside.passed || s.slowTimer || s.stopping {
		return
	}
	s.slowTimer = true
	s.options.System.AfterFunc(slowPause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.slowTimer = false
		for _, p := range []*pool{s.local, s.outside} {
			p.slowly, p.passed = slowBurst, false
		}
		s.pump()
	})
}

// begin makes the next attempt at a host.
func (s *Scheduler) begin(h *host) {
	now := s.clock.Now()
	b := h.begin()
	d := b.waiting[0]
	b.waiting[0] = nil
	b.waiting = b.waiting[1:]
	if b.pace.allowed(now) == 0 { // the limit was lowered meanwhile
		b.waiting = append([]*shard.Delivery{d}, b.waiting...)
		h.end(h.slow)
		s.settle(b)
		return
	}
	b.pace.begin(now)
	slow := false
	s.work(b, func() { h.end(slow) }, func() (parked *move) {
		parked, slow = s.attempt(d)
		return parked
	})
	s.settle(b) // the next of this subscription
}

// work does f in a goroutine, and then, under the lock, end. A move that f
// returns is parked. The caller has the lock.
func (s *Scheduler) work(b *backlog, end func(), f func() *move) {
	b.working++
	j := &job{b: b, end: end, f: f}
	if s.heir && s.next == nil {
		s.next = j
		return
	}
	s.wg.Go(func() { s.run(j) })
}

// job is work to be done.
type job struct {
	b   *backlog
	end func()
	f   func() *move
}

// run does a job and then, as long as the end of one begins another, that: the
// stack of a goroutine that has made one attempt is large enough for the next.
func (s *Scheduler) run(j *job) {
	for j != nil {
		m := j.f()
		s.mu.Lock()
		j.b.working--
		j.end()
		s.heir = true
		if m != nil {
			s.park(j.b, m)
		}
		s.settle(j.b)
		j, s.next, s.heir = s.next, nil, false
		s.mu.Unlock()
	}
}
