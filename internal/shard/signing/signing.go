// Package signing stores the keys that sign envelopes.
package signing

import (
	"bytes"
	"fmt"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// A message that a queue got from a subscription may be stored without its signature: a publish
// does not wait for one in its own commit. The message is signed when it is received, with the
// same signature each time.

// prefix is that of the records of signing keys, by id, in shard 0.
var prefix = keyspace.Shard(0, keyspace.SigningKeys)

// formerPrefix is that of the records of earlier versions, which stand among the replays of shard 0.
var formerPrefix = keyspace.Shard(0, keyspace.Replays)

// Keys stores the keys that sign envelopes, in shard 0. It has no state in memory, and so is no
// module.
type Keys struct {
	kernel *kernel.Kernel
	sealer *seal.Sealer
}

// New makes Keys. A nil sealer leaves keys in clear.
func New(k *kernel.Kernel, sealer *seal.Sealer) *Keys { return &Keys{k, sealer} }

// SigningKeys are all keys stored by PutSigningKey, by id. What earlier versions have stored
// otherwise, under another tag or in clear where there is a sealer, is as PutSigningKey would
// store it on return.
func (e *Keys) SigningKeys() (map[[16]byte][]byte, error) {
	if err := e.moveFormer(); err != nil {
		return nil, err
	}
	keys := map[[16]byte][]byte{}
	err := store.EachOf(e.kernel.Store, keyspace.KindSigningKey, keyspace.Prefix(prefix), func(k *keyspace.Key, value []byte) error {
		keys[idIn(k)] = bytes.Clone(value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id, value := range keys {
		if keys[id], err = e.open(keyOf(id), value); err != nil {
			return nil, err
		}
		if e.sealer != nil && !sealed(value) {
			if err := e.PutSigningKey(id, value); err != nil {
				return nil, err
			}
		}
	}
	return keys, nil
}

// moveFormer gives the records of earlier versions their own tag. A sealed one is bound to its key,
// and so is sealed anew. They move in one commit: a crash leaves all of them, or none, as they were.
func (e *Keys) moveFormer() error {
	var moved mutation.Batch
	err := store.EachParsed(e.kernel.Store, keyspace.Prefix(formerPrefix), func(k *keyspace.Key, value []byte) error {
		if k.ID != keyspace.KindSigningKey {
			return nil
		}
		value, err := e.open(k.Encoded(), value)
		if err != nil {
			return err
		}
		key := keyOf(idIn(k))
		if value, err = e.seal(key, value); err != nil {
			return err
		}
		moved.Set(key, value)
		moved.Delete(k.Encoded())
		return nil
	})
	if err != nil || moved.Len() == 0 {
		return err
	}
	sh := e.kernel.All[0]
	return sh.RunDurable(func(*kernel.Tx) error {
		sh.Batch.Append(&moved)
		return nil
	})
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

func keyOf(id [16]byte) []byte { return append(bytes.Clone(prefix), id[:]...) }

func idIn(k *keyspace.Key) [16]byte { return [16]byte(k.Bytes(keyspace.PartSigningKey)) }

// open is what a record holds.
func (e *Keys) open(key, value []byte) ([]byte, error) {
	switch {
	case !sealed(value):
		return value, nil
	case e.sealer == nil:
		return nil, seal.ErrSealed
	}
	value, err := e.sealer.Open(value, key)
	if err != nil {
		return nil, fmt.Errorf("a key that envelopes are signed with: %w", err)
	}
	return value, nil
}

// seal is the value of a record.
func (e *Keys) seal(key, value []byte) ([]byte, error) {
	if e.sealer == nil {
		return value, nil
	}
	return e.sealer.Seal(value, key)
}

// PutSigningKey stores a key that signs envelopes, in the caller's encoding; it is durable on
// return.
func (e *Keys) PutSigningKey(id [16]byte, value []byte) error {
	key := keyOf(id)
	value, err := e.seal(key, value)
	if err != nil {
		return err
	}
	sh := e.kernel.All[0]
	return sh.RunDurable(func(*kernel.Tx) error {
		sh.Batch.Set(key, value)
		return nil
	})
}
