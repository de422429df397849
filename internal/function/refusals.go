package function

import "godwit.dev/godwit/internal/fault"

// The errors of commands, with the fields of each.
var (
	ErrNotFound            = fault.NewRule(fault.ResourceNotFound, "function: not found")         // the ARN, qualified
	ErrExists              = fault.NewRule(fault.ResourceConflict, "function: the name is taken") // the name
	ErrPending             = fault.NewRule(fault.ResourceConflict, "function: it is being created")
	ErrUpdating            = fault.NewRule(fault.ResourceConflict, "function: it is being updated") // the ARN
	ErrRevisionOutdated    = fault.NewRule(fault.PreconditionFailed, "function: not the latest revision")
	ErrCodeDiffers         = fault.NewRule(fault.InvalidParameter, "function: $LATEST has other code") // the hash asked for, that of $LATEST
	ErrLatestIsPermanent   = fault.NewRule(fault.InvalidParameter, "function: $LATEST cannot be deleted")
	ErrNotAVersion         = fault.NewRule(fault.InvalidParameter, "function: the qualifier is an alias, not a version")
	ErrVersionHasAliases   = fault.NewRule(fault.ResourceConflict, "function: aliases refer to the version") // their names, in one text
	ErrAliasExists         = fault.NewRule(fault.ResourceConflict, "function: the alias exists")             // its ARN
	ErrAliasNotFound       = fault.NewRule(fault.ResourceNotFound, "function: no such alias")                // its ARN
	ErrAliasUnknown        = fault.NewRule(fault.ResourceNotFound, "function: no such alias to change")      // its ARN
	ErrRoutingOfLatest     = fault.NewRule(fault.InvalidParameter, "function: $LATEST has no routing")
	ErrRoutingToItself     = fault.NewRule(fault.InvalidParameter, "function: both versions of a routing are the same") // the version, twice
	ErrStatementExists     = fault.NewRule(fault.ResourceConflict, "function: the policy has the statement")            // the statement's id
	ErrStatementNotFound   = fault.NewRule(fault.ResourceNotFound, "function: the policy lacks the statement")          // the statement's id
	ErrPolicyTooLong       = fault.NewRule(fault.PolicyLengthExceeded, "function: the policy is too long")              // its size, the limit
	ErrPolicyOfLatest      = fault.NewRule(fault.InvalidParameter, "function: $LATEST has no policy")
	ErrNoPolicy            = fault.NewRule(fault.ResourceNotFound, "function: no policy to remove from")
	ErrPolicyNotFound      = fault.NewRule(fault.ResourceNotFound, "function: no policy")
	ErrPolicyOutdated      = fault.NewRule(fault.PreconditionFailed, "function: not the latest revision of the policy")
	ErrTooManyTags         = fault.NewRule(fault.InvalidParameter, "function: too many tags")
	ErrEventInvokeEmpty    = fault.NewRule(fault.InvalidParameter, "function: a change of nothing")
	ErrEventInvokeToSelf   = fault.NewRule(fault.InvalidParameter, "function: it is its own destination")
	ErrEventInvokeTarget   = fault.NewRule(fault.InvalidParameter, "function: no destination")                // on success, on failure
	ErrEventInvokeNoTarget = fault.NewRule(fault.InvalidParameter, "function: a destination is not there")    // its ARN
	ErrEventInvokeAbsent   = fault.NewRule(fault.ResourceNotFound, "function: nothing is set for its events") // the ARN
	ErrURLOfNothing        = fault.NewRule(fault.ResourceNotFound, "function: not found, or no such alias, for its URL")
	ErrURLExists           = fault.NewRule(fault.ResourceConflict, "function: it has a URL")  // the ARN
	ErrURLTooLarge         = fault.NewRule(fault.InvalidParameter, "function: too much CORS") // the limit
	ErrURLAbsent           = fault.NewRule(fault.ResourceNotFound, "function: it has no URL")
	ErrLayersTooLarge      = fault.NewRule(fault.InvalidParameter, "function: its layers are too large together")          // the bound in bytes
	ErrCodeAndLayers       = fault.NewRule(fault.InvalidParameter, "function: its code and layers are too large together") // the bound, the size, in bytes
	ErrEventInvokeUnknown  = fault.NewRule(fault.ResourceNotFound, "function: not found, for its events")
)
