package sqs

import (
	"maps"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
)

// access has the permissions that each operation requires. A batch requires those of its
// single action. Source: actions, resources and condition keys for SQS, in the service
// authorization reference; what other accounts can be given, in the SQS developer guide.
var access = map[string]api.Access{
	"CreateQueue":        api.Needs(creating),
	"ListQueues":         api.Needs(listingQueues),
	"GetQueueUrl":        api.Needs(finding),
	"DeleteQueue":        owner("DeleteQueue", func(in *DeleteQueueInput) string { return in.QueueUrl }),
	"GetQueueAttributes": shared("GetQueueAttributes", func(in *GetQueueAttributesInput) string { return in.QueueUrl }),
	"SetQueueAttributes": owner("SetQueueAttributes", func(in *SetQueueAttributesInput) string { return in.QueueUrl }),
	"PurgeQueue":         shared("PurgeQueue", func(in *PurgeQueueInput) string { return in.QueueUrl }),

	"SendMessage":                  shared("SendMessage", func(in *SendMessageInput) string { return in.QueueUrl }),
	"SendMessageBatch":             shared("SendMessage", func(in *SendMessageBatchInput) string { return in.QueueUrl }),
	"ReceiveMessage":               shared("ReceiveMessage", func(in *ReceiveMessageInput) string { return in.QueueUrl }),
	"DeleteMessage":                shared("DeleteMessage", func(in *DeleteMessageInput) string { return in.QueueUrl }),
	"DeleteMessageBatch":           shared("DeleteMessage", func(in *DeleteMessageBatchInput) string { return in.QueueUrl }),
	"ChangeMessageVisibility":      shared("ChangeMessageVisibility", func(in *ChangeMessageVisibilityInput) string { return in.QueueUrl }),
	"ChangeMessageVisibilityBatch": shared("ChangeMessageVisibility", func(in *ChangeMessageVisibilityBatchInput) string { return in.QueueUrl }),

	"TagQueue":         api.Needs(tagging),
	"UntagQueue":       api.Needs(untagging),
	"ListQueueTags":    owner("ListQueueTags", func(in *ListQueueTagsInput) string { return in.QueueUrl }),
	"AddPermission":    owner("AddPermission", func(in *AddPermissionInput) string { return in.QueueUrl }),
	"RemovePermission": owner("RemovePermission", func(in *RemovePermissionInput) string { return in.QueueUrl }),

	"ListDeadLetterSourceQueues": shared("ListDeadLetterSourceQueues", func(in *ListDeadLetterSourceQueuesInput) string { return in.QueueUrl }),
	"StartMessageMoveTask":       api.Needs(moving),
	"ListMessageMoveTasks": api.Needs(func(_ *api.Call, in *ListMessageMoveTasksInput) ([]authorize.Need, error) {
		return onMoved("ListMessageMoveTasks", in.SourceArn)
	}),
	"CancelMessageMoveTask": api.Needs(canceling),
}

// shared requires an action on a queue that the queue's policy can grant to other accounts.
func shared[In any](action string, url func(*In) string) api.Access {
	return onQueue(action, true, url)
}

// owner requires an action on a queue that only identities of its own account can be granted.
func owner[In any](action string, url func(*In) string) api.Access {
	return onQueue(action, false, url)
}

func onQueue[In any](action string, shared bool, url func(*In) string) api.Access {
	action = "sqs:" + action
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		q, err := queueOf(call, url(in))
		if err != nil {
			return nil, err
		}
		return []authorize.Need{{Action: action, Resource: q.String(), Account: q.Account, Shared: shared}}, nil
	})
}

func creating(call *api.Call, in *CreateQueueInput) ([]authorize.Need, error) {
	name := ""
	if in.QueueName != nil {
		name = *in.QueueName
	}
	needs := api.One("sqs:CreateQueue", arn.Queue(call.Region, call.Account, name))
	if len(in.Tags) == 0 {
		return needs, nil
	}
	needs[0].Tags, needs[0].TagKeys = in.Tags, slices.Sorted(maps.Keys(in.Tags))
	tag := needs[0]
	tag.Action = "sqs:TagQueue"
	return append(needs, tag), nil
}

func listingQueues(call *api.Call, _ *ListQueuesInput) ([]authorize.Need, error) {
	return api.One("sqs:ListQueues", arn.Queue(call.Region, call.Account, "")), nil
}

func finding(call *api.Call, in *GetQueueUrlInput) ([]authorize.Need, error) {
	account := call.Account
	if in.QueueOwnerAWSAccountId != nil && *in.QueueOwnerAWSAccountId != "" {
		account = *in.QueueOwnerAWSAccountId
	}
	needs := api.One("sqs:GetQueueUrl", arn.Queue(call.Region, account, in.QueueName))
	needs[0].Shared, needs[0].Absent = true, fault.New(fault.QueueDoesNotExist, "")
	return needs, nil
}

func tagging(call *api.Call, in *TagQueueInput) ([]authorize.Need, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	needs := api.One("sqs:TagQueue", q)
	needs[0].Tags, needs[0].TagKeys = in.Tags, slices.Sorted(maps.Keys(in.Tags))
	return needs, nil
}

func untagging(call *api.Call, in *UntagQueueInput) ([]authorize.Need, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	needs := api.One("sqs:UntagQueue", q)
	needs[0].TagKeys = in.TagKeys
	return needs, nil
}

// onMoved requires an action on the source queue of a move task. The operation itself refuses
// an invalid ARN.
func onMoved(action, source string) ([]authorize.Need, error) {
	q, err := arn.Parse(source)
	if err != nil {
		q = arn.ARN{}
	}
	return []authorize.Need{{Action: "sqs:" + action, Resource: source, Account: q.Account}}, nil
}

// moving requires the permissions of the task: on the source queue to receive and delete
// messages, on the destination, if it is named, to send them. Source: the SQS developer guide,
// on dead-letter queue redrive permissions.
func moving(_ *api.Call, in *StartMessageMoveTaskInput) ([]authorize.Need, error) {
	var needs []authorize.Need
	for _, action := range []string{"StartMessageMoveTask", "ReceiveMessage", "DeleteMessage", "GetQueueAttributes"} {
		need, _ := onMoved(action, in.SourceArn)
		needs = append(needs, need...)
	}
	if in.DestinationArn != nil {
		need, _ := onMoved("SendMessage", *in.DestinationArn)
		need[0].Shared = true
		needs = append(needs, need...)
	}
	return needs, nil
}

func canceling(_ *api.Call, in *CancelMessageMoveTaskInput) ([]authorize.Need, error) {
	source, _, ok := openTask(in.TaskHandle)
	if !ok {
		return nil, fault.New(fault.InvalidParameter, "Value for parameter TaskHandle is invalid.")
	}
	needs := api.One("sqs:CancelMessageMoveTask", source)
	needs[0].Absent = missingResource("SourceArn")
	return needs, nil
}
