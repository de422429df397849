// Package forward hands the events of log groups over, as subscription filters have it.
//
// Invariants: a put that was acknowledged is handed over at least once, however the process ends, unless its
// destination refuses it for good, or for 24 hours; a filter hands over one thing after the other, and those of
// a stream in the order of their arrival; nobody who puts events waits for it.
package forward

import (
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/pattern"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/kernel"
)

const (
	// rest is how long a filter rests after it has handed over all there was, in real time: what comes
	// meanwhile goes together, so that a function whose own logs are handed to it is not invoked for each line.
	rest = 200 * time.Millisecond
	// atOnce is how many filters hand over at once.
	atOnce = 4
	// The time until a failed hand-over is tried again: it doubles.
	firstRetry, lastRetry = time.Second, time.Minute
	// keep is for how long after their arrival events are tried again. Source: the user guide of CloudWatch
	// Logs, "Monitoring with CloudWatch metrics".
	keep = 24 * time.Hour
)

// Destinations take what filters hand over.
type Destinations interface {
	// Limit is the size of the largest part that a destination takes, in bytes.
	Limit(f *subscription.Filter) int
	// Send has a destination take a part, which is durable on return, and with that end, if joined says so;
	// nil: nothing ends with it. Errors are of package fault; those of Permanent are not tried again.
	Send(group arn.ARN, f *subscription.Filter, p *subscription.Part, end *kernel.Joined) (joined bool, err error)
}

// Options are what a Forwarder works with.
type Options struct {
	Logs   *logs.Logs
	Kernel *kernel.Kernel
	Clock  clock.Clock
	Logger *slog.Logger
	// Rest has the time in which filters rest; nil: clock.System.
	Rest clock.Clock
	// Record takes the metrics; nil: nobody counts.
	Record func(data ...metrics.Datapoint) error
}

// Forwarder hands events over. It is in memory alone: what there is to do the log groups know.
type Forwarder struct {
	Options
	slots        chan struct{} // full while as many hand over as may
	destinations Destinations  // set before it hands over

	mu      sync.Mutex // guards what follows
	started bool
	filters map[uint64]*filter // by id
}

// filter is a subscription filter that has something to hand over, or has had so lately.
type filter struct {
	logs.Subscriber
	busy    bool   // it runs, rests, or waits to try again
	waiting bool   // to try again
	again   bool   // something came meanwhile
	release func() // of the clock, which is held for what came while it does not wait; nil: it is not

	// Of who runs.
	failures int               // in succession
	reason   string            // of the last one
	handed   map[uint64]uint64 // by stream: what Pending still has, but was handed over: the last sequence
}

// New makes a Forwarder, before events are put. It does nothing until it is started.
func New(o Options) *Forwarder {
	if o.Rest == nil {
		o.Rest = clock.System
	}
	f := &Forwarder{Options: o, slots: make(chan struct{}, atOnce), filters: map[uint64]*filter{}}
	o.Logs.Notify(f.wake)
	return f
}

// Start begins to hand over, and with that what was left when the process before it ended.
func (f *Forwarder) Start(to Destinations) {
	f.mu.Lock()
	f.started, f.destinations = true, to
	f.mu.Unlock()
	all, err := f.Logs.Subscribers()
	if err != nil {
		f.Logger.Error("what subscription filters have to hand over cannot be read", "error", err)
	}
	for _, s := range all {
		f.wake(s)
	}
}

// wake has a filter look for events.
func (f *Forwarder) wake(s logs.Subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.started {
		return
	}
	one := f.filters[s.Filter]
	if one == nil {
		one = &filter{Subscriber: s, handed: map[uint64]uint64{}}
		f.filters[s.Filter] = one
	}
	if one.busy {
		one.again = true
		if !one.waiting && one.release == nil {
			one.release = f.Clock.Hold()
		}
		return
	}
	one.busy = true
	f.Kernel.GoBackground(func() { f.run(one) })
}

// run hands over what there is, and then rests. Others have their turn between two pages: a filter whose
// events come as fast as they are handed over does not keep them waiting.
func (f *Forwarder) run(one *filter) {
	for more := true; more; {
		select {
		case <-f.Kernel.Stopping:
			return
		case f.slots <- struct{}{}:
		}
		f.mu.Lock()
		one.again, one.waiting = false, false
		one.letGo()
		f.mu.Unlock()
		var failed, gone bool
		more, failed, gone = f.hand(one)
		<-f.slots
		if gone {
			f.mu.Lock()
			one.letGo()
			delete(f.filters, one.Filter)
			f.mu.Unlock()
			return
		}
		if failed {
			f.mu.Lock()
			one.waiting = true
			one.letGo()
			f.mu.Unlock()
			f.Clock.AfterFunc(delay(one.failures), func() { f.Kernel.GoBackground(func() { f.run(one) }) })
			return
		}
	}
	f.Rest.AfterFunc(rest, func() { f.rested(one) })
}

// rested runs a filter for what came while it ran and rested.
func (f *Forwarder) rested(one *filter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.again {
		f.Kernel.GoBackground(func() { f.run(one) })
		one.letGo()
		return
	}
	delete(f.filters, one.Filter)
}

// letGo ends the hold of the clock.
func (one *filter) letGo() {
	if one.release != nil {
		one.release()
		one.release = nil
	}
}

// forget forgets what was handed over and is before next: Pending does not have it any more.
func (one *filter) forget(next uint64) {
	maps.DeleteFunc(one.handed, func(_, last uint64) bool { return last < next })
}

// delay is the time after so many failures in succession.
func delay(failures int) time.Duration {
	return min(firstRetry<<min(failures-1, 10), lastRetry)
}

// hand hands over the first puts. failed says that it is to be tried again later, gone that the filter is
// not there any more, and more that there may be more.
func (f *Forwarder) hand(one *filter) (more, failed, gone bool) {
	p, err := f.Logs.Pending(one.Subscriber, one.failures > 0, matcher)
	switch {
	case errors.Is(err, logs.ErrNoGroup), errors.Is(err, logs.ErrNoSubscription):
		f.Logs.Forget(one.Subscriber)
		return false, false, true
	case err != nil:
		f.Logger.Error("what a subscription filter has to hand over cannot be read", "group", one.ARN.String(), "error", err)
		one.failures++
		one.reason = err.Error()
		return false, true, false
	case p.Next == 0:
		return false, false, false
	case one.failures > 0 && f.giveUp(one, p):
		return true, false, false
	}
	parts := f.parts(one, p)
	for i := range parts {
		var end *kernel.Joined
		if i == len(parts)-1 {
			end = f.Logs.Handed(one.Subscriber, p, p.Next)
		}
		joined, err := f.destinations.Send(one.ARN, &p.Filter, &parts[i].Part, end)
		if err == nil {
			f.count(one, p, forwarded, parts[i].Events, len(parts[i].Body))
			one.failures, one.handed[parts[i].stream] = 0, parts[i].Last
			if joined && end != nil {
				one.forget(p.Next)
				return p.More, false, false
			}
			continue
		}
		if f.refused(one, p, parts[i:], err) {
			return false, true, false
		}
		break
	}
	f.Logs.Hand(one.Subscriber, p, p.Next)
	one.forget(p.Next)
	return p.More, false, false
}

// log names a filter and its destination.
func (f *Forwarder) log(one *filter, p *logs.Pending) *slog.Logger {
	return f.Logger.With("group", one.ARN.String(), "filter", p.Filter.Name, "destination", p.Filter.Destination)
}

// giveUp passes what is too old to be tried again, and reports whether there was any. It does not wait for
// another failure: events may grow too old faster than they are tried.
func (f *Forwarder) giveUp(one *filter, p *logs.Pending) bool {
	next := p.Until(f.Clock.Now().Add(-keep).UnixMilli())
	if next == 0 {
		return false
	}
	f.log(one, p).Warn("log events of a subscription filter are given up after 24 hours", "reason", one.reason)
	f.Logs.Hand(one.Subscriber, p, next)
	one.forget(next)
	return true
}

// refused reports whether what a destination refused is tried again.
func (f *Forwarder) refused(one *filter, p *logs.Pending, parts []part, err error) (again bool) {
	log := f.log(one, p)
	if Permanent(err) {
		events := 0
		for i := range parts {
			events += parts[i].Events
		}
		f.count(one, p, refused, events, 0)
		log.Warn("the destination of a subscription filter refuses log events, which are not handed over", "events", events, "reason", err.Error())
		one.failures = 0
		return false
	}
	kind := refused
	if fault.KindOf(err) == fault.Throttled {
		kind = throttled
	}
	f.count(one, p, kind, parts[0].Events, 0)
	one.reason = err.Error()
	if one.failures++; one.failures == 1 {
		log.Warn("log events of a subscription filter cannot be handed over now, which is tried again", "reason", one.reason)
	}
	return true
}

// Permanent reports whether a destination will not take later what it refuses with an error: it is not there,
// or does not let CloudWatch Logs.
func Permanent(err error) bool {
	switch fault.KindOf(err) {
	case fault.ResourceNotFound, fault.AccessDenied, fault.InvalidParameter:
		return true
	default:
		return false
	}
}

// part is a part of a stream.
type part struct {
	subscription.Part
	stream uint64
}

// parts are what is to be handed over, without what was.
func (f *Forwarder) parts(one *filter, p *logs.Pending) (parts []part) {
	name, _ := one.ARN.LogGroupName()
	for i := range p.Streams {
		s := &p.Streams[i]
		events := s.Events
		for len(events) > 0 && events[0].Sequence <= one.handed[s.ID] {
			events = events[1:]
		}
		from := subscription.Source{Owner: one.ARN.Account, Group: name, Stream: s.Name, Filter: p.Filter.Name}
		some, left := subscription.Parts(from, events, f.destinations.Limit(&p.Filter))
		if left > 0 {
			f.count(one, p, refused, left, 0)
			f.Logger.Warn("log events are too large for the destination of a subscription filter", "group", one.ARN.String(), "filter", p.Filter.Name, "events", left)
		}
		for i := range some {
			parts = append(parts, part{some[i], s.ID})
		}
	}
	return parts
}

// matcher matches events as a filter has it.
func matcher(f *subscription.Filter) (func(message string) bool, error) {
	p, err := pattern.Parse(f.Pattern)
	if err != nil {
		return nil, err
	}
	return func(message string) bool { return p.Match(pattern.NewEvent(message)) }, nil
}
