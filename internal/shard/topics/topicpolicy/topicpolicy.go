// Package topicpolicy checks the policies of topics.
package topicpolicy

import (
	"slices"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/policy"
)

// Attribute is the attribute of a topic that holds its policy.
const Attribute = "Policy"

// maxBytes bounds a topic's policy. Source: the quotas of SNS.
const maxBytes = 30 << 10

// The errors of Check; topic.InAttribute and topic.InAttributes add the attribute.
var (
	ErrTooLong   = fault.NewRule(fault.InvalidParameter, "topics: the policy is too long") // the limit in bytes
	ErrDocument  = fault.NewRule(fault.InvalidParameter, "topics: the policy cannot be read")
	ErrAction    = fault.NewRule(fault.InvalidParameter, "topics: the policy has an action of no topic")
	ErrResources = fault.NewRule(fault.InvalidParameter, "topics: a statement of the policy has several resources")
)

// actions are the actions that a topic's policy can name. Source: the default policy, and the
// actions on topics that a policy's author is offered.
var actions = []string{
	"SNS:AddPermission", "SNS:DeleteTopic", "SNS:GetTopicAttributes", "SNS:ListSubscriptionsByTopic", "SNS:Publish",
	"SNS:Receive", "SNS:RemovePermission", "SNS:SetTopicAttributes", "SNS:Subscribe",
}

// elsewhere are actions on an account or a subscription. A pattern that matches one of them
// reaches beyond the topic.
var elsewhere = []string{
	"SNS:ConfirmSubscription", "SNS:CreateTopic", "SNS:GetSubscriptionAttributes", "SNS:ListSubscriptions", "SNS:ListTopics",
	"SNS:SetSubscriptionAttributes", "SNS:Unsubscribe",
}

// Check refuses a document that cannot be a topic's policy; the empty string is the default
// one. Errors: InvalidParameter, with a text that lacks the prefix.
func Check(doc string) error {
	if doc == "" {
		return nil
	}
	if len(doc) > maxBytes {
		return ErrTooLong.With(maxBytes)
	}
	p, err := policy.Parse(doc)
	if err != nil {
		return ErrDocument
	}
	for _, s := range p.Statements() {
		if s.NotAction || slices.ContainsFunc(s.Actions, func(a string) bool { return !onTopic(a) }) {
			return ErrAction
		}
		if len(s.Resources) > 1 {
			return ErrResources
		}
	}
	return nil
}

// onTopic reports whether a name or pattern of actions matches actions on topics only.
func onTopic(action string) bool {
	matches := func(known string) bool { return policy.MatchAction(action, known) }
	return slices.ContainsFunc(actions, matches) && !slices.ContainsFunc(elsewhere, matches)
}
