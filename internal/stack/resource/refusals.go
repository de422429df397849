package resource

import "godwit.dev/godwit/internal/fault"

// The errors of a resource's properties, with the fields of each.
var (
	ErrExtraneous = fault.NewRule(fault.ValidationFailed, "resource: the type has no such property") // its name
	ErrRequired   = fault.NewRule(fault.ValidationFailed, "resource: a property is missing")         // its name
	ErrMismatch   = fault.NewRule(fault.ValidationFailed, "resource: a value is of another type")    // its path, the type wanted, that found
)
