package sqs

import (
	"context"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
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

func checkTags(name string, tags map[string]string) error {
	if len(tags) > shard.MaxTags {
		return fault.Newf(fault.InvalidParameter, "Too many tags added for queue %s.", name)
	}
	for k, v := range tags {
		if n := utf8.RuneCountInString(k); n < 1 || n > maxTagKey {
			return fault.Newf(fault.InvalidParameter, "Tag keys must be between 1 and %d characters in length.", maxTagKey)
		}
		if reserved(k) || reserved(v) {
			return fault.New(fault.InvalidParameter, "Tag keys and values must not begin with aws:, which is reserved.")
		}
		if utf8.RuneCountInString(v) > maxTagValue {
			return fault.Newf(fault.InvalidParameter, "Tag values must be between 0 and %d characters in length.", maxTagValue)
		}
		if !message.ValidText(k) || !message.ValidText(v) { // as XML could not answer them
			return fault.New(fault.InvalidParameter, "Tag keys and values can only include letters, digits, whitespace and the characters _ . : / = + - @")
		}
	}
	return nil
}

// reserved reports that a key or value of a tag is AWS's own. Source: the SQS developer guide,
// "Quotas related to queues".
func reserved(tag string) bool { return len(tag) >= 4 && strings.EqualFold(tag[:4], "aws:") }
