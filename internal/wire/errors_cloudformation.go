package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

// cloudformationErrors are the faults of CloudFormation, with the codes and statuses of its
// model. The kinds of other services that it cannot meet are of validation.
var cloudformationErrors = func() map[fault.Kind]errorShape {
	invalid := iamError("ValidationError", http.StatusBadRequest, "A parameter is not valid.")
	own := map[fault.Kind]errorShape{
		fault.ValidationFailed:         invalid,
		fault.ResourceAlreadyExists:    iamError("AlreadyExistsException", http.StatusBadRequest, "The resource exists already."),
		fault.LimitExceeded:            iamError("LimitExceededException", http.StatusBadRequest, "There are as many as there may be."),
		fault.InsufficientCapabilities: iamError("InsufficientCapabilitiesException", http.StatusBadRequest, "The template requires capabilities."),
		fault.NotFound:                 iamError("ChangeSetNotFound", http.StatusNotFound, "The change set does not exist."),
		fault.InvalidState:             iamError("InvalidChangeSetStatus", http.StatusBadRequest, "The change set cannot be executed."),
		fault.AccessDenied:             iamError("AccessDenied", http.StatusForbidden, "Access is denied."),
		fault.Throttled:                iamError("Throttling", http.StatusBadRequest, "Rate exceeded"),
		fault.ExpiredToken:             iamError("ExpiredToken", http.StatusForbidden, "The security token included in the request is expired"),
		fault.InvalidSecurity:          iamError("InvalidSecurity", http.StatusForbidden, "The request must be signed with Signature Version 4."),
	}
	for kind, shape := range common {
		if _, ok := own[kind]; !ok {
			own[kind] = shape
		}
	}
	for _, kind := range fault.Kinds() {
		if _, ok := own[kind]; !ok {
			own[kind] = invalid
		}
	}
	return own
}()
