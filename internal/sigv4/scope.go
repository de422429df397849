// Package sigv4 verifies requests that are signed by AWS Signature Version 4, and reads the
// signer and the scope. It has no I/O: the keys, the clocks and the digest of the body are
// inputs.
package sigv4

import (
	"net/http"
	"net/url"
	"strings"
)

// Algorithm is the name of the scheme, at the start of an Authorization header.
const Algorithm = "AWS4-HMAC-SHA256"

// Superseded reports that a request is signed with a scheme older than Signature Version 4: by
// its Authorization header, or, in Query, by the parameter SignatureVersion, whose value is
// version; empty if there is none.
func Superseded(authorization, version string) bool {
	if version != "" && version != "4" {
		return true
	}
	return strings.HasPrefix(authorization, "AWS ") || strings.HasPrefix(authorization, "AWS3")
}

// Scope is a credential scope after the access key, as in
// AKIDEXAMPLE/20150830/us-east-1/sqs/aws4_request.
type Scope struct {
	AccessKey string
	Date      string // YYYYMMDD
	Region    string
	Service   string
}

// FromRequest finds the scope that a request was signed for: in its Authorization header, or,
// presigned, in the query parameter X-Amz-Credential. ok is false if there is none or it is
// invalid.
func FromRequest(r *http.Request) (scope Scope, ok bool) {
	if header := r.Header["Authorization"]; len(header) > 0 {
		return parseAuthorization(header[0])
	}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if value, found := strings.CutPrefix(pair, "X-Amz-Credential="); found {
			credential, err := url.QueryUnescape(value)
			if err != nil {
				return Scope{}, false
			}
			return parseCredential(credential)
		}
	}
	return Scope{}, false
}

// parseAuthorization parses the scope in an Authorization header's value.
func parseAuthorization(header string) (scope Scope, ok bool) {
	rest, found := strings.CutPrefix(header, Algorithm)
	if !found {
		return Scope{}, false
	}
	_, rest, found = strings.Cut(rest, "Credential=")
	if !found {
		return Scope{}, false
	}
	if end := strings.IndexAny(rest, ", "); end >= 0 {
		rest = rest[:end]
	}
	return parseCredential(rest)
}

// parseCredential parses key/date/region/service/aws4_request. The access key may itself
// contain slashes; no part may be empty.
func parseCredential(s string) (scope Scope, ok bool) {
	s, found := strings.CutSuffix(s, "/aws4_request")
	if !found {
		return Scope{}, false
	}
	for _, part := range [...]*string{&scope.Service, &scope.Region, &scope.Date} {
		cut := strings.LastIndexByte(s, '/')
		if cut < 0 || cut+1 == len(s) {
			return Scope{}, false
		}
		*part, s = s[cut+1:], s[:cut]
	}
	scope.AccessKey = s
	return scope, s != ""
}
