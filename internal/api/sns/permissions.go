package sns

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
)

// addPermission answers AddPermission.
func (s *Service) addPermission(ctx context.Context, call *api.Call, in *AddPermissionInput) (*AddPermissionOutput, error) {
	t, err := parseTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	switch {
	case len(in.AWSAccountId) == 0:
		return nil, invalid("AWSAccountId")
	case len(in.ActionName) == 0:
		return nil, invalid("ActionName")
	case slices.ContainsFunc(in.AWSAccountId, func(id string) bool { return !arn.IsAccount(id) }):
		return nil, errNobody
	}
	p := shard.Permission{Label: in.Label, Accounts: in.AWSAccountId, Actions: in.ActionName}
	return &AddPermissionOutput{}, s.engine.AddTopicPermission(ctx, t, p)
}

// removePermission answers RemovePermission, which succeeds for an unknown label.
func (s *Service) removePermission(ctx context.Context, call *api.Call, in *RemovePermissionInput) (*RemovePermissionOutput, error) {
	t, err := parseTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	return &RemovePermissionOutput{}, s.engine.RemoveTopicPermission(ctx, t, in.Label)
}
