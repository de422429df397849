// Package keys has KMS keys, their aliases and grants, and the keys that seal all secrets on
// the disk. It is a module of the kernel, with its own shard.
package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/seal"
)

// sealingKey is the key of the record that holds the keys of the store, wrapped with the
// root key.
var sealingKey = []byte{keyspace.KMSSpace, keyspace.KeySealing}

// SealingSpan is the range of keys of the record that the root key wraps.
func SealingSpan() keyspace.Span { return keyspace.Prefix(sealingKey) }

// ErrNoRoot refuses a store whose root key is missing.
var ErrNoRoot = errors.New("the root key that the data is sealed with is not there")

// OpenSealing opens the keys that a store is sealed with. root returns the root key with a
// given id; an empty id means that the store has no keys yet, and gets them now. A root key
// that is not the store's is refused before anything is written: seal.ErrWrongRoot. It must be
// called before the kernel opens its streams. kept is an earlier result of Sealing, which
// replaces the record if the store has lost it; nil: there is none.
func OpenSealing(log *journal.Journal, now time.Time, kept []byte, root func(needed string) (*seal.Root, error)) (*seal.Keys, error) {
	text, err := Sealing(log)
	if err != nil {
		return nil, err
	}
	lost := text == nil && kept != nil
	if lost {
		text = kept
	}
	if text != nil {
		needed, err := seal.RootOf(text)
		if err != nil {
			return nil, err
		}
		found, err := root(needed)
		if err != nil {
			return nil, err
		}
		keys, err := seal.OpenKeys(found, text)
		if err != nil || !lost {
			return keys, err
		}
		return keys, putSealing(log, now, text)
	}
	found, err := root("")
	if err != nil {
		return nil, err
	}
	keys, text, err := seal.NewKeys(found)
	if err != nil {
		return nil, err
	}
	return keys, putSealing(log, now, text)
}

// Sealing is the record of the keys that a store is sealed with, which only the root key can
// open; nil if there is none.
func Sealing(log *journal.Journal) ([]byte, error) {
	text, ok, err := log.Reader().Get(nil, sealingKey)
	if err != nil {
		return nil, fmt.Errorf("reading which root key the data is sealed with: %w", err)
	}
	if !ok {
		return nil, nil
	}
	return text, nil
}

func putSealing(log *journal.Journal, now time.Time, text []byte) error {
	stream, _, err := log.Stream(keyspace.KMSStream, nil)
	if err != nil {
		return err
	}
	stream.BeginEpoch() // every commit needs an epoch; the module's Load begins the next
	var b mutation.Batch
	b.Set(sealingKey, text)
	stream.Append(journal.Eager, now.UnixMilli(), &b).Wait()
	return nil
}

// CheckRecord reports whether the value of a record of this package can be read. It does not
// open sealed values.
func CheckRecord(id keyspace.ID, value []byte) (err error) {
	switch id {
	case keyspace.KindSealing:
		_, err = seal.RootOf(value)
	case keyspace.KindStored:
		err = json.Unmarshal(value, &Stored{})
	case keyspace.KindKey:
		_, err = decode[kms.Key](value)
	case keyspace.KindKeyAlias:
		_, err = decode[kms.Alias](value)
	case keyspace.KindKeyGrant:
		_, err = decode[kms.Grant](value)
	default:
	}
	return err
}

// version begins each record of a key, an alias or a grant.
const version = 1

func encode(v any) []byte { return keyspace.EncodeJSON(version, v) }

func decode[T any](value []byte) (*T, error) {
	v := new(T)
	return v, keyspace.DecodeJSON(version, value, v)
}
