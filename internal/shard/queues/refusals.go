package queues

import "godwit.dev/godwit/internal/fault"

// What commands are refused for, with the fields of each.
var (
	ErrNoQueue         = fault.NewRule(fault.QueueDoesNotExist, "queues: no such queue")
	ErrNameTaken       = fault.NewRule(fault.QueueNameExists, "queues: there is one with other attributes") // the attribute that differs
	ErrDeletedRecently = fault.NewRule(fault.QueueDeletedRecently, "queues: deleted a moment ago")
	ErrPurging         = fault.NewRule(fault.PurgeQueueInProgress, "queues: purged a moment ago") // the queue's name
	ErrTooManyTags     = fault.NewRule(fault.InvalidParameter, "queues: too many tags")           // the queue's name
	ErrForbidden       = fault.NewRule(fault.AccessDenied, "queues: the queue's policy forbids it")

	// Of messages.
	ErrInFlight      = fault.NewRule(fault.OverLimit, "queues: too many messages in flight")
	ErrHandle        = fault.NewRule(fault.ReceiptHandleIsInvalid, "queues: no receipt handle of the queue") // the handle
	ErrHandleExpired = fault.NewRule(fault.InvalidParameter, "queues: the receipt handle has expired")       // the handle
	ErrMessageGone   = fault.NewRule(fault.InvalidParameter, "queues: the message is gone")                  // the handle
	ErrNotInFlight   = fault.NewRule(fault.MessageNotInflight, "queues: the message is not in flight")
	ErrVisibility    = fault.NewRule(fault.InvalidParameter, "queues: the visibility timeout would be too long in all") // the timeout in seconds
	ErrInFlightAgain = fault.NewRule(fault.OverLimit, "queues: too many messages in flight for another")
)
