package logs

import "godwit.dev/godwit/internal/fault"

// Errors of commands.
var (
	ErrNoGroup              = fault.NewRule(fault.ResourceNotFound, "logs: there is no such group")
	ErrNoStream             = fault.NewRule(fault.ResourceNotFound, "logs: there is no such stream")
	ErrGroupExists          = fault.NewRule(fault.ResourceAlreadyExists, "logs: the group exists")
	ErrStreamExists         = fault.NewRule(fault.ResourceAlreadyExists, "logs: the stream exists")
	ErrProtected            = fault.NewRule(fault.ValidationFailed, "logs: the group is protected from deletion")
	ErrNoFilter             = fault.NewRule(fault.ResourceNotFound, "logs: no such metric filter")
	ErrTooManyFilters       = fault.NewRule(fault.LimitExceeded, "logs: the group has too many metric filters")
	ErrNoSubscription       = fault.NewRule(fault.ResourceNotFound, "logs: no such subscription filter")
	ErrTooManySubscriptions = fault.NewRule(fault.LimitExceeded, "logs: the group has too many subscription filters")
	ErrTooManyTags          = fault.NewRule(fault.TooManyTags, "logs: the group has too many tags") // the limit
	ErrSpan                 = fault.NewRule(fault.InvalidParameter, "logs: the events span too much time")
	ErrToken                = fault.NewRule(fault.InvalidParameter, "logs: the token is none")
	ErrFull                 = fault.NewRule(fault.InsufficientStorage, "logs: the disk is short of space")
)
