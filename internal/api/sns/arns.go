package sns

import (
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns/arns"
	"godwit.dev/godwit/internal/arn"
)

// validTopicName reports whether a topic's name is 1 to 256 letters, digits, hyphens and
// underscores. The name of a FIFO topic ends in .fifo, which counts.
func validTopicName(name string) bool {
	if len(name) > 256 {
		return false
	}
	name = strings.TrimSuffix(name, ".fifo")
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return name != ""
}

// invalid returns the error InvalidParameter, with a message that begins "Invalid
// parameter:".
func invalid(format string, args ...any) error {
	return arns.Invalid(format, args...)
}

// parseTopic parses the ARN of a topic of the caller's account. It fails with
// InvalidParameter, or, for another account's topic, with AccessDenied: only for publishing
// and subscribing does the topic's policy admit other accounts.
func parseTopic(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := parseAnyTopic(call, member, value)
	if err != nil {
		return arn.ARN{}, err
	}
	return a, owned(call, a)
}

// parseAnyTopic parses the ARN of a topic of any account. It fails with InvalidParameter.
func parseAnyTopic(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := arns.Parse(call, member, value)
	if err == nil && !validTopicName(a.Resource) {
		err = invalid("%s", member)
	}
	return a, err
}

// parseSubscription parses the ARN of a subscription of any account.
func parseSubscription(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := arns.Parse(call, member, value)
	if err != nil {
		return arn.ARN{}, err
	}
	t, _, ok := a.SplitSubscription()
	if !ok || !validTopicName(t.Resource) {
		return arn.ARN{}, invalid("SubscriptionId")
	}
	return a, nil
}

func owned(call *api.Call, a arn.ARN) error {
	if a.Account == call.Account { // the common case, without the name of the action
		return nil
	}
	return api.Owned(call, a, "sns:"+strings.TrimSuffix(call.Operation, "Batch"))
}
