package sns

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/decimal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
)

// The limits of a message attribute, in bytes.
const (
	maxAttributeName = 256
	maxAttributeType = 256
)

// messageAttributes validates the attributes of a publish, and returns them sorted by name.
// It fails with ParameterValueInvalid and AWS's messages.
func messageAttributes(given map[string]MessageAttributeValue) ([]message.Attribute, error) {
	if len(given) == 0 {
		return nil, nil
	}
	attrs := make([]message.Attribute, 0, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := checkAttributeName(name); err != nil {
			return nil, err
		}
		value, err := attributeValue(name, given[name])
		if err != nil {
			return nil, err
		}
		attrs = append(attrs, message.Attribute{Name: name, Type: api.Deref(given[name].DataType), Value: value})
	}
	return attrs, nil
}

// untyped are the positions of attributes without a type, sorted by name. at is the position
// of the message in the request.
func untyped(at string, given map[string]MessageAttributeValue) (positions []string) {
	for name, value := range given {
		if value.DataType == nil {
			positions = append(positions, at+"messageAttributes."+name+".member.dataType")
		}
	}
	slices.Sort(positions)
	return positions
}

// mustNotBeNull refuses a request that lacks the members at some positions, as AWS's model
// does before anything but the target is looked at.
func mustNotBeNull(positions []string) error {
	if len(positions) == 0 {
		return nil
	}
	all := make([]string, len(positions))
	for i, at := range positions {
		all[i] = check.NotNull(at)
	}
	return fault.New(fault.MissingParameter, check.Violations(all))
}

func badValue(format string, args ...any) error {
	return fault.Newf(fault.ParameterValueInvalid, format, args...)
}

func checkAttributeName(name string) error {
	switch {
	case name == "":
		return badValue("The message attribute name must not be empty.")
	case len(name) > maxAttributeName:
		return badValue("Length of message attribute name must be less than %d bytes.", maxAttributeName)
	case name[0] == '.':
		return badValue("Invalid message attribute name starting with character '.' was found.")
	case name[len(name)-1] == '.':
		return badValue("Invalid message attribute name ending with character '.' was found.")
	case strings.Contains(name, ".."):
		return badValue("Message attribute name can not have successive '.' character.")
	}
	for _, c := range name {
		if c != '-' && c != '_' && c != '.' && !alphanumeric(c) {
			return badValue("Invalid non-alphanumeric character '#x%X' was found in the message attribute name. "+
				"Can only include alphanumeric characters, hyphens, underscores, or dots.", c)
		}
	}
	for _, own := range ownPrefixes {
		if strings.HasPrefix(name, own) {
			return nil
		}
	}
	if lower := strings.ToLower(name); strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") {
		return badValue("Message attribute name can not start with the reserved prefixes AWS. or Amazon.")
	}
	return nil
}

// ownPrefixes are the prefixes of the attributes for text messages and push notifications.
var ownPrefixes = [...]string{"AWS.SNS.SMS.", "AWS.MM.SMS.", "AWS.SNS.MOBILE."}

func alphanumeric(c rune) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// attributeValue validates a value by its type. A String.Array may be any text: one that is
// not a JSON array is accepted, but does not match a filter policy on it.
func attributeValue(name string, v MessageAttributeValue) ([]byte, error) {
	dataType := api.Deref(v.DataType)
	base, label, labelled := strings.Cut(dataType, ".")
	switch {
	case dataType == "":
		return nil, badValue("The message attribute '%s' must contain non-empty message attribute type.", name)
	case len(dataType) > maxAttributeType:
		return nil, badValue("Length of message attribute type must be less than %d bytes.", maxAttributeType)
	case base != "String" && base != "Number" && base != "Binary", labelled && label == "", !utf8.ValidString(label):
		return nil, badValue("The message attribute '%s' has an invalid message attribute type, "+
			"the set of supported type prefixes is Binary, Number, and String.", name)
	}
	if v.StringValue == nil && v.BinaryValue == nil {
		return nil, emptyValue(name, dataType)
	}
	if base == "Binary" {
		if v.StringValue != nil {
			return nil, badValue("The message attribute '%s' with type '%s' must use field 'Binary'.", name, dataType)
		}
		if len(v.BinaryValue) == 0 {
			return nil, emptyValue(name, dataType)
		}
		return v.BinaryValue, nil
	}
	if v.BinaryValue != nil {
		return nil, badValue("The message attribute '%s' with type '%s' must use field 'String'.", name, dataType)
	}
	text := *v.StringValue
	switch {
	case text == "":
		return nil, emptyValue(name, dataType)
	case !utf8.ValidString(text):
		return nil, badValue("The message attribute '%s' is not valid UTF-8.", name)
	case base == "Number" && !isNumber(text):
		return nil, badValue("Could not cast message attribute '%s' value to number.", name)
	}
	return []byte(text), nil
}

func emptyValue(name, dataType string) error {
	return badValue("The message attribute '%s' must contain non-empty message attribute value for message attribute type '%s'.", name, dataType)
}

func isNumber(text string) bool {
	_, ok := decimal.Parse(text)
	return ok
}
