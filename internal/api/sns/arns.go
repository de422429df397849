package sns

import (
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
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
	return fault.Newf(fault.InvalidParameter, "Invalid parameter: "+format, args...)
}

// parseARN parses the ARN in member, and checks that it is of SNS and of the request's
// region. Unsigned requests have no region: the links in notifications work for every topic.
func parseARN(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := arn.Parse(value)
	if err != nil {
		if n := arn.Elements(value); n < 6 {
			return arn.ARN{}, invalid("%s Reason: An ARN must have at least 6 elements, not %d", member, n)
		}
		return arn.ARN{}, invalid("%s", member)
	}
	// Parse drops the partition; Names compares it, too.
	if a.Service != "sns" || !a.Names(value) || a.Account == "" || !call.Unsigned() && a.Region != call.Region {
		return arn.ARN{}, invalid("%s", member)
	}
	return a, nil
}

// parseTopic parses the ARN of a topic of the caller's account. It fails with
// InvalidParameter, or, for another account's topic, with AccessDenied: only for publishing
// does the topic's policy admit other accounts.
func parseTopic(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := parseAnyTopic(call, member, value)
	if err != nil {
		return arn.ARN{}, err
	}
	return a, owned(call, a)
}

// parseAnyTopic parses the ARN of a topic of any account. It fails with InvalidParameter.
func parseAnyTopic(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := parseARN(call, member, value)
	if err == nil && !validTopicName(a.Resource) {
		err = invalid("%s", member)
	}
	return a, err
}

// parseSubscription parses the ARN of a subscription of the caller's account.
func parseSubscription(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := parseARN(call, member, value)
	if err != nil {
		return arn.ARN{}, err
	}
	t, _, ok := a.SplitSubscription()
	if !ok || !validTopicName(t.Resource) {
		return arn.ARN{}, invalid("SubscriptionId")
	}
	return a, owned(call, a)
}

func owned(call *api.Call, a arn.ARN) error {
	if a.Account == call.Account { // the common case, without the name of the action
		return nil
	}
	return api.Owned(call, a, "sns:"+strings.TrimSuffix(call.Operation, "Batch"))
}
