package topics

import "godwit.dev/godwit/internal/fault"

// The errors of commands, with the fields of each.
var (
	ErrTooManyTopics = fault.NewRule(fault.TopicLimitExceeded, "topics: the account has as many as it may")
	ErrProtected     = fault.NewRule(fault.AccessDenied, "topics: the data protection policy denies it")      // what it has
	ErrUnprotected   = fault.NewRule(fault.AccessDenied, "topics: the data protection policy takes too long") // the identifier
	ErrNoDedup       = fault.NewRule(fault.InvalidParameter, "topics: no deduplication id")

	// Of policies; topic.InAttribute says where.
	ErrLabelTaken    = fault.NewRule(fault.InvalidParameter, "topics: the policy has the label")
	ErrLastStatement = fault.NewRule(fault.InvalidParameter, "topics: the policy would have no statement") // the label
)
