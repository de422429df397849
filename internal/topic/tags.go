package topic

import (
	"maps"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// MaxTags is how many tags a topic can have. Source: the SNS developer guide,
// "Amazon SNS topic tagging".
const MaxTags = 50

// Tag adds tags to a topic; a tag with an existing key replaces it. It fails with
// ResourceNotFound, or with TagLimitExceeded for more than MaxTags in all.
func (s *State) Tag(name arn.ARN, tags map[string]string, b *mutation.Batch) error {
	return s.retag(name, b, func(all map[string]string) { maps.Copy(all, tags) })
}

// Untag removes tags from a topic by their keys; unknown keys are ignored. It fails with
// ResourceNotFound.
func (s *State) Untag(name arn.ARN, keys []string, b *mutation.Batch) error {
	return s.retag(name, b, func(all map[string]string) {
		for _, key := range keys {
			delete(all, key)
		}
	})
}

func (s *State) retag(name arn.ARN, b *mutation.Batch, change func(all map[string]string)) error {
	t, ok := s.topics[name]
	if !ok {
		return ErrNoResource
	}
	tags := make(map[string]string, len(t.Tags))
	maps.Copy(tags, t.Tags)
	change(tags)
	if len(tags) > MaxTags {
		return ErrTooManyTags
	}
	if maps.Equal(tags, t.Tags) {
		return nil
	}
	t.Tags = tags
	s.put(b, t)
	return nil
}
