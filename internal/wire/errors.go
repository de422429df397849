package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
)

// errorShape is how a service reports a kind of fault.
type errorShape struct {
	Type   string // JSON's __type, with its name space
	Code   string // Query's code
	Status int
	Server bool   // the service is at fault, not the sender
	Text   string // default, for a fault without a text
	// Member is the name of the text in REST-JSON; empty means "message".
	Member string
	// Query is the text in Query, if AWS's differs from Text, which is JSON's then. If it is
	// set, both override the text of the fault.
	Query string
	Mute  bool // the answer has no message
	// Untyped says that the answer has no Type in REST-JSON.
	Untyped bool
	Fixed   bool // the status is not replaced by the protocol's status for client errors
}

const (
	coral = "com.amazon.coral.service#"

	internalText = "We encountered an internal error. Please try again."
)

// common are the errors that all services have in common.
var common = map[fault.Kind]errorShape{
	fault.Internal:              {Type: coral + "InternalFailure", Code: "InternalFailure", Status: http.StatusInternalServerError, Server: true, Text: internalText},
	fault.InvalidAction:         {Type: coral + "UnknownOperationException", Code: "InvalidAction", Status: http.StatusBadRequest, Text: "The action is not valid for this endpoint."},
	fault.MissingAction:         {Type: coral + "MissingActionException", Code: "MissingAction", Status: http.StatusBadRequest, Text: "The request must contain the parameter Action."},
	fault.MalformedInput:        {Type: coral + "SerializationException", Code: "MalformedInput", Status: http.StatusBadRequest, Text: "The request cannot be read."},
	fault.RequestTooLarge:       {Type: coral + "RequestEntityTooLargeException", Code: "RequestEntityTooLarge", Status: http.StatusRequestEntityTooLarge, Text: "The request body is too large."},
	fault.RequestTimeout:        {Type: coral + "RequestTimeoutException", Code: "RequestTimeout", Status: http.StatusRequestTimeout, Text: "The request body did not arrive in time."},
	fault.Unauthenticated:       {Type: coral + "UnrecognizedClientException", Code: "InvalidClientTokenId", Status: http.StatusForbidden, Text: "The security token included in the request is invalid."},
	fault.MissingAuthentication: {Type: coral + "MissingAuthenticationTokenException", Code: "MissingAuthenticationToken", Status: http.StatusForbidden, Text: "Request is missing Authentication Token"},
	fault.SignatureDoesNotMatch: {Type: coral + "InvalidSignatureException", Code: "SignatureDoesNotMatch", Status: http.StatusForbidden, Text: "The request signature we calculated does not match the signature you provided."},
	fault.IncompleteSignature:   {Type: coral + "IncompleteSignatureException", Code: "IncompleteSignature", Status: http.StatusBadRequest, Text: "The request signature does not conform to AWS standards."},
	fault.ExpiredToken:          {Type: coral + "ExpiredTokenException", Code: "ExpiredToken", Status: http.StatusForbidden, Text: "The security token included in the request is expired"},
	fault.Unavailable:           {Type: coral + "ServiceUnavailableException", Code: "ServiceUnavailable", Status: http.StatusServiceUnavailable, Server: true, Text: "The service cannot answer now. Please try again."},
	fault.InsufficientStorage:   {Type: coral + "InsufficientStorageException", Code: "InsufficientStorage", Status: http.StatusInsufficientStorage, Server: true, Text: "The server's disk has no room for more. Receive and delete messages, or add space."},
	// Kinds that only some services use.
	fault.ValidationFailed:            {Type: "com.amazon.coral.validate#ValidationException", Code: "ValidationError", Status: http.StatusBadRequest, Text: "A member of the request breaks a constraint."},
	fault.InvalidParameterCombination: {Type: coral + "InvalidParameterCombinationException", Code: "InvalidParameterCombination", Status: http.StatusBadRequest, Text: "The parameters do not go together."},
	fault.InvalidNextToken:            {Type: coral + "InvalidNextTokenException", Code: "InvalidNextToken", Status: http.StatusBadRequest, Text: "The token is not valid."},
	fault.InvalidFormat:               {Type: coral + "InvalidFormatException", Code: "InvalidFormat", Status: http.StatusBadRequest, Text: "Data was not syntactically valid JSON."},
	fault.LimitExceeded:               {Type: coral + "LimitExceededException", Code: "LimitExceeded", Status: http.StatusBadRequest, Text: "A limit has been reached."},
	fault.Conflict:                    {Type: coral + "ConflictException", Code: "Conflict", Status: http.StatusConflict, Text: "The resource has changed meanwhile."},
	fault.ResourceAlreadyExists:       {Type: coral + "ResourceAlreadyExistsException", Code: "ResourceAlreadyExists", Status: http.StatusBadRequest, Text: "The resource exists already."},
	fault.TooManyTags:                 {Type: coral + "TooManyTagsException", Code: "TooManyTags", Status: http.StatusBadRequest, Text: "The resource has as many tags as it may have."},
	fault.OptInRequired:               {Type: coral + "OptInRequired", Code: "OptInRequired", Status: http.StatusForbidden, Text: "The account or region is not served here."},
}

// tooLarge and tooLate are the errors for a body, of services whose types have no namespace.
var (
	tooLarge = errorShape{Type: "RequestEntityTooLargeException", Code: "RequestEntityTooLarge", Status: http.StatusRequestEntityTooLarge, Text: "The request is too large."}
	tooLate  = errorShape{Type: "RequestTimeoutException", Code: "RequestTimeout", Status: http.StatusRequestTimeout, Text: "The request body did not arrive in time."}
)

// forbidden is the error for requests that the server refuses for all services.
var forbidden = errorShape{Type: coral + "AccessDeniedException", Code: "AccessDenied", Status: http.StatusForbidden, Fixed: true}

// elsewhere are kinds that belong to one service each. From another service they are a bug.
var elsewhere = []fault.Kind{
	fault.ResourceConflict, fault.PreconditionFailed, fault.CodeStorageExceeded,
	fault.PolicyLengthExceeded, fault.CodeSigningNotFound, fault.ResourceInUse, fault.InvalidRequestContent,
	fault.InvalidRuntime, fault.InvalidZipFile, fault.FunctionNotReady,
	fault.NoSuchEntity, fault.EntityAlreadyExists, fault.DeleteConflict, fault.MalformedPolicyDocument, fault.InvalidInput,
	fault.PolicyNotAttachable, fault.PackedPolicyTooLarge, fault.ExpiredIdentityToken, fault.InvalidIdentityToken, fault.IDPRejectedClaim,
	fault.IDPCommunicationError,
	fault.KMSAccessDenied, fault.KMSDisabled, fault.KMSInvalidState, fault.KMSInvalidKeyUsage,
	fault.OptedOut, fault.UserError, fault.Verification,
	fault.IncorrectKey, fault.InvalidCiphertext, fault.InvalidGrantToken, fault.InvalidAliasName, fault.InvalidARN, fault.InvalidMarker,
	fault.InvalidTag, fault.InvalidSignature, fault.InvalidMAC, fault.DryRun, fault.InsufficientCapabilities,
}

// with returns the common faults and those of own.
func with(own map[fault.Kind]errorShape) map[fault.Kind]errorShape {
	for kind, shape := range common {
		if _, ok := own[kind]; !ok {
			own[kind] = shape
		}
	}
	for _, kind := range elsewhere {
		if _, ok := own[kind]; !ok {
			own[kind] = own[fault.Internal]
		}
	}
	return own
}

// report finds the shape of an error in a protocol, and the text that the client sees. The text
// of an error that is no fault is not shown.
func (s *Service) report(err error, protocol string) (shape errorShape, text string) {
	said, classified := refusal.Of(err)
	if classified {
		shape, classified = s.errors[said.Kind]
	}
	switch {
	case !classified || said.Kind == fault.Internal:
		return s.errors[fault.Internal], internalText
	case shape.Query != "" && protocol == protocolQuery:
		return shape, shape.Query
	case shape.Query != "" || said.Message == "":
		return shape, shape.Text
	}
	return shape, said.Message
}
