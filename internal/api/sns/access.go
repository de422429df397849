package sns

import (
	"context"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns/arns"
	"godwit.dev/godwit/internal/api/sns/platforms"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/sms"
)

// required has the permissions that each operation requires. A batch requires those of its
// single action. Source: actions, resources and condition keys for SNS, in the service
// authorization reference.
var required = map[string]api.Access{
	"CreateTopic":             api.Needs(creating),
	"ListTopics":              everyTopic("ListTopics"),
	"DeleteTopic":             shared("DeleteTopic", func(in *DeleteTopicInput) string { return in.TopicArn }),
	"GetTopicAttributes":      shared("GetTopicAttributes", func(in *GetTopicAttributesInput) string { return in.TopicArn }),
	"SetTopicAttributes":      api.Needs(setting),
	"AddPermission":           shared("AddPermission", func(in *AddPermissionInput) string { return in.TopicArn }),
	"RemovePermission":        shared("RemovePermission", func(in *RemovePermissionInput) string { return in.TopicArn }),
	"PutDataProtectionPolicy": api.Needs(protecting),
	"GetDataProtectionPolicy": api.Needs(func(call *api.Call, in *GetDataProtectionPolicyInput) ([]authorize.Need, error) {
		return onTopic(call, "GetDataProtectionPolicy", "ResourceArn", in.ResourceArn, false)
	}),
	"Publish":                  api.Needs(publishing),
	"PublishBatch":             shared("Publish", func(in *PublishBatchInput) string { return in.TopicArn }),
	"ListSubscriptionsByTopic": shared("ListSubscriptionsByTopic", func(in *ListSubscriptionsByTopicInput) string { return in.TopicArn }),

	"Subscribe":                 api.Needs(subscribing),
	"ConfirmSubscription":       api.Needs(confirming),
	"Unsubscribe":               onSubscription("Unsubscribe", func(in *UnsubscribeInput) string { return in.SubscriptionArn }),
	"ListSubscriptions":         everyTopic("ListSubscriptions"),
	"GetSubscriptionAttributes": onSubscription("GetSubscriptionAttributes", func(in *GetSubscriptionAttributesInput) string { return in.SubscriptionArn }),
	"SetSubscriptionAttributes": api.Needs(settingOfSubscription),

	"TagResource":   api.Needs(tagging),
	"UntagResource": api.Needs(untagging),
	"ListTagsForResource": api.Needs(func(call *api.Call, in *ListTagsForResourceInput) ([]authorize.Need, error) {
		return onTopic(call, "ListTagsForResource", "ResourceArn", in.ResourceArn, false)
	}),
}

// access is what each operation requires. Who subscribes to another account's topic owns the
// subscription, and manages it as what is its own account's. Source: Unsubscribe and
// SetSubscriptionAttributes in the SNS API reference.
func (s *Service) access() map[string]api.Access {
	all := maps.Clone(required)
	for _, name := range []string{"Unsubscribe", "GetSubscriptionAttributes", "SetSubscriptionAttributes"} {
		of := all[name]
		all[name] = func(ctx context.Context, call *api.Call, in any) ([]authorize.Need, error) {
			needs, err := of(ctx, call, in)
			if err != nil || needs[0].Account == "" || needs[0].Account == call.Account {
				return needs, err
			}
			if sub, err := arn.Parse(needs[0].Resource); err == nil && s.subscribed(ctx, call, sub) {
				needs[0].Account = call.Account
			}
			return needs, ctx.Err() // whose it is was not read if the caller has hung up
		}
	}
	return all
}

// subscribed reports that a subscription is one of the caller's account.
func (s *Service) subscribed(ctx context.Context, call *api.Call, sub arn.ARN) bool {
	attributes, err := s.engine.SubscriptionAttributes(ctx, sub)
	return err == nil && attributes["Owner"] == call.Account
}

// shared requires an action on a topic that the topic's policy can grant to other accounts.
func shared[In any](action string, topic func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		return onTopic(call, action, "TopicArn", topic(in), true)
	})
}

// confirming requires sns:ConfirmSubscription. The token represents the topic's owner, of
// whatever account: only the caller's identity policies are evaluated.
func confirming(call *api.Call, in *ConfirmSubscriptionInput) ([]authorize.Need, error) {
	t, err := arns.Parse(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, invalid("Topic")
	}
	return []authorize.Need{{Action: "sns:ConfirmSubscription", Resource: t.String()}}, nil
}

func onTopic(call *api.Call, action, member, value string, shared bool) ([]authorize.Need, error) {
	t, err := parseAnyTopic(call, member, value)
	if err != nil {
		return nil, err
	}
	return []authorize.Need{{Action: "sns:" + action, Resource: t.String(), Account: t.Account, Shared: shared}}, nil
}

// everyTopic requires an action that is not on one topic but on those of the account.
func everyTopic(action string) api.Access {
	return func(_ context.Context, call *api.Call, _ any) ([]authorize.Need, error) {
		return api.One("sns:"+action, arn.Topic(call.Region, call.Account, "*")), nil
	}
}

// onSubscription requires an action on a subscription. If the request has none, the operation
// refuses it.
func onSubscription[In any](action string, subscription func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		return ofSubscription(call, action, subscription(in)), nil
	})
}

func ofSubscription(call *api.Call, action, value string) []authorize.Need {
	a, err := arns.Parse(call, "SubscriptionArn", value)
	if _, _, ok := a.SplitSubscription(); err != nil || !ok {
		return []authorize.Need{{Action: "sns:" + action, Resource: value}}
	}
	return api.One("sns:"+action, a)
}

func creating(call *api.Call, in *CreateTopicInput) ([]authorize.Need, error) {
	needs := api.One("sns:CreateTopic", arn.Topic(call.Region, call.Account, api.Deref(in.Name)))
	if len(in.Tags) > 0 {
		setTags(&needs[0], in.Tags)
		tag := needs[0]
		tag.Action = "sns:TagResource"
		needs = append(needs, tag)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Attributes)) {
		needs = append(needs, passing(name, in.Attributes[name])...)
	}
	return append(needs, auditing(api.Deref(in.DataProtectionPolicy))...), nil
}

func setting(call *api.Call, in *SetTopicAttributesInput) ([]authorize.Need, error) {
	needs, err := onTopic(call, "SetTopicAttributes", "TopicArn", in.TopicArn, true)
	return append(needs, passing(in.AttributeName, api.Deref(in.AttributeValue))...), err
}

// subscriptionRole is the attribute with the role that SNS assumes for deliveries to
// Firehose.
const subscriptionRole = "SubscriptionRoleArn"

// passing requires iam:PassRole for the role in an attribute: one that logs deliveries, or
// that makes them.
func passing(attribute, role string) []authorize.Need {
	if role == "" || !strings.HasSuffix(attribute, "FeedbackRoleArn") && attribute != sms.StatusRole && attribute != subscriptionRole {
		return nil
	}
	return []authorize.Need{api.Passing(role, "sns.amazonaws.com")}
}

func settingOfSubscription(call *api.Call, in *SetSubscriptionAttributesInput) ([]authorize.Need, error) {
	needs := ofSubscription(call, "SetSubscriptionAttributes", in.SubscriptionArn)
	if in.AttributeName != subscriptionRole {
		return needs, nil
	}
	return append(needs, passing(in.AttributeName, api.Deref(in.AttributeValue))...), nil
}

// protecting requires the permissions to let SNS write findings into a log group, if the
// policy audits. Source: "Data protection policy operations" in the SNS developer guide.
func protecting(call *api.Call, in *PutDataProtectionPolicyInput) ([]authorize.Need, error) {
	needs, err := onTopic(call, "PutDataProtectionPolicy", "ResourceArn", in.ResourceArn, false)
	return append(needs, auditing(api.Deref(in.DataProtectionPolicy))...), err
}

func auditing(policy string) []authorize.Need {
	if p, err := dataProtection(policy); err != nil || p == nil || !p.Audits() {
		return nil
	}
	return []authorize.Need{
		{Action: "logs:CreateLogDelivery", Resource: "*"},
		{Action: "logs:PutResourcePolicy", Resource: "*"},
	}
}

func setTags(n *authorize.Need, tags []Tag) {
	n.Tags = make(map[string]string, len(tags))
	for _, t := range tags {
		if _, twice := n.Tags[t.Key]; !twice {
			n.TagKeys = append(n.TagKeys, t.Key)
		}
		n.Tags[t.Key] = api.Deref(t.Value)
	}
}

func publishing(call *api.Call, in *PublishInput) ([]authorize.Need, error) {
	member, value, err := targetOf(in)
	if err != nil {
		return nil, err
	}
	if platforms.IsEndpoint(value) {
		endpoint, _, err := platforms.ParseTarget(call, member, value)
		return api.One("sns:Publish", endpoint), err
	}
	if in.PhoneNumber != nil {
		return api.Any("sns:Publish"), nil
	}
	return onTopic(call, "Publish", member, value, true)
}

func subscribing(call *api.Call, in *SubscribeInput) ([]authorize.Need, error) {
	needs, err := onTopic(call, "Subscribe", "TopicArn", in.TopicArn, true)
	if err != nil {
		return nil, err
	}
	needs[0].Keys = []authorize.Key{{Name: "sns:protocol", Values: []string{strings.ToLower(in.Protocol)}}}
	if in.Endpoint != nil {
		needs[0].Keys = append(needs[0].Keys, authorize.Key{Name: "sns:endpoint", Values: []string{*in.Endpoint}})
	}
	return append(needs, passing(subscriptionRole, in.Attributes[subscriptionRole])...), nil
}

func tagging(call *api.Call, in *TagResourceInput) ([]authorize.Need, error) {
	needs, err := onTopic(call, "TagResource", "ResourceArn", in.ResourceArn, false)
	if err == nil {
		setTags(&needs[0], in.Tags)
	}
	return needs, err
}

func untagging(call *api.Call, in *UntagResourceInput) ([]authorize.Need, error) {
	needs, err := onTopic(call, "UntagResource", "ResourceArn", in.ResourceArn, false)
	if err == nil {
		needs[0].TagKeys = slices.Clone(in.TagKeys)
	}
	return needs, err
}
