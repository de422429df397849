package ingest

import "godwit.dev/godwit/internal/fault"

// The errors of posts, with the fields of each.
var (
	ErrUnsigned            = fault.NewRule(fault.MissingAuthentication, "ingest: what verifies the post is missing, or cannot be read") // the header, or the member
	ErrNoTimestamp         = fault.NewRule(fault.MissingAuthentication, "ingest: the timestamp is missing, or cannot be read")
	ErrNoSNS               = fault.NewRule(fault.MissingAuthentication, "ingest: no message that SNS has signed")
	ErrForged              = fault.NewRule(fault.SignatureDoesNotMatch, "ingest: the signature is not that of a secret")
	ErrUntimely            = fault.NewRule(fault.SignatureDoesNotMatch, "ingest: signed too long ago, or in the future") // the tolerance in seconds
	ErrOld                 = fault.NewRule(fault.SignatureDoesNotMatch, "ingest: the message of SNS is too old")         // the tolerance in seconds
	ErrTopic               = fault.NewRule(fault.AccessDenied, "ingest: of a topic that the source does not take")
	ErrCertificateAddress  = fault.NewRule(fault.AccessDenied, "ingest: the certificate is not at an address that the source allows")
	ErrConfirmationAddress = fault.NewRule(fault.AccessDenied, "ingest: the confirmation is not at an address that the source allows")
	ErrNoCertificate       = fault.NewRule(fault.Unavailable, "ingest: there is no certificate")
	ErrCertificate         = fault.NewRule(fault.Unavailable, "ingest: the certificate cannot be read")
	ErrCertificateTime     = fault.NewRule(fault.Unavailable, "ingest: the certificate is not valid now")
	ErrCertificateName     = fault.NewRule(fault.Unavailable, "ingest: the certificate is not one of SNS")
	ErrNotUTF8             = fault.NewRule(fault.MalformedInput, "ingest: the body is not UTF-8")
	ErrNotJSON             = fault.NewRule(fault.MalformedInput, "ingest: the body is not JSON")
	ErrEmpty               = fault.NewRule(fault.InvalidParameter, "ingest: the message is empty")
	ErrNoValue             = fault.NewRule(fault.InvalidParameter, "ingest: the body lacks a value of the mapping") // the pointer to it
)

// Refusal is the error of a refused post.
type Refusal struct {
	Reason Reason
	Err    error // what a client may read, without any text of the body: a rule, with its fields
}

func (r *Refusal) Error() string { return "ingest: " + string(r.Reason) + ": " + r.Err.Error() }

// Unwrap returns what is wrong.
func (r *Refusal) Unwrap() error { return r.Err }
