// Package check is what services share that refuse members as AWS's validation of shapes
// does, and that cut lists into pages by a marker.
package check

import (
	"slices"
	"strconv"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// Invalid refuses a member that breaks its shape's constraint.
func Invalid(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

// Constraint refuses a value as the shapes' validation does.
func Constraint(value, member, rule string) error {
	return Invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, member, rule)
}

// Length refuses a text that is too short or too long, in characters.
func Length(member, value string, least, most int) error {
	switch n := len([]rune(value)); {
	case n < least:
		return Constraint(value, member, "Member must have length greater than or equal to "+strconv.Itoa(least))
	case n > most:
		return Constraint(value, member, "Member must have length less than or equal to "+strconv.Itoa(most))
	}
	return nil
}

const defaultPage, maxPage = 100, 1000

// Page cuts a list, which is in the order of its keys, into pages.
func Page[T any](list string, items []T, key func(item *T) string, marker *string, most *int) (cut []T, truncated bool, next string, err error) {
	limit := defaultPage
	if most != nil {
		limit = *most
		if limit < 1 || limit > maxPage {
			rule := "Member must have value greater than or equal to 1"
			if limit > maxPage {
				rule = "Member must have value less than or equal to " + strconv.Itoa(maxPage)
			}
			return nil, false, "", Constraint(strconv.Itoa(limit), "maxItems", rule)
		}
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
