package invoke

import "godwit.dev/godwit/internal/fault"

// The errors of invocations.
var (
	ErrStopping    = fault.NewRule(fault.Unavailable, "invoke: the pool stops")
	ErrReserved    = fault.NewRule(fault.Throttled, "invoke: the function's reserved concurrency is in use")
	ErrRole        = fault.NewRule(fault.AccessDenied, "invoke: Lambda may not assume the function's role")
	ErrConcurrency = fault.NewRule(fault.Throttled, "invoke: the concurrency that functions share is in use")
)
