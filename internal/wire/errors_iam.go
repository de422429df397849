package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

// iamError is how IAM and STS report a fault of the caller.
func iamError(code string, status int, text string) errorShape {
	return errorShape{Type: code, Code: code, Status: status, Text: text}
}

var iamInvalid = iamError("InvalidInput", http.StatusBadRequest, "A parameter is not valid.")

// identityErrors are what IAM and STS report alike.
func identityErrors(own map[fault.Kind]errorShape) map[fault.Kind]errorShape {
	for kind, shape := range map[fault.Kind]errorShape{
		fault.Internal:                {Type: "ServiceFailure", Code: "ServiceFailure", Status: http.StatusInternalServerError, Server: true, Text: internalText},
		fault.MissingParameter:        iamError("MissingParameter", http.StatusBadRequest, "A required parameter is missing."),
		fault.AccessDenied:            iamError("AccessDenied", http.StatusForbidden, "Access to the resource is denied."),
		fault.Throttled:               iamError("Throttling", http.StatusBadRequest, "Rate exceeded"),
		fault.LimitExceeded:           iamError("LimitExceeded", http.StatusConflict, "There are as many as there may be."),
		fault.InvalidSecurity:         iamError("InvalidSecurity", http.StatusForbidden, "The request must be signed with Signature Version 4."),
		fault.NoSuchEntity:            iamError("NoSuchEntity", http.StatusNotFound, "The entity cannot be found."),
		fault.EntityAlreadyExists:     iamError("EntityAlreadyExists", http.StatusConflict, "The entity already exists."),
		fault.DeleteConflict:          iamError("DeleteConflict", http.StatusConflict, "The entity has subordinate entities."),
		fault.MalformedPolicyDocument: iamError("MalformedPolicyDocument", http.StatusBadRequest, "The policy document is malformed."),
		fault.InvalidInput:            iamInvalid,
		fault.PolicyNotAttachable:     iamError("PolicyNotAttachable", http.StatusBadRequest, "The policy cannot be attached."),
		fault.PackedPolicyTooLarge:    iamError("PackedPolicyTooLarge", http.StatusBadRequest, "The session policies and tags are too large."),
		fault.ExpiredToken:            iamError("ExpiredToken", http.StatusForbidden, "The security token included in the request is expired"),
		fault.ExpiredIdentityToken:    iamError("ExpiredTokenException", http.StatusBadRequest, "The web identity token has expired."),
		fault.InvalidIdentityToken:    iamError("InvalidIdentityToken", http.StatusBadRequest, "The identity token is not valid."),
		fault.IDPRejectedClaim:        iamError("IDPRejectedClaim", http.StatusForbidden, "The identity provider has rejected the claim."),
		fault.IDPCommunicationError:   iamError("IDPCommunicationError", http.StatusBadRequest, "The identity provider does not answer."),
	} {
		if _, ok := own[kind]; !ok {
			own[kind] = shape
		}
	}
	with(own)
	for _, kind := range fault.Kinds() {
		if _, ok := own[kind]; !ok {
			own[kind] = iamInvalid
		}
	}
	return own
}

// iamErrors are the faults of IAM, with the codes and statuses of its model.
var iamErrors = identityErrors(map[fault.Kind]errorShape{})

// stsErrors are those of STS.
var stsErrors = identityErrors(map[fault.Kind]errorShape{
	fault.InvalidParameter: iamError("InvalidParameterValue", http.StatusBadRequest, "A parameter is not valid."),
	fault.Internal:         {Type: "InternalFailure", Code: "InternalFailure", Status: http.StatusInternalServerError, Server: true, Text: internalText},
})
