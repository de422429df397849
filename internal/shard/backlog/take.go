package backlog

import (
	"bytes"
	"cmp"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/topic"
)

// Take leases up to limit due messages of a subscription's backlog, durably. more says that
// others are due. A deleted subscription has none. An unreadable message is left out, stays
// leased until the next start, and is reported by the error.
func (b *Backlogs) Take(sub arn.ARN, limit int) (taken []*Delivery, more bool, err error) {
	sh := b.ShardOf(topicOf(sub))
	var qs *queues.Queue
	var durable func(before bool)
	sh.RunLazy(func() {
		var s *topic.Subscription
		if s, qs = sh.takeable(sub); qs != nil {
			var leases []Lease
			leases, more, durable = sh.LeaseDue(qs, limit)
			taken = deliveriesOf(s, leases)
		}
	})
	if qs == nil {
		return nil, false, nil
	}
	// Before an immediate retry, the outcome of the attempt before it must be durable: else
	// that attempt might be repeated after a crash, and the endpoint get more requests than
	// the policy allows. Before any other retry it has been durable for long.
	durable(slices.ContainsFunc(taken, (*Delivery).immediate))
	keys := layout.NewKeys(sh.ID, qs.Incarnation)
	undecryptable, unreadable, err := b.readMessages(&keys, taken)
	if err == nil {
		for _, d := range undecryptable {
			b.Drop(d, Attempt{}, keyGone)
			d.Message = nil
		}
		taken = slices.DeleteFunc(taken, func(d *Delivery) bool { return d.Message == nil })
		err = b.readHistories(&keys, taken)
	}
	if err != nil {
		b.Fatal(err)
		return nil, false, err
	}
	return taken, more, unreadable
}

// takeable finds a subscription and its backlog, unless there is none or it is paused.
func (sh *Shard) takeable(sub arn.ARN) (*topic.Subscription, *queues.Queue) {
	s, ok := sh.deliverable(sub)
	if !ok {
		return nil, nil
	}
	qs := sh.BacklogOf(s)
	if qs != nil && qs.Consumption.Paused {
		qs.Consumption.Notified, qs = false, nil
	}
	return s, qs
}

// deliveriesOf makes the deliveries of the leased messages of a subscription, still without the
// messages.
func deliveriesOf(s *topic.Subscription, leases []Lease) []*Delivery {
	one := Delivery{Subscription: *s, Feedback: s.Topic().Feedback(s.Protocol)}
	one.RetryPolicy, one.ContentType = s.RetryPolicy(), s.ContentType()
	one.Throttle, _ = s.Throttle()
	if s.Protocol.Mail() || s.Protocol == topic.SMS {
		one.DisplayName = s.Topic().Attribute("DisplayName")
	}
	if policy := s.Topic().Protection; policy.Outbound() {
		one.Guard = policy
	}
	all, taken := make([]Delivery, len(leases)), make([]*Delivery, len(leases))
	for i, l := range leases {
		all[i], taken[i] = one, &all[i]
		all[i].Attempt, all[i].Lease = int(l.Queued.Receives), l
	}
	return taken
}

// readMessages reads the messages of deliveries; undecryptable are those whose key was deleted.
// A delivery whose subscription was deleted meanwhile, or whose message cannot be read, has none
// afterwards; unreadable says why the first could not be read. err is the store's.
func (b *Backlogs) readMessages(keys *layout.Keys, taken []*Delivery) (undecryptable []*Delivery, unreadable, err error) {
	places := make([][]byte, len(taken))
	for i, d := range taken {
		places[i] = bytes.Clone(keys.Record(d.Queued.Lane, d.Queued.Sequence))
	}
	records, err := b.ReadRecords(places)
	if err != nil {
		return nil, nil, err
	}
	for i, d := range taken {
		if records[i] == nil {
			unreadable = cmp.Or(unreadable, b.Lost(places[i])) // nil: the subscription was deleted meanwhile
			continue
		}
		m, failed := message.DecodeRecord(records[i])
		if failed == nil {
			failed = b.OpenWaiting(m)
		}
		switch {
		case failed == nil:
			if d.Message = m; d.Direct() && m.Notice != nil {
				d.Subscription.Endpoint = m.Notice.Token
			}
		case fault.Is(failed):
			d.Message, undecryptable = m, append(undecryptable, d)
		default:
			unreadable = cmp.Or(unreadable, failed)
		}
	}
	return undecryptable, unreadable, nil
}

// readHistories reads the earlier attempts at deliveries.
func (b *Backlogs) readHistories(keys *layout.Keys, taken []*Delivery) error {
	for _, d := range taken {
		if d.Queued.Receives <= 1 {
			continue
		}
		value, _, err := b.Store.Get(nil, keys.History(d.Queued.Sequence))
		if err != nil {
			return err
		}
		d.History, _ = DecodeHistory(value)
		d.Kept = d.History.Kept
		if d.Cause = d.History.cause; !d.Cause.IsZero() {
			d.Attempt = d.Cause.Attempt // later leases were hand-overs, not attempts
		}
	}
	return nil
}

// keyGone is why a delivery is dropped whose message cannot be decrypted.
const keyGone = "the key that the message was encrypted under has been deleted"

// immediate reports that the retry policy has no delay before this attempt.
func (d *Delivery) immediate() bool {
	if d.Attempt < 2 {
		return false
	}
	delay, ok := d.RetryPolicy.Delay(d.Attempt - 2)
	return ok && delay == 0
}

// LeaseDue leases up to limit due messages of a backlog to its consumer. more says that others
// are due. durable, which is called without the lock, waits until the leases are durable, and
// with before until the outcomes of the earlier attempts are.
func (sh *Shard) LeaseDue(qs *queues.Queue, limit int) (leases []Lease, more bool, durable func(before bool)) {
	qs.Consumption.Notified = false
	former := sh.Stream.Last()
	found := sh.Receive(qs, limit, 0, "")
	leases = make([]Lease, len(found.Leases))
	retries := false
	for i, l := range found.Leases {
		leases[i] = Lease{Shard: sh, Queue: qs, Queued: l, generation: sh.Generation.Load()}
		retries = retries || l.Receives > 1
	}
	more = found.Err == nil && sh.Available(qs, sh.Now())
	qs.Consumption.Notified = more // it knows from more
	if retries {
		sh.FlushAppended() // for the histories
	}
	return leases, more, func(before bool) {
		found.Commit.Wait()
		if before {
			former.Wait()
		}
	}
}
