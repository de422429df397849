package messaging

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack/resource"
)

// queueDefaults are the properties of queues that are attributes, and what each is when a
// template says nothing of it any more; empty is that the attribute is taken away.
var queueDefaults = map[string]string{
	"ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "DelaySeconds": "0", "FifoQueue": "",
	"FifoThroughputLimit": "perQueue", "KmsDataKeyReusePeriodSeconds": "300", "KmsMasterKeyId": "", "MaximumMessageSize": "1048576",
	"MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0", "RedriveAllowPolicy": "", "RedrivePolicy": "",
	"SqsManagedSseEnabled": "true", "VisibilityTimeout": "30",
}

func createQueue(ctx context.Context, w *step.Work) (step.Made, error) {
	t, _ := resource.Find(w.Target.Type)
	name, properties := w.Target.Physical, w.Target.Properties
	if t.Named(properties) != "" {
		there, err := queueMadeBefore(ctx, w, name)
		if err != nil && !stacks.IsGone(err) {
			return step.Made{}, err
		}
		if there {
			return step.Made{}, w.Taken(name)
		}
	}
	in := &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{}, Tags: step.Tags(properties["Tags"])}
	for property := range queueDefaults {
		if value, ok := properties[property]; ok {
			in.Attributes[property] = step.Text(value)
		}
	}
	if in.Attributes["FifoQueue"] == "false" { // which SQS does not take
		delete(in.Attributes, "FifoQueue")
	}
	if len(in.Tags) == 0 {
		in.Tags = nil
	}
	out, err := step.Ask[sqs.CreateQueueOutput](ctx, w, "sqs", "CreateQueue", w.Region, in)
	if err != nil {
		return step.Made{}, err
	}
	link := out.QueueUrl
	if rest, ok := strings.CutPrefix(link, step.Secure(w.Options.URL)); ok {
		link = w.Options.URL + rest
	}
	return step.Made{Physical: link, Attributes: map[string]any{
		"Arn": arn.ARN{Service: "sqs", Region: w.Region, Account: w.Account, Resource: name}.String(), "QueueName": name, "QueueUrl": link,
	}}, nil
}

// queueMadeBefore reports that there is a queue of a name that this step has not made.
func queueMadeBefore(ctx context.Context, w *step.Work, name string) (bool, error) {
	found, err := step.Ask[sqs.GetQueueUrlOutput](ctx, w, "sqs", "GetQueueUrl", w.Region, &sqs.GetQueueUrlInput{QueueName: name})
	if err != nil {
		return false, err
	}
	if !w.Again {
		return true, nil
	}
	is, err := step.Ask[sqs.GetQueueAttributesOutput](ctx, w, "sqs", "GetQueueAttributes", w.Region, &sqs.GetQueueAttributesInput{
		QueueUrl: found.QueueUrl, AttributeNames: []string{"CreatedTimestamp"},
	})
	if err != nil {
		return false, err
	}
	at, err := strconv.ParseInt(is.Attributes["CreatedTimestamp"], 10, 64)
	return at < w.Began/time.Second.Milliseconds(), err
}

func updateQueue(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	link := w.Target.Physical
	change := map[string]string{}
	for property, otherwise := range queueDefaults {
		was, now := w.Now[property], w.Target.Properties[property]
		switch {
		case resource.Same(was, now):
		case now != nil:
			change[property] = step.Text(now)
		case property == "SqsManagedSseEnabled" && w.Target.Properties["KmsMasterKeyId"] != nil: // the key goes first
		case property == "DeduplicationScope" || property == "FifoThroughputLimit" || property == "ContentBasedDeduplication":
			if on, _ := w.Target.Properties["FifoQueue"].(bool); on {
				change[property] = otherwise
			}
		default:
			change[property] = otherwise
		}
	}
	if len(change) > 0 {
		if _, err := step.Ask[sqs.SetQueueAttributesOutput](ctx, w, "sqs", "SetQueueAttributes", w.Region, &sqs.SetQueueAttributesInput{QueueUrl: link, Attributes: change}); err != nil {
			return is, err
		}
	}
	set, gone := step.Retagged(w.Now["Tags"], w.Target.Properties["Tags"])
	if len(gone) > 0 {
		if _, err := step.Ask[sqs.UntagQueueOutput](ctx, w, "sqs", "UntagQueue", w.Region, &sqs.UntagQueueInput{QueueUrl: link, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if _, err := step.Ask[sqs.TagQueueOutput](ctx, w, "sqs", "TagQueue", w.Region, &sqs.TagQueueInput{QueueUrl: link, Tags: set}); err != nil {
			return is, err
		}
	}
	return is, nil
}

func deleteQueue(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[sqs.DeleteQueueOutput](ctx, w, "sqs", "DeleteQueue", w.Region, &sqs.DeleteQueueInput{QueueUrl: w.Target.Physical})
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

// policed are the queues that a policy is for.
func policed(properties map[string]any) []string {
	if one := step.Text(properties["Queue"]); one != "" {
		return []string{one}
	}
	return step.List(properties["Queues"])
}

func setQueuePolicy(ctx context.Context, w *step.Work, link, document string) error {
	_, err := step.Ask[sqs.SetQueueAttributesOutput](ctx, w, "sqs", "SetQueueAttributes", w.Region, &sqs.SetQueueAttributesInput{
		QueueUrl: link, Attributes: map[string]string{"Policy": document},
	})
	return err
}

// releaseQueue takes the policy of a queue away, or gives it that of another resource of the stack: one that
// has got another logical id is made before the one of before is deleted.
func releaseQueue(ctx context.Context, w *step.Work, link string) error {
	document := ""
	for _, other := range w.Options.Beside(w.Task, "AWS::SQS::QueuePolicy", "AWS::SQS::QueueInlinePolicy") {
		if slices.Contains(policed(other), link) {
			document = step.Text(other["PolicyDocument"])
		}
	}
	if err := setQueuePolicy(ctx, w, link, document); err != nil && !stacks.IsGone(err) {
		return err
	}
	return nil
}

func putQueuePolicy(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: map[string]any{"Id": w.Target.Physical}}
	now := policed(w.Target.Properties)
	for _, link := range now {
		if err := setQueuePolicy(ctx, w, link, step.Text(w.Target.Properties["PolicyDocument"])); err != nil {
			return is, err
		}
	}
	for _, was := range w.Earlier() {
		for _, link := range policed(was) {
			if !slices.Contains(now, link) {
				if err := releaseQueue(ctx, w, link); err != nil {
					return is, err
				}
			}
		}
	}
	return is, nil
}

func deleteQueuePolicy(ctx context.Context, w *step.Work) error {
	for _, link := range append(policed(w.Target.Properties), policed(w.Now)...) {
		if err := releaseQueue(ctx, w, link); err != nil {
			return err
		}
	}
	return nil
}
