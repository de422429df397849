// Package settings has the settable attributes of topics and subscriptions: their names, and
// the checks of their values.
package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic/retry"
)

// The attributes of a topic, and Replay, which is a subscription's.
const (
	Archive          = "ArchivePolicy"
	ContentDedup     = "ContentBasedDeduplication"
	DeliveryPolicy   = "DeliveryPolicy"
	DisplayName      = "DisplayName"
	FIFO             = "FifoTopic"
	FIFOScope        = "FifoThroughputScope"
	KMSMasterKeyID   = "KmsMasterKeyId"
	MaxSize          = "MaximumMessageSize"
	Policy           = "Policy"
	Replay           = "ReplayPolicy"
	SignatureVersion = "SignatureVersion"
	TracingConfig    = "TracingConfig"
)

const (
	maxDisplayName = 100  // characters
	maxKeyName     = 2048 // bytes
)

// Bounds of MaximumMessageSize, in bytes. A topic whose own is above DefaultMessageSize has
// MaxLargeSubscriptions at most, of protocols that take such messages. Source: the developer
// guide of SNS, "Publishing large messages".
const (
	MinMessageSize        = 1 << 10
	DefaultMessageSize    = 256 << 10
	MaxMessageSize        = 1 << 20
	MaxLargeSubscriptions = 100
)

// The errors of a value, with the fields of each. If there are several, the first is the name
// of the attribute.
var (
	ErrUTF8            = fault.NewRule(fault.InvalidParameter, "topic: not UTF-8")           // the attribute
	ErrDocument        = fault.NewRule(fault.InvalidParameter, "topic: no JSON object")      // the attribute
	ErrMember          = fault.NewRule(fault.InvalidParameter, "topic: unknown member")      // the attribute, the member
	ErrChoice          = fault.NewRule(fault.InvalidParameter, "topic: none of the values")  // the attribute, the value, the choices
	ErrFIFOOnly        = fault.NewRule(fault.InvalidParameter, "topic: of FIFO topics only") // the attribute
	ErrRole            = fault.NewRule(fault.InvalidParameter, "topic: no role")             // the attribute, the value
	ErrSize            = fault.NewRule(fault.InvalidParameter, "topic: no size of messages") // the value, the minimum and the maximum in bytes
	ErrRate            = fault.NewRule(fault.InvalidParameter, "topic: no percentage")       // the attribute, the value
	ErrDelivery        = fault.NewRule(fault.InvalidParameter, "topic: the delivery policy") // the error
	ErrDisplayName     = fault.NewRule(fault.InvalidParameter, "topic: no name to display")
	ErrKeyName         = fault.NewRule(fault.InvalidParameter, "topic: no name of a key")
	ErrBecomesFIFO     = fault.NewRule(fault.InvalidParameter, "topic: a standard topic stays one")
	ErrDedupOfStandard = fault.NewRule(fault.InvalidParameter, "topic: only FIFO topics deduplicate")
	ErrArchiveDays     = fault.NewRule(fault.InvalidParameter, "topic: no retention of an archive")          // the minimum and the maximum in days
	ErrReplayValue     = fault.NewRule(fault.InvalidParameter, "topic: the replay policy has no such value") // the member
	ErrReplayLacks     = fault.NewRule(fault.InvalidParameter, "topic: the replay policy lacks a member")    // the member
	ErrReplayOrder     = fault.NewRule(fault.InvalidParameter, "topic: the replay ends before it starts")
)

// known are the settable attributes of a topic, each with the check that converts a value to
// the stored one. The empty string means the default and stores nothing.
//
// DisplayName, Policy, TracingConfig, SignatureVersion, KmsMasterKeyId and the delivery status
// attributes are stored and shown here, and are effective elsewhere or not yet.
var known = all()

// ofFIFO are the attributes of FIFO topics only, with their checks for a standard topic, which
// accept only the default and store nothing.
var ofFIFO = map[string]func(value string) (string, error){
	Archive:      notFor(Archive),
	FIFOScope:    notFor(FIFOScope),
	FIFO:         onlyFalse(ErrBecomesFIFO),
	ContentDedup: onlyFalse(ErrDedupOfStandard),
}

func all() map[string]func(value string) (string, error) {
	all := map[string]func(value string) (string, error){
		DeliveryPolicy:   checkDeliveryPolicy,
		DisplayName:      checkDisplayName,
		Policy:           checkPolicy,
		SignatureVersion: oneOf(SignatureVersion, "1", "2"),
		TracingConfig:    oneOf(TracingConfig, "PassThrough", "Active"),
		KMSMasterKeyID:   checkKey,
		MaxSize:          checkSize,
		Archive:          checkArchive,
		FIFOScope:        oneOf(FIFOScope, "Topic", "MessageGroup"),
		FIFO:             inAnyCase(oneOf(FIFO, "true")), // its name makes it one
		ContentDedup:     inAnyCase(oneOf(ContentDedup, "true", "false")),
	}
	for _, protocol := range []string{"HTTP", "SQS", "Lambda", "Firehose", "Application"} {
		for _, outcome := range []string{"Success", "Failure"} {
			role := protocol + outcome + "FeedbackRoleArn"
			all[role] = Role(role)
		}
		rate := protocol + "SuccessFeedbackSampleRate"
		all[rate] = checkRate(rate)
	}
	return all
}

// Known reports that a topic has a settable attribute of this name.
func Known(name string) bool { return known[name] != nil }

// Check returns the value to store for a known attribute of a FIFO topic or a standard one. Its
// errors do not name the attribute's source yet.
func Check(fifo bool, name, value string) (string, error) {
	if !utf8.ValidString(value) {
		return "", ErrUTF8.With(name)
	}
	if check, ok := ofFIFO[name]; ok && !fifo {
		return check(value)
	}
	return known[name](value)
}

func checkDeliveryPolicy(value string) (string, error) {
	policy, err := retry.ParseTopic(value)
	if err != nil {
		return "", ErrDelivery.With(err)
	}
	return policy.Document(), nil
}

func checkDisplayName(value string) (string, error) {
	if utf8.RuneCountInString(value) > maxDisplayName || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
		return "", ErrDisplayName
	}
	return value, nil
}

// checkPolicy requires a JSON object. It does not check the statements.
func checkPolicy(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &object) != nil || object == nil {
		return "", ErrDocument.With(Policy)
	}
	return Compact(value), nil
}

// checkKey accepts names of a key: its id, its ARN, an alias, or an alias's ARN. Whether the
// key exists is only checked at its use, as in AWS.
func checkKey(value string) (string, error) {
	if len(value) > maxKeyName || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", ErrKeyName
	}
	return value, nil
}

// checkSize accepts a number of bytes as it is written in decimal. The empty string is none: the
// default has to be given as a number, as with AWS.
func checkSize(value string) (string, error) {
	size, err := strconv.Atoi(value)
	if err != nil || size < MinMessageSize || size > MaxMessageSize || strconv.Itoa(size) != value {
		return "", ErrSize.With(value, MinMessageSize, MaxMessageSize)
	}
	return value, nil
}

func oneOf(name string, values ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		if value != "" && !slices.Contains(values, value) {
			return "", ErrChoice.With(name, value, strings.Join(values, " or "))
		}
		return value, nil
	}
}

// inAnyCase converts a boolean to its stored form, which is lowercase, before the check.
func inAnyCase(check func(string) (string, error)) func(string) (string, error) {
	return func(value string) (string, error) {
		if strings.EqualFold(value, "true") || strings.EqualFold(value, "false") {
			value = strings.ToLower(value)
		}
		return check(value)
	}
}

// Role checks the ARN of a role, the value of the attribute name; it may be empty.
func Role(name string) func(string) (string, error) {
	return func(value string) (string, error) {
		if value == "" {
			return "", nil
		}
		if role, err := arn.Parse(value); err != nil || !role.IsRole() {
			return "", ErrRole.With(name, value)
		}
		return value, nil
	}
}

func checkRate(name string) func(string) (string, error) {
	return func(value string) (string, error) {
		if value == "" {
			return "", nil
		}
		if rate, err := strconv.Atoi(value); err != nil || rate < 0 || rate > 100 {
			return "", ErrRate.With(name, value)
		}
		return value, nil
	}
}

// onlyFalse accepts false, which is the default, and refuses every other value.
func onlyFalse(rule *fault.Rule) func(string) (string, error) {
	return func(value string) (string, error) {
		if value != "" && !strings.EqualFold(value, "false") {
			return "", rule
		}
		return "", nil
	}
}

// notFor accepts only the empty string for an attribute of FIFO topics.
func notFor(name string) func(string) (string, error) {
	return func(value string) (string, error) {
		if value != "" {
			return "", ErrFIFOOnly.With(name)
		}
		return "", nil
	}
}

// Compact removes the spaces from valid JSON.
func Compact(document string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(document)) != nil {
		return document
	}
	return out.String()
}
