// Package check validates and cuts the pages of lists with markers, for several services.
package check

import (
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// Invalid is the error for a member that violates its shape's constraint.
func Invalid(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

const defaultPage, maxPage = 100, 1000

// Page cuts a list, which is ordered by key, into pages of 1 to 1,000.
func Page[T any](list string, items []T, key func(item *T) string, marker *string, most *int) (cut []T, truncated bool, next string, err error) {
	limit := defaultPage
	if most != nil {
		limit = min(max(*most, 1), maxPage)
	}
	after, ok := api.ReadToken(list, marker)
	if !ok {
		return nil, false, "", Invalid("Invalid Marker.")
	}
	if after != "" {
		items = slices.DeleteFunc(slices.Clone(items), func(item T) bool { return key(&item) <= after })
	}
	if items == nil {
		items = []T{}
	}
	if len(items) > limit {
		items = items[:limit:limit]
		return items, true, api.NextToken(list, key(&items[limit-1])), nil
	}
	return items, false, "", nil
}
