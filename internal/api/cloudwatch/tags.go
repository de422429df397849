package cloudwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/alarms"
)

// The limits of tags, in characters. Source: CloudWatch's API model.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// readAlarmARN parses the ARN of an alarm of the caller's account.
func readAlarmARN(call *api.Call, text string) (alarms.ID, error) {
	a, err := arn.Parse(text)
	if err != nil || a.Service != "cloudwatch" {
		return alarms.ID{}, invalid("The value %s for parameter ResourceARN is not the ARN of a CloudWatch resource.", shorten(text))
	}
	name, ok := a.AlarmName()
	if !ok || a.Account != call.Account || a.Region != call.Region {
		return alarms.ID{}, fault.New(fault.ResourceNotFound, "")
	}
	return alarmID(call, name), nil
}

// readTags validates the tags of a request.
func readTags(all []Tag) (map[string]string, error) {
	tags := make(map[string]string, len(all))
	for i, tag := range all {
		at := fmt.Sprintf("Tags.member.%d.", i+1)
		key, value := api.Deref(tag.Key), api.Deref(tag.Value)
		switch {
		case key == "" || utf8.RuneCountInString(key) > maxTagKey:
			return nil, invalid("The parameter %sKey must have 1 to %d characters.", at, maxTagKey)
		case tag.Value == nil:
			return nil, invalid("The parameter %sValue is required.", at)
		case utf8.RuneCountInString(value) > maxTagValue:
			return nil, invalid("The parameter %sValue must have at most %d characters.", at, maxTagValue)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return nil, invalid("The parameter %sKey must not begin with aws:.", at)
		}
		tags[key] = value
	}
	return tags, nil
}

// tagResource answers TagResource.
func (s *Service) tagResource(_ context.Context, call *api.Call, in *TagResourceInput) (*TagResourceOutput, error) {
	id, err := readAlarmARN(call, *in.ResourceARN)
	if err != nil {
		return nil, err
	}
	tags, err := readTags(in.Tags)
	if err != nil {
		return nil, err
	}
	return nil, s.alarms.Tag(id, func(all map[string]string) error {
		maps.Copy(all, tags)
		if len(all) > alarms.MaxTags {
			return invalid("An alarm can have at most %d tags.", alarms.MaxTags)
		}
		return nil
	})
}

// untagResource answers UntagResource.
func (s *Service) untagResource(_ context.Context, call *api.Call, in *UntagResourceInput) (*UntagResourceOutput, error) {
	id, err := readAlarmARN(call, *in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return nil, s.alarms.Tag(id, func(all map[string]string) error {
		for _, key := range in.TagKeys {
			delete(all, key)
		}
		return nil
	})
}

// listTagsForResource answers ListTagsForResource, with tags sorted by key. A deleted alarm
// has none; it is known until its history expires.
func (s *Service) listTagsForResource(_ context.Context, call *api.Call, in *ListTagsForResourceInput) (*ListTagsForResourceOutput, error) {
	id, err := readAlarmARN(call, *in.ResourceARN)
	if err != nil {
		return nil, err
	}
	a, ok := s.alarms.Get(id)
	if !ok {
		items, _, err := s.alarms.History(alarms.HistoryQuery{Scope: scope(call), Name: id.Name, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return nil, fault.New(fault.ResourceNotFound, "")
		}
	}
	out := &ListTagsForResourceOutput{Tags: []Tag{}}
	for _, key := range slices.Sorted(maps.Keys(a.Tags)) {
		value := a.Tags[key]
		out.Tags = append(out.Tags, Tag{&key, &value})
	}
	return out, nil
}
