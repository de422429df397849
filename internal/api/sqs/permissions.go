package sqs

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard"
)

// grantable are the actions that can be granted to another account.
var grantable = []string{
	"*", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl",
	"ListDeadLetterSourceQueues", "PurgeQueue", "ReceiveMessage", "SendMessage",
}

// ownersOnly are the actions that cannot be granted to another account.
var ownersOnly = []string{
	"AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks", "ListQueueTags",
	"ListQueues", "RemovePermission", "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue",
}

// AddPermission adds a statement to the queue's policy.
func (s *Service) AddPermission(ctx context.Context, call *api.Call, in *AddPermissionInput) (*AddPermissionOutput, error) {
	q, err := s.existing(ctx, call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if !isQueueName(in.Label) {
		return nil, outOfRange(in.Label, "Label", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	}
	if len(in.Actions) == 0 {
		return nil, fault.Newf(fault.MissingParameter, missing, "Actions")
	}
	if len(in.AWSAccountIds) == 0 || !all(in.AWSAccountIds, arn.IsAccount) {
		return nil, outOfRange(in.AWSAccountIds, "PrincipalId", "Unable to verify.")
	}
	if n := len(in.Actions); n > attribute.MaxPolicyActions {
		return nil, fault.Newf(fault.OverLimit, "%d Actions were found, maximum allowed is %d.", n, attribute.MaxPolicyActions)
	}
	for _, action := range in.Actions {
		switch {
		case slices.Contains(ownersOnly, action):
			return nil, outOfRange("SQS:"+action, "ActionName", "Only the queue owner is allowed to invoke this action.")
		case !slices.Contains(grantable, action):
			return nil, outOfRange("SQS:"+action, "ActionName", "Please refer to the appropriate WSDL for a list of valid actions.")
		}
	}
	return nil, s.engine.AddPermission(ctx, q, shard.Permission{Label: in.Label, Accounts: in.AWSAccountIds, Actions: in.Actions})
}

func all[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !is(v) })
}

// RemovePermission removes a statement from the queue's policy.
func (s *Service) RemovePermission(ctx context.Context, call *api.Call, in *RemovePermissionInput) (*RemovePermissionOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.RemovePermission(ctx, q, in.Label)
}
