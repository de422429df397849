package topic

import (
	"cmp"
	"iter"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/sorted"
	"godwit.dev/godwit/internal/topic/filter"
)

// State has the topics and subscriptions of one shard.
type State struct {
	shard  uint16
	topics map[arn.ARN]*Topic
	order  sorted.List[*Topic]            // by account, region, name
	owned  map[place]*sorted.List[*share] // by topic
	// expiring are the topics with pending subscriptions, or deleted ones that can be restored,
	// in the order of their earliest expiry.
	expiring sorted.List[*Topic]
	tagged   map[tag]*Topic // see Token
	limits   Limits
	sealer   Sealer // of endpoints with passwords; nil: they are stored in clear
}

// place is a scope of lists: an account in a region.
type place struct{ account, region string }

// share has the subscriptions to one topic that an account owns. Lists by topic allow deleting
// a topic without visiting its subscriptions.
type share struct {
	topic         *Topic
	subscriptions sorted.List[*Subscription]
	streams       int // how many of them are delivery streams
}

func compareShares(a, b *share) int { return arn.Compare(a.topic.ARN, b.topic.ARN) }

// New makes the empty state of a shard.
func New(shard uint16, limits Limits) *State {
	return &State{
		shard:    shard,
		topics:   map[arn.ARN]*Topic{},
		order:    sorted.List[*Topic]{Compare: func(a, b *Topic) int { return arn.Compare(a.ARN, b.ARN) }},
		owned:    map[place]*sorted.List[*share]{},
		tagged:   map[tag]*Topic{},
		expiring: sorted.List[*Topic]{Compare: func(a, b *Topic) int { return compareExpiries(a.expiring.Items[0], b.expiring.Items[0]) }},
		limits:   limits,
	}
}

// CompareSubscriptions orders the ARNs of subscriptions as ListSubscriptions
// does: by the topic's account, region and name, then by id.
func CompareSubscriptions(a, b arn.ARN) int {
	topicA, idA, _ := a.SplitSubscription()
	topicB, idB, _ := b.SplitSubscription()
	return cmp.Or(arn.Compare(topicA, topicB), strings.Compare(idA, idB))
}

// Topic finds a topic.
func (s *State) Topic(name arn.ARN) (*Topic, bool) {
	t, ok := s.topics[name]
	return t, ok
}

// Subscription finds a subscription by its ARN.
func (s *State) Subscription(name arn.ARN) (*Subscription, bool) {
	topicName, id, ok := name.SplitSubscription()
	if !ok {
		return nil, false
	}
	t, ok := s.topics[topicName]
	if !ok {
		return nil, false
	}
	return t.subscription(id)
}

// Totals counts topics, their subscriptions including pending ones, and the pending ones.
func (s *State) Totals() (topics, subscriptions, pending int) {
	for _, t := range s.order.Items {
		subscriptions += t.Confirmed + t.Pending
		pending += t.Pending
	}
	return len(s.order.Items), subscriptions, pending
}

// Topics is a page of the topics of an account and region in the order of their names: up to
// limit names greater than after. more says that there are others.
func (s *State) Topics(account, region, after string, limit int) (page []*Topic, more bool) {
	start := arn.Topic(region, account, after)
	rest := s.order.From(func(t *Topic) bool { return arn.Compare(t.ARN, start) <= 0 })
	for _, t := range rest {
		if t.ARN.Account != account || t.ARN.Region != region {
			break
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, t)
	}
	return page, false
}

// Subscriptions is a page of the subscriptions that an account owns in a region, including
// pending ones, in the order of CompareSubscriptions: up to limit after after, which may be the
// zero ARN. more says that there are others.
func (s *State) Subscriptions(owner, region string, after arn.ARN, limit int) (page []*Subscription, more bool) {
	list, ok := s.owned[place{owner, region}]
	if !ok {
		return nil, false
	}
	last, id, _ := after.SplitSubscription()
	for _, own := range list.From(func(own *share) bool { return arn.Compare(own.topic.ARN, last) < 0 }) {
		from := ""
		if arn.Compare(own.topic.ARN, last) == 0 {
			from = id
		}
		next, _ := own.subscriptions.Page(func(sub *Subscription) bool { return sub.ID() <= from }, limit+1-len(page))
		if page = append(page, next...); len(page) > limit {
			return page[:limit], true
		}
	}
	return page, false
}

// SubscriptionsByTopic is a page of a topic's subscriptions, including pending ones, in the
// order of their ids: up to limit after after. It fails with NotFound.
func (s *State) SubscriptionsByTopic(name arn.ARN, after string, limit int) (page []*Subscription, more bool, err error) {
	t, err := s.topic(name)
	if err != nil {
		return nil, false, err
	}
	page, more = t.subscriptions.Page(func(sub *Subscription) bool { return sub.ID() <= after }, limit)
	return page, more, nil
}

// Match yields the confirmed subscriptions of a topic whose filter policy matches m, in the
// order of their ids, after the id after: an interrupted fan-out resumes after its last
// subscription. The state must not change during the iteration. A topic that does not exist has
// no subscriptions.
//
// The cost grows with the subscriptions that match, and hardly with the others: see filter.Index.
func (s *State) Match(name arn.ARN, after string, m *filter.Message) iter.Seq[*Subscription] {
	return func(yield func(*Subscription) bool) {
		t, ok := s.topics[name]
		if !ok {
			return
		}
		for sub := range t.index.Match(m, func(sub *Subscription) bool { return sub.ID() <= after }) {
			if !sub.Pending && s.Verdict(sub, m) == filter.Match && !yield(sub) {
				return
			}
		}
	}
}

// Verdict reports whether m passes the filter policy of a subscription, and if not, why.
func (s *State) Verdict(sub *Subscription, m *filter.Message) filter.Verdict {
	return sub.Filter.Match(m)
}

// Reached counts subscriptions with a filter policy, by its scope.
type Reached [filter.Scopes]int

// Add counts a subscription that a message reaches.
func (r *Reached) Add(sub *Subscription) {
	if sub.Filter != nil {
		r[sub.Filter.Scope()]++
	}
}

// FilteredOut counts the subscriptions of a topic that filter m out, by reason. reached counts
// those that get it. The cost does not depend on their number, except for a rare message whose
// reason depends on the policy.
func (s *State) FilteredOut(name arn.ARN, m func() *filter.Message, reached Reached) (counts [filter.Verdicts]int) {
	t, ok := s.topics[name]
	if !ok || reached == t.byScope {
		return counts
	}
	message := m()
	for scope, n := range t.byScope {
		v, certain := message.Refusal(filter.Scope(scope))
		if n -= reached[scope]; n <= 0 {
			continue
		}
		if certain {
			counts[v] += n
			continue
		}
		for _, sub := range t.subscriptions.Items {
			if sub.Pending || sub.Filter == nil || sub.Filter.Scope() != filter.Scope(scope) {
				continue
			}
			if v := s.Verdict(sub, message); v != filter.Match {
				counts[v]++
			}
		}
	}
	return counts
}

// topic finds a topic. It fails if there is none.
func (s *State) topic(name arn.ARN) (*Topic, error) {
	if t, ok := s.topics[name]; ok {
		return t, nil
	}
	return nil, ErrNoTopic
}

// subscription finds a subscription. It fails if there is none.
func (s *State) subscription(name arn.ARN) (*Subscription, error) {
	if sub, ok := s.Subscription(name); ok {
		return sub, nil
	}
	return nil, ErrNoSubscription
}

// addTopic and its three siblings keep all indexes consistent.
func (s *State) addTopic(t *Topic) {
	s.topics[t.ARN] = t
	s.tagged[tag(tagOf(t.ARN))] = t
	s.order.Add(t)
}

func (s *State) removeTopic(t *Topic) {
	for account, own := range t.shares {
		s.dropShare(place{account, t.ARN.Region}, own)
	}
	if len(t.expiring.Items) > 0 {
		s.expiring.Remove(t)
	}
	t.gone = true
	delete(s.topics, t.ARN)
	if at := tag(tagOf(t.ARN)); s.tagged[at] == t {
		delete(s.tagged, at)
	}
	s.order.Remove(t)
}

func (s *State) addSubscription(sub *Subscription) {
	sub.topic.add(sub)
	s.addExpiring(sub)
	own, ok := sub.topic.shares[sub.Owner]
	if !ok {
		own = &share{topic: sub.topic, subscriptions: sorted.List[*Subscription]{Compare: compareIDs}}
		sub.topic.shares[sub.Owner] = own
		list, ok := s.owned[sub.place()]
		if !ok {
			list = &sorted.List[*share]{Compare: compareShares}
			s.owned[sub.place()] = list
		}
		list.Add(own)
	}
	own.subscriptions.Add(sub)
	if sub.Protocol == Firehose {
		own.streams++
	}
}

func (s *State) removeSubscription(sub *Subscription) {
	sub.topic.remove(sub)
	s.removeExpiring(sub)
	own := sub.topic.shares[sub.Owner]
	if sub.Protocol == Firehose {
		own.streams--
	}
	if own.subscriptions.Remove(sub); len(own.subscriptions.Items) == 0 {
		delete(sub.topic.shares, sub.Owner)
		s.dropShare(sub.place(), own)
	}
}

func (s *State) dropShare(at place, own *share) {
	list := s.owned[at]
	if list.Remove(own); len(list.Items) == 0 {
		delete(s.owned, at)
	}
}
