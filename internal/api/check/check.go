// Package check has the texts of constraints that several services validate, and cuts the pages
// of lists with markers.
package check

import (
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// Invalid is the error for a member that violates its shape's constraint.
func Invalid(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

// NotNull is the violation of a request that lacks the member at a position.
func NotNull(at string) string {
	return "Value null at '" + at + "' failed to satisfy constraint: Member must not be null"
}

// Violations is the message of one or more violations of a model.
func Violations(all []string) string {
	if len(all) == 1 {
		return "1 validation error detected: " + all[0]
	}
	return strconv.Itoa(len(all)) + " validation errors detected: " + strings.Join(all, "; ")
}

// List is a list in a refusal. Items that would be beyond so many bytes, which the refusal does not
// show, are left out.
func List(items []string, most int) string {
	shown := []byte{'['}
	for i, item := range items {
		if len(shown) > most {
			break
		}
		if i > 0 {
			shown = append(shown, ", "...)
		}
		shown = append(shown, item...)
	}
	return string(append(shown, ']'))
}

// Enum is the constraint that a member is one of these values, as AWS's refusals have it.
func Enum(values ...string) string {
	return "Member must satisfy enum value set: [" + strings.Join(values, ", ") + "]"
}

// Enums is the constraint that each item of a list is one of these values.
func Enums(values ...string) string {
	return "Member must satisfy constraint: [" + Enum(values...) + "]"
}

const defaultPage, maxPage = 100, 1000

// Limit is how many items a page has at most.
func Limit(maximum *int) int {
	if maximum == nil {
		return defaultPage
	}
	return min(max(*maximum, 1), maxPage)
}

// Page cuts a list, which is ordered by key, into pages of 1 to 1,000.
func Page[T any](list string, items []T, key func(item *T) string, marker *string, maximum *int) (cut []T, truncated bool, next string, err error) {
	cut, next, ok := api.Page(list, items, func(i int) string { return key(&items[i]) }, marker, Limit(maximum))
	if !ok {
		return nil, false, "", Invalid("Invalid Marker.")
	}
	return cut, next != "", next, nil
}
