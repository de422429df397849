package logs

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// MaxSubscriptions is how many subscription filters a group may have. Source: the API reference,
// "PutSubscriptionFilter".
const MaxSubscriptions = 2

// subscriber is a subscription filter of a group: it has handed over what is before next.
type subscriber struct{ id, next uint64 }

// Subscriber names a subscription filter.
type Subscriber struct {
	Group  uint64
	Filter uint64
	ARN    arn.ARN // of the group
}

// loadSubscribers reads which groups have subscription filters.
func (l *Logs) loadSubscribers() error {
	l.subscribers = map[uint64][]subscriber{}
	return l.each(key(tagCursor), behind(key(tagCursor)), func(k, v []byte) error {
		if len(v) > 8 {
			l.subscribers[number(k, 0)] = append(l.subscribers[number(k, 0)], subscriber{number(k, 1), binary.BigEndian.Uint64(v)})
		}
		return nil
	})
}

// Subscribers are the subscription filters that are yet to hand something over.
func (l *Logs) Subscribers() (all []Subscriber, err error) {
	err = l.each(key(tagCursor), behind(key(tagCursor)), func(k, v []byte) error {
		if len(v) <= 8 {
			return nil
		}
		return l.each(key(tagPut, number(k, 0), binary.BigEndian.Uint64(v)), key(tagPut, number(k, 0)+1), func(_, _ []byte) error {
			all = append(all, Subscriber{number(k, 0), number(k, 1), groupOf(append(key(tagGroup), v[8:]...))})
			return store.ErrStop
		})
	})
	return all, err
}

// Notify has f called whenever events were put into a group with subscription filters, after the put.
// f does not block. It is called before anything is put.
func (l *Logs) Notify(f func(Subscriber)) { l.notify = f }

// arrived reports that events were put.
type arrived struct {
	logs *Logs
	of   Subscriber
}

// Emit implements kernel.Emitter.
func (a *arrived) Emit() { a.logs.notify(a.of) }

// note has a put handed over, in a transaction, if the group has subscription filters.
func (l *Logs) note(b *mutation.Batch, group arn.ARN, id, stream, sequence uint64, events []Event) {
	all := l.subscribers[id]
	if len(all) == 0 {
		return
	}
	p := subscription.Put{Stream: stream, Ingested: l.now(), Times: make([]uint64, len(events))}
	for i := range events {
		p.Times[i] = uint64(events[i].Time)
	}
	b.Set(key(tagPut, id, sequence), p.Encode())
	if l.notify != nil {
		for _, s := range all {
			l.shard.Emit(&arrived{l, Subscriber{id, s.id, group}})
		}
	}
}

func cursorValue(group arn.ARN, next uint64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, next), groupKey(group)[2:]...)
}

// PutSubscription adds a subscription filter to a group, of the events that are put from now on, or
// replaces that of the name, which goes on where the other was. It fails with ErrTooManySubscriptions.
func (l *Logs) PutSubscription(group arn.ARN, f subscription.Filter) error {
	return l.change(group, func(g groupRecord, d *details) error {
		f.Created = int64(l.now())
		i, found := slices.BinarySearchFunc(d.Subscribed, f.Name, byFilterName)
		switch {
		case found:
			f.ID, f.Created = d.Subscribed[i].ID, d.Subscribed[i].Created
			d.Subscribed[i] = f
		case len(d.Subscribed) >= MaxSubscriptions:
			return ErrTooManySubscriptions
		default:
			f.ID = l.take(1)
			d.Subscribed = slices.Insert(d.Subscribed, i, f)
		}
		if slices.ContainsFunc(l.subscribers[g.id], func(s subscriber) bool { return s.id == f.ID }) {
			return nil
		}
		next := l.sequence + 1
		l.subscribers[g.id] = append(l.subscribers[g.id], subscriber{f.ID, next})
		l.shard.Batch.Set(key(tagCursor, g.id, f.ID), cursorValue(group, next))
		return nil
	})
}

func byFilterName(f subscription.Filter, name string) int { return cmp.Compare(f.Name, name) }

// DeleteSubscription removes a subscription filter from a group. What it has not handed over it never
// will. It fails with ErrNoSubscription.
func (l *Logs) DeleteSubscription(group arn.ARN, name string) error {
	return l.change(group, func(g groupRecord, d *details) error {
		i, found := slices.BinarySearchFunc(d.Subscribed, name, byFilterName)
		if !found {
			return ErrNoSubscription
		}
		id := d.Subscribed[i].ID
		d.Subscribed = slices.Delete(d.Subscribed, i, i+1)
		l.unsubscribe(g.id, id)
		return nil
	})
}

// unsubscribe removes what there is of a subscription filter beside the group's record.
func (l *Logs) unsubscribe(group, filter uint64) {
	rest := slices.DeleteFunc(l.subscribers[group], func(s subscriber) bool { return s.id == filter })
	end := key(tagPut, group+1)
	if len(rest) == 0 {
		delete(l.subscribers, group)
	} else {
		l.subscribers[group] = rest
		end = key(tagPut, group, earliestNext(rest))
	}
	l.shard.Batch.Delete(key(tagCursor, group, filter))
	l.shard.Batch.DeleteRange(key(tagPut, group), end)
}

// Forget removes what is left of a filter that the group's record does not have, as Pending says: a version
// without such filters has written it.
func (l *Logs) Forget(s Subscriber) {
	l.shard.RunLazy(func() {
		g, err := l.find(s.ARN)
		known := func(one subscriber) bool { return one.id == s.Filter }
		if (err == nil || errors.Is(err, ErrNoGroup)) && slices.ContainsFunc(l.subscribers[s.Group], known) &&
			(g.id != s.Group || !slices.ContainsFunc(g.read().Subscribed, func(f subscription.Filter) bool { return f.ID == s.Filter })) {
			l.unsubscribe(s.Group, s.Filter)
		}
	})
}

func earliestNext(all []subscriber) uint64 {
	return slices.MinFunc(all, func(a, b subscriber) int { return cmp.Compare(a.next, b.next) }).next
}

// Subscriptions are the subscription filters of a group, by name.
func (l *Logs) Subscriptions(group arn.ARN) ([]subscription.Filter, error) {
	defer l.shard.AwaitReads()
	g, err := l.find(group)
	return g.read().Subscribed, err
}

// Pending are puts that a subscription filter is yet to hand over, the first ones.
type Pending struct {
	Filter  subscription.Filter
	Streams []subscription.Stream // by when the first event of each came
	Next    uint64                // the sequence behind them
	More    bool                  // there may be others

	puts []struct{ sequence, ingested, next uint64 } // with those behind Next that were not read
}

// Pending reads what a subscription filter is yet to hand over: the events for which match, which is made
// of the filter, is true; if single, those of a single put, so that to try in vain costs little however many wait.
// Events that were removed meanwhile are left out. It fails with ErrNoSubscription if the filter is not there any
// more. What it returns is durable.
func (l *Logs) Pending(s Subscriber, single bool, match func(f *subscription.Filter) (func(message string) bool, error)) (p *Pending, err error) {
	defer l.shard.AwaitReads()
	g, err := l.find(s.ARN)
	if err != nil {
		return nil, err
	}
	all := g.read().Subscribed
	i := slices.IndexFunc(all, func(f subscription.Filter) bool { return f.ID == s.Filter })
	v, ok, err := l.reader.Get(nil, key(tagCursor, s.Group, s.Filter))
	if err != nil {
		return nil, err
	}
	if g.id != s.Group || i < 0 || !ok || len(v) <= 8 {
		return nil, ErrNoSubscription
	}
	p = &Pending{Filter: all[i]}
	matches, err := match(&p.Filter)
	if err != nil {
		return nil, err
	}
	from, events, size := binary.BigEndian.Uint64(v), 0, 0
	err = l.each(key(tagPut, s.Group, from), key(tagPut, s.Group+1), func(k, v []byte) error {
		if events >= subscription.PageEvents || size >= subscription.PageBytes {
			p.More = true
			return store.ErrStop
		}
		one, _ := subscription.DecodePut(v)
		sequence := number(k, 1)
		next := sequence + uint64(len(one.Times))
		p.puts = append(p.puts, struct{ sequence, ingested, next uint64 }{sequence, one.Ingested, next})
		events += len(one.Times)
		if p.More = single && len(p.Streams) > 0; p.More {
			return nil
		}
		p.Next = next
		read, err := l.pendingOf(p, s.Group, sequence, &one, matches)
		size += read
		return err
	})
	return p, err
}

// pendingOf adds the matching events of a put; read is how many bytes its messages have.
func (l *Logs) pendingOf(p *Pending, group, sequence uint64, one *subscription.Put, matches func(message string) bool) (read int, err error) {
	name, ok, err := l.reader.Get(nil, key(tagName, group, one.Stream))
	if err != nil || !ok { // the stream was removed
		return 0, err
	}
	places := make([]position, len(one.Times))
	for i, at := range one.Times {
		places[i] = position{at, sequence + uint64(i)}
	}
	i := slices.IndexFunc(p.Streams, func(s subscription.Stream) bool { return s.ID == one.Stream })
	err = l.read(group, places, func(at position, e stored) error {
		read += len(e.message)
		message := string(e.message)
		if !matches(message) {
			return nil
		}
		if i < 0 {
			i = len(p.Streams)
			p.Streams = append(p.Streams, subscription.Stream{ID: one.Stream, Name: string(name)})
		}
		of := &p.Streams[i]
		of.Events = append(of.Events, subscription.Event{ID: eventID(group, at), Timestamp: int64(at.time), Message: message, Sequence: at.sequence})
		return nil
	})
	return read, err
}

// Until is the sequence behind those puts that came before a time, in epoch milliseconds; 0: there are none.
func (p *Pending) Until(ingested int64) (next uint64) {
	for _, one := range p.puts {
		if int64(one.ingested) < ingested {
			next = one.next
		}
	}
	return next
}

// Handed notes that a subscription filter has handed over what is before next, or never will. It is run in
// a transaction of another shard, or by itself: it is durable with that.
func (l *Logs) Handed(s Subscriber, p *Pending, next uint64) *kernel.Joined {
	return &kernel.Joined{Shard: l.shard, Run: func() {
		all := l.subscribers[s.Group]
		i := slices.IndexFunc(all, func(one subscriber) bool { return one.id == s.Filter })
		if i < 0 || next <= all[i].next { // it was deleted
			return
		}
		all[i].next = next
		b := &l.shard.Batch
		b.Set(key(tagCursor, s.Group, s.Filter), cursorValue(s.ARN, next))
		for _, one := range p.puts {
			if one.sequence < earliestNext(all) { // by the last one that passes it
				b.Delete(key(tagPut, s.Group, one.sequence))
			}
		}
	}}
}

// Hand is Handed by itself.
func (l *Logs) Hand(s Subscriber, p *Pending, next uint64) {
	_ = l.run(func() error {
		l.Handed(s, p, next).Run()
		return nil
	})
}
