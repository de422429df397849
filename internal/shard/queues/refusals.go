package queues

import "godwit.dev/godwit/internal/fault"

// What commands are refused for, with the fields of each.
var (
	ErrNoQueue         = fault.NewRule(fault.QueueDoesNotExist, "queues: no such queue")
	ErrNameTaken       = fault.NewRule(fault.QueueNameExists, "queues: there is one with other attributes") // the attribute that differs
	ErrDeletedRecently = fault.NewRule(fault.QueueDeletedRecently, "queues: deleted a moment ago")
	ErrPurging         = fault.NewRule(fault.PurgeQueueInProgress, "queues: purged a moment ago")    // the queue's name
	ErrTooManyTags     = fault.NewRule(fault.InvalidParameter, "queues: too many tags")              // the queue's name
	ErrLabelTaken      = fault.NewRule(fault.InvalidParameter, "queues: the policy has the label")   // the label
	ErrNoLabel         = fault.NewRule(fault.InvalidParameter, "queues: the policy lacks the label") // the label
	ErrPolicyTooLong   = fault.NewRule(fault.OverLimit, "queues: the policy would be too long")      // its size in bytes, the limit
	ErrForbidden       = fault.NewRule(fault.AccessDenied, "queues: the queue's policy forbids it")

	// Of messages.
	ErrInFlight      = fault.NewRule(fault.OverLimit, "queues: too many messages in flight")
	ErrHandle        = fault.NewRule(fault.ReceiptHandleIsInvalid, "queues: no receipt handle of the queue") // the handle
	ErrHandleExpired = fault.NewRule(fault.InvalidParameter, "queues: the receipt handle has expired")       // the handle
	ErrMessageGone   = fault.NewRule(fault.InvalidParameter, "queues: the message is gone")                  // the handle
	ErrNotInFlight   = fault.NewRule(fault.MessageNotInflight, "queues: the message is not in flight")
	ErrVisibility    = fault.NewRule(fault.InvalidParameter, "queues: the visibility timeout would be too long in all") // the timeout in seconds
	ErrInFlightAgain = fault.NewRule(fault.OverLimit, "queues: too many messages in flight for another")

	// Injected faults. What functions could not be run for goes into the events that tell
	// of it, so the names of these are sentences already.
	ErrUnavailable = fault.NewRule(fault.Unavailable, "The service is unavailable.")
	ErrThrottled   = fault.NewRule(fault.Throttled, "Rate exceeded.")
	ErrDenied      = fault.NewRule(fault.AccessDenied, "queues: injected: denied")
	ErrInternal    = fault.NewRule(fault.Internal, "queues: injected: an internal error")
	ErrFaultName   = fault.NewRule(fault.InvalidParameter, "queues: no such fault to inject") // the name
)
