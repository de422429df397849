package upgrade_test

import (
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
)

// added are members that answers have got since the versions that wrote the
// directories, by AWS's example.
var added = map[string]bool{"LogAlarms": true, "RuntimeVersionConfig": true, "FunctionResponseTypes": true, "MaximumBatchingWindowInSeconds": true}

// asThen takes out of what is answered now the added members that the earlier version
// did not have there.
func asThen(then, now any) any {
	switch now := now.(type) {
	case map[string]any:
		before, _ := then.(map[string]any)
		for name, value := range now {
			if _, ok := before[name]; !ok && added[name] {
				delete(now, name)
				continue
			}
			if listed, ok := value.([]any); ok && name == "Metrics" {
				value = knownThen(before[name], listed)
			}
			now[name] = asThen(before[name], value)
		}
	case []any:
		before, _ := then.([]any)
		renumber(before, now)
		for i := range min(len(now), len(before)) {
			now[i] = asThen(before[i], now[i])
		}
	}
	return now
}

// knownThen takes out of a list of metrics those of queues that an earlier version did
// not report: of idle ones there are all now.
func knownThen(then any, now []any) []any {
	before, _ := then.([]any)
	return slices.DeleteFunc(now, func(m any) bool {
		metric, _ := m.(map[string]any)
		return metric["Namespace"] == "AWS/SQS" && !slices.ContainsFunc(before, func(b any) bool { return cmp.Equal(b, m) })
	})
}

// renumber gives messages the sequence numbers that they had, if these are the same
// numbers: the groups of a FIFO queue come in another order now, and so do its dead
// letters to their queue.
func renumber(then, now []any) {
	before, after := numbers(then), numbers(now)
	was, is := slices.Sorted(maps.Values(before)), slices.Sorted(maps.Values(after))
	if len(is) == 0 || !slices.Equal(was, is) {
		return
	}
	for i := range now {
		now[i].(map[string]any)["Attributes"].(map[string]any)["SequenceNumber"] = before[i]
	}
}

// numbers are the sequence numbers of messages; none if not all have one.
func numbers(messages []any) map[int]string {
	all := map[int]string{}
	for i, m := range messages {
		m, _ := m.(map[string]any)
		attributes, _ := m["Attributes"].(map[string]any)
		n, ok := attributes["SequenceNumber"].(string)
		if !ok {
			return nil
		}
		all[i] = n
	}
	return all
}
