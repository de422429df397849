package sqs

import (
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

const (
	aliasPrefix = "alias/"
	ownKey      = aliasPrefix + "aws/sqs" // the service's own, which every account has
)

// encryptable refuses messages that are to be encrypted under a key that does
// not exist, as key names it: by its id, its alias, or the ARN of either. There
// is no KMS here yet, and so no key but the service's own. Errors:
// fault.KMSNotFound.
func encryptable(q arn.ARN, key string) error {
	if key == "" {
		return nil
	}
	prefix := "arn:" + arn.Partition + ":kms:" + q.Region + ":" + q.Account + ":"
	name := strings.TrimPrefix(key, prefix)
	switch {
	case name == ownKey:
		return nil
	case strings.HasPrefix(name, aliasPrefix):
		return fault.Newf(fault.KMSNotFound, "Alias %s is not found.", prefix+name)
	case strings.HasPrefix(name, "arn:"): // of another account or region
		return fault.Newf(fault.KMSNotFound, "Key '%s' does not exist", name)
	default:
		return fault.Newf(fault.KMSNotFound, "Key '%skey/%s' does not exist", prefix, strings.TrimPrefix(name, "key/"))
	}
}
