package functions

import "godwit.dev/godwit/internal/fault"

// The errors of commands, with the fields of each.
var (
	ErrCodeStorage  = fault.NewRule(fault.CodeStorageExceeded, "functions: the account's code would be too large")
	ErrReserved     = fault.NewRule(fault.InvalidParameter, "functions: too little concurrency would be left unreserved") // the least in executions
	ErrPrincipal    = fault.NewRule(fault.InvalidParameter, "functions: no principal of a policy")
	ErrNotPermitted = fault.NewRule(fault.AccessDenied, "functions: the function's policy forbids it") // the service, the action, the function's ARN, the action
	ErrFIFOQueue    = fault.NewRule(fault.InvalidParameter, "functions: events do not go to FIFO queues")
	ErrNoCode       = fault.NewRule(fault.ResourceNotFound, "functions: the code has been deleted")

	ErrLayerNotFound = fault.NewRule(fault.InvalidParameter, "functions: no such version of a layer") // its ARN

	// Of mappings.
	ErrMappedFunction   = fault.NewRule(fault.InvalidParameter, "functions: no such function to feed")
	ErrMappedQueue      = fault.NewRule(fault.InvalidParameter, "functions: no such queue to feed from")
	ErrMappedTimeout    = fault.NewRule(fault.InvalidParameter, "functions: the visibility timeout is shorter than the function's") // both in seconds
	ErrWindowOfFIFO     = fault.NewRule(fault.InvalidParameter, "functions: batches of FIFO queues have no window")
	ErrBatchNeedsWindow = fault.NewRule(fault.InvalidParameter, "functions: batches of this size need a window")   // the largest that needs none
	ErrMappingExists    = fault.NewRule(fault.ResourceConflict, "functions: the queue feeds the function already") // the queue's ARN, the function's name, the UUID of the mapping
)
