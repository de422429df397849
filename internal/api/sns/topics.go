package sns

import (
	"context"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

// The limits of tags (source: the SNS developer guide, "Amazon SNS topic
// tagging"), in characters but for the first.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// createTopic answers CreateTopic.
func (s *Service) createTopic(ctx context.Context, call *api.Call, in *CreateTopicInput) (*CreateTopicOutput, error) {
	if deref(in.DataProtectionPolicy) != "" {
		return nil, invalid("DataProtectionPolicy Reason: data protection is not supported by this version yet")
	}
	tags, err := tagMap(in.Tags)
	if err != nil {
		return nil, err
	}
	name := arn.Topic(call.Region, call.Account, in.Name)
	if err := s.engine.CreateTopic(ctx, topic.CreateTopic{ARN: name, Attributes: in.Attributes, Tags: tags}); err != nil {
		return nil, err
	}
	return &CreateTopicOutput{TopicArn: name.String()}, nil
}

// tagMap checks the tags of a request; nil when there are none.
func tagMap(tags []Tag) (map[string]string, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	if len(tags) > maxTags {
		return nil, invalid("Tags Reason: at most %d tags are allowed", maxTags)
	}
	byKey := make(map[string]string, len(tags))
	for _, tag := range tags {
		if n := utf8.RuneCountInString(tag.Key); n < 1 || n > maxTagKey || !utf8.ValidString(tag.Key) {
			return nil, invalid("Tags Reason: a key must have 1 to %d characters", maxTagKey)
		}
		if utf8.RuneCountInString(tag.Value) > maxTagValue || !utf8.ValidString(tag.Value) {
			return nil, invalid("Tags Reason: a value must have at most %d characters", maxTagValue)
		}
		if _, twice := byKey[tag.Key]; twice {
			return nil, invalid("Duplicated keys are not allowed.")
		}
		byKey[tag.Key] = tag.Value
	}
	return byKey, nil
}

// deleteTopic answers DeleteTopic, which succeeds for what is not there.
func (s *Service) deleteTopic(ctx context.Context, call *api.Call, in *DeleteTopicInput) (*DeleteTopicOutput, error) {
	t, err := parseTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	return &DeleteTopicOutput{}, s.engine.DeleteTopic(ctx, t)
}

// listTopics answers ListTopics.
func (s *Service) listTopics(ctx context.Context, call *api.Call, in *ListTopicsInput) (*ListTopicsOutput, error) {
	const list = "topics"
	after, err := readToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	page, more, err := s.engine.ListTopics(ctx, call.Region, call.Account, after, pageSize)
	if err != nil {
		return nil, err
	}
	out := &ListTopicsOutput{Topics: make([]Topic, 0, len(page))}
	for _, t := range page {
		out.Topics = append(out.Topics, Topic{TopicArn: t.String()})
	}
	if more {
		out.NextToken = nextToken(list, page[len(page)-1].Resource)
	}
	return out, nil
}

// getTopicAttributes answers GetTopicAttributes.
func (s *Service) getTopicAttributes(ctx context.Context, call *api.Call, in *GetTopicAttributesInput) (*GetTopicAttributesOutput, error) {
	t, err := parseTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	attrs, err := s.engine.TopicAttributes(ctx, t)
	if err != nil {
		return nil, err
	}
	return &GetTopicAttributesOutput{Attributes: attrs}, nil
}

// setTopicAttributes answers SetTopicAttributes; no value is the empty one,
// which deletes.
func (s *Service) setTopicAttributes(ctx context.Context, call *api.Call, in *SetTopicAttributesInput) (*SetTopicAttributesOutput, error) {
	t, err := parseTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	return &SetTopicAttributesOutput{}, s.engine.SetTopicAttribute(ctx, t, in.AttributeName, deref(in.AttributeValue))
}
