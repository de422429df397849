package sigv4

import (
	"strings"

	"godwit.dev/godwit/internal/fault"
)

// The errors without details of the request.
var (
	errMissing  = refuse(fault.MissingAuthentication, "Request is missing Authentication Token")
	errBoth     = refuse(fault.SignatureDoesNotMatch, "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.")
	errHost     = refuse(fault.SignatureDoesNotMatch, "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	errMismatch = refuse(fault.SignatureDoesNotMatch, "The request signature we calculated does not match the signature you provided. "+
		"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	errUnknown = refuse(fault.Unauthenticated, "The security token included in the request is invalid.")
	errExpired = refuse(fault.ExpiredToken, "The security token included in the request is expired")
)

// refuse makes an error. In protocols with a fault side, these have none.
func refuse(kind fault.Kind, text string) *fault.Error {
	return fault.New(kind, text).WithoutType()
}

func incomplete(text string) error { return refuse(fault.IncompleteSignature, text) }

func mismatch(text string) error { return refuse(fault.SignatureDoesNotMatch, text) }

// printable shortens text of a client.
func printable(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most]
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s)
}
