package messaging

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack/resource"
	"godwit.dev/godwit/internal/topic"
)

// topicAttributes are the properties of topics that are attributes, and what each is when a
// template says nothing of it any more.
var topicAttributes = map[string]string{
	"ArchivePolicy": "{}", "ContentBasedDeduplication": "false", "DisplayName": "", "FifoThroughputScope": "Topic",
	"KmsMasterKeyId": "", "SignatureVersion": "1", "TracingConfig": "PassThrough",
}

// feedbackPrefixes begin the attributes of delivery status logging, by protocol.
var feedbackPrefixes = map[string]string{
	"http/s": "HTTP", "http": "HTTP", "https": "HTTP", "sqs": "SQS", "lambda": "Lambda", "firehose": "Firehose", "application": "Application",
}

// topicSettings are the attributes that properties set.
func topicSettings(properties map[string]any) map[string]string {
	set := map[string]string{}
	for property := range topicAttributes {
		if value, ok := properties[property]; ok {
			set[property] = step.Text(value)
		}
	}
	logging, _ := properties["DeliveryStatusLogging"].([]any)
	for _, one := range logging {
		one, _ := one.(map[string]any)
		prefix := feedbackPrefixes[strings.ToLower(step.Text(one["Protocol"]))]
		for _, member := range []string{"SuccessFeedbackRoleArn", "FailureFeedbackRoleArn", "SuccessFeedbackSampleRate"} {
			if value, ok := one[member]; ok {
				set[prefix+member] = step.Text(value)
			}
		}
	}
	return set
}

func createTopic(ctx context.Context, w *step.Work) (step.Made, error) {
	t, _ := resource.Find(w.Target.Type)
	name, properties := w.Target.Physical, w.Target.Properties
	named := arn.ARN{Service: "sns", Region: w.Region, Account: w.Account, Resource: name}
	own := named.String()
	if t.Named(properties) != "" {
		there, err := topicMadeBefore(ctx, w, named)
		if err != nil && !stacks.IsGone(err) {
			return step.Made{}, err
		}
		if there {
			return step.Made{}, w.Taken(own)
		}
	}
	in := &sns.CreateTopicInput{Name: &name, Attributes: topicSettings(properties), Tags: topicTags(step.Tags(properties["Tags"]))}
	if on, _ := properties["FifoTopic"].(bool); on {
		in.Attributes["FifoTopic"] = "true"
	}
	if policy, ok := properties["DataProtectionPolicy"]; ok {
		document := step.Text(policy)
		in.DataProtectionPolicy = &document
	}
	if _, err := step.Ask[sns.CreateTopicOutput](ctx, w, "sns", "CreateTopic", w.Region, in); err != nil {
		return step.Made{}, err
	}
	is := step.Made{Physical: own, Attributes: map[string]any{"TopicArn": own, "TopicName": name}}
	for _, s := range subscribed(properties) {
		if err := subscribe(ctx, w, own, s); err != nil {
			return is, err
		}
	}
	return is, nil
}

// topicMadeBefore reports that there is a topic that this step has not made.
func topicMadeBefore(ctx context.Context, w *step.Work, named arn.ARN) (bool, error) {
	if !w.Again {
		_, err := step.Ask[sns.GetTopicAttributesOutput](ctx, w, "sns", "GetTopicAttributes", w.Region, &sns.GetTopicAttributesInput{TopicArn: named.String()})
		return err == nil, err
	}
	at, err := w.Options.TopicCreated(ctx, named)
	return err == nil && at.UnixMilli() < w.Began, err
}

func topicTags(of map[string]string) (tags []sns.Tag) {
	for key, value := range of {
		tags = append(tags, sns.Tag{Key: key, Value: &value})
	}
	return tags
}

// subscriber is what a topic itself has in a template.
type subscriber struct{ protocol, endpoint string }

func subscribed(properties map[string]any) (all []subscriber) {
	items, _ := properties["Subscription"].([]any)
	for _, item := range items {
		item, _ := item.(map[string]any)
		all = append(all, subscriber{step.Text(item["Protocol"]), step.Text(item["Endpoint"])})
	}
	return all
}

func subscribe(ctx context.Context, w *step.Work, topicARN string, s subscriber) error {
	_, err := step.Ask[sns.SubscribeOutput](ctx, w, "sns", "Subscribe", w.Region, &sns.SubscribeInput{TopicArn: topicARN, Protocol: s.protocol, Endpoint: &s.endpoint})
	return err
}

// unsubscribe takes away the subscriptions of a topic that it had by itself.
func unsubscribe(ctx context.Context, w *step.Work, topicARN string, gone []subscriber) error {
	for token := (*string)(nil); len(gone) > 0; {
		page, err := step.Ask[sns.ListSubscriptionsByTopicOutput](ctx, w, "sns", "ListSubscriptionsByTopic", w.Region, &sns.ListSubscriptionsByTopicInput{TopicArn: topicARN, NextToken: token})
		if err != nil {
			return err
		}
		for _, s := range page.Subscriptions {
			if !slices.Contains(gone, subscriber{s.Protocol, s.Endpoint}) || !strings.HasPrefix(s.SubscriptionArn, "arn:") {
				continue
			}
			if _, err := step.Ask[sns.UnsubscribeOutput](ctx, w, "sns", "Unsubscribe", w.Region, &sns.UnsubscribeInput{SubscriptionArn: s.SubscriptionArn}); err != nil && !stacks.IsGone(err) {
				return err
			}
		}
		if page.NextToken == "" {
			return nil
		}
		token = &page.NextToken
	}
	return nil
}

func setTopic(ctx context.Context, w *step.Work, topicARN, name, value string) error {
	in := &sns.SetTopicAttributesInput{TopicArn: topicARN, AttributeName: name, AttributeValue: &value}
	_, err := step.Ask[sns.SetTopicAttributesOutput](ctx, w, "sns", "SetTopicAttributes", w.Region, in)
	return err
}

func updateTopic(ctx context.Context, w *step.Work) (step.Made, error) {
	own := w.Target.Physical
	is := step.Made{Physical: own, Attributes: w.Target.Attributes}
	was, now := topicSettings(w.Now), topicSettings(w.Target.Properties)
	for name := range was {
		if _, ok := now[name]; !ok {
			now[name] = topicAttributes[name]
		}
	}
	for name, value := range now {
		if before, ok := was[name]; ok && before == value {
			continue
		}
		if err := setTopic(ctx, w, own, name, value); err != nil {
			return is, err
		}
	}
	if before, after := w.Now["DataProtectionPolicy"], w.Target.Properties["DataProtectionPolicy"]; !resource.Same(before, after) {
		document := step.Text(after)
		in := &sns.PutDataProtectionPolicyInput{ResourceArn: own, DataProtectionPolicy: &document}
		if _, err := step.Ask[sns.PutDataProtectionPolicyOutput](ctx, w, "sns", "PutDataProtectionPolicy", w.Region, in); err != nil {
			return is, err
		}
	}
	set, gone := step.Retagged(w.Now["Tags"], w.Target.Properties["Tags"])
	if len(gone) > 0 {
		if _, err := step.Ask[sns.UntagResourceOutput](ctx, w, "sns", "UntagResource", w.Region, &sns.UntagResourceInput{ResourceArn: own, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if _, err := step.Ask[sns.TagResourceOutput](ctx, w, "sns", "TagResource", w.Region, &sns.TagResourceInput{ResourceArn: own, Tags: topicTags(set)}); err != nil {
			return is, err
		}
	}
	had, has := subscribed(w.Now), subscribed(w.Target.Properties)
	for _, s := range has {
		if !slices.Contains(had, s) {
			if err := subscribe(ctx, w, own, s); err != nil {
				return is, err
			}
		}
	}
	return is, unsubscribe(ctx, w, own, slices.DeleteFunc(had, func(s subscriber) bool { return slices.Contains(has, s) }))
}

func deleteTopic(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[sns.DeleteTopicOutput](ctx, w, "sns", "DeleteTopic", w.Region, &sns.DeleteTopicInput{TopicArn: w.Target.Physical})
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

// ruled are the topics that a policy is for.
func ruled(properties map[string]any) []string {
	if one := step.Text(properties["TopicArn"]); one != "" {
		return []string{one}
	}
	return step.List(properties["Topics"])
}

func putTopicPolicy(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: map[string]any{"Id": w.Target.Physical}}
	now := ruled(w.Target.Properties)
	for _, own := range now {
		if err := setTopic(ctx, w, own, "Policy", step.Text(w.Target.Properties["PolicyDocument"])); err != nil {
			return is, err
		}
	}
	for _, was := range w.Earlier() {
		for _, own := range ruled(was) {
			if !slices.Contains(now, own) {
				if err := resetTopicPolicy(ctx, w, own); err != nil {
					return is, err
				}
			}
		}
	}
	return is, nil
}

// resetTopicPolicy gives a topic the policy that it has when it is made, or that of another resource of
// the stack, as releaseQueue does.
func resetTopicPolicy(ctx context.Context, w *step.Work, own string) error {
	a, err := arn.Parse(own)
	if err != nil {
		return nil //nolint:nilerr // there is no such topic
	}
	document := topic.DefaultPolicy(a)
	for _, other := range w.Options.Beside(w.Task, "AWS::SNS::TopicPolicy", "AWS::SNS::TopicInlinePolicy") {
		if slices.Contains(ruled(other), own) {
			document = step.Text(other["PolicyDocument"])
		}
	}
	if err := setTopic(ctx, w, own, "Policy", document); err != nil && !stacks.IsGone(err) {
		return err
	}
	return nil
}

func deleteTopicPolicy(ctx context.Context, w *step.Work) error {
	for _, own := range append(ruled(w.Target.Properties), ruled(w.Now)...) {
		if err := resetTopicPolicy(ctx, w, own); err != nil {
			return err
		}
	}
	return nil
}

// subscriptionAttributes are the properties of subscriptions that are attributes, in the
// order in which they are set, and what each is when a template says nothing of it any more.
var subscriptionAttributes = []struct{ name, otherwise string }{
	{"FilterPolicyScope", "MessageAttributes"},
	{"FilterPolicy", "{}"},
	{"DeliveryPolicy", ""},
	{"RawMessageDelivery", "false"},
	{"RedrivePolicy", ""},
	{"ReplayPolicy", ""},
	{"SubscriptionRoleArn", ""},
}

// topicRegion is where a subscription's topic is.
func topicRegion(w *step.Work) string {
	if a, err := arn.Parse(step.Text(w.Target.Properties["TopicArn"])); err == nil && a.Region != "" {
		return a.Region
	}
	return w.Region
}

func createSubscription(ctx context.Context, w *step.Work) (step.Made, error) {
	properties := w.Target.Properties
	in := &sns.SubscribeInput{
		TopicArn: step.Text(properties["TopicArn"]), Protocol: step.Text(properties["Protocol"]), ReturnSubscriptionArn: true, Attributes: map[string]string{},
	}
	if endpoint, ok := properties["Endpoint"]; ok {
		to := step.Text(endpoint)
		in.Endpoint = &to
	}
	for _, a := range subscriptionAttributes {
		if value, ok := properties[a.name]; ok {
			in.Attributes[a.name] = step.Text(value)
		}
	}
	out, err := step.Ask[sns.SubscribeOutput](ctx, w, "sns", "Subscribe", topicRegion(w), in)
	if err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: out.SubscriptionArn, Attributes: map[string]any{"Arn": out.SubscriptionArn}}, nil
}

func updateSubscription(ctx context.Context, w *step.Work) (step.Made, error) {
	own := w.Target.Physical
	is := step.Made{Physical: own, Attributes: w.Target.Attributes}
	for _, a := range subscriptionAttributes {
		was, now := w.Now[a.name], w.Target.Properties[a.name]
		if resource.Same(was, now) {
			continue
		}
		value := a.otherwise
		if now != nil {
			value = step.Text(now)
		}
		in := &sns.SetSubscriptionAttributesInput{SubscriptionArn: own, AttributeName: a.name, AttributeValue: &value}
		if _, err := step.Ask[sns.SetSubscriptionAttributesOutput](ctx, w, "sns", "SetSubscriptionAttributes", topicRegion(w), in); err != nil {
			if stacks.IsGone(err) {
				return is, w.Missing()
			}
			return is, err
		}
	}
	return is, nil
}

func deleteSubscription(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[sns.UnsubscribeOutput](ctx, w, "sns", "Unsubscribe", topicRegion(w), &sns.UnsubscribeInput{SubscriptionArn: w.Target.Physical})
	if stacks.IsGone(err) {
		return nil
	}
	return err
}
