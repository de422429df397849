package sns

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
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

// checkTypes refuses attributes without a type, as AWS does before it looks at anything but
// the target. at is the position of the attributes in the request.
func checkTypes(at string, given map[string]MessageAttributeValue) error {
	first, untyped := "", false
	for name, value := range given {
		if value.DataType == nil && (!untyped || name < first) {
			first, untyped = name, true
		}
	}
	if !untyped {
		return nil
	}
	return absent(at + "messageAttributes." + first + ".member.dataType")
}

// absent refuses a request without a member, as AWS's model does. at is its position.
func absent(at string) error {
	return fault.Newf(fault.MissingParameter, "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", at)
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
	case base == "Number" && !number(text):
		return nil, badValue("Could not cast message attribute '%s' value to number.", name)
	}
	return []byte(text), nil
}

func emptyValue(name, dataType string) error {
	return badValue("The message attribute '%s' must contain non-empty message attribute value for message attribute type '%s'.", name, dataType)
}

// number accepts decimal numbers, but not Go's other forms (hexadecimal, underscores,
// infinities).
func number(text string) bool {
	if strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && !strings.ContainsRune("+-.eE", c)
	}) {
		return false
	}
	_, err := strconv.ParseFloat(text, 64) // also fails out of range
	return err == nil
}
