package upgrade_test

import (
	"slices"

	"github.com/google/go-cmp/cmp"
)

// removed are entries of maps in XML that answers have no more since the versions that
// wrote the directories, by AWS's example.
var removed = []any{
	map[string]any{"key": []any{"FifoThroughputScope"}, "value": []any{"Topic"}}, // the default
}

// withoutRemoved is an earlier version's answer without these.
func withoutRemoved(then any) any {
	switch then := then.(type) {
	case map[string]any:
		for name, value := range then {
			then[name] = withoutRemoved(value)
		}
		return then
	case []any:
		then = slices.DeleteFunc(then, func(e any) bool {
			return slices.ContainsFunc(removed, func(r any) bool { return cmp.Equal(e, r) })
		})
		for i, e := range then {
			then[i] = withoutRemoved(e)
		}
		return then
	default:
		return then
	}
}
