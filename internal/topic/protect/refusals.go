package protect

import "godwit.dev/godwit/internal/fault"

// The errors of a policy, with the fields of each. In a statement, the first field is its
// number, from 1.
var (
	ErrTooLong        = fault.NewRule(fault.InvalidParameter, "protect: the policy is too long")               // the limit in bytes
	ErrJSON           = fault.NewRule(fault.InvalidParameter, "protect: no such JSON document")                // what is wrong with it
	ErrVersion        = fault.NewRule(fault.InvalidParameter, "protect: unknown version")                      // the one that there is
	ErrLacks          = fault.NewRule(fault.InvalidParameter, "protect: a member is missing")                  // its name
	ErrStatementLacks = fault.NewRule(fault.InvalidParameter, "protect: a member of the statement is missing") // its name
	ErrStatement      = fault.NewRule(fault.InvalidParameter, "protect: a statement")                          // its number, the error
	ErrDirection      = fault.NewRule(fault.InvalidParameter, "protect: no direction")
	ErrPrincipals     = fault.NewRule(fault.InvalidParameter, "protect: no principals")
	ErrIdentifier     = fault.NewRule(fault.InvalidParameter, "protect: no such data identifier")      // as it was given
	ErrModel          = fault.NewRule(fault.InvalidParameter, "protect: the identifier needs a model") // its name
	ErrOperation      = fault.NewRule(fault.InvalidParameter, "protect: a statement has one operation")
	ErrInboundOnly    = fault.NewRule(fault.InvalidParameter, "protect: the operation is of inbound messages only") // its name
	ErrAudits         = fault.NewRule(fault.InvalidParameter, "protect: more than one audit")
	ErrSampleRate     = fault.NewRule(fault.InvalidParameter, "protect: no rate of samples")
	ErrLogGroup       = fault.NewRule(fault.InvalidParameter, "protect: no log group for findings") // the prefix that it needs
	ErrDestination    = fault.NewRule(fault.InvalidParameter, "protect: findings cannot go there")  // the destination
	ErrDeidentify     = fault.NewRule(fault.InvalidParameter, "protect: either mask or redact")
	ErrMask           = fault.NewRule(fault.InvalidParameter, "protect: no character to mask with")
	ErrTooManyOwn     = fault.NewRule(fault.InvalidParameter, "protect: too many custom identifiers") // the limit
	ErrOwnName        = fault.NewRule(fault.InvalidParameter, "protect: no name of a custom identifier")
	ErrOwnRegex       = fault.NewRule(fault.InvalidParameter, "protect: no pattern of a custom identifier")             // its name
	ErrProgram        = fault.NewRule(fault.InvalidParameter, "protect: the custom identifiers are too large together") // the limit
	ErrTooManyParts   = fault.NewRule(fault.InvalidParameter, "protect: too many statements")                           // the limit
)
