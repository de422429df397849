package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

// logsError is how CloudWatch Logs reports a fault of the caller: by the bare name
// of the model's shape.
func logsError(name, text string) errorShape {
	return errorShape{Type: name, Code: name, Status: http.StatusBadRequest, Text: text}
}

// logsErrors are the faults of CloudWatch Logs. The kinds of other services that
// it cannot meet are invalid parameters.
var logsErrors = func() map[fault.Kind]errorShape {
	invalid := logsError("InvalidParameterException", "A parameter is specified incorrectly.")
	unavailable := errorShape{
		Type: "ServiceUnavailableException", Code: "ServiceUnavailableException", Status: http.StatusServiceUnavailable, Server: true,
		Text: "The service cannot complete the request.",
	}
	full := unavailable
	full.Text = "The server's disk has no room for more."
	own := map[fault.Kind]errorShape{
		fault.Internal:              {Type: "InternalFailure", Code: "InternalFailure", Status: http.StatusInternalServerError, Server: true, Text: internalText},
		fault.InvalidAction:         logsError("UnknownOperationException", "The operation is not known."),
		fault.MalformedInput:        logsError("SerializationException", "The request cannot be read."),
		fault.ValidationFailed:      logsError("ValidationException", "The parameters contradict each other, or what the resource allows."),
		fault.ResourceNotFound:      logsError("ResourceNotFoundException", "The specified resource does not exist."),
		fault.ResourceAlreadyExists: logsError("ResourceAlreadyExistsException", "The specified resource already exists."),
		fault.LimitExceeded:         logsError("LimitExceededException", "Resource limit exceeded."),
		fault.TooManyTags:           logsError("TooManyTagsException", "A resource can have no more than 50 tags."),
		fault.AccessDenied:          logsError("AccessDeniedException", "Access to the resource is denied."),
		fault.Unauthenticated:       logsError("UnrecognizedClientException", "The security token included in the request is invalid."),
		fault.MissingAuthentication: logsError("MissingAuthenticationTokenException", "Missing Authentication Token"),
		fault.SignatureDoesNotMatch: logsError("InvalidSignatureException", "The request signature we calculated does not match the signature you provided."),
		fault.IncompleteSignature:   logsError("IncompleteSignatureException", "The request signature does not conform to AWS standards."),
		fault.ExpiredToken:          logsError("ExpiredTokenException", "The security token included in the request is expired"),
		fault.InvalidSecurity:       logsError("InvalidSignatureException", "The request must be signed with Signature Version 4."),
		fault.Throttled:             logsError("ThrottlingException", "Rate exceeded"),
		fault.Unavailable:           unavailable,
		fault.InsufficientStorage:   full,
		fault.RequestTooLarge:       tooLarge,
		fault.RequestTimeout:        tooLate,
	}
	for _, kind := range fault.Kinds() {
		if _, ok := own[kind]; !ok {
			own[kind] = invalid
		}
	}
	return own
}()
