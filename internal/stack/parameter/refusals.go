package parameter

import "godwit.dev/godwit/internal/fault"

// The errors of declarations, with the fields of each.
var (
	ErrNoType        = fault.NewRule(fault.ValidationFailed, "parameter: without a type")
	ErrType          = fault.NewRule(fault.ValidationFailed, "parameter: no such type")                         // the type
	ErrProperty      = fault.NewRule(fault.ValidationFailed, "parameter: no such property")                     // its name
	ErrNoPattern     = fault.NewRule(fault.ValidationFailed, "parameter: the pattern is no regular expression") // the parameter
	ErrRepetitions   = fault.NewRule(fault.ValidationFailed, "parameter: the pattern repeats too much")         // the parameter
	ErrAllowedValues = fault.NewRule(fault.ValidationFailed, "parameter: the allowed values are no list")
	ErrAllowedValue  = fault.NewRule(fault.ValidationFailed, "parameter: an allowed value is no text")
	ErrLengths       = fault.NewRule(fault.ValidationFailed, "parameter: the least length is above the greatest")     // the parameter
	ErrBounds        = fault.NewRule(fault.ValidationFailed, "parameter: the least value is above the greatest")      // the parameter
	ErrNotString     = fault.NewRule(fault.ValidationFailed, "parameter: a length of what is no string")              // the parameter, the property
	ErrNotNumber     = fault.NewRule(fault.ValidationFailed, "parameter: a bound of what is no number")               // the parameter, the property
	ErrLength        = fault.NewRule(fault.ValidationFailed, "parameter: a length that is no whole number from 0 on") // the property
	ErrBound         = fault.NewRule(fault.ValidationFailed, "parameter: a bound that is no number")                  // the property
)

// The errors of values, with the fields of each: first the parameter's name.
var (
	ErrConstraint = fault.NewRule(fault.ValidationFailed, "parameter: the value breaks a constraint") // what the template says of that
	ErrNotAllowed = fault.NewRule(fault.ValidationFailed, "parameter: the value is not among those allowed")
	ErrTooShort   = fault.NewRule(fault.ValidationFailed, "parameter: the value is too short")               // the limit in characters
	ErrTooLong    = fault.NewRule(fault.ValidationFailed, "parameter: the value is too long")                // the limit in characters
	ErrNoMatch    = fault.NewRule(fault.ValidationFailed, "parameter: the value does not match the pattern") // the pattern
	ErrNoNumber   = fault.NewRule(fault.ValidationFailed, "parameter: the value is no number")
	ErrTooLow     = fault.NewRule(fault.ValidationFailed, "parameter: the value is too low")  // the limit as written
	ErrTooHigh    = fault.NewRule(fault.ValidationFailed, "parameter: the value is too high") // the limit as written
)
