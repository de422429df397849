package retry

import "godwit.dev/godwit/internal/fault"

// The errors of policies, with the fields of each. A path leads to the offending member, as in
// http.defaultHealthyRetryPolicy.numRetries.
var (
	ErrDocument    = fault.NewRule(fault.InvalidParameter, "retry: no JSON object")
	ErrMember      = fault.NewRule(fault.InvalidParameter, "retry: unknown member")                              // its name
	ErrObject      = fault.NewRule(fault.InvalidParameter, "retry: not an object")                               // the path
	ErrInteger     = fault.NewRule(fault.InvalidParameter, "retry: not an integer")                              // the path
	ErrBool        = fault.NewRule(fault.InvalidParameter, "retry: not true or false")                           // the path
	ErrTooLow      = fault.NewRule(fault.InvalidParameter, "retry: too low")                                     // the path, the least
	ErrTooHigh     = fault.NewRule(fault.InvalidParameter, "retry: too high")                                    // the path, the greatest
	ErrThrottle    = fault.NewRule(fault.InvalidParameter, "retry: no rate")                                     // the path
	ErrLacks       = fault.NewRule(fault.InvalidParameter, "retry: a member is missing")                         // the path of the object, the member
	ErrDelays      = fault.NewRule(fault.InvalidParameter, "retry: the greatest delay is below the least")       // the path of the object
	ErrPhases      = fault.NewRule(fault.InvalidParameter, "retry: the phases have more retries than there are") // the path of the object
	ErrTotal       = fault.NewRule(fault.InvalidParameter, "retry: it lasts too long")                           // the path of the object, how long, the limit in seconds
	ErrContentType = fault.NewRule(fault.InvalidParameter, "retry: no content type")                             // the path, the value
	ErrBackoff     = fault.NewRule(fault.InvalidParameter, "retry: no backoff function")                         // the path, the value
)
