package topics

import (
	"context"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
	"godwit.dev/godwit/internal/shard/topics/topicpolicy"
	"godwit.dev/godwit/internal/topic"
)

// AddTopicPermission adds a statement to a topic's policy. Errors: NotFound; InvalidParameter
// if the label is taken, an action does not apply to topics, or the policy would grow too
// large.
func (e *Topics) AddTopicPermission(ctx context.Context, t arn.ARN, p queuepolicy.Permission) error {
	return e.editTopicPolicy(ctx, t, func(doc string) (string, error) {
		edited, err := policy.Add(doc, "", p.Grant("SNS:", t))
		if errors.Is(err, policy.ErrTaken) {
			return "", ErrLabelTaken
		}
		return edited, err
	})
}

// RemoveTopicPermission removes the statement with a label from a topic's policy; an unknown
// label is no error. Errors: NotFound; InvalidParameter for the last statement, which a policy
// must keep.
func (e *Topics) RemoveTopicPermission(ctx context.Context, t arn.ARN, label string) error {
	return e.editTopicPolicy(ctx, t, func(doc string) (string, error) {
		edited, err := policy.Remove(doc, label)
		switch {
		case errors.Is(err, policy.ErrNoStatement):
			return doc, nil
		case err == nil && edited == "":
			return "", ErrLastStatement.With(label)
		}
		return edited, err
	})
}

// TopicAdmits reports whether a topic's policy lets another account do what a need names, such as
// publish. address is the caller's, as host:port. The result is false if there is no such topic.
func (e *Topics) TopicAdmits(ctx context.Context, t arn.ARN, account, address string, need *authorize.Need) bool {
	var result policy.Result
	err := e.ReadCatalog(ctx, t, func(sh *Shard) error {
		found, ok := sh.Topics.Topic(t)
		if !ok {
			return nil
		}
		who := authorize.RootOf(account)
		result = policy.Decide(&policy.Request{
			Caller: who, Action: need.Action, Resource: t.String(), Owner: t.Account,
			Context: &authorize.Context{Caller: who, Account: t.Account, Region: t.Region, Now: sh.Now(), Address: address, Need: need},
		}, &policy.Policies{Resource: sh.topicPolicy(found)})
		return nil
	})
	return err == nil && result.Allowed()
}

// TopicPolicy is the policy of a topic; nil if there is no such topic.
func (e *Topics) TopicPolicy(ctx context.Context, t arn.ARN) (p *policy.Policy) {
	_ = e.ReadCatalog(ctx, t, func(sh *Shard) error {
		if found, ok := sh.Topics.Topic(t); ok {
			p = sh.topicPolicy(found)
		}
		return nil
	})
	return p
}

// topicPolicy is the policy of a topic, compiled at its first use: most are never used.
func (sh *Shard) topicPolicy(t *topic.Topic) *policy.Policy {
	doc := t.Attribute(topicpolicy.Attribute)
	if c, ok := sh.topicPolicies[t.ARN]; ok && c.doc == doc {
		return c.policy
	}
	p, err := policy.Parse(doc)
	if err != nil { // an older version accepted it
		p = queuepolicy.DenyAll
	}
	if sh.topicPolicies == nil {
		sh.topicPolicies = map[arn.ARN]compiledPolicy{}
	}
	sh.topicPolicies[t.ARN] = compiledPolicy{doc: doc, policy: p}
	return p
}

// compiledPolicy is a compiled policy with its document.
type compiledPolicy struct {
	doc    string
	policy *policy.Policy
}

// editTopicPolicy replaces the policy of a topic by the result of edit, if that differs.
func (e *Topics) editTopicPolicy(ctx context.Context, t arn.ARN, edit func(doc string) (string, error)) error {
	return e.WithCatalog(ctx, t, func(sh *Shard) error {
		found, ok := sh.Topics.Topic(t)
		if !ok {
			return topic.ErrNoTopic
		}
		before := found.Attribute(topicpolicy.Attribute)
		after, err := edit(before)
		if err == nil {
			if after == before {
				return nil
			}
			err = topicpolicy.Check(after)
		}
		if err != nil {
			return topic.InAttribute(err)
		}
		return sh.Topics.SetTopicAttribute(clock.Time(sh.Now()), t, topicpolicy.Attribute, after, &sh.Batch)
	})
}
