package topic

import (
	"iter"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// If a web hook was deleted by a request without a signature, it is notified, and can be
// restored: until its token expires, its subscription is not found, gets no messages and counts
// as deleted, but is kept, with a backlog for the notification.

// Unsubscribe is the command to remove a subscription.
type Unsubscribe struct {
	Subscription arn.ARN
	// Authenticated says that the request is signed.
	Authenticated bool

	// If the endpoint is notified:
	Token       string // a secret that only its endpoint gets
	Incarnation uint64 // of the backlog for the notification
}

// Unsubscribed is the result of Unsubscribe.
type Unsubscribed struct {
	// Subscription is nil if there was none.
	Subscription *Subscription
	Dropped      uint64 // the incarnation of the backlog to be dropped
	// Confirm says that an UnsubscribeConfirmation with the command's token is to be sent.
	Confirm bool
}

// Unsubscribe removes a subscription, or what is kept of one to restore it. It is idempotent. It fails with AccessDenied if the
// request has no signature and the subscription requires one, or needed no token: then its
// endpoint, such as a queue, has no link to follow, and whoever does only knows an ARN.
func (s *State) Unsubscribe(now time.Time, cmd Unsubscribe, b *mutation.Batch) (Unsubscribed, error) {
	sub, ok := s.Subscription(cmd.Subscription)
	if !ok {
		return s.forget(cmd, b), nil
	}
	if !cmd.Authenticated && (sub.AuthenticateOnUnsubscribe || !sub.byToken()) {
		return Unsubscribed{}, ErrUnsubscribeUnsigned
	}
	out := Unsubscribed{
		Subscription: sub, Dropped: sub.Incarnation,
		Confirm: !cmd.Authenticated && !sub.Pending && (sub.Protocol == HTTP || sub.Protocol == HTTPS),
	}
	if !out.Confirm {
		s.discard(sub, b)
		return out, nil
	}
	s.removeSubscription(sub)
	sub.topic.Deleted++
	s.put(b, sub.topic) // it counts the topic's deleted subscriptions
	sub.Incarnation, sub.removed = cmd.Incarnation, true
	sub.confirmation = newConfirmation(now, cmd.Token)
	s.addRemoved(sub)
	s.putSubscription(b, sub)
	return out, nil
}

// Paused reports that what waits for the endpoint is held. A deleted subscription is never paused:
// nobody can resume it, and its endpoint must still get the confirmation of the deletion.
func (sub *Subscription) Paused() bool { return sub.PausedAt != 0 && !sub.removed }

// forget removes what is left of a deleted web hook if the request is signed: it cannot restore
// itself any more.
func (s *State) forget(cmd Unsubscribe, b *mutation.Batch) Unsubscribed {
	sub, ok := s.Deliverable(cmd.Subscription)
	if !ok || !cmd.Authenticated {
		return Unsubscribed{}
	}
	s.dropRemoved(sub)
	b.Delete(s.subscriptionKey(sub.ARN))
	return Unsubscribed{Subscription: sub, Dropped: sub.Incarnation}
}

// byToken reports that a token confirms the subscription, or has: whoever got it speaks for the
// endpoint.
func (sub *Subscription) byToken() bool {
	return sub.Protocol.Configurable() || sub.Protocol.Mail() || sub.Pending || !sub.Authenticated
}

// restore undoes the deletion of a subscription, with an empty backlog of another incarnation:
// it does not get what was published meanwhile. It fails if its endpoint has another
// subscription by now.
func (s *State) restore(sub *Subscription, cmd Confirm, b *mutation.Batch) (Confirmed, error) {
	if _, taken := sub.topic.endpoints[sub.address()]; taken {
		return Confirmed{}, ErrToken
	}
	out := Confirmed{Subscription: sub, Restored: true, Dropped: sub.Incarnation}
	s.dropRemoved(sub)
	sub.Incarnation, sub.removed = cmd.Incarnation, false
	sub.confirmed(cmd)
	sub.topic.Deleted--
	s.addSubscription(sub)
	s.put(b, sub.topic)
	s.putSubscription(b, sub)
	return out, nil
}

// Deliverable finds a subscription with a backlog, even a deleted one.
func (s *State) Deliverable(name arn.ARN) (*Subscription, bool) {
	if sub, ok := s.Subscription(name); ok {
		return sub, true
	}
	topicName, id, ok := name.SplitSubscription()
	if !ok {
		return nil, false
	}
	t, ok := s.topics[topicName]
	if !ok {
		return nil, false
	}
	sub, ok := t.removed[id]
	return sub, ok
}

// AllDeliverable yields every subscription of the shard that may have a
// backlog, in no order.
func (s *State) AllDeliverable() iter.Seq[*Subscription] {
	return func(yield func(*Subscription) bool) {
		for _, t := range s.order.Items {
			for _, sub := range t.subscriptions.Items {
				if !yield(sub) {
					return
				}
			}
			for _, sub := range t.removed {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

// addRemoved and dropRemoved keep the indexes of deleted subscriptions consistent.
func (s *State) addRemoved(sub *Subscription) {
	s.addExpiring(sub)
	sub.topic.removed[sub.ID()] = sub
	sub.topic.tokens[sub.confirmation.Token] = sub
}

func (s *State) dropRemoved(sub *Subscription) {
	s.removeExpiring(sub)
	delete(sub.topic.removed, sub.ID())
	delete(sub.topic.tokens, sub.confirmation.Token)
}
