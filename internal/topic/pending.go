package topic

import (
	"cmp"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sorted"
)

// PendingLife is how long a subscription may be pending before it is removed: a day longer than
// its token is valid.
const PendingLife = 72 * time.Hour

// expires is when a pending subscription is removed, or a deleted one can no longer be
// restored.
func (sub *Subscription) expires() time.Time {
	if sub.removed {
		return sub.confirmation.Expires
	}
	return sub.confirmation.Expires.Add(PendingLife - TokenLife)
}

// compareExpiries orders pending subscriptions, and deleted ones that can be restored, by
// expiry.
func compareExpiries(a, b *Subscription) int {
	return cmp.Or(a.expires().Compare(b.expires()), CompareSubscriptions(a.ARN, b.ARN))
}

// addExpiring adds a subscription to that order: it must be called after a change of what the
// order depends on.
func (s *State) addExpiring(sub *Subscription) {
	if (sub.Pending || sub.removed) && sub.confirmation != nil {
		s.changeExpiring(sub.topic, func(list *sorted.List[*Subscription]) { list.Add(sub) })
	}
}

// removeExpiring must be called before such a change.
func (s *State) removeExpiring(sub *Subscription) {
	if (sub.Pending || sub.removed) && sub.confirmation != nil {
		s.changeExpiring(sub.topic, func(list *sorted.List[*Subscription]) { list.Remove(sub) })
	}
}

// changeExpiring changes the list of expiring subscriptions of a topic, whose first one
// determines the topic's place in the order.
func (s *State) changeExpiring(t *Topic, change func(list *sorted.List[*Subscription])) {
	if len(t.expiring.Items) > 0 {
		s.expiring.Remove(t)
	}
	if change(&t.expiring); len(t.expiring.Items) > 0 {
		s.expiring.Add(t)
	}
}

// NextExpiry is when RemoveExpired is next due; ok is false if it never is.
func (s *State) NextExpiry() (at time.Time, ok bool) {
	if len(s.expiring.Items) == 0 {
		return time.Time{}, false
	}
	return s.expiring.Items[0].expiring.Items[0].expires(), true
}

// RemoveExpired removes up to limit subscriptions that were not confirmed, or not restored, in
// time, and returns them: their backlogs are to be dropped. It removes fewer if the records of
// their topics are large.
func (s *State) RemoveExpired(now time.Time, limit int, b *mutation.Batch) []*Subscription {
	var gone []*Subscription
	for len(gone) < limit && b.Size() < mutation.StepBytes {
		at, ok := s.NextExpiry()
		if !ok || now.Before(at) {
			break
		}
		sub := s.expiring.Items[0].expiring.Items[0]
		if sub.removed {
			s.dropRemoved(sub)
			b.Delete(s.subscriptionKey(sub.ARN))
		} else {
			s.discard(sub, b)
		}
		gone = append(gone, sub)
	}
	return gone
}

// discard removes a subscription.
func (s *State) discard(sub *Subscription, b *mutation.Batch) {
	s.removeSubscription(sub)
	sub.topic.Deleted++
	b.Delete(s.subscriptionKey(sub.ARN))
	s.put(b, sub.topic) // it counts the topic's deleted subscriptions
}
