package logs

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/logs"
)

// The limits of the model, in characters.
const (
	maxName       = arn.MaxLogGroupName // of streams, too
	maxIdentifier = 2048
	maxTagKey     = 128
	maxTagValue   = 256
	maxShown      = 600 // of a value in an error message
)

func invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}

// constraint is the error of AWS's validation for a member.
func constraint(member string, value any, rule string) error {
	return broken(violation(member, value, rule))
}

// violation is a part of AWS's error of validation.
func violation(member string, value any, rule string) string {
	shown := fmt.Sprint(value)
	if len(shown) > maxShown {
		shown = strings.ToValidUTF8(shown[:maxShown], "") + "…"
	}
	return fmt.Sprintf("Value '%s' at '%s' failed to satisfy constraint: %s", shown, member, rule)
}

// broken is AWS's error of validation for one or more violations.
func broken(violations ...string) error {
	return fault.New(fault.InvalidParameter, check.Violations(violations))
}

// null is the error for a missing member.
func null(member string) error {
	return broken(check.NotNull(member))
}

const (
	atMost  = "Member must have length less than or equal to %d"
	atLeast = "Member must have length greater than or equal to %d"
	matches = "Member must satisfy regular expression pattern: "
)

func length(member, value string, minimum, maximum int) error {
	switch n := utf8.RuneCountInString(value); {
	case n > maximum:
		return constraint(member, value, fmt.Sprintf(atMost, maximum))
	case n < minimum:
		return constraint(member, value, fmt.Sprintf(atLeast, minimum))
	}
	return nil
}

// count checks the number of items in a list that may be absent.
func count(member string, items []string, minimum, maximum int) error {
	switch {
	case items == nil:
	case len(items) > maximum:
		return constraint(member, check.List(items, maxShown), fmt.Sprintf(atMost, maximum))
	case len(items) < minimum:
		return constraint(member, check.List(items, maxShown), fmt.Sprintf(atLeast, minimum))
	}
	return nil
}

// orNull is a member that may be absent in an error message.
func orNull(value *string) string {
	if value == nil {
		return "null"
	}
	return *value
}

// each is check.List's items for a list of structures, nil for none.
func each[T any](all []T, shown func(T) string) []string {
	if all == nil {
		return nil
	}
	items := make([]string, len(all))
	for i, one := range all[:min(len(all), maxShown)] { // no more are shown
		items[i] = shown(one)
	}
	return items
}

var (
	streamName = regexp.MustCompile(`^[^:*]*$`)
	accountID  = regexp.MustCompile(`^[0-9]*$`)
	identifier = regexp.MustCompile(`^[\w#+=/:,.@-]*$`)
)

func text(member, value string, minimum, maximum int, pattern *regexp.Regexp, rule string) error {
	if value == "" && minimum > 0 && (strings.HasSuffix(rule, "+") || !pattern.MatchString(value)) { // it breaks both
		return broken(violation(member, value, fmt.Sprintf(atLeast, minimum)), violation(member, value, matches+rule))
	}
	if err := length(member, value, minimum, maximum); err != nil {
		return err
	}
	if !pattern.MatchString(value) {
		return constraint(member, value, matches+rule)
	}
	return nil
}

func checkGroup(member, value string) error {
	return text(member, value, 1, maxName, arn.LogGroupPattern, `[\.\-_/#A-Za-z0-9]+`)
}

func checkStream(member, value string) error {
	if strings.ContainsRune(value, 0) {
		return constraint(member, strings.ReplaceAll(value, "\x00", ""), matches+`[^:*]*`)
	}
	return text(member, value, 1, maxName, streamName, `[^:*]*`)
}

// checkLong refuses the name of a group or a stream that is too long. AWS has one text for both.
func checkLong(name string) error {
	if utf8.RuneCountInString(name) > maxName {
		return invalid("Invalid LogGroup or LogStream, both must have length less than or equal to %d.", maxName)
	}
	return nil
}

func checkStreamName(name string) error {
	return cmp.Or(checkLong(name), checkStream("logStreamName", name))
}

// group is the ARN of a group's name.
func group(call *api.Call, name string) (arn.ARN, error) {
	return arn.LogGroup(call.Region, call.Account, name), cmp.Or(checkLong(name), checkGroup("logGroupName", name))
}

// groupBy is the ARN of a group, given by its name, or by its name or ARN as an identifier.
func groupBy(call *api.Call, name, id *string) (arn.ARN, error) {
	switch {
	case name != nil && id != nil:
		return arn.ARN{}, fault.New(fault.ValidationFailed, "LogGroup name and LogGroup ARN are mutually exclusive parameters.")
	case name != nil:
		return group(call, *name)
	case id != nil:
		return byIdentifier(call, *id)
	}
	return arn.ARN{}, invalid("LogGroup name or LogGroup ARN must be provided.")
}

func byIdentifier(call *api.Call, id string) (arn.ARN, error) {
	rule := ""
	switch n := utf8.RuneCountInString(id); {
	case n > maxIdentifier:
		rule = fmt.Sprintf(atMost, maxIdentifier)
	case n < 1:
		rule = fmt.Sprintf(atLeast, 1)
	case !identifier.MatchString(id):
		rule = matches + `[\w#+=/:,.@-]*`
	}
	if rule != "" { // unlike other values, AWS does not quote this one
		return arn.ARN{}, invalid("1 validation error detected: Value at 'logGroupIdentifier' failed to satisfy constraint: %s", rule)
	}
	if !strings.HasPrefix(id, "arn:") {
		return group(call, id)
	}
	return byARN(call, id)
}

// byARN parses a group's ARN. Groups of other accounts and regions do not exist.
func byARN(call *api.Call, id string) (arn.ARN, error) {
	a, err := arn.Parse(id)
	if err != nil {
		return a, invalid("Invalid ARN: %s", id)
	}
	name, ok := a.LogGroupName()
	if !ok {
		return a, invalid("Invalid ARN: %s", id)
	}
	if a.Region != call.Region || a.Account != call.Account {
		return a, fault.New(fault.ResourceNotFound, "The specified log group does not exist.")
	}
	return group(call, name)
}

// resource parses the ARN of a tagged group.
func resource(call *api.Call, id string) (arn.ARN, error) {
	if err := text("resourceArn", id, 1, 1011, identifier, `[\w+=/:,.@-]*`); err != nil {
		return arn.ARN{}, err
	}
	return byARN(call, id)
}

// limit validates a page size.
func limit(value *int, maximum int) (int, error) { return within("limit", value, maximum) }

// within checks that a number is 1 to maximum, which is also what none means.
func within(member string, value *int, maximum int) (int, error) {
	switch {
	case value == nil:
		return maximum, nil
	case *value < 1:
		return 0, constraint(member, *value, "Member must have value greater than or equal to 1")
	case *value > maximum:
		return 0, constraint(member, *value, fmt.Sprintf("Member must have value less than or equal to %d", maximum))
	}
	return *value, nil
}

func oneOf(member string, value *string, allowed ...string) error {
	if value == nil || slices.Contains(allowed, *value) {
		return nil
	}
	return constraint(member, *value, check.Enum(allowed...))
}

// moment refuses times before 1970.
func moment(member string, value *int64) error {
	if value != nil && *value < 0 {
		return constraint(member, *value, "Member must have value greater than or equal to 0")
	}
	return nil
}

func checkTagKey(member, key string) error {
	if err := length(member, key, 1, maxTagKey); err != nil {
		return err
	}
	if !taggable(key) {
		return constraint(member, key, matches+`^([\p{L}\p{Z}\p{N}_.:/=+\-@]+)$`)
	}
	if len(key) >= 4 && strings.EqualFold(key[:4], "aws:") {
		return invalid("User-defined tag keys can't start with: aws:")
	}
	return nil
}

func checkTagKeys(member string, keys []string) error {
	for _, k := range keys {
		if err := checkTagKey(member, k); err != nil {
			return err
		}
	}
	return nil
}

func checkTags(tags map[string]string) error {
	if len(tags) == 0 {
		return constraint("tags", "{}", fmt.Sprintf(atLeast, 1))
	}
	for key, value := range tags {
		if err := checkTagKey("tags", key); err != nil {
			return err
		}
		if err := length("tags", value, 0, maxTagValue); err != nil {
			return err
		}
		if !taggable(value) {
			return constraint("tags", value, matches+`^([\p{L}\p{Z}\p{N}_.:/=+\-@]*)$`)
		}
	}
	return nil
}

// tooManyTags is the error for tags of a new group.
func tooManyTags(tags map[string]string) error {
	pairs := check.List(each(slices.Sorted(maps.Keys(tags)), func(key string) string { return key + "=" + tags[key] }), maxShown)
	return constraint("tags", "{"+pairs[1:len(pairs)-1]+"}", fmt.Sprintf(atMost, logs.MaxTags))
}

func taggable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.In(c, unicode.L, unicode.N, unicode.Z) && !strings.ContainsRune("_.:/=+-@", c)
	})
}

// listToken is the token of the next page; it is only valid for the same list.
func listToken(list, after string) string {
	if after == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\n" + after))
}

func readListToken(list string, token *string) (after string, err error) {
	if token == nil {
		return "", nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(*token)
	if err == nil {
		if after, ok := strings.CutPrefix(string(plain), list+"\n"); ok && after != "" {
			return after, nil
		}
	}
	return "", invalid("The specified nextToken is invalid.")
}

func is(flag *bool) bool { return flag != nil && *flag }
