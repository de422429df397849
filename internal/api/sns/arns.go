package sns

import (
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// validTopicName reports whether a topic's name is of 1 to 256 letters, digits,
// hyphens and underscores; a FIFO topic's has the suffix, which counts.
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

// invalid makes SNS's refusal of a parameter, which begins "Invalid parameter:".
func invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, "Invalid parameter: "+format, args...)
}

// parseARN reads the ARN that member holds and checks what is common to
// topics and subscriptions: it is of SNS, and of the region that the caller
// addressed. Unsigned requests name no region of their own: the links in
// notifications work for every topic.
func parseARN(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := arn.Parse(value)
	if err != nil {
		if n := arn.Elements(value); n < 6 {
			return arn.ARN{}, invalid("%s Reason: An ARN must have at least 6 elements, not %d", member, n)
		}
		return arn.ARN{}, invalid("%s", member)
	}
	// The partition is not kept by Parse, and so the way back reports whether it
	// was ours.
	if a.Service != "sns" || !a.Names(value) || a.Account == "" || !call.Unsigned() && a.Region != call.Region {
		return arn.ARN{}, invalid("%s", member)
	}
	return a, nil
}

// parseTopic reads the ARN of a topic that the caller may use. It fails with
// InvalidParameter, or with AccessDenied for another account's: only publishing
// goes by what the topic's policy says about other accounts.
func parseTopic(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := parseAnyTopic(call, member, value)
	if err != nil {
		return arn.ARN{}, err
	}
	return a, owned(call, a)
}

// parseAnyTopic reads the ARN of a topic of any account. It fails with
// InvalidParameter.
func parseAnyTopic(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := parseARN(call, member, value)
	if err == nil && !validTopicName(a.Resource) {
		err = invalid("%s", member)
	}
	return a, err
}

// parseSubscription reads the ARN of a subscription that the caller may use.
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
	if a.Account == call.Account { // as most are: no action is named
		return nil
	}
	return api.Owned(call, a, "sns:"+strings.TrimSuffix(call.Operation, "Batch"))
}
