package topic

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/sorted"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/protect"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/internal/topic/settings"
)

// Topic is a topic with its subscriptions. Callers read it; only commands
// change it.
type Topic struct {
	ARN     arn.ARN
	Created time.Time
	Tags    map[string]string
	// Incarnation identifies a FIFO topic in its shard, also after its deletion; 0: it is a
	// standard one.
	Incarnation uint64
	// Retention is how long its archive keeps messages; 0: it has none.
	Retention time.Duration
	// Delivery is the parsed attribute DeliveryPolicy, nil if there is none.
	Delivery *retry.TopicPolicy
	// Protection is its data protection policy, nil if there is none.
	Protection *protect.Policy

	counts
	subscribers

	archivedFrom time.Time         // the archive has no earlier message
	attributes   map[string]string // what has been set, by name
	redrive      *arn.ARN          // the dead-letter queue that was set last
	role         *string           // the role that was set last, of a subscription
	principal    *string           // the latest subscriber, except for the account's root
	incomplete   bool              // while loading: subscriptions were loaded, but not the topic yet
	gone         bool              // it was deleted
}

// counts are the counts of a topic's subscriptions.
type counts struct {
	Confirmed, Pending int
	Deleted            int     // since the topic was created
	filtered           int     // confirmed ones with a filter policy
	byScope            Reached // these by the policy's scope
	replaying          int     // of all, those with a replay in progress
}

// subscribers has the indexes of a topic's subscriptions.
type subscribers struct {
	subscriptions sorted.List[*Subscription]
	shares        map[string]*share            // by owner account
	expiring      sorted.List[*Subscription]   // those that may expire, the next one first
	index         *filter.Index[*Subscription] // by their filter policies
	endpoints     map[address]*Subscription
	spellings     map[address][]*Subscription // of a number, the others that earlier versions subscribed; nil: none
	tokens        map[tokenHash]*Subscription // those that a token can confirm or restore
	removed       map[string]*Subscription    // those that can be restored, by id
}

// address identifies an endpoint, which can be subscribed to a topic once.
type address struct {
	protocol Protocol
	endpoint string
}

// addressOf is the same for all spellings of a phone number.
func addressOf(p Protocol, of string) address {
	if p == SMS {
		if number, ok := sms.Number(of); ok && number != of {
			return address{p, number}
		}
	}
	return address{p, of}
}

func (sub *Subscription) address() address { return addressOf(sub.Protocol, sub.Endpoint) }

func newTopic(name arn.ARN) *Topic {
	return &Topic{ARN: name, attributes: map[string]string{}, subscribers: subscribers{
		subscriptions: sorted.List[*Subscription]{Compare: compareIDs},
		shares:        map[string]*share{},
		expiring:      sorted.List[*Subscription]{Compare: compareExpiries},
		index:         filter.NewIndex(compareIDs),
		endpoints:     map[address]*Subscription{},
		tokens:        map[tokenHash]*Subscription{},
		removed:       map[string]*Subscription{},
	}}
}

func compareIDs(a, b *Subscription) int { return strings.Compare(a.ID(), b.ID()) }

func (t *Topic) subscription(id string) (*Subscription, bool) {
	list := t.subscriptions.From(func(sub *Subscription) bool { return sub.ID() < id })
	if len(list) == 0 || list[0].ID() != id {
		return nil, false
	}
	return list[0], true
}

func (t *Topic) add(sub *Subscription) {
	t.subscriptions.Add(sub)
	t.index.Add(sub, sub.Filter)
	t.addEndpoint(sub)
	if sub.confirmation != nil {
		t.tokens[sub.confirmation.Token] = sub
	}
	t.count(sub, +1)
	if sub.Replaying() {
		t.replaying++
	}
}

func (t *Topic) remove(sub *Subscription) {
	t.subscriptions.Remove(sub)
	t.index.Remove(sub, sub.Filter)
	t.removeEndpoint(sub)
	if sub.confirmation != nil {
		delete(t.tokens, sub.confirmation.Token)
	}
	t.count(sub, -1)
	if sub.Replaying() {
		t.replaying--
	}
}

func (t *Topic) addEndpoint(sub *Subscription) {
	at := sub.address()
	if first, ok := t.endpoints[at]; ok {
		if t.spellings == nil {
			t.spellings = map[address][]*Subscription{}
		}
		t.spellings[at] = append(t.spellings[at], first)
	}
	t.endpoints[at] = sub
}

// removeEndpoint leaves the endpoint to another spelling of it that is still subscribed.
func (t *Topic) removeEndpoint(sub *Subscription) {
	at := sub.address()
	others := t.spellings[at]
	switch last := len(others) - 1; {
	case last < 0:
		delete(t.endpoints, at)
		return
	case t.endpoints[at] == sub:
		t.endpoints[at], others = others[last], others[:last]
	default:
		others = slices.DeleteFunc(others, func(other *Subscription) bool { return other == sub })
	}
	if len(others) > 0 {
		t.spellings[at] = others
		return
	}
	delete(t.spellings, at)
}

// count adds n times a subscription to the counters.
func (t *Topic) count(sub *Subscription, n int) {
	if sub.Pending {
		t.Pending += n
		return
	}
	t.Confirmed += n
	if sub.Filter != nil {
		t.filtered += n
		t.byScope[sub.Filter.Scope()] += n
	}
}

// Attribute is the value of an attribute, or its default.
func (t *Topic) Attribute(name string) string {
	if value, ok := t.attributes[name]; ok {
		return value
	}
	switch name {
	case settings.Policy:
		return t.defaultPolicy()
	case settings.SignatureVersion:
		return "1"
	case settings.TracingConfig:
		return "PassThrough"
	case settings.ContentDedup:
		return t.ifFIFO("false")
	case settings.FIFOScope:
		return t.ifFIFO("Topic")
	case settings.MaxSize:
		return strconv.Itoa(settings.DefaultMessageSize)
	default:
		return ""
	}
}

// ifFIFO is the default of an attribute that only FIFO topics have.
func (t *Topic) ifFIFO(value string) string {
	if !t.ARN.FIFO() {
		return ""
	}
	return value
}

// ContentDedup reports that messages without a deduplication id are deduplicated by their
// bodies.
func (t *Topic) ContentDedup() bool { return t.Attribute(settings.ContentDedup) == "true" }

// Key is the key that encrypts messages, as the attribute names it; empty: none.
func (t *Topic) Key() string { return t.Attribute(settings.KMSMasterKeyID) }

// GroupDedup reports that deduplication ids are scoped to message groups.
func (t *Topic) GroupDedup() bool { return t.Attribute(settings.FIFOScope) == "MessageGroup" }

// Attributes are the attributes that GetTopicAttributes shows: those that were set, and those
// that it always shows.
func (t *Topic) Attributes() map[string]string {
	all := map[string]string{
		"TopicArn":                t.ARN.String(),
		"Owner":                   t.ARN.Account,
		settings.DisplayName:      t.Attribute(settings.DisplayName),
		settings.Policy:           t.Attribute(settings.Policy),
		"SubscriptionsConfirmed":  strconv.Itoa(t.Confirmed),
		"SubscriptionsPending":    strconv.Itoa(t.Pending),
		"SubscriptionsDeleted":    strconv.Itoa(t.Deleted),
		"EffectiveDeliveryPolicy": t.Delivery.Effective(),
	}
	if t.ARN.FIFO() {
		all[settings.ContentDedup] = t.Attribute(settings.ContentDedup) // the scope of its throughput is only shown if it was set
	}
	maps.Copy(all, t.attributes)
	return all
}

func (t *Topic) defaultPolicy() string { return DefaultPolicy(t.ARN) }

// DefaultPolicy lets the owner of a topic do everything, as AWS writes it.
func DefaultPolicy(a arn.ARN) string {
	return `{"Version":"2008-10-17","Id":"__default_policy_ID","Statement":[{"Sid":"__default_statement_ID",` +
		`"Effect":"Allow","Principal":{"AWS":"*"},"Action":["SNS:GetTopicAttributes","SNS:SetTopicAttributes",` +
		`"SNS:AddPermission","SNS:RemovePermission","SNS:DeleteTopic","SNS:Subscribe","SNS:ListSubscriptionsByTopic",` +
		`"SNS:Publish"],"Resource":"` + a.String() + `","Condition":{"StringEquals":{"AWS:SourceOwner":"` +
		a.Account + `"}}}]}`
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// checkName refuses invalid names: those of FIFO topics, and only those, end in .fifo.
func checkName(name string, attributes map[string]string) error {
	fifo := strings.EqualFold(attributes[settings.FIFO], "true")
	base, suffix := strings.CutSuffix(name, ".fifo")
	if fifo != suffix || len(name) > 256 || !topicName.MatchString(base) {
		return ErrName
	}
	return nil
}

// CreateTopic is the command to create a topic.
type CreateTopic struct {
	ARN        arn.ARN
	Attributes map[string]string
	Tags       map[string]string
	// Protection is the data protection policy; nil: none.
	Protection *protect.Policy
	// Incarnation is used if it is a new FIFO topic.
	Incarnation uint64
}

// CreateTopic makes a topic, or finds an existing one of the name that agrees with everything
// cmd names. Errors are InvalidParameter, or TagLimitExceeded.
func (s *State) CreateTopic(now time.Time, cmd CreateTopic, b *mutation.Batch) (*Topic, error) {
	if err := checkName(cmd.ARN.Resource, cmd.Attributes); err != nil {
		return nil, err
	}
	attributes := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(cmd.Attributes)) {
		if !settings.Known(name) {
			return nil, ErrUnknownAttribute.With(name)
		}
		value, err := settings.Check(cmd.ARN.FIFO(), name, cmd.Attributes[name])
		if err != nil {
			return nil, InAttributes(err)
		}
		attributes[name] = value
	}
	if len(cmd.Tags) > MaxTags {
		return nil, ErrTooManyTags
	}
	for key, value := range cmd.Tags {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, ErrTagsUTF8
		}
	}
	if t, ok := s.topics[cmd.ARN]; ok {
		if cmd.Protection != nil && cmd.Protection.Text() != t.Protection.Text() {
			return nil, ErrOtherAttributes
		}
		if err := t.sameAs(attributes, cmd.Tags); err != nil {
			return nil, err
		}
		return t, nil
	}
	t := newTopic(cmd.ARN)
	t.Created = now.UTC().Truncate(time.Millisecond)
	t.Tags = maps.Clone(cmd.Tags)
	t.Protection = cmd.Protection
	if t.ARN.FIFO() {
		t.Incarnation = cmd.Incarnation
	}
	t.retain(now, attributes[settings.Archive])
	for name, value := range attributes {
		t.set(name, value)
	}
	s.addTopic(t)
	s.put(b, t)
	return t, nil
}

// sameAs compares only what a repeated CreateTopic names.
func (t *Topic) sameAs(attributes, tags map[string]string) error {
	for name, value := range attributes {
		if t.attributes[name] != value && t.Attribute(name) != value {
			return ErrOtherAttributes
		}
	}
	for key, value := range tags {
		if existing, ok := t.Tags[key]; !ok || existing != value {
			return ErrOtherTags
		}
	}
	return nil
}

// SetTopicAttribute changes one attribute; the empty string restores its default. It fails with
// NotFound or InvalidParameter.
func (s *State) SetTopicAttribute(now time.Time, name arn.ARN, attribute, value string, b *mutation.Batch) error {
	t, err := s.topic(name)
	if err != nil {
		return err
	}
	if !settings.Known(attribute) || attribute == settings.FIFO {
		return ErrAttributeName
	}
	if value, err = settings.Check(name.FIFO(), attribute, value); err != nil {
		return InAttribute(err)
	}
	switch attribute {
	case settings.Archive:
		t.retain(now, value)
	case settings.MaxSize:
		if err := t.admitSize(value); err != nil {
			return err
		}
	}
	t.set(attribute, value)
	s.put(b, t)
	return nil
}

// SetDataProtection sets a topic's data protection policy; nil removes it. It fails with
// NotFound.
func (s *State) SetDataProtection(name arn.ARN, policy *protect.Policy, b *mutation.Batch) error {
	t, err := s.topic(name)
	if err != nil {
		return err
	}
	t.Protection = policy
	s.put(b, t)
	return nil
}

// set stores a checked value.
func (t *Topic) set(name, value string) {
	if value == "" {
		delete(t.attributes, name)
	} else {
		t.attributes[name] = value
	}
	switch name {
	case settings.DeliveryPolicy:
		t.Delivery, _ = retry.ParseTopic(value) // it came from a Document
	case settings.Archive:
		t.Retention = settings.Retention(value)
	}
}

// DeleteTopic removes a topic and all its subscriptions, at a cost that depends on the number
// of accounts that own these, but not on their number, and returns it: its backlogs are to be
// dropped. It is idempotent: without such a topic it returns nil. It fails with InvalidState
// for a topic with an archive.
func (s *State) DeleteTopic(name arn.ARN, b *mutation.Batch) (*Topic, error) {
	t, ok := s.topics[name]
	if !ok {
		return nil, nil
	}
	if t.Retention > 0 {
		return nil, ErrArchived
	}
	s.removeTopic(t)
	b.Delete(s.topicKey(name))
	if t.HasBacklogs() {
		b.DeleteRange(s.subscriptionRange(name))
	}
	return t, nil
}

// Gone reports that the topic was deleted. It is immutable then.
func (t *Topic) Gone() bool { return t.gone }

// HasBacklogs reports whether the topic has subscriptions, including deleted ones that can be
// restored.
func (t *Topic) HasBacklogs() bool { return len(t.subscriptions.Items)+len(t.removed) > 0 }

// Backlogs are the incarnations of their backlogs, in ascending order.
func (t *Topic) Backlogs() []uint64 {
	all := make([]uint64, 0, len(t.subscriptions.Items)+len(t.removed))
	for _, sub := range t.subscriptions.Items {
		all = append(all, sub.Incarnation)
	}
	for _, sub := range t.removed {
		all = append(all, sub.Incarnation)
	}
	slices.Sort(all)
	return all
}
