package attribute

import "godwit.dev/godwit/internal/fault"

// What attributes are refused for, with the fields of each.
var (
	ErrUnknown           = fault.NewRule(fault.InvalidAttributeName, "attribute: unknown")             // the attribute
	ErrFIFOOnly          = fault.NewRule(fault.InvalidAttributeName, "attribute: of FIFO queues only") // the attribute
	ErrValue             = fault.NewRule(fault.InvalidAttributeValue, "attribute: no value of it")     // the attribute
	ErrKind              = fault.NewRule(fault.InvalidAttributeValue, "attribute: a FIFO queue stays one")
	ErrTwoEncryptions    = fault.NewRule(fault.InvalidAttributeName, "attribute: two kinds of encryption")
	ErrLimitPerGroup     = fault.NewRule(fault.InvalidAttributeValue, "attribute: a limit per group needs deduplication per group")
	ErrPolicyTooLong     = fault.NewRule(fault.OverLimit, "attribute: the policy is too long")
	ErrTooManyStatements = fault.NewRule(fault.OverLimit, "attribute: too many statements in a policy") // their number, the limit
	ErrTooManyActions    = fault.NewRule(fault.OverLimit, "attribute: too many actions in a statement") // their number, the limit
	ErrTooManyPrincipals = fault.NewRule(fault.OverLimit, "attribute: too many principals in a policy") // their number, the limit

	// The first field of those below is the document. AWS tells a bad RedrivePolicy from
	// a bad value of any other attribute.
	ErrRedriveDocument = fault.NewRule(fault.InvalidParameter, "attribute: the redrive policy is no object")
	ErrRedriveMember   = fault.NewRule(fault.InvalidParameter, "attribute: the redrive policy has another member")
	ErrRedriveLacks    = fault.NewRule(fault.InvalidParameter, "attribute: the redrive policy lacks a member") // its name
	ErrRedriveTarget   = fault.NewRule(fault.InvalidParameter, "attribute: the dead-letter target is no ARN")
	ErrRedriveService  = fault.NewRule(fault.InvalidParameter, "attribute: the dead-letter target is no queue")
	ErrRedriveCount    = fault.NewRule(fault.InvalidParameter, "attribute: the count of receives is out of range") // the count, the limit
	ErrRedriveAccount  = fault.NewRule(fault.InvalidParameter, "attribute: the dead-letter target is of another account")
	ErrRedriveRegion   = fault.NewRule(fault.InvalidParameter, "attribute: the dead-letter target is in another region")
	ErrRedriveType     = fault.NewRule(fault.InvalidParameter, "attribute: the dead-letter target is of another type")
	ErrAllowDocument   = fault.NewRule(fault.InvalidAttributeValue, "attribute: the redrive allow policy cannot be read")
	ErrAllowSources    = fault.NewRule(fault.InvalidAttributeValue, "attribute: a redrive permission for all or none names sources")
	ErrAllowNoSources  = fault.NewRule(fault.InvalidAttributeValue, "attribute: a redrive permission by queue names no source")
	ErrAllowTooMany    = fault.NewRule(fault.InvalidAttributeValue, "attribute: too many sources") // the limit
	ErrAllowSource     = fault.NewRule(fault.InvalidAttributeValue, "attribute: a source is no queue")
)
