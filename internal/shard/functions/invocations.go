package functions

import (
	"cmp"
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/transfer"
)

// The asynchronous invocations of a function wait in a queue of the function, in its shard. The
// queue is a backlog, like a subscription's: a message is due at its next attempt, and the
// progress of its attempts is the message's history record. The dispatcher of package
// invoke/async is its consumer.

// QueuedEvent is an event of a function's queue, leased to the consumer until it reports the
// result.
type QueuedEvent struct {
	function.Event
	Function arn.ARN   // without a qualifier
	Accepted time.Time // when it was accepted
	// Progress is the progress of the attempts so far. The consumer changes it, and RetryEvent
	// stores it.
	Progress function.Progress

	backlog.Lease
}

// qualifierName is the attribute of a queued message that holds the qualifier.
const qualifierName = "Qualifier"

// eventMessage is the stored form of an event in the function's queue.
func eventMessage(ev function.Event) *message.Message {
	m := &message.Message{ID: ev.ID, Trace: ev.Trace, Body: ev.Payload}
	if ev.Qualifier != "" {
		m.Attributes = []message.Attribute{{Name: qualifierName, Type: "String", Value: []byte(ev.Qualifier)}}
	}
	return m
}

// eventsOf finds the queue of a function's events; nil if it never had any.
func (sh *Shard) eventsOf(f *function.Function) *queues.Queue {
	return sh.Backlogs[layout.Incarnation(f.Incarnation)]
}

// openEvents finds or makes the queue of a function's events.
func (sh *Shard) openEvents(f *function.Function) *queues.Queue {
	inc := layout.Incarnation(f.Incarnation)
	qs, ok := sh.Backlogs[inc]
	if !ok {
		qs = sh.AddBacklog(f.ARN, inc, false)
	}
	return qs
}

// loadEvents opens the queues of functions that are not empty.
func (sh *Shard) loadEvents() error {
	for _, f := range sh.Functions.All() {
		if _, ok := sh.OfQueues().Counters[layout.Incarnation(f.Incarnation)]; ok {
			if err := sh.OfQueues().LoadMachine(sh.openEvents(f)); err != nil {
				return err
			}
		}
	}
	return nil
}

// InvokeAsync puts an event into a function's queue; it is durable on return. Errors:
// ResourceNotFound for an unknown function or qualifier, ResourceConflict for one that cannot
// be invoked yet, InsufficientStorage, Throttled if the account's storage quota is used up.
func (e *Functions) InvokeAsync(ctx context.Context, fn arn.ARN, ev function.Event) error {
	return e.InvokeJoined(ctx, fn, ev, nil)
}

// InvokeJoined is InvokeAsync that runs a command in the commit with which the event is durable;
// nil: none.
func (e *Functions) InvokeJoined(ctx context.Context, fn arn.ARN, ev function.Event, joined *kernel.Joined) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.Full() {
		return kernel.ErrFull
	}
	sh := e.ShardOf(fn)
	m := eventMessage(ev)
	if err := e.Accounts.CheckStorage(fn.Account, m.Size()); err != nil {
		return err
	}
	m.Seal()
	if err := e.encryptEvent(fn, m); err != nil {
		return err
	}
	return sh.RunDurable(func(tx *kernel.Tx) error {
		if joined != nil {
			tx.Widen([]*kernel.Shard{sh.Base(), joined.Shard})
		}
		f, err := sh.invokable(fn, ev.Qualifier)
		if err != nil {
			return err
		}
		now := sh.Now()
		m.Sent = now
		sh.acceptEvent(f, now, m, ev.Qualifier)
		if joined != nil {
			joined.Run()
		}
		return nil
	})
}

// encryptEvent encrypts an event of a function under the store's own key, where that is
// the default.
func (e *Functions) encryptEvent(fn arn.ARN, m *message.Message) error {
	return e.EncryptWaiting(fn, "", nil, arn.ARN{}, m)
}

// invokable finds a function that accepts events for a qualifier.
func (sh *Shard) invokable(fn arn.ARN, qualifier string) (*function.Function, error) {
	if _, err := sh.Functions.Resolve(fn, qualifier, 0); err != nil {
		return nil, err
	}
	if err := sh.module.Injected(fn); err != nil {
		return nil, err
	}
	f, _ := sh.Functions.Function(fn)
	return f, nil
}

// acceptEvent adds a message to a function's queue, as part of the current command.
func (sh *Shard) acceptEvent(f *function.Function, now int64, m *message.Message, qualifier string) {
	sh.Accept(sh.openEvents(f), now, queue.Arrival{Message: m, Sent: now, Due: now})
	if accepted := sh.module.options.Accepted; accepted != nil {
		sh.Emit(&acceptedEvent{accepted, f.ARN, qualifier, clock.Time(now)})
	}
}

// acceptedEvent reports that a function is to be invoked with an event.
type acceptedEvent struct {
	emit      func(function arn.ARN, qualifier string, at time.Time)
	function  arn.ARN
	qualifier string
	at        time.Time
}

// Emit implements Emitter.
func (e *acceptedEvent) Emit() { e.emit(e.function, e.qualifier, e.at) }

// TakeEvents leases up to limit due events of a function's queue. The leases are durable. more
// says that others are due. A deleted function has none. An event that cannot be read or signed
// is not returned; it stays leased until the next start, and is the error.
func (e *Functions) TakeEvents(fn arn.ARN, limit int) (taken []*QueuedEvent, more bool, err error) {
	sh := e.ShardOf(fn)
	var leases []backlog.Lease
	var durable func(before bool)
	sh.RunLazy(func() {
		if f, ok := sh.Functions.Function(fn); ok {
			if qs := sh.eventsOf(f); qs != nil {
				leases, more, durable = sh.LeaseDue(qs, limit)
			}
		}
	})
	if durable == nil {
		return nil, false, nil
	}
	durable(false) // no retry is immediate

	for _, l := range leases {
		ev, failed := e.queuedEvent(fn, l)
		err = cmp.Or(err, failed)
		if ev != nil {
			taken = append(taken, ev)
		}
	}
	return taken, more, err
}

// queuedEvent reads the event of a lease; nil if its function was deleted meanwhile.
func (e *Functions) queuedEvent(fn arn.ARN, l backlog.Lease) (*QueuedEvent, error) {
	keys := layout.NewKeys(l.Shard.ID, l.Queue.Incarnation)
	key := keys.Record(l.Queued.Lane, l.Queued.Sequence)
	record, ok, err := e.ReadRecord(key)
	if err != nil {
		e.Fatal(err)
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, e.Lost(key)
	}
	m, err := message.DecodeRecord(record)
	if err == nil {
		err = e.OpenWaiting(m)
	}
	if err != nil {
		return nil, err
	}
	if m.Unsigned != nil {
		if err := e.options.Sign(m.Body, m.Unsigned); err != nil {
			return nil, err
		}
	}
	ev := &QueuedEvent{
		Event:    function.Event{ID: m.ID, Trace: m.Trace, Payload: m.Body},
		Function: fn, Accepted: clock.Time(m.Sent), Lease: l,
	}
	for _, a := range m.Attributes {
		if a.Name == qualifierName {
			ev.Qualifier = string(a.Value)
		}
	}
	var value []byte
	if l.Queued.Receives > 1 {
		if value, _, err = e.Store.Get(nil, keys.History(l.Queued.Sequence)); err != nil {
			e.Fatal(err)
			return nil, err
		}
	}
	if ev.Progress, err = function.DecodeProgress(value); err != nil {
		return nil, err
	}
	return ev, nil
}

// EventDone removes an event that needs no further attempt.
func (e *Functions) EventDone(ev *QueuedEvent) {
	ev.Conclude(journal.Lazy, func(sh *backlog.Shard, qs *queues.Queue, _ int64) { sh.AckSource(qs, ev.Queued) })
}

// RetryEvent stores the progress of an event, and schedules its next attempt.
func (e *Functions) RetryEvent(ev *QueuedEvent, due time.Time) {
	progress := ev.Progress.Encode()
	ev.Conclude(journal.Lazy, func(sh *backlog.Shard, qs *queues.Queue, now int64) {
		sh.Batch.Set(qs.Machine.Keys().History(ev.Queued.Sequence), progress)
		// The lease is the consumer's: it fails only if the function was deleted.
		_, _ = sh.Do(qs, now, queue.Return{Lease: ev.Queued, Due: sh.At(due), History: true})
	})
}

// ReleaseEvent returns an event without an attempt, due now.
func (e *Functions) ReleaseEvent(ev *QueuedEvent) {
	ev.Conclude(journal.Lazy, func(sh *backlog.Shard, qs *queues.Queue, now int64) {
		_, _ = sh.Do(qs, now, queue.Return{Lease: ev.Queued, Due: now, Uncounted: true}) // as above
	})
}

// MoveEvent ends an event by putting a message into a queue, or another event into the queue of
// a function, in one step: it is durable on return. An event whose function was deleted
// meanwhile is lost. Errors: QueueDoesNotExist, ResourceNotFound; InvalidParameter for a
// message that is too large, or a FIFO queue; Unavailable, Throttled. They leave the event
// leased as it was.
func (e *Functions) MoveEvent(ctx context.Context, ev *QueuedEvent, dest arn.ARN, m *message.Message, who *caller.Caller) error {
	if who == nil {
		who = authorize.RootOf(ev.Function.Account)
	}
	var enter transfer.EnterFunc
	if fn, qualifier, ok := dest.SplitFunction(); ok {
		to := e.ShardOf(fn)
		m = eventMessage(function.Event{ID: m.ID, Qualifier: qualifier, Trace: m.Trace, Payload: m.Body})
		m.Seal()
		if err := e.encryptEvent(fn, m); err != nil {
			return err
		}
		enter = func(now int64, _ queue.Config) (queue.Arrival, error) {
			_, err := to.invokable(fn, qualifier)
			return eventArrival(m, now), err
		}
	} else {
		enter = func(now int64, cfg queue.Config) (queue.Arrival, error) {
			if dest.FIFO() {
				return queue.Arrival{}, ErrFIFOQueue
			}
			qs, _ := e.ShardOf(dest).Queue(dest) // which was just found there
			if err := e.CheckEncrypted(qs, m); err != nil {
				return queue.Arrival{}, err
			}
			if !cfg.Takes(m.Size()) {
				return queue.Arrival{}, backlog.ErrTooLong.With(cfg.MaxMessageSize)
			}
			m.Sent = now
			return transfer.ArrivalOf(m, now, cfg), nil
		}
		if err := e.EncryptFor(dest, who, ev.Function, m); err != nil {
			return err
		}
	}
	_, err := e.MoveOut(ctx, &ev.Lease, m, transfer.Incoming{To: dest, Enter: enter})
	return err
}

// eventArrival is an event in the form in which a function's queue accepts it.
func eventArrival(m *message.Message, now int64) queue.Arrival {
	m.Sent = now
	return queue.Arrival{Record: m.AppendRecord(nil), Sent: now, Due: now}
}

// TransferEvent moves a delivery into the queue of a function, as an event, which may be
// unsigned; it is durable on return, and the delivery has succeeded. Errors, which leave it
// leased as it was: ResourceNotFound, and AccessDenied if the function's policy does not let
// the topic invoke it, which are permanent; Unavailable and Throttled, which are temporary.
func (e *Functions) TransferEvent(ctx context.Context, d *backlog.Delivery, a backlog.Attempt, dest arn.ARN, ev function.Event, unsigned *message.Unsigned) error {
	fn, qualifier, _ := dest.SplitFunction() // checked when it was subscribed
	topic, _, _ := d.Subscription.ARN.SplitSubscription()
	ev.Qualifier = qualifier
	m := eventMessage(ev)
	if m.Unsigned = unsigned; unsigned == nil {
		m.Seal()
	}
	if err := e.encryptEvent(fn, m); err != nil {
		return err
	}
	to := e.ShardOf(fn)
	enter := func(now int64, _ queue.Config) (queue.Arrival, error) {
		if _, err := to.invokable(fn, qualifier); err != nil {
			return queue.Arrival{}, err
		}
		if err := to.admits(authorize.SNS(topic.Region), fn, qualifier, topic.String(), topic.Account, now); err != nil {
			return queue.Arrival{}, err
		}
		return eventArrival(m, now), nil
	}
	moved, err := e.MoveOut(ctx, &d.Lease, m, transfer.Incoming{To: dest, Enter: enter})
	if moved {
		e.Finish(d, backlog.Ending{Attempt: a, State: backlog.DeliveryDelivered})
	}
	return err
}

// EventsInfo is an operator's view of a function's queue of events.
type EventsInfo struct {
	Due      int64     // can be attempted now
	Waiting  int64     // scheduled for their next attempt
	InFlight int64     // leased by the consumer
	Oldest   time.Time // when the oldest was accepted; zero: there is none
	Now      time.Time // time of the server's clock
}

// Events counts the events that wait for a function. Errors: ResourceNotFound.
func (e *Functions) Events(ctx context.Context, fn arn.ARN) (info EventsInfo, err error) {
	var qs *queues.Queue
	var low uint64
	sh := e.ShardOf(fn)
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		if info, qs, err = sh.countEvents(fn); qs != nil {
			sh.FlushAppended()
			low = qs.Consumption.Low
		}
		return err
	})
	if err != nil || info.Due+info.Waiting+info.InFlight == 0 {
		return info, err
	}
	info.Oldest, err = e.OldestOf(sh.Shard, qs, low, 0)
	return info, err
}

// countEvents is Events without the oldest; it also returns the queue, nil if there is none.
func (sh *Shard) countEvents(fn arn.ARN) (info EventsInfo, qs *queues.Queue, err error) {
	f, ok := sh.Functions.Function(fn)
	if !ok {
		return info, nil, function.ErrNotFound.With(fn)
	}
	info.Now = clock.Time(sh.Now())
	if qs = sh.eventsOf(f); qs != nil {
		c := sh.Counts(qs, sh.Now())
		info.Due, info.Waiting, info.InFlight = c.Visible, c.Delayed, c.InFlight
	}
	return info, qs, nil
}

// SetEventInvoke sets how a function's events are retried. Errors: those of
// function.State.SetEventInvoke, and InvalidParameter for a destination function that does not
// exist.
func (e *Functions) SetEventInvoke(ctx context.Context, cmd function.SetEventInvoke) (c function.EventInvoke, err error) {
	if cmd.Missing, err = e.missing(ctx, cmd.Change.Functions()); err != nil {
		return c, err
	}
	err = e.WithCatalog(ctx, cmd.Function, func(sh *Shard) (err error) {
		c, err = sh.Functions.SetEventInvoke(clock.Time(sh.Now()), cmd, &sh.Batch)
		return err
	})
	return c, err
}

// missing are those of some functions, versions and aliases that do not exist.
func (e *Functions) missing(ctx context.Context, all []arn.ARN) (missing []arn.ARN, err error) {
	for _, fn := range all {
		name, qualifier, _ := fn.SplitFunction()
		_, err := e.FunctionInfo(ctx, name, qualifier)
		switch {
		case err == nil:
		case fault.KindOf(err) == fault.ResourceNotFound:
			missing = append(missing, fn)
		default:
			return nil, err
		}
	}
	return missing, nil
}

// EventInvoke is the retry configuration of the events of a function, version or alias; the
// zero value, which has all defaults, if none was set.
func (e *Functions) EventInvoke(ctx context.Context, fn arn.ARN, qualifier string) (c function.EventInvoke, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) error {
		if f, ok := sh.Functions.Function(fn); ok {
			c, _ = f.EventInvoke(qualifier)
		}
		return nil
	})
	return c, err
}

// ShowEventInvoke is EventInvoke, or ResourceNotFound if none was set.
func (e *Functions) ShowEventInvoke(ctx context.Context, fn arn.ARN, qualifier string) (c function.EventInvoke, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		c, err = sh.Functions.ShowEventInvoke(fn, qualifier)
		return err
	})
	return c, err
}

// DeleteEventInvoke restores the defaults. Errors: ResourceNotFound.
func (e *Functions) DeleteEventInvoke(ctx context.Context, fn arn.ARN, qualifier string) error {
	return e.WithCatalog(ctx, fn, func(sh *Shard) error {
		return sh.Functions.DeleteEventInvoke(fn, qualifier, &sh.Batch)
	})
}

// EventInvokes lists the configurations of a function by qualifier, up to limit after the
// qualifier after. Errors: ResourceNotFound.
func (e *Functions) EventInvokes(ctx context.Context, fn arn.ARN, after string, limit int) (page []function.QualifiedEventInvoke, more bool, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		page, more, err = sh.Functions.EventInvokes(fn, after, limit)
		return err
	})
	return page, more, err
}

// SampleEvents is Events for statistics, as SampleQueue is, and without the oldest.
func (e *Functions) SampleEvents(fn arn.ARN) (EventsInfo, error) {
	sh := e.ShardOf(fn)
	var info EventsInfo
	_, err := sh.Run(journal.Lazy, func(*kernel.Tx) (err error) {
		info, _, err = sh.countEvents(fn)
		return err
	})
	return info, err
}
