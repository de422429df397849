package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

func firehoseError(name, text string) errorShape {
	return errorShape{Type: name, Code: name, Status: http.StatusBadRequest, Text: text}
}

// firehoseErrors are the faults of Firehose. The kinds of other services that it cannot
// meet are invalid arguments.
var firehoseErrors = func() map[fault.Kind]errorShape {
	invalid := firehoseError("InvalidArgumentException", "The specified input parameter has a value that is not valid.")
	unavailable := errorShape{
		Type: "ServiceUnavailableException", Code: "ServiceUnavailableException", Status: http.StatusServiceUnavailable, Server: true,
		Text: "Slow down.",
	}
	full := unavailable
	full.Text = "The server's disk has no room for more."
	own := map[fault.Kind]errorShape{
		fault.Internal:              {Type: "InternalFailure", Code: "InternalFailure", Status: http.StatusInternalServerError, Server: true, Text: internalText},
		fault.InvalidAction:         firehoseError("UnknownOperationException", "The operation is not known."),
		fault.MalformedInput:        firehoseError("SerializationException", "The request cannot be read."),
		fault.ValidationFailed:      firehoseError("ValidationException", "A member of the request breaks a constraint."),
		fault.AccessDenied:          firehoseError("AccessDeniedException", "Access to the stream is denied."),
		fault.Unauthenticated:       firehoseError("UnrecognizedClientException", "The security token included in the request is invalid."),
		fault.MissingAuthentication: firehoseError("MissingAuthenticationTokenException", "Missing Authentication Token"),
		fault.SignatureDoesNotMatch: firehoseError("InvalidSignatureException", "The request signature we calculated does not match the signature you provided."),
		fault.IncompleteSignature:   firehoseError("IncompleteSignatureException", "The request signature does not conform to AWS standards."),
		fault.ExpiredToken:          firehoseError("ExpiredTokenException", "The security token included in the request is expired"),
		fault.InvalidSecurity:       firehoseError("InvalidSignatureException", "The request must be signed with Signature Version 4."),
		fault.Throttled:             unavailable,
		fault.Unavailable:           unavailable,
		fault.InsufficientStorage:   full,
		fault.RequestTooLarge:       tooLarge,
		fault.RequestTimeout:        tooLate,
		fault.ResourceNotFound:      firehoseError("ResourceNotFoundException", "The specified resource could not be found."),
		fault.ResourceInUse:         firehoseError("ResourceInUseException", "The resource is already in use and not available for this operation."),
		fault.LimitExceeded:         firehoseError("LimitExceededException", "A limit has been reached."),
		fault.Conflict:              firehoseError("ConcurrentModificationException", "Another modification has already happened. Fetch VersionId again and use it to update the destination."),
	}
	for _, kind := range fault.Kinds() {
		if _, ok := own[kind]; !ok {
			own[kind] = invalid
		}
	}
	return own
}()
