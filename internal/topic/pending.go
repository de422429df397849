package topic

import (
	"cmp"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sorted"
)

// PendingLife is how long a subscription waits to be confirmed before it is
// removed: a day longer than its token can confirm it.
const PendingLife = 72 * time.Hour

// lapses is when a pending subscription is removed, or a removed one forgotten.
func (sub *Subscription) lapses() time.Time {
	if sub.removed {
		return sub.confirmation.Expires
	}
	return sub.confirmation.Expires.Add(PendingLife - TokenLife)
}

// compareLapses orders pending subscriptions, and removed ones that can be
// restored, the one whose time runs out next first.
func compareLapses(a, b *Subscription) int {
	return cmp.Or(a.lapses().Compare(b.lapses()), CompareSubscriptions(a.ARN, b.ARN))
}

// await and unawait keep that order; they are called
// before and after anything that it depends on changes.
func (s *State) await(sub *Subscription) {
	if (sub.Pending || sub.removed) && sub.confirmation != nil {
		s.changeLapsing(sub.topic, func(list *sorted.List[*Subscription]) { list.Add(sub) })
	}
}

func (s *State) unawait(sub *Subscription) {
	if (sub.Pending || sub.removed) && sub.confirmation != nil {
		s.changeLapsing(sub.topic, func(list *sorted.List[*Subscription]) { list.Remove(sub) })
	}
}

// changeLapsing changes the list by whose first subscription the topic has its
// place in the order.
func (s *State) changeLapsing(t *Topic, change func(list *sorted.List[*Subscription])) {
	if len(t.lapsing.Items) > 0 {
		s.lapsing.Remove(t)
	}
	if change(&t.lapsing); len(t.lapsing.Items) > 0 {
		s.lapsing.Add(t)
	}
}

// NextLapse is when the next subscription is for RemoveLapsed; ok is false if
// none ever is.
func (s *State) NextLapse() (at time.Time, ok bool) {
	if len(s.lapsing.Items) == 0 {
		return time.Time{}, false
	}
	return s.lapsing.Items[0].lapsing.Items[0].lapses(), true
}

// RemoveLapsed removes up to limit subscriptions that were not confirmed, or not
// restored, in time, and gives them back: their backlogs are to be dropped. They are
// fewer if the records of their topics are large.
func (s *State) RemoveLapsed(now time.Time, limit int, b *mutation.Batch) []*Subscription {
	var gone []*Subscription
	for len(gone) < limit && b.Size() < mutation.StepBytes {
		at, ok := s.NextLapse()
		if !ok || now.Before(at) {
			break
		}
		sub := s.lapsing.Items[0].lapsing.Items[0]
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
	s.put(b, sub.topic) // it counts its deleted subscriptions
}
