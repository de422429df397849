package topic

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/topic/endpoint"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/internal/topic/settings"
)

const (
	attrFilterPolicy      = "FilterPolicy"
	attrFilterPolicyScope = "FilterPolicyScope"
	attrRaw               = "RawMessageDelivery"
	attrRedrivePolicy     = "RedrivePolicy"
	attrRole              = "SubscriptionRoleArn"

	redriveTarget = "deadLetterTargetArn" // the only member of a RedrivePolicy
)

// setters convert the value of an attribute to a setting. They run in the order of the list,
// because the values that a filter or delivery policy may have depend on the settings before
// it. The empty string restores the default.
var setters = []struct {
	name string
	set  func(c *change, into *Settings, value string) error
}{
	{attrRaw, setRaw},
	{attrFilterPolicyScope, setScope},
	{attrFilterPolicy, setFilter},
	{settings.DeliveryPolicy, setDelivery},
	{attrRedrivePolicy, setRedrive},
	{attrRole, setRole},
	{settings.Replay, setReplay},
}

// change is the input of setters.
type change struct {
	*Subscription
	draft *filter.Draft // may be nil
}

// apply is sub's settings with the named attributes changed. Its errors have no prefix yet.
// draft may be the draft of their filter policy.
func (sub *Subscription) apply(attributes map[string]string, draft *filter.Draft) (Settings, error) {
	next := sub.Settings
	wanted := &change{sub, draft}
	for _, setter := range setters {
		value, named := attributes[setter.name]
		if !named {
			continue
		}
		if !utf8.ValidString(value) {
			return Settings{}, settings.ErrUTF8.With(setter.name)
		}
		if err := setter.set(wanted, &next, value); err != nil {
			return Settings{}, err
		}
	}
	if next.Filter != nil && next.Filter.Scope() != next.Scope {
		var err error
		if next.Filter, err = next.Filter.In(next.Scope); err != nil {
			return Settings{}, err
		}
	}
	return next, nil
}

// with is apply for Subscribe, which may set several attributes.
func (sub *Subscription) with(attributes map[string]string, draft *filter.Draft) (Settings, error) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if !settable(name) {
			return Settings{}, ErrUnknownAttribute.With(name)
		}
	}
	next, err := sub.apply(attributes, draft)
	if err == nil && sub.Protocol == Firehose && next.Role == nil {
		err = ErrNoRole
	}
	if err != nil {
		return Settings{}, InAttributes(err)
	}
	return next, nil
}

// SetSubscriptionAttribute changes one attribute of a subscription.
type SetSubscriptionAttribute struct {
	Subscription arn.ARN
	Name         string
	Value        string        // empty: the default
	Draft        *filter.Draft // result of Draft for the attribute; may be nil

	// Next is the sequence of the topic's next message, for FIFO topics.
	Next uint64
}

// SetSubscriptionAttribute changes an attribute. A changed policy is effective from the next
// publish and the next attempt on, a replay policy begins a replay. It fails with NotFound,
// InvalidParameter, FilterPolicyLimitExceeded or ReplayLimitExceeded.
func (s *State) SetSubscriptionAttribute(now time.Time, cmd SetSubscriptionAttribute, b *mutation.Batch) error {
	sub, err := s.subscription(cmd.Subscription)
	if err != nil {
		return err
	}
	if !settable(cmd.Name) {
		return ErrAttributeName
	}
	next, err := sub.apply(map[string]string{cmd.Name: cmd.Value}, cmd.Draft)
	if err != nil {
		return InAttribute(err)
	}
	if sub.Filter == nil && !sub.Pending {
		if err := s.limits.admitFilter(sub.topic, next.Filter != nil); err != nil {
			return err
		}
	}
	if cmd.Name == settings.Replay {
		if err := s.admitReplay(now, sub, next); err != nil {
			return InAttribute(err)
		}
	}
	sub.topic.count(sub, -1)
	changed := next.Filter != sub.Filter
	if changed {
		sub.topic.index.Remove(sub, sub.Filter)
	}
	sub.Settings = next
	if changed {
		sub.topic.index.Add(sub, sub.Filter)
	}
	sub.topic.count(sub, +1)
	if cmd.Name == settings.Replay {
		sub.beginReplay(cmd.Next)
	}
	s.putSubscription(b, sub)
	return nil
}

func settable(name string) bool {
	for _, setter := range setters {
		if setter.name == name {
			return true
		}
	}
	return false
}

func setRaw(sub *change, into *Settings, value string) error {
	switch strings.ToLower(value) {
	case "true":
		if sub.Protocol == Lambda || sub.Protocol.Mail() || sub.Protocol.Device() {
			return ErrRawProtocol.With(sub.Protocol)
		}
		into.Raw = true
	case "false":
		into.Raw = false
	default:
		return settings.ErrChoice.With(attrRaw, value, "true or false")
	}
	return nil
}

func setScope(_ *change, into *Settings, value string) (err error) {
	if value == "" {
		into.Scope = filter.MessageAttributes
		return nil
	}
	into.Scope, err = filter.ParseScope(value)
	return err
}

func setFilter(c *change, into *Settings, value string) (err error) {
	if value == "" {
		into.Filter = nil
		return nil
	}
	draft := c.draft
	if !draft.Of(value) {
		draft = filter.Prepare(value)
	}
	into.Filter, err = draft.Policy(into.Scope)
	return err
}

// Draft compiles the filter policy among a subscription's attributes, for Subscribe and
// SetSubscriptionAttribute: before a lock is taken, as that may take long. nil: there is none.
func Draft(attributes map[string]string) *filter.Draft {
	policy := attributes[attrFilterPolicy]
	if policy == "" || !utf8.ValidString(policy) {
		return nil
	}
	return filter.Prepare(policy)
}

func setDelivery(_ *change, into *Settings, value string) (err error) {
	if into.Delivery, err = retry.ParseSubscription(value, into.Raw); err != nil {
		return settings.ErrDelivery.With(err)
	}
	return nil
}

// setRedrive requires a queue in the subscriber's account and the topic's region: SNS does not
// send dead letters elsewhere.
func setRedrive(sub *change, into *Settings, value string) error {
	if value == "" {
		into.Redrive = nil
		return nil
	}
	// A map, as the names of members count in their exact case.
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &members) != nil {
		return ErrJSON.With(attrRedrivePolicy, filter.JSONFault(value))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != redriveTarget {
			return ErrRedriveMember.With(name)
		}
	}
	var target string
	if given, ok := members[redriveTarget]; ok && json.Unmarshal(given, &target) != nil {
		return ErrJSON.With(attrRedrivePolicy, filter.JSONFault(value))
	}
	queue, err := arn.Parse(target)
	if err != nil || queue.Service != "sqs" || queue.Resource == "" {
		return ErrRedriveTarget
	}
	if queue.Account != sub.Owner || queue.Region != sub.ARN.Region {
		return ErrRedriveOwner
	}
	if sub.topic.ARN.FIFO() && endpoint.IsFIFO(sub.Endpoint) && !queue.FIFO() {
		return ErrRedriveFIFO
	}
	if queue.FIFO() && !sub.topic.ARN.FIFO() {
		return ErrRedriveStandard
	}
	into.Redrive = sub.topic.deadLetters(queue)
	return nil
}

// setRole sets the role for deliveries to a delivery stream. Subscriptions of delivery streams
// must have one, others must not.
func setRole(sub *change, into *Settings, value string) error {
	role, err := settings.Role(attrRole)(value)
	switch {
	case err != nil:
		return err
	case sub.Protocol != Firehose && role != "":
		return ErrRoleProtocol
	case sub.Protocol == Firehose && role == "":
		return ErrNoRole
	case role != "":
		into.Role = sub.topic.internRole(role)
	}
	return nil
}

// internRole is a role, shared by consecutive subscriptions to a topic.
func (t *Topic) internRole(role string) *string {
	if t.role == nil || *t.role != role {
		t.role = new(strings.Clone(role))
	}
	return t.role
}

// attribute is a setting in the form of its attribute's value, "" for none.
func (s Settings) attribute(name string) string {
	switch name {
	case attrRaw:
		return strconv.FormatBool(s.Raw)
	case attrFilterPolicyScope:
		return s.Scope.String()
	case attrFilterPolicy:
		if s.Filter == nil {
			return ""
		}
		return settings.Compact(s.Filter.String())
	case settings.DeliveryPolicy:
		return s.Delivery.Document()
	case settings.Replay:
		if s.Replay == nil {
			return ""
		}
		return s.Replay.Document()
	case attrRole:
		if s.Role == nil {
			return ""
		}
		return *s.Role
	case attrRedrivePolicy:
		if s.Redrive == nil {
			return ""
		}
		return `{"` + redriveTarget + `":"` + s.Redrive.String() + `"}`
	default:
		return ""
	}
}

// Attributes are the attributes that GetSubscriptionAttributes shows, without the endpoint's
// credentials and without tokens.
func (sub *Subscription) Attributes() map[string]string {
	all := map[string]string{
		"SubscriptionArn":              sub.ARN.String(),
		"TopicArn":                     sub.topic.ARN.String(),
		"Protocol":                     sub.Protocol.String(),
		"Endpoint":                     sub.ShownEndpoint(),
		"Owner":                        sub.Owner,
		"SubscriptionPrincipal":        sub.Principal(),
		"PendingConfirmation":          strconv.FormatBool(sub.Pending),
		"ConfirmationWasAuthenticated": strconv.FormatBool(sub.Authenticated),
		attrRaw:                        sub.attribute(attrRaw),
	}
	for _, name := range []string{attrFilterPolicy, settings.DeliveryPolicy, attrRedrivePolicy, attrRole, settings.Replay} {
		if value := sub.attribute(name); value != "" {
			all[name] = value
		}
	}
	if sub.Filter != nil { // without a policy its scope is kept, but not shown
		all[attrFilterPolicyScope] = sub.attribute(attrFilterPolicyScope)
	}
	if status := sub.Progress().Status; status != "" {
		all["ReplayStatus"] = string(status)
	}
	if sub.Protocol.Configurable() {
		all["EffectiveDeliveryPolicy"] = retry.EffectiveDocument(sub.topic.Delivery, sub.Delivery, sub.Raw)
	}
	return all
}
