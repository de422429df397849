// Package key says what a queue or topic may name as its key where an engine is opened
// without KMS, as by tests: nothing but the key that AWS gives each service. A server has
// KMS (package shard/keys).
package key

import (
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

const aliasPrefix = "alias/"

// What Find refuses.
var (
	ErrNoAlias = fault.NewRule(fault.KMSNotFound, "key: no such alias") // its ARN
	ErrNoKey   = fault.NewRule(fault.KMSNotFound, "key: no such key")   // its ARN
)

// Find looks for the key that the attribute KmsMasterKeyId of a queue or topic
// names: by its id, its alias, or the ARN of either. The empty string is no key.
// What is to be encrypted under one that does not exist must not be taken in, to
// be kept in clear. Errors: ErrNoAlias, ErrNoKey.
func Find(of arn.ARN, name string) error {
	if name == "" {
		return nil
	}
	prefix := "arn:" + arn.Partition + ":kms:" + of.Region + ":" + of.Account + ":"
	name = strings.TrimPrefix(name, prefix)
	switch {
	case name == aliasPrefix+"aws/"+of.Service: // the service's own, which every account has
		return nil
	case strings.HasPrefix(name, aliasPrefix):
		return ErrNoAlias.With(prefix + name)
	case strings.HasPrefix(name, "arn:"): // of another account or region
		return ErrNoKey.With(name)
	default:
		return ErrNoKey.With(prefix + "key/" + strings.TrimPrefix(name, "key/"))
	}
}
