package topics

import "godwit.dev/godwit/internal/fault"

// What commands are refused for, with the fields of each.
var (
	ErrTooManyTopics = fault.NewRule(fault.TopicLimitExceeded, "topics: the account has as many as it may")
	ErrNoDedup       = fault.NewRule(fault.InvalidParameter, "topics: no deduplication id")

	// Of policies; topic.InAttribute and topic.InAttributes say where.
	ErrPolicyTooLong   = fault.NewRule(fault.InvalidParameter, "topics: the policy is too long") // the limit in bytes
	ErrPolicyDocument  = fault.NewRule(fault.InvalidParameter, "topics: the policy cannot be read")
	ErrPolicyAction    = fault.NewRule(fault.InvalidParameter, "topics: the policy has an action of no topic")
	ErrPolicyResources = fault.NewRule(fault.InvalidParameter, "topics: a statement of the policy has several resources")
	ErrLabelTaken      = fault.NewRule(fault.InvalidParameter, "topics: the policy has the label")
	ErrLastStatement   = fault.NewRule(fault.InvalidParameter, "topics: the policy would have no statement") // the label
)
