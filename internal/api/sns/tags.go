package sns

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic"
)

// The limits of tags (source: the SNS developer guide, "Amazon SNS topic
// tagging"), in characters.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// tagResource answers TagResource.
func (s *Service) tagResource(ctx context.Context, call *api.Call, in *TagResourceInput) (*TagResourceOutput, error) {
	t, err := parseTopic(call, "ResourceArn", in.ResourceArn)
	if err != nil {
		return nil, err
	}
	tags, err := tagMap(in.Tags)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.TagTopic(ctx, t, tags)
}

// untagResource answers UntagResource.
func (s *Service) untagResource(ctx context.Context, call *api.Call, in *UntagResourceInput) (*UntagResourceOutput, error) {
	t, err := parseTopic(call, "ResourceArn", in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if len(in.TagKeys) > topic.MaxTags {
		return nil, fault.New(fault.TagLimitExceeded, "")
	}
	for _, key := range in.TagKeys {
		if err := checkTagKey(key); err != nil {
			return nil, err
		}
	}
	return nil, s.engine.UntagTopic(ctx, t, in.TagKeys)
}

// listTagsForResource answers ListTagsForResource, with tags sorted by key.
func (s *Service) listTagsForResource(ctx context.Context, call *api.Call, in *ListTagsForResourceInput) (*ListTagsForResourceOutput, error) {
	t, err := parseTopic(call, "ResourceArn", in.ResourceArn)
	if err != nil {
		return nil, err
	}
	tags, err := s.engine.TopicTags(ctx, t)
	if err != nil {
		return nil, err
	}
	out := &ListTagsForResourceOutput{Tags: make([]Tag, 0, len(tags))}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		value := tags[key]
		out.Tags = append(out.Tags, Tag{Key: key, Value: &value})
	}
	return out, nil
}

// tagMap validates the tags of a request; nil: there are none. It fails with InvalidParameter
// or TagLimitExceeded.
func tagMap(tags []Tag) (map[string]string, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	if len(tags) > topic.MaxTags {
		return nil, fault.New(fault.TagLimitExceeded, "")
	}
	byKey := make(map[string]string, len(tags))
	for _, tag := range tags {
		if err := checkTagKey(tag.Key); err != nil {
			return nil, err
		}
		value := api.Deref(tag.Value)
		if utf8.RuneCountInString(value) > maxTagValue || !validTag(value) {
			return nil, invalid("Tags Reason: a value must have at most %d letters, digits, spaces and characters of _.:/=+-@", maxTagValue)
		}
		if _, twice := byKey[tag.Key]; twice {
			return nil, invalid("Duplicated keys are not allowed.")
		}
		byKey[tag.Key] = value
	}
	return byKey, nil
}

func checkTagKey(key string) error {
	if n := utf8.RuneCountInString(key); n < 1 || n > maxTagKey || !validTag(key) {
		return invalid("Tags Reason: a key must have 1 to %d letters, digits, spaces and characters of _.:/=+-@", maxTagKey)
	}
	if len(key) >= 4 && strings.EqualFold(key[:4], "aws:") {
		return invalid("Tags Reason: the prefix aws: is reserved")
	}
	return nil
}

func validTag(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.In(c, unicode.L, unicode.N, unicode.Z) && !strings.ContainsRune("_.:/=+-@", c)
	})
}
