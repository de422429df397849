package sqs

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// TagQueue adds tags to a queue.
func (s *Service) TagQueue(ctx context.Context, call *api.Call, in *TagQueueInput) (*TagQueueOutput, error) {
	q, err := s.existing(ctx, call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, fault.Newf(fault.MissingParameter, missing, "Tags")
	}
	if err := checkTags(q.Resource, in.Tags); err != nil {
		return nil, err
	}
	return nil, s.engine.TagQueue(ctx, q, in.Tags)
}

// UntagQueue removes tags from a queue.
func (s *Service) UntagQueue(ctx context.Context, call *api.Call, in *UntagQueueInput) (*UntagQueueOutput, error) {
	q, err := s.existing(ctx, call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if len(in.TagKeys) == 0 {
		return nil, fault.Newf(fault.MissingParameter, missing, "TagKeys")
	}
	return nil, s.engine.UntagQueue(ctx, q, in.TagKeys)
}

// ListQueueTags returns the tags of a queue.
func (s *Service) ListQueueTags(ctx context.Context, call *api.Call, in *ListQueueTagsInput) (*ListQueueTagsOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	tags, err := s.engine.QueueTags(ctx, q)
	if err != nil || len(tags) == 0 {
		return nil, err // AWS omits an empty member
	}
	return &ListQueueTagsOutput{Tags: tags}, nil
}
