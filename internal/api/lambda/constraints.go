package lambda

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/fault"
)

// constraints collects where a request breaks those of the model.
type constraints struct{ broken []string }

func (c *constraints) add(member, value, constraint string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf("Value '%s' at '%s' failed to satisfy constraint: %s", shorten(value), member, fmt.Sprintf(constraint, args...)))
}

// shorten bounds what a refusal repeats of a request.
func shorten(value string) string {
	const most = 512
	return fault.Excerpt(value, most, "...")
}

// err is AWS's refusal: ValidationFailed, or nil.
func (c *constraints) err() error {
	switch n := len(c.broken); n {
	case 0:
		return nil
	case 1:
		return fault.New(fault.ValidationFailed, "1 validation error detected: "+c.broken[0])
	default:
		return fault.Newf(fault.ValidationFailed, "%d validation errors detected: %s", n, strings.Join(c.broken, "; "))
	}
}

func (c *constraints) length(member string, value *string, least, most int) {
	if value == nil {
		return
	}
	if n := utf8.RuneCountInString(*value); n < least {
		c.add(member, *value, "Member must have length greater than or equal to %d", least)
	} else if n > most {
		c.add(member, *value, "Member must have length less than or equal to %d", most)
	}
}

// pattern refuses a value that a pattern, anchored, does not match; text is the
// pattern as the model has it.
func (c *constraints) pattern(member string, value *string, p *pattern) {
	if value != nil && !p.MatchString(*value) {
		c.add(member, *value, "Member must satisfy regular expression pattern: %s", p.text)
	}
}

func (c *constraints) atLeast(member string, value *int, least int) {
	if value != nil && *value < least {
		c.add(member, fmt.Sprint(*value), "Member must have value greater than or equal to %d", least)
	}
}

func (c *constraints) atMost(member string, value *int, most int) {
	if value != nil && *value > most {
		c.add(member, fmt.Sprint(*value), "Member must have value less than or equal to %d", most)
	}
}

func (c *constraints) between(member string, value *int, least, most int) {
	c.atLeast(member, value, least)
	c.atMost(member, value, most)
}

func (c *constraints) enum(member string, value *string, allowed ...string) {
	if value != nil && !slices.Contains(allowed, *value) {
		c.add(member, *value, "Member must satisfy enum value set: [%s]", strings.Join(allowed, ", "))
	}
}

// count bounds how many items a list has.
func (c *constraints) count(member string, items []string, least, most int) {
	if items == nil {
		return
	}
	if shown := "[" + strings.Join(items, ", ") + "]"; len(items) < least {
		c.add(member, shown, "Member must have length greater than or equal to %d", least)
	} else if len(items) > most {
		c.add(member, shown, "Member must have length less than or equal to %d", most)
	}
}

// pattern is one of the model's.
type pattern struct {
	*regexp.Regexp
	text string
}

// compile anchors a pattern of the model, which matches whole values.
func compile(text string) *pattern { return &pattern{regexp.MustCompile(`^(?:` + text + `)$`), text} }

// The patterns of the model.
var (
	rolePattern        = compile(`arn:(aws[a-zA-Z-]*)?:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+`)
	handlerPattern     = compile(`[^\s]+`)
	resourcePattern    = compile(`(arn:(aws[a-zA-Z-]*)?:[a-z0-9-.]+:.*)|()`)
	variablePattern    = compile(`[a-zA-Z]([a-zA-Z0-9_])+`)
	logGroupPattern    = compile(`[\.\-_/#A-Za-z0-9]+`)
	regionPattern      = compile(`ALL|[a-z]{2}(-gov)?-[a-z]+-\d{1}`)
	qualifierPattern   = compile(`\$(LATEST(\.PUBLISHED)?)|[a-zA-Z0-9-_$]+`)
	versionPattern     = compile(`(\$LATEST(\.PUBLISHED)?|[0-9]+)`)
	aliasPattern       = compile(`([a-zA-Z0-9-_]+)`)
	numberPattern      = compile(`[0-9]+`)
	statementPattern   = compile(`([a-zA-Z0-9-_]+)`)
	namespacedPattern  = compile(`([a-zA-Z0-9-_.]+)`)
	actionPattern      = compile(`(lambda:[*]|lambda:[a-zA-Z]+|[*])`)
	principalPattern   = compile(`[^\s]+`)
	arnPattern         = compile(`arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:([a-z]{2}(-gov)?-[a-z]+-\d{1})?:(\d{12})?:(.*)`)
	accountPattern     = compile(`\d{12}`)
	tokenPattern       = compile(`[a-zA-Z0-9._\-]+`)
	organizationRegexp = compile(`o-[a-z0-9]{10,32}`)
	signingPattern     = compile(`arn:(aws[a-zA-Z-]*)?:lambda:[a-z]{2}((-gov)|(-iso(b?)))?-[a-z]+-\d{1}:\d{12}:code-signing-config:csc-[a-z0-9]{17}`)
	taggablePattern    = compile(`arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:(function:[a-zA-Z0-9-_]+(:(\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)|code-signing-config:csc-[a-z0-9]{17}|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|capacity-provider:[a-zA-Z0-9-_]+)`)
	functionPattern    = compile(`(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?`)

	namespacedFunctionPattern = compile(`(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_\.]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?`)
)

// invalid makes the refusal of a parameter: InvalidParameterValueException.
func invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}
