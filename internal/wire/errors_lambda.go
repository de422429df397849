package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

const lambdaType = "com.amazonaws.lambda#"

// lambdaError is how Lambda reports a fault of the caller; member is the name of
// the text in its model.
func lambdaError(code string, status int, member, text string) errorShape {
	return errorShape{Type: lambdaType + code, Code: code, Status: status, Server: status >= http.StatusInternalServerError, Member: member, Text: text}
}

// lambdaInvalidated is a fault that is found before Lambda has the request: its model does not
// have the error, and so the answer has no Type.
func lambdaInvalidated(text string) errorShape {
	shape := lambdaError("ValidationException", http.StatusBadRequest, "message", text)
	shape.Untyped = true
	return shape
}

var lambdaInvalid = lambdaError("InvalidParameterValueException", http.StatusBadRequest, "message", "A parameter is not valid.")

// lambdaErrors are the faults of Lambda, with the names, statuses and members of
// its model.
var lambdaErrors = with(map[fault.Kind]errorShape{
	fault.Internal:              lambdaError("ServiceException", http.StatusInternalServerError, "Message", internalText),
	fault.InvalidAction:         lambdaError("UnknownOperationException", http.StatusNotFound, "message", "There is no such operation."),
	fault.MalformedInput:        lambdaError("SerializationException", http.StatusBadRequest, "message", "The request cannot be read."),
	fault.MissingParameter:      lambdaInvalidated("A required member is missing."),
	fault.ValidationFailed:      lambdaInvalidated("A member breaks a constraint."),
	fault.RequestTooLarge:       lambdaError("RequestEntityTooLargeException", http.StatusRequestEntityTooLarge, "message", "The request is too large."),
	fault.RequestTimeout:        lambdaError("RequestTimeoutException", http.StatusRequestTimeout, "message", "The request body did not arrive in time."),
	fault.AccessDenied:          lambdaError("AccessDeniedException", http.StatusForbidden, "Message", "Access to the resource is denied."),
	fault.Unauthenticated:       lambdaError("UnrecognizedClientException", http.StatusForbidden, "message", "The security token included in the request is invalid."),
	fault.MissingAuthentication: lambdaError("MissingAuthenticationTokenException", http.StatusForbidden, "message", "Missing Authentication Token"),
	fault.SignatureDoesNotMatch: lambdaError("InvalidSignatureException", http.StatusForbidden, "message", "The request signature we calculated does not match the signature you provided."),
	fault.IncompleteSignature:   lambdaError("IncompleteSignatureException", http.StatusBadRequest, "message", "The request signature does not conform to AWS standards."),
	fault.ExpiredToken:          lambdaError("ExpiredTokenException", http.StatusForbidden, "message", "The security token included in the request is expired"),
	fault.InvalidSecurity:       lambdaError("InvalidSignatureException", http.StatusForbidden, "message", "The request must be signed with Signature Version 4."),
	fault.Throttled:             lambdaError("TooManyRequestsException", http.StatusTooManyRequests, "message", "Rate Exceeded."),

	fault.InvalidParameter:      lambdaInvalid,
	fault.ResourceNotFound:      lambdaError("ResourceNotFoundException", http.StatusNotFound, "Message", "The resource you requested does not exist."),
	fault.ResourceConflict:      lambdaError("ResourceConflictException", http.StatusConflict, "message", "The resource already exists, or another operation is in progress."),
	fault.ResourceInUse:         lambdaError("ResourceInUseException", http.StatusBadRequest, "Message", "The operation conflicts with the resource's availability."),
	fault.PreconditionFailed:    lambdaError("PreconditionFailedException", http.StatusPreconditionFailed, "message", "The RevisionId provided does not match the latest RevisionId."),
	fault.CodeStorageExceeded:   lambdaError("CodeStorageExceededException", http.StatusBadRequest, "message", "Code storage limit exceeded."),
	fault.PolicyLengthExceeded:  lambdaError("PolicyLengthExceededException", http.StatusBadRequest, "message", "The policy is too large."),
	fault.CodeSigningNotFound:   lambdaError("CodeSigningConfigNotFoundException", http.StatusNotFound, "Message", "The code signing configuration cannot be found."),
	fault.InvalidRequestContent: lambdaError("InvalidRequestContentException", http.StatusBadRequest, "message", "The request body could not be parsed as JSON."),
	fault.InvalidRuntime:        lambdaError("InvalidRuntimeException", http.StatusBadGateway, "Message", "The runtime is not supported."),
	fault.InvalidZipFile:        lambdaError("InvalidZipFileException", http.StatusBadGateway, "Message", "The function's code cannot be unzipped."),
	fault.FunctionNotReady:      lambdaError("ResourceNotReadyException", http.StatusBadGateway, "message", "The function is inactive and its environment could not be made."),

	fault.KMSAccessDenied:    lambdaError("KMSAccessDeniedException", http.StatusBadGateway, "Message", "KMS access was denied."),
	fault.KMSDisabled:        lambdaError("KMSDisabledException", http.StatusBadGateway, "Message", "The KMS key is disabled."),
	fault.KMSInvalidState:    lambdaError("KMSInvalidStateException", http.StatusBadGateway, "Message", "The state of the KMS key forbids it."),
	fault.KMSInvalidKeyUsage: lambdaError("KMSInvalidStateException", http.StatusBadGateway, "Message", "The KMS key is for another use."),
	fault.KMSNotFound:        lambdaError("KMSNotFoundException", http.StatusBadGateway, "Message", "The KMS key was not found."),

	fault.QueueDoesNotExist:            lambdaInvalid,
	fault.QueueNameExists:              lambdaInvalid,
	fault.QueueDeletedRecently:         lambdaInvalid,
	fault.PurgeQueueInProgress:         lambdaInvalid,
	fault.InvalidAttributeName:         lambdaInvalid,
	fault.InvalidAttributeValue:        lambdaInvalid,
	fault.InvalidMessageContents:       lambdaInvalid,
	fault.ReceiptHandleIsInvalid:       lambdaInvalid,
	fault.MessageNotInflight:           lambdaInvalid,
	fault.OverLimit:                    lambdaInvalid,
	fault.EmptyBatchRequest:            lambdaInvalid,
	fault.TooManyEntriesInBatchRequest: lambdaInvalid,
	fault.BatchEntryIdsNotDistinct:     lambdaInvalid,
	fault.InvalidBatchEntryID:          lambdaInvalid,
	fault.BatchRequestTooLong:          lambdaInvalid,
	fault.UnsupportedOperation:         lambdaInvalid,
	fault.InvalidAddress:               lambdaInvalid,
	fault.NotFound:                     lambdaInvalid,
	fault.ParameterValueInvalid:        lambdaInvalid,
	fault.SubscriptionLimitExceeded:    lambdaInvalid,
	fault.TopicLimitExceeded:           lambdaInvalid,
	fault.FilterPolicyLimitExceeded:    lambdaInvalid,
	fault.PlatformApplicationDisabled:  lambdaInvalid,
	fault.EndpointDisabled:             lambdaInvalid,
	fault.TagLimitExceeded:             lambdaInvalid,
	fault.InvalidState:                 lambdaInvalid,
	fault.ReplayLimitExceeded:          lambdaInvalid,
})
