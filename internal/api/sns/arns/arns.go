// Package arns parses the ARNs that requests of SNS have in their members.
package arns

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// Parse parses the ARN in a member, and checks that it is of SNS and of the request's
// region. Unsigned requests have no region: the links in notifications work for every topic.
func Parse(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := arn.Parse(value)
	if err != nil {
		if n := arn.Elements(value); n < 6 {
			return arn.ARN{}, Invalid("%s Reason: An ARN must have at least 6 elements, not %d", member, n)
		}
		return arn.ARN{}, Invalid("%s", member)
	}
	// Parse drops the partition; Names compares it, too.
	if a.Service != "sns" || !a.Names(value) || a.Account == "" || !call.Unsigned() && a.Region != call.Region {
		return arn.ARN{}, Invalid("%s", member)
	}
	return a, nil
}

// Invalid is the error InvalidParameter, with a message that begins "Invalid parameter:".
func Invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, "Invalid parameter: "+format, args...)
}
