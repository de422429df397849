package sam

import "godwit.dev/godwit/internal/fault"

// The errors of templates, with the fields of each.
var (
	ErrResource       = fault.NewRule(fault.ValidationFailed, "sam: the resource is not valid") // its name, the error
	ErrGlobals        = fault.NewRule(fault.ValidationFailed, "sam: the globals are no map, or those of functions are none")
	ErrGlobalsSection = fault.NewRule(fault.ValidationFailed, "sam: the globals have no such section") // its name
	ErrGlobal         = fault.NewRule(fault.ValidationFailed, "sam: functions have no such global")    // its name
)

// The errors of resources, with the fields of each.
var (
	ErrType           = fault.NewRule(fault.ValidationFailed, "sam: the type is not supported")      // the type
	ErrTaken          = fault.NewRule(fault.ValidationFailed, "sam: it makes what there is already") // the logical id
	ErrProperties     = fault.NewRule(fault.ValidationFailed, "sam: the properties are no map")
	ErrTooMany        = fault.NewRule(fault.ValidationFailed, "sam: functions and their globals have too many values")
	ErrConnectors     = fault.NewRule(fault.ValidationFailed, "sam: connectors are not supported")
	ErrProperty       = fault.NewRule(fault.ValidationFailed, "sam: the type has no such property") // its name, the type
	ErrDeadLetter     = fault.NewRule(fault.ValidationFailed, "sam: the dead-letter queue is neither queue nor topic")
	ErrNoCode         = fault.NewRule(fault.ValidationFailed, "sam: the function has no code")
	ErrCode           = fault.NewRule(fault.ValidationFailed, "sam: the code is no object of S3")
	ErrAlias          = fault.NewRule(fault.ValidationFailed, "sam: no name of an alias")
	ErrURLAuth        = fault.NewRule(fault.ValidationFailed, "sam: the URL does not say whom it is for")
	ErrDestination    = fault.NewRule(fault.ValidationFailed, "sam: a destination is neither queue, topic nor function")     // when it is for
	ErrPolicy         = fault.NewRule(fault.ValidationFailed, "sam: a policy is not valid")                                  // its index
	ErrPolicyTemplate = fault.NewRule(fault.ValidationFailed, "sam: no such template of policies")                           // its name, those that there are
	ErrPolicyValue    = fault.NewRule(fault.ValidationFailed, "sam: a template of policies lacks a value")                   // its name, the parameter
	ErrPolicyValues   = fault.NewRule(fault.ValidationFailed, "sam: a template of policies has more values than parameters") // its name
	ErrEvent          = fault.NewRule(fault.ValidationFailed, "sam: an event is not valid")                                  // its name, the error
)

// The errors of events, with the fields of each.
var (
	ErrEventNoType = fault.NewRule(fault.ValidationFailed, "sam: the event has no type")
	ErrEventType   = fault.NewRule(fault.ValidationFailed, "sam: events of the type are not supported") // the type
	ErrNoQueue     = fault.NewRule(fault.ValidationFailed, "sam: the event has no queue")
	ErrNoTopic     = fault.NewRule(fault.ValidationFailed, "sam: the event has no topic")
	ErrNoQueueURL  = fault.NewRule(fault.ValidationFailed, "sam: the queue between has no ARN or no URL")
)
