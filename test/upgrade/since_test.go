package upgrade_test

import (
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
		for i := range min(len(now), len(before)) {
			now[i] = asThen(before[i], now[i])
		}
	}
	return now
}

// knownThen takes out of a list of metrics those of queues that an earlier version did
// not tell of: of idle ones there are all now.
func knownThen(then any, now []any) []any {
	before, _ := then.([]any)
	return slices.DeleteFunc(now, func(m any) bool {
		metric, _ := m.(map[string]any)
		return metric["Namespace"] == "AWS/SQS" && !slices.ContainsFunc(before, func(b any) bool { return cmp.Equal(b, m) })
	})
}
