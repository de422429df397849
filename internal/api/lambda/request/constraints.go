// Package request reads and validates what Lambda's requests have in common: the model's
// constraints, names of functions, tags, and list markers.
package request

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
)

// maxViolations bounds the violations of an error message, so that the items of a long list do
// not make an answer that is a multiple of the request.
const maxViolations = 32

// Constraints collects the violated constraints of the model, the first maxViolations of them.
type Constraints struct{ broken []string }

// Add adds a violated constraint.
func (c *Constraints) Add(member, value, constraint string, args ...any) {
	if len(c.broken) < maxViolations {
		c.broken = append(c.broken, fmt.Sprintf("Value '%s' at '%s' failed to satisfy constraint: %s", Shorten(value), member, fmt.Sprintf(constraint, args...)))
	}
}

// Lacks adds a missing member.
func (c *Constraints) Lacks(member string) {
	if len(c.broken) < maxViolations {
		c.broken = append(c.broken, check.NotNull(member))
	}
}

// Shorten truncates a value of a request for an error message.
func Shorten(value string) string { return fault.Excerpt(value, maxShown, "...") }

// maxShown bounds a value in an error message, in bytes.
const maxShown = 512

// Err is AWS's error ValidationFailed, or nil without a violation.
func (c *Constraints) Err() error {
	if len(c.broken) == 0 {
		return nil
	}
	return fault.New(fault.ValidationFailed, check.Violations(c.broken))
}

// Length checks the length of a text, in characters.
func (c *Constraints) Length(member string, value *string, minimum, maximum int) {
	if value == nil {
		return
	}
	if n := utf8.RuneCountInString(*value); n < minimum {
		c.Add(member, *value, "Member must have length greater than or equal to %d", minimum)
	} else if n > maximum {
		c.Add(member, *value, "Member must have length less than or equal to %d", maximum)
	}
}

// Pattern checks that a value matches a pattern.
func (c *Constraints) Pattern(member string, value *string, p *Pattern) {
	if value != nil && !p.MatchString(*value) {
		c.Add(member, *value, "Member must satisfy regular expression pattern: %s", p.Text)
	}
}

// AtLeast checks the lower bound of a number.
func (c *Constraints) AtLeast(member string, value *int, least int) {
	if value != nil && *value < least {
		c.Add(member, fmt.Sprint(*value), "Member must have value greater than or equal to %d", least)
	}
}

// atMost checks the upper bound of a number.
func (c *Constraints) atMost(member string, value *int, limit int) {
	if value != nil && *value > limit {
		c.Add(member, fmt.Sprint(*value), "Member must have value less than or equal to %d", limit)
	}
}

// Between checks the bounds of a number.
func (c *Constraints) Between(member string, value *int, minimum, maximum int) {
	c.AtLeast(member, value, minimum)
	c.atMost(member, value, maximum)
}

// Enum checks that a text is one of the allowed values.
func (c *Constraints) Enum(member string, value *string, allowed ...string) {
	if value != nil && !slices.Contains(allowed, *value) {
		c.Add(member, *value, "%s", check.Enum(allowed...))
	}
}

// Enums checks that the items of a list are of the allowed values.
func (c *Constraints) Enums(member string, items []string, allowed ...string) {
	if slices.ContainsFunc(items, func(item string) bool { return !slices.Contains(allowed, item) }) {
		c.Add(member, check.List(items, maxShown), "%s", check.Enums(allowed...))
	}
}

// Count checks the number of items in a list; ok says that it is right, so that the items are
// worth a check of their own.
func (c *Constraints) Count(member string, items []string, minimum, maximum int) (ok bool) {
	switch {
	case items == nil:
	case len(items) < minimum:
		c.Add(member, check.List(items, maxShown), "Member must have length greater than or equal to %d", minimum)
		return false
	case len(items) > maximum:
		c.Add(member, check.List(items, maxShown), "Member must have length less than or equal to %d", maximum)
		return false
	}
	return true
}

// Pattern is a pattern of the model.
type Pattern struct {
	*regexp.Regexp
	Text string // as in the model
}

// Compile compiles a pattern of the model, anchored: it must match whole values.
func Compile(text string) *Pattern { return &Pattern{regexp.MustCompile(`^(?:` + text + `)$`), text} }

// Invalid is the error InvalidParameterValueException.
func Invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}

// Patterns of the model.
var (
	qualifierPattern          = Compile(`\$(LATEST(\.PUBLISHED)?)|[a-zA-Z0-9-_$]+`)
	ARNPattern                = Compile(`arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:([a-z]{2}(-gov)?-[a-z]+-\d{1})?:(\d{12})?:(.*)`)
	AccountPattern            = Compile(`\d{12}`)
	functionPattern           = Compile(`(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?`)
	namespacedFunctionPattern = Compile(`(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_\.]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?`)
)
