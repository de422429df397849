package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

func kmsError(name, text string) errorShape {
	return errorShape{Type: name, Code: name, Status: http.StatusBadRequest, Text: text}
}

// muteKMSError is a fault whose text KMS keeps for itself.
func muteKMSError(name, text string) errorShape {
	shape := kmsError(name, text)
	shape.Mute = true
	return shape
}

// kmsErrors are the faults of KMS: the caller's have status 400, all of them. The kinds of
// other services that it cannot meet are failures of validation.
var kmsErrors = func() map[fault.Kind]errorShape {
	invalid := kmsError("ValidationException", "A member of the request breaks a constraint.")
	unavailable := errorShape{
		Type: "DependencyTimeoutException", Code: "DependencyTimeoutException", Status: http.StatusServiceUnavailable, Server: true,
		Text: "The service cannot answer now. Please try again.",
	}
	full := unavailable
	full.Text = "The server's disk has no room for more."
	denied := kmsError("AccessDeniedException", "Access to the key is denied.")
	own := map[fault.Kind]errorShape{
		fault.Internal:                {Type: "KMSInternalException", Code: "KMSInternalException", Status: http.StatusInternalServerError, Server: true, Text: internalText},
		fault.InvalidAction:           kmsError("UnknownOperationException", "The operation is not known."),
		fault.MalformedInput:          kmsError("SerializationException", "The request cannot be read."),
		fault.AccessDenied:            denied,
		fault.KMSAccessDenied:         denied,
		fault.Unauthenticated:         kmsError("UnrecognizedClientException", "The security token included in the request is invalid."),
		fault.MissingAuthentication:   kmsError("MissingAuthenticationTokenException", "Request is missing Authentication Token"),
		fault.SignatureDoesNotMatch:   kmsError("InvalidSignatureException", "The request signature we calculated does not match the signature you provided."),
		fault.IncompleteSignature:     kmsError("IncompleteSignatureException", "The request signature does not conform to AWS standards."),
		fault.ExpiredToken:            kmsError("ExpiredTokenException", "The security token included in the request is expired"),
		fault.InvalidSecurity:         kmsError("InvalidSignatureException", "The request must be signed with Signature Version 4."),
		fault.Throttled:               kmsError("ThrottlingException", "Rate exceeded"),
		fault.Unavailable:             unavailable,
		fault.InsufficientStorage:     full,
		fault.RequestTooLarge:         tooLarge,
		fault.RequestTimeout:          tooLate,
		fault.KMSNotFound:             kmsError("NotFoundException", "The key does not exist."),
		fault.ResourceAlreadyExists:   kmsError("AlreadyExistsException", "The alias exists already."),
		fault.LimitExceeded:           kmsError("LimitExceededException", "A limit has been reached."),
		fault.UnsupportedOperation:    kmsError("UnsupportedOperationException", "The operation is not supported."),
		fault.KMSDisabled:             kmsError("DisabledException", "The key is disabled."),
		fault.KMSInvalidState:         kmsError("KMSInvalidStateException", "The state of the key forbids it."),
		fault.KMSInvalidKeyUsage:      kmsError("InvalidKeyUsageException", "The key is for another use."),
		fault.IncorrectKey:            kmsError("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation."),
		fault.InvalidCiphertext:       muteKMSError("InvalidCiphertextException", "The ciphertext is invalid."),
		fault.InvalidGrantToken:       kmsError("InvalidGrantTokenException", "The grant token is invalid."),
		fault.InvalidAliasName:        kmsError("InvalidAliasNameException", "The name of the alias is invalid."),
		fault.InvalidARN:              kmsError("InvalidArnException", "The ARN is invalid."),
		fault.InvalidMarker:           kmsError("InvalidMarkerException", "The marker is invalid."),
		fault.InvalidTag:              kmsError("TagException", "A tag is invalid, or there are too many."),
		fault.MalformedPolicyDocument: kmsError("MalformedPolicyDocumentException", "The policy cannot be read."),
		fault.InvalidSignature:        muteKMSError("KMSInvalidSignatureException", "The signature is invalid."),
		fault.InvalidMAC:              muteKMSError("KMSInvalidMacException", "The authentication code is invalid."),
		fault.DryRun:                  kmsError("DryRunOperationException", "The request would have succeeded, but the DryRun option is set."),
	}
	for _, kind := range fault.Kinds() {
		if _, ok := own[kind]; !ok {
			own[kind] = invalid
		}
	}
	return own
}()
