// Package signing is the module of the keys that envelopes are signed with.
package signing

import (
	"bytes"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// A message that a queue got of a subscription may be without its signature
// yet: what a publish does in its own commit must not wait for one. It is
// signed on its way to a receiver, the same way each time.

// signingPrefix begins the keys that envelopes are signed with, by their ids,
// among the keys of shard 0. Those of its replays begin alike and are shorter.
var signingPrefix = keyspace.Shard(0, keyspace.SigningKeys)

// Keys is the module of the keys that envelopes are signed with.
type Keys struct{ kernel *kernel.Kernel }

// New makes the module; it has no state in memory.
func New(k *kernel.Kernel) *Keys { return &Keys{k} }

// SigningKeys are all keys that PutSigningKey was given, by their ids.
func (e *Keys) SigningKeys() (map[[16]byte][]byte, error) {
	keys := map[[16]byte][]byte{}
	err := store.Each(e.kernel.Store, keyspace.Prefix(signingPrefix), func(key, value []byte) bool {
		var id [16]byte
		if len(key) == len(signingPrefix)+len(id) {
			copy(id[:], key[len(signingPrefix):])
			keys[id] = bytes.Clone(value)
		}
		return true
	})
	return keys, err
}

// PutSigningKey keeps a key that envelopes are signed with, whose form is the
// caller's; it is durable on return.
func (e *Keys) PutSigningKey(id [16]byte, key []byte) error {
	sh := e.kernel.All[0]
	return sh.RunDurable(func(*kernel.Tx) error {
		sh.Batch.Set(append(bytes.Clone(signingPrefix), id[:]...), key)
		return nil
	})
}
