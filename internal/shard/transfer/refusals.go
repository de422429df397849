package transfer

import "godwit.dev/godwit/internal/fault"

// What commands are refused for, with the fields of each.
var (
	ErrDiskFull = fault.NewRule(fault.Unavailable, "transfer: the disk is short of space")

	// Of move tasks.
	ErrMoveResource = fault.NewRule(fault.ResourceNotFound, "transfer: no such queue to move messages from or to") // the parameter
	ErrMoveRunning  = fault.NewRule(fault.InvalidParameter, "transfer: a task moves the queue's messages already")
	ErrMoveSource   = fault.NewRule(fault.InvalidParameter, "transfer: the source is no dead-letter queue")
	ErrMoveToItself = fault.NewRule(fault.InvalidParameter, "transfer: source and destination are the same")
	ErrMoveType     = fault.NewRule(fault.InvalidParameter, "transfer: source and destination are of two types")
	ErrNoTask       = fault.NewRule(fault.ResourceNotFound, "transfer: no such task")
)
