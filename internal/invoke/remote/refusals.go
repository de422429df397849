package remote

import "godwit.dev/godwit/internal/fault"

// The errors of the function's server.
var (
	ErrURL         = fault.NewRule(fault.FunctionNotReady, "remote: the URL is none")
	ErrOwnAddress  = fault.NewRule(fault.FunctionNotReady, "remote: the address is this server's own")
	ErrNotPublic   = fault.NewRule(fault.FunctionNotReady, "remote: the address is not public")
	ErrUnreachable = fault.NewRule(fault.FunctionNotReady, "remote: the function's server cannot be reached")
	ErrNoAnswer    = fault.NewRule(fault.FunctionNotReady, "remote: the function's server does not answer")
	ErrStatus      = fault.NewRule(fault.FunctionNotReady, "remote: the function's server refuses") // its status
	ErrThrottled   = fault.NewRule(fault.Throttled, "remote: the function's server throttles")
	ErrClosed      = fault.NewRule(fault.Unavailable, "remote: the environment is closed")
)
