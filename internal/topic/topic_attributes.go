package topic

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic/retry"
)

const (
	attrContentDedup     = "ContentBasedDeduplication"
	attrDeliveryPolicy   = "DeliveryPolicy"
	attrDisplayName      = "DisplayName"
	attrFIFO             = "FifoTopic"
	attrFIFOScope        = "FifoThroughputScope"
	attrKmsMasterKeyID   = "KmsMasterKeyId"
	attrPolicy           = "Policy"
	attrSignatureVersion = "SignatureVersion"
	attrTracingConfig    = "TracingConfig"
)

const (
	maxDisplayName = 100  // characters
	maxKeyName     = 2048 // bytes
)

var topicName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// checkName refuses names that no topic can have: those of FIFO topics, and only
// those, end in .fifo.
func checkName(name string, attributes map[string]string) error {
	fifo := strings.EqualFold(attributes[attrFIFO], "true")
	base, suffix := strings.CutSuffix(name, ".fifo")
	if fifo != suffix || len(name) > 256 || !topicName.MatchString(base) {
		return ErrName
	}
	return nil
}

// topicAttributes are the attributes that can be set on a topic, each with the
// check that turns a value into the one to store. The empty string stands for
// the default and stores nothing.
//
// DisplayName, Policy, TracingConfig, SignatureVersion, KmsMasterKeyId and the
// delivery status attributes are kept and shown here, and take effect elsewhere
// or not yet.
var topicAttributes = allTopicAttributes()

// fifoAttributes are those that only FIFO topics have, with what a standard
// topic is refused for; its own value, false, stores nothing.
var fifoAttributes = map[string]func(value string) (string, error){
	attrArchive:      notFor(attrArchive),
	attrFIFOScope:    notFor(attrFIFOScope),
	attrFIFO:         onlyFalse(ErrBecomesFIFO),
	attrContentDedup: onlyFalse(ErrDedupOfStandard),
}

func allTopicAttributes() map[string]func(value string) (string, error) {
	all := map[string]func(value string) (string, error){
		attrDeliveryPolicy:   checkDeliveryPolicy,
		attrDisplayName:      checkDisplayName,
		attrPolicy:           checkPolicy,
		attrSignatureVersion: oneOf(attrSignatureVersion, "1", "2"),
		attrTracingConfig:    oneOf(attrTracingConfig, "PassThrough", "Active"),
		attrKmsMasterKeyID:   checkKey,
		attrArchive:          checkArchive,
		attrFIFOScope:        oneOf(attrFIFOScope, "Topic", "MessageGroup"),
		attrFIFO:             inAnyCase(oneOf(attrFIFO, "true")), // by its name it is one
		attrContentDedup:     inAnyCase(oneOf(attrContentDedup, "true", "false")),
	}
	for _, protocol := range []string{"HTTP", "SQS", "Lambda", "Firehose", "Application"} {
		for _, outcome := range []string{"Success", "Failure"} {
			role := protocol + outcome + "FeedbackRoleArn"
			all[role] = checkRole(role)
		}
		rate := protocol + "SuccessFeedbackSampleRate"
		all[rate] = checkRate(rate)
	}
	return all
}

// checkTopicAttribute gives the value to store for a known attribute of a FIFO
// topic or a standard one. Its refusals do not say where it was given yet.
func checkTopicAttribute(fifo bool, name, value string) (string, error) {
	if !utf8.ValidString(value) {
		return "", ErrUTF8.With(name)
	}
	if check, ok := fifoAttributes[name]; ok && !fifo {
		return check(value)
	}
	return topicAttributes[name](value)
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
		return "", ErrDisplayName.With(maxDisplayName)
	}
	return value, nil
}

// checkPolicy wants a JSON object. What the statements mean is for those who
// evaluate them.
func checkPolicy(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &object) != nil || object == nil {
		return "", ErrDocument.With(attrPolicy)
	}
	return compact(value), nil
}

// checkKey takes what can name a key: its id, its ARN, an alias, or an alias's
// ARN. Whether there is such a key is seen when it is used, as AWS does it.
func checkKey(value string) (string, error) {
	if len(value) > maxKeyName || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", ErrKeyName
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

// inAnyCase has a boolean checked as it is stored, which is in small letters.
func inAnyCase(check func(string) (string, error)) func(string) (string, error) {
	return func(value string) (string, error) {
		if strings.EqualFold(value, "true") || strings.EqualFold(value, "false") {
			value = strings.ToLower(value)
		}
		return check(value)
	}
}

func checkRole(name string) func(string) (string, error) {
	return func(value string) (string, error) {
		if value == "" {
			return "", nil
		}
		if role, err := arn.Parse(value); err != nil || role.Service != "iam" || !strings.HasPrefix(role.Resource, "role/") {
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

// onlyFalse takes false, which is the default, and refuses every other value.
func onlyFalse(rule *fault.Rule) func(string) (string, error) {
	return func(value string) (string, error) {
		if value != "" && !strings.EqualFold(value, "false") {
			return "", rule
		}
		return "", nil
	}
}

// notFor takes only the empty string for an attribute of FIFO topics.
func notFor(name string) func(string) (string, error) {
	return func(value string) (string, error) {
		if value != "" {
			return "", ErrFIFOOnly.With(name)
		}
		return "", nil
	}
}

// compact takes the spaces out of valid JSON.
func compact(document string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(document)) != nil {
		return document
	}
	return out.String()
}
