// Package signing stores the keys that sign envelopes.
package signing

import (
	"bytes"
	"fmt"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// A message that a queue got from a subscription may be stored without its signature: a publish
// does not wait for one in its own commit. The message is signed when it is received, with the
// same signature each time.

// signingPrefix is the prefix of the records of signing keys, by id, in shard 0. The records of
// replays in shard 0 begin alike and are shorter.
var signingPrefix = keyspace.Shard(0, keyspace.SigningKeys)

// Keys stores the keys that sign envelopes, in shard 0. It has no state in memory, and so is no
// module.
type Keys struct {
	kernel *kernel.Kernel
	sealer *seal.Sealer
}

// New makes Keys. A nil sealer leaves keys in clear.
func New(k *kernel.Kernel, sealer *seal.Sealer) *Keys { return &Keys{k, sealer} }

// SigningKeys are all keys stored by PutSigningKey, by id. Keys that earlier versions have
// stored in clear are sealed on return.
func (e *Keys) SigningKeys() (map[[16]byte][]byte, error) {
	keys, err := e.read()
	if err != nil {
		return nil, err
	}
	for id, value := range keys {
		switch {
		case sealed(value) && e.sealer == nil:
			return nil, seal.ErrSealed
		case sealed(value):
			if keys[id], err = e.sealer.Open(value, keyOf(id)); err != nil {
				return nil, fmt.Errorf("a key that envelopes are signed with: %w", err)
			}
		case e.sealer != nil:
			if err := e.PutSigningKey(id, value); err != nil {
				return nil, err
			}
		}
	}
	return keys, nil
}

// sealed reports whether a record is sealed; one in clear begins with its version.
func sealed(value []byte) bool { return len(value) > 0 && value[0] == seal.Form }

// CheckRecord reports whether a record can be read; check checks one in clear.
func CheckRecord(value []byte, check func([]byte) error) error {
	if !sealed(value) {
		return check(value)
	}
	if len(value) <= seal.Overhead {
		return seal.ErrSealed
	}
	return nil
}

func keyOf(id [16]byte) []byte { return append(bytes.Clone(signingPrefix), id[:]...) }

func (e *Keys) read() (map[[16]byte][]byte, error) {
	keys := map[[16]byte][]byte{}
	err := store.EachParsed(e.kernel.Store, keyspace.Prefix(signingPrefix), func(k *keyspace.Key, value []byte) error {
		if k.ID == keyspace.KindSigningKey {
			keys[[16]byte(k.Bytes(keyspace.PartSigningKey))] = bytes.Clone(value)
		}
		return nil
	})
	return keys, err
}

// PutSigningKey stores a key that signs envelopes, in the caller's encoding; it is durable on
// return.
func (e *Keys) PutSigningKey(id [16]byte, key []byte) error {
	if e.sealer != nil {
		var err error
		if key, err = e.sealer.Seal(key, keyOf(id)); err != nil {
			return err
		}
	}
	sh := e.kernel.All[0]
	return sh.RunDurable(func(*kernel.Tx) error {
		sh.Batch.Set(keyOf(id), key)
		return nil
	})
}
