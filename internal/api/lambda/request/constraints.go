// Package request reads and checks what requests of Lambda have in common: the model's
// constraints, the names of functions, tags, and the places where lists continue.
package request

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/fault"
)

// Constraints collects where a request breaks those of the model.
type Constraints struct{ broken []string }

// Add notes a value that breaks a constraint.
func (c *Constraints) Add(member, value, constraint string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf("Value '%s' at '%s' failed to satisfy constraint: %s", Shorten(value), member, fmt.Sprintf(constraint, args...)))
}

// Lacks notes a member that is not there.
func (c *Constraints) Lacks(member string) {
	c.broken = append(c.broken, fmt.Sprintf("Value null at '%s' failed to satisfy constraint: Member must not be null", member))
}

// Shorten bounds what a refusal repeats of a request.
func Shorten(value string) string {
	const most = 512
	return fault.Excerpt(value, most, "...")
}

// Err is AWS's refusal: ValidationFailed, or nil.
func (c *Constraints) Err() error {
	switch n := len(c.broken); n {
	case 0:
		return nil
	case 1:
		return fault.New(fault.ValidationFailed, "1 validation error detected: "+c.broken[0])
	default:
		return fault.Newf(fault.ValidationFailed, "%d validation errors detected: %s", n, strings.Join(c.broken, "; "))
	}
}

// Length bounds a text, in characters.
func (c *Constraints) Length(member string, value *string, least, most int) {
	if value == nil {
		return
	}
	if n := utf8.RuneCountInString(*value); n < least {
		c.Add(member, *value, "Member must have length greater than or equal to %d", least)
	} else if n > most {
		c.Add(member, *value, "Member must have length less than or equal to %d", most)
	}
}

// Pattern refuses a value that a pattern, anchored, does not match; text is the
// pattern as the model has it.
func (c *Constraints) Pattern(member string, value *string, p *Pattern) {
	if value != nil && !p.MatchString(*value) {
		c.Add(member, *value, "Member must satisfy regular expression pattern: %s", p.Text)
	}
}

// AtLeast bounds a number from below.
func (c *Constraints) AtLeast(member string, value *int, least int) {
	if value != nil && *value < least {
		c.Add(member, fmt.Sprint(*value), "Member must have value greater than or equal to %d", least)
	}
}

// AtMost bounds a number from above.
func (c *Constraints) AtMost(member string, value *int, most int) {
	if value != nil && *value > most {
		c.Add(member, fmt.Sprint(*value), "Member must have value less than or equal to %d", most)
	}
}

// Between bounds a number.
func (c *Constraints) Between(member string, value *int, least, most int) {
	c.AtLeast(member, value, least)
	c.AtMost(member, value, most)
}

// Enum refuses what is none of the values.
func (c *Constraints) Enum(member string, value *string, allowed ...string) {
	if value != nil && !slices.Contains(allowed, *value) {
		c.Add(member, *value, "Member must satisfy enum value set: [%s]", strings.Join(allowed, ", "))
	}
}

// Count bounds how many items a list has.
func (c *Constraints) Count(member string, items []string, least, most int) {
	if items == nil {
		return
	}
	if shown := "[" + strings.Join(items, ", ") + "]"; len(items) < least {
		c.Add(member, shown, "Member must have length greater than or equal to %d", least)
	} else if len(items) > most {
		c.Add(member, shown, "Member must have length less than or equal to %d", most)
	}
}

// Pattern is one of the model's.
type Pattern struct {
	*regexp.Regexp
	Text string // as the model has it
}

// Compile anchors a pattern of the model, which matches whole values.
func Compile(text string) *Pattern { return &Pattern{regexp.MustCompile(`^(?:` + text + `)$`), text} }

// Invalid makes the refusal of a parameter: InvalidParameterValueException.
func Invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}

// Patterns of the model.
var (
	QualifierPattern          = Compile(`\$(LATEST(\.PUBLISHED)?)|[a-zA-Z0-9-_$]+`)
	ARNPattern                = Compile(`arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:([a-z]{2}(-gov)?-[a-z]+-\d{1})?:(\d{12})?:(.*)`)
	AccountPattern            = Compile(`\d{12}`)
	FunctionPattern           = Compile(`(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?`)
	namespacedFunctionPattern = Compile(`(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_\.]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?`)
)
