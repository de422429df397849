package topic

import (
	"iter"
	"slices"

	"godwit.dev/godwit/internal/arn"
)

// Limits are quotas of a topic; 0 is none. They apply to confirmed subscriptions: a pending
// subscription counts when it is confirmed, and that may be refused.
type Limits struct {
	Subscriptions  int
	FilterPolicies int
	Replays        int // in progress at once
}

// admit checks that a topic may have one more confirmed subscription, with or without a filter
// policy. It fails with SubscriptionLimitExceeded or FilterPolicyLimitExceeded.
func (l Limits) admit(t *Topic, filtered bool) error {
	if l.Subscriptions > 0 && t.Confirmed >= l.Subscriptions {
		return ErrTooManySubscriptions
	}
	return l.admitFilter(t, filtered)
}

func (l Limits) admitFilter(t *Topic, filtered bool) error {
	if filtered && l.FilterPolicies > 0 && t.filtered >= l.FilterPolicies {
		return ErrTooManyFilterPolicies
	}
	return nil
}

// All are all topics, in the order of their names.
func (s *State) All() iter.Seq[*Topic] { return slices.Values(s.order.Items) }

// CountTopics counts the topics of an account and region.
func (s *State) CountTopics(account, region string) int {
	first := Topic{}
	first.ARN.Account, first.ARN.Region = account, region
	from := s.order.From(func(t *Topic) bool { return arn.Compare(t.ARN, first.ARN) < 0 })
	next := first.ARN
	next.Region += "\x00"
	behind := s.order.From(func(t *Topic) bool { return arn.Compare(t.ARN, next) < 0 })
	return len(from) - len(behind)
}
