package refusal

import "godwit.dev/godwit/internal/ingest"

// unverifiable begins what is said of a post that lacks what would verify it.
const unverifiable = "What verifies the request is missing or cannot be read: "

// ofPosts are the messages about posts to sources.
var ofPosts = sentences{
	ingest.ErrUnsigned:    unverifiable + "%s.",
	ingest.ErrNoTimestamp: unverifiable + "the timestamp.",
	ingest.ErrNoSNS:       unverifiable + "the members of a signed message of SNS (raw delivery has none).",
	ingest.ErrForged:      "The signature is not that of the body and one of the secrets.",
	ingest.ErrUntimely:    "The request was not signed just now: its timestamp is more than %d s from the time here.",
	ingest.ErrOld:         "The message is older than %d s.",

	ingest.ErrTopic:               "The source takes nothing of this topic.",
	ingest.ErrCertificateAddress:  "The certificate is not at one of the addresses that the source allows.",
	ingest.ErrConfirmationAddress: "The confirmation is not at one of the addresses that the source allows.",
	ingest.ErrNoCertificate:       "There is no certificate at SigningCertURL.",
	ingest.ErrCertificate:         "The certificate at SigningCertURL cannot be read.",
	ingest.ErrCertificateTime:     "The certificate at SigningCertURL is not valid now.",
	ingest.ErrCertificateName:     "The certificate at SigningCertURL is not one of SNS.",

	ingest.ErrNotUTF8: "The body has to be text in UTF-8.",
	ingest.ErrNotJSON: "The body has to be JSON, and cannot be read as such.",
	ingest.ErrEmpty:   "The message would be empty, which no queue takes.",
	ingest.ErrNoValue: "The body has nothing at %s.",
}
