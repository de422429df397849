package drifting

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard/stacks"
)

func (r *reading) queueAttributes(ctx context.Context, link, name string) (map[string]string, error) {
	out, err := ask[sqs.GetQueueAttributesOutput](ctx, r, "sqs", "GetQueueAttributes", r.Region, &sqs.GetQueueAttributesInput{
		QueueUrl: link, AttributeNames: []string{name},
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

func queue(ctx context.Context, r *reading) error {
	has, err := r.queueAttributes(ctx, r.Physical, "All")
	if err != nil {
		return err
	}
	r.set([]string{
		"ContentBasedDeduplication", "DeduplicationScope", "DelaySeconds", "FifoThroughputLimit", "KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId",
		"MaximumMessageSize", "MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds", "SqsManagedSseEnabled", "VisibilityTimeout",
	}, has)
	r.document("RedrivePolicy", has["RedrivePolicy"])
	r.document("RedriveAllowPolicy", has["RedriveAllowPolicy"])
	if r.Properties["Tags"] == nil {
		return nil
	}
	tags, err := ask[sqs.ListQueueTagsOutput](ctx, r, "sqs", "ListQueueTags", r.Region, &sqs.ListQueueTagsInput{QueueUrl: r.Physical})
	if err == nil {
		r.tagged(tags.Tags)
	}
	return err
}

// policies sets a policy document of several resources: that of the first which has another
// one than the template. What is gone has none; if all are, so is the policy.
func (r *reading) policies(of []string, read func(of string) (string, error)) error {
	gone := 0
	differs := false
	for _, one := range of {
		document, err := read(one)
		if stacks.IsGone(err) {
			gone++
			continue
		}
		if err != nil {
			return err
		}
		if document == "" {
			gone++
			continue
		}
		if !differs {
			r.document("PolicyDocument", document)
			differs = len(r.Compared(r.actual).Differences) > 0
		}
	}
	if gone == len(of) {
		return errGone
	}
	if gone > 0 && !differs {
		delete(r.actual, "PolicyDocument")
	}
	return nil
}

func queuePolicy(ctx context.Context, r *reading) error {
	of := r.list("Queues")
	if one := r.text("Queue"); one != "" {
		of = []string{one}
	}
	return r.policies(of, func(link string) (string, error) {
		has, err := r.queueAttributes(ctx, link, "Policy")
		return has["Policy"], err
	})
}

func (r *reading) topicAttributes(ctx context.Context, own string) (map[string]string, error) {
	out, err := ask[sns.GetTopicAttributesOutput](ctx, r, "sns", "GetTopicAttributes", r.Region, &sns.GetTopicAttributesInput{TopicArn: own})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

func topic(ctx context.Context, r *reading) error {
	has, err := r.topicAttributes(ctx, r.Physical)
	if err != nil {
		return err
	}
	r.set([]string{"ContentBasedDeduplication", "DisplayName", "FifoThroughputScope", "KmsMasterKeyId", "SignatureVersion", "TracingConfig"}, has)
	r.document("ArchivePolicy", has["ArchivePolicy"])
	if r.Properties["Subscription"] != nil {
		if err := r.subscriptions(ctx); err != nil {
			return err
		}
	}
	if r.Properties["DataProtectionPolicy"] != nil {
		out, err := ask[sns.GetDataProtectionPolicyOutput](ctx, r, "sns", "GetDataProtectionPolicy", r.Region, &sns.GetDataProtectionPolicyInput{ResourceArn: r.Physical})
		if err != nil {
			return err
		}
		r.document("DataProtectionPolicy", out.DataProtectionPolicy)
	}
	if r.Properties["Tags"] == nil {
		return nil
	}
	out, err := ask[sns.ListTagsForResourceOutput](ctx, r, "sns", "ListTagsForResource", r.Region, &sns.ListTagsForResourceInput{ResourceArn: r.Physical})
	if err != nil {
		return err
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[t.Key] = *t.Value
	}
	r.tagged(tags)
	return nil
}

// subscriptions leaves of those that a topic has in its template the ones that are there. What
// others have subscribed is none of the stack's.
func (r *reading) subscriptions(ctx context.Context) error {
	there := map[[2]string]bool{}
	for token := (*string)(nil); ; {
		page, err := ask[sns.ListSubscriptionsByTopicOutput](ctx, r, "sns", "ListSubscriptionsByTopic", r.Region, &sns.ListSubscriptionsByTopicInput{TopicArn: r.Physical, NextToken: token})
		if err != nil {
			return err
		}
		for _, s := range page.Subscriptions {
			there[[2]string{s.Protocol, s.Endpoint}] = true
		}
		if page.NextToken == "" {
			break
		}
		token = &page.NextToken
	}
	items, _ := r.Properties["Subscription"].([]any)
	r.actual["Subscription"] = slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		object, _ := item.(map[string]any)
		protocol, _ := object["Protocol"].(string)
		endpoint, _ := object["Endpoint"].(string)
		return !there[[2]string{protocol, endpoint}]
	})
	return nil
}

func topicPolicy(ctx context.Context, r *reading) error {
	of := r.list("Topics")
	if one := r.text("TopicArn"); one != "" {
		of = []string{one}
	}
	return r.policies(of, func(own string) (string, error) {
		has, err := r.topicAttributes(ctx, own)
		return has["Policy"], err
	})
}

func subscription(ctx context.Context, r *reading) error {
	if !strings.HasPrefix(r.Physical, "arn:") { // it waits to be confirmed
		return nil
	}
	region := r.Region
	if a, err := arn.Parse(r.Physical); err == nil && a.Region != "" {
		region = a.Region
	}
	out, err := ask[sns.GetSubscriptionAttributesOutput](ctx, r, "sns", "GetSubscriptionAttributes", region, &sns.GetSubscriptionAttributesInput{SubscriptionArn: r.Physical})
	if err != nil {
		return err
	}
	has := out.Attributes
	r.set([]string{"FilterPolicyScope", "RawMessageDelivery", "SubscriptionRoleArn"}, has)
	for _, name := range []string{"FilterPolicy", "DeliveryPolicy", "RedrivePolicy", "ReplayPolicy"} {
		r.document(name, has[name])
	}
	if is, ok := pruned(r.actual["DeliveryPolicy"]).(map[string]any); ok { // SNS answers parts that were not given too
		if want, _ := r.Properties["DeliveryPolicy"].(map[string]any); want["guaranteed"] == nil && is["guaranteed"] == false {
			delete(is, "guaranteed")
		}
		r.actual["DeliveryPolicy"] = is
	}
	return nil
}
