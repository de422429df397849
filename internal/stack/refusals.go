package stack

import "godwit.dev/godwit/internal/fault"

// The errors of operations and of stack policies, with the fields of each.
var (
	ErrPolicy     = fault.NewRule(fault.ValidationFailed, "stack: the policy is not valid")
	ErrDenied     = fault.NewRule(fault.ValidationFailed, "stack: the policy denies the change")     // the number of the statement, the action, the resource
	ErrNotAllowed = fault.NewRule(fault.ValidationFailed, "stack: the policy allows no such change") // the action, the resource

	ErrProperties  = fault.NewRule(fault.ValidationFailed, "stack: the properties are not valid")                // the resource, the error
	ErrTooLarge    = fault.NewRule(fault.ValidationFailed, "stack: the properties take too much")                // the limit in bytes
	ErrNotMade     = fault.NewRule(fault.ValidationFailed, "stack: it refers to what is not made")               // the resource
	ErrNoAttribute = fault.NewRule(fault.ValidationFailed, "stack: it refers to an attribute that is not there") // the attribute
	ErrNoExport    = fault.NewRule(fault.ValidationFailed, "stack: there is no such export")                     // its name
	ErrExportTwice = fault.NewRule(fault.ValidationFailed, "stack: it has two exports of a name")                // the name
	ErrExportTaken = fault.NewRule(fault.ValidationFailed, "stack: another stack has the export")                // its name, the stack
	ErrExportInUse = fault.NewRule(fault.ValidationFailed, "stack: another stack uses the export")               // its name, "updated" or "deleted", the stack
)
