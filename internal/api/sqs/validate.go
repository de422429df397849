package sqs

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
)

const (
	maxBatch           = 10 // entries
	maxAttributes      = 10
	maxAttributeName   = 256 // bytes
	maxAttributeType   = 256 // bytes
	maxGroup           = 128 // characters
	maxDelay           = 900 // seconds
	maxVisibility      = 43200
	maxWait            = 20
	maxReceived        = 10
	traceHeader        = "AWSTraceHeader"
	invalidForKind     = "The request include parameter that is not valid for this queue type."
	missing            = "The request must contain the parameter %s."
	invalidCharacters  = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
	invalidEntryID     = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
	visibilityInterval = "Must be between 0 and 43200, if provided."
)

// outOfRange is AWS's error for a parameter's value.
func outOfRange(value any, parameter, reason string) error {
	return fault.Newf(fault.InvalidParameter, "Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

// optional is *p if it is not nil and in [low, high], and absent if it is nil.
func optional(p *int, absent, low, high int, parameter, reason string) (int, error) {
	if p == nil {
		return absent, nil
	}
	if *p < low || *p > high {
		return 0, outOfRange(*p, parameter, reason)
	}
	return *p, nil
}

// checkBatch validates the ids of a batch of n entries. operation is the batch's name in
// AWS's messages.
func checkBatch(operation string, n int, id func(i int) string) error {
	if n == 0 {
		return fault.Newf(fault.EmptyBatchRequest, "There should be at least one %sRequestEntry in the request.", operation)
	}
	if n > maxBatch {
		return fault.Newf(fault.TooManyEntriesInBatchRequest, "Maximum number of entries per request are %d. You have sent %d.", maxBatch, n)
	}
	for i := range n {
		if !isQueueName(id(i)) {
			return fault.New(fault.InvalidBatchEntryID, invalidEntryID)
		}
		for j := range i {
			if id(i) == id(j) {
				return fault.Newf(fault.BatchEntryIdsNotDistinct, "Id %s repeated.", id(i))
			}
		}
	}
	return nil
}

// checkLength enforces the limit of a batch's total size.
func checkLength(entries []SendMessageBatchRequestEntry) error {
	total := 0
	for i := range entries {
		total += len(entries[i].MessageBody)
		for name, v := range entries[i].MessageAttributes {
			total += len(name) + len(v.DataType) + len(v.BinaryValue)
			if v.StringValue != nil {
				total += len(*v.StringValue)
			}
		}
	}
	if total > queue.MaxMessageBytes {
		return fault.Newf(fault.BatchRequestTooLong, "Batch requests cannot be longer than %d bytes. You have sent %d bytes.",
			queue.MaxMessageBytes, total)
	}
	return nil
}

// validGroup reports whether s is 1–128 printable ASCII characters without spaces.
func validGroup(s string) bool {
	if s == "" || len(s) > maxGroup {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// attributesOf validates a message's attributes, and returns them sorted by name.
func attributesOf(m map[string]MessageAttributeValue) ([]message.Attribute, error) {
	if len(m) == 0 {
		return nil, nil
	}
	if len(m) > maxAttributes {
		return nil, fault.Newf(fault.InvalidParameter, "Number of message attributes [%d] exceeds the allowed maximum [%d].", len(m), maxAttributes)
	}
	attrs := make([]message.Attribute, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := checkAttributeName(name); err != nil {
			return nil, err
		}
		v := m[name]
		value, err := attributeValue("(user)", name, &v)
		if err != nil {
			return nil, err
		}
		attrs = append(attrs, message.Attribute{Name: name, Type: v.DataType, Value: value})
	}
	return attrs, nil
}

func checkAttributeName(name string) error {
	switch {
	case name == "":
		return fault.New(fault.InvalidParameter, "The request must contain non-empty message (user) attribute names.")
	case len(name) > maxAttributeName:
		return fault.Newf(fault.InvalidParameter, "Message (user) attribute name must be shorter than %d bytes.", maxAttributeName)
	case name[0] == '.':
		return fault.New(fault.InvalidParameter, "Message (user) attribute name must not begin with character '.'.")
	case name[len(name)-1] == '.':
		return fault.New(fault.InvalidParameter, "Message (user) attribute name must not end with character '.'.")
	case strings.Contains(name, ".."):
		return fault.New(fault.InvalidParameter, "Message (user) attribute name must not have successive '.' characters.")
	case hasPrefixFold(name, "aws."), hasPrefixFold(name, "amazon."):
		return fault.New(fault.InvalidParameter, "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use.")
	}
	for _, r := range name {
		if !isWordRune(r) && r != '.' {
			return fault.Newf(fault.InvalidParameter,
				"The message attribute name '%s' is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters.", name)
		}
	}
	return nil
}

// isWordRune is isWord, but also true for letters and digits beyond ASCII.
func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return isWord(byte(r))
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// attributeValue validates type and value of an attribute; kind is "(user)" or "system", as
// in AWS's messages.
func attributeValue(kind, name string, v *MessageAttributeValue) ([]byte, error) {
	refuse := func(format string, args ...any) ([]byte, error) {
		return nil, fault.Newf(fault.InvalidParameter, format, args...)
	}
	if len(v.StringListValues) > 0 || len(v.BinaryListValues) > 0 {
		return nil, fault.New(fault.UnsupportedOperation, "Message attribute list values in SendMessage operation are not supported.")
	}
	if v.DataType == "" {
		return refuse("The message %s attribute '%s' must contain a non-empty message attribute type.", kind, name)
	}
	if len(v.DataType) > maxAttributeType {
		return refuse("Message %s attribute type must be shorter than %d bytes.", kind, maxAttributeType)
	}
	base, label, labelled := strings.Cut(v.DataType, ".")
	if base != "String" && base != "Number" && base != "Binary" || labelled && label == "" || !message.ValidText(label) {
		return refuse("The type of message %s attribute '%s' is invalid. You must use only the following supported type prefixes: Binary, Number, String.", kind, name)
	}
	text := ""
	if v.StringValue != nil {
		text = *v.StringValue
	}
	switch {
	case text == "" && len(v.BinaryValue) == 0:
		return refuse("Message %s attribute '%s' must contain a non-empty value of type '%s'.", kind, name, v.DataType)
	case text != "" && len(v.BinaryValue) > 0:
		return refuse("Message %s attribute '%s' must have a single value.", kind, name)
	case base == "Binary" && text != "":
		return refuse("The message %s attribute '%s' with type '%s' must use field 'Binary'.", kind, name, v.DataType)
	case base == "Binary":
		return v.BinaryValue, nil
	case text == "":
		return refuse("The message %s attribute '%s' with type '%s' must use field 'String'.", kind, name, v.DataType)
	case !message.ValidText(text): // InvalidMessageContents is for a body only
		return refuse(invalidCharacters)
	case base == "Number" && !isNumber(text):
		return refuse("Can't cast the value of message %s attribute '%s' to a number.", kind, name)
	}
	return []byte(text), nil
}

// isNumber reports whether s is a decimal number: a sign, digits with at most one point, an
// exponent; only one digit is required.
func isNumber(s string) bool {
	s = unsigned(s)
	mantissa, exponent, found := cutByte(s, 'e', 'E')
	if found && !isDigits(unsigned(exponent)) {
		return false
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	return isDigits(whole) && (fraction == "" || isDigits(fraction)) || whole == "" && isDigits(fraction)
}

func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func cutByte(s string, a, b byte) (before, after string, found bool) {
	for i := range len(s) {
		if s[i] == a || s[i] == b {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
