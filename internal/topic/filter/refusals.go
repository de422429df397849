package filter

import "godwit.dev/godwit/internal/fault"

// The errors of policies, with the fields of each.
var (
	ErrAt            = fault.NewRule(fault.InvalidParameter, "filter: at")             // the error, the column
	ErrDocument      = fault.NewRule(fault.InvalidParameter, "filter: no JSON object") // what is wrong with it
	ErrJSON          = fault.NewRule(fault.InvalidParameter, "filter: no JSON")
	ErrMemberName    = fault.NewRule(fault.InvalidParameter, "filter: a name without its quote") // the character, and its code
	ErrWord          = fault.NewRule(fault.InvalidParameter, "filter: no word of JSON")          // the word
	ErrTooComplex    = fault.NewRule(fault.InvalidParameter, "filter: too many combinations")
	ErrTooLong       = fault.NewRule(fault.InvalidParameter, "filter: too long")      // its length, the limit in bytes
	ErrTooManyKeys   = fault.NewRule(fault.InvalidParameter, "filter: too many keys") // the limit
	ErrEmptyObject   = fault.NewRule(fault.InvalidParameter, "filter: an empty object")
	ErrScalar        = fault.NewRule(fault.InvalidParameter, "filter: neither object nor array") // the key
	ErrEmptyArray    = fault.NewRule(fault.InvalidParameter, "filter: an empty array")
	ErrValue         = fault.NewRule(fault.InvalidParameter, "filter: no value to match")
	ErrNoOperator    = fault.NewRule(fault.InvalidParameter, "filter: an expression without an operator")
	ErrOperator      = fault.NewRule(fault.InvalidParameter, "filter: no such operator") // the operator
	ErrNumericKeys   = fault.NewRule(fault.InvalidParameter, "filter: a numeric expression has several keys")
	ErrKeys          = fault.NewRule(fault.InvalidParameter, "filter: an expression has several keys")
	ErrPattern       = fault.NewRule(fault.InvalidParameter, "filter: the pattern is no string") // the operator
	ErrWildcard      = fault.NewRule(fault.InvalidParameter, "filter: the wildcard is no string")
	ErrEscape        = fault.NewRule(fault.InvalidParameter, "filter: no such escape")         // the position
	ErrWildcards     = fault.NewRule(fault.InvalidParameter, "filter: two wildcards in a row") // the position
	ErrButValue      = fault.NewRule(fault.InvalidParameter, "filter: nothing that anything-but takes")
	ErrButNoOperator = fault.NewRule(fault.InvalidParameter, "filter: anything-but without an operator")
	ErrButPattern    = fault.NewRule(fault.InvalidParameter, "filter: the pattern of anything-but is no string")
	ErrButEmpty      = fault.NewRule(fault.InvalidParameter, "filter: the pattern of anything-but is empty")
	ErrButOperator   = fault.NewRule(fault.InvalidParameter, "filter: no such operator in anything-but") // the operator
	ErrButElement    = fault.NewRule(fault.InvalidParameter, "filter: no such element in anything-but")
	ErrButMixed      = fault.NewRule(fault.InvalidParameter, "filter: anything-but mixes types")
	ErrExists        = fault.NewRule(fault.InvalidParameter, "filter: exists is neither true nor false")
	ErrNumeric       = fault.NewRule(fault.InvalidParameter, "filter: numeric takes an array")
	ErrNumericMember = fault.NewRule(fault.InvalidParameter, "filter: no operator of numeric")        // the member as written
	ErrRangeOperator = fault.NewRule(fault.InvalidParameter, "filter: no such operator of numeric")   // the operator
	ErrRangeValue    = fault.NewRule(fault.InvalidParameter, "filter: no operator of a range's end")  // the value as written
	ErrRangeEnd      = fault.NewRule(fault.InvalidParameter, "filter: no operator for a range's end") // the operator
	ErrRangeTerms    = fault.NewRule(fault.InvalidParameter, "filter: a range of more than two terms")
	ErrRangeEmpty    = fault.NewRule(fault.InvalidParameter, "filter: an empty range")
	ErrNumericValue  = fault.NewRule(fault.InvalidParameter, "filter: no number") // the operator
	ErrNumericRange  = fault.NewRule(fault.InvalidParameter, "filter: the number is out of range")
	ErrCIDR          = fault.NewRule(fault.InvalidParameter, "filter: the address range is no string")
	ErrCIDRSlash     = fault.NewRule(fault.InvalidParameter, "filter: an address range without one slash")
	ErrCIDRMask      = fault.NewRule(fault.InvalidParameter, "filter: a mask that is no number")
	ErrCIDRNegative  = fault.NewRule(fault.InvalidParameter, "filter: a negative mask")
	ErrCIDRAddress   = fault.NewRule(fault.InvalidParameter, "filter: no address") // the address as written
	ErrCIDRMask4     = fault.NewRule(fault.InvalidParameter, "filter: a mask too long for IPv4")
	ErrCIDRMask6     = fault.NewRule(fault.InvalidParameter, "filter: a mask too long for IPv6")
	ErrNested        = fault.NewRule(fault.InvalidParameter, "filter: message attributes have no members")
	ErrScope         = fault.NewRule(fault.InvalidParameter, "filter: no such scope") // the value
)
