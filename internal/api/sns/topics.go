package sns

import (
	"context"
	"maps"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

const policyAttribute = "Policy"

var errNobody = invalid("Policy Error: PrincipalNotFound")

// bind replaces the users and roles in a topic's policy by their unique ids, and refuses a
// policy with an unknown one.
func (s *Service) bind(doc string) (string, error) {
	bound, unknown := s.principals.BindPolicy(doc)
	if unknown != "" {
		return "", errNobody
	}
	return bound, nil
}

// createTopic answers CreateTopic.
func (s *Service) createTopic(ctx context.Context, call *api.Call, in *CreateTopicInput) (*CreateTopicOutput, error) {
	protection, err := dataProtection(api.Deref(in.DataProtectionPolicy))
	if err != nil {
		return nil, err
	}
	tags, err := tagMap(in.Tags)
	if err != nil {
		return nil, err
	}
	attributes := maps.Clone(in.Attributes)
	if doc, ok := attributes[policyAttribute]; ok {
		if attributes[policyAttribute], err = s.bind(doc); err != nil {
			return nil, err
		}
	}
	name := arn.Topic(call.Region, call.Account, *in.Name)
	if err := s.engine.CreateTopic(ctx, topic.CreateTopic{ARN: name, Attributes: attributes, Tags: tags, Protection: protection}); err != nil {
		return nil, err
	}
	return &CreateTopicOutput{TopicArn: name.String()}, nil
}

// deleteTopic answers DeleteTopic, which succeeds for an unknown topic.
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
	if doc, ok := attrs[policyAttribute]; ok {
		attrs[policyAttribute] = s.principals.ShowPolicy(doc)
	}
	return &GetTopicAttributesOutput{Attributes: attrs}, nil
}

// setTopicAttributes answers SetTopicAttributes. A missing value means the empty one, which
// deletes the attribute.
func (s *Service) setTopicAttributes(ctx context.Context, call *api.Call, in *SetTopicAttributesInput) (*SetTopicAttributesOutput, error) {
	t, err := parseTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	value := api.Deref(in.AttributeValue)
	if in.AttributeName == policyAttribute {
		if value, err = s.bind(value); err != nil {
			return nil, err
		}
	}
	return &SetTopicAttributesOutput{}, s.engine.SetTopicAttribute(ctx, t, in.AttributeName, value)
}
