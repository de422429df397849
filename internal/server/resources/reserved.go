package resources

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// isReserved reports whether AWS keeps a tag for itself, such as one with a stack's name: nobody can give it
// to a resource.
func isReserved(key string) bool { return len(key) >= 4 && strings.EqualFold(key[:4], "aws:") }

// own leaves out the tags that AWS keeps for itself.
func (t Tags) own() Tags {
	maps.DeleteFunc(t, func(key, _ string) bool { return isReserved(key) })
	return t
}

// own is an alarm without the tags that AWS keeps for itself, and the keys of these.
func (a Alarm) own() (own Alarm, reserved []string) {
	tags, _ := a["Tags"].([]any)
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag any) bool {
		member, _ := tag.(map[string]any)
		key, _ := member["Key"].(string)
		if !isReserved(key) {
			return false
		}
		reserved = append(reserved, key)
		return true
	})
	if len(reserved) == 0 {
		return a, nil
	}
	own = maps.Clone(a)
	if own["Tags"] = tags; len(tags) == 0 {
		delete(own, "Tags")
	}
	return own, reserved
}

// own is the set without the tags that AWS keeps for itself, which files of earlier versions have; left
// says whose they were.
func (s *Set) own() (own *Set, left []string) {
	copied := *s
	own = &copied
	own.Queues, own.Topics, own.Alarms = slices.Clone(s.Queues), slices.Clone(s.Topics), slices.Clone(s.Alarms)
	of := func(what string, tags Tags) Tags {
		kept := maps.Clone(tags).own()
		for _, key := range sortedKeys(tags) {
			if _, ok := kept[key]; !ok {
				left = append(left, fmt.Sprintf("%s %s %s", what, tag, key))
			}
		}
		return kept
	}
	for i := range own.Queues {
		q := &own.Queues[i]
		q.Tags = of("queue "+q.QueueName, q.Tags)
	}
	for i := range own.Topics {
		t := &own.Topics[i]
		t.Tags = of("topic "+t.Name, t.Tags)
	}
	for i := range own.Alarms {
		var keys []string
		own.Alarms[i], keys = own.Alarms[i].own()
		for _, key := range keys {
			left = append(left, fmt.Sprintf("alarm %s %s %s", own.Alarms[i].name(), tag, key))
		}
	}
	return own, left
}
