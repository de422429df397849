package seal

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/tink-crypto/tink-go/v2/subtle/random"
)

// Errors of opening a store's keys.
var (
	// ErrWrongRoot refuses a root key that is not the store's.
	ErrWrongRoot = errors.New("the root key is not the one that the data is sealed with")
	// ErrRecord refuses a damaged record of keys.
	ErrRecord = errors.New("the record of the keys that the data is sealed with is damaged")
)

// Keys are the unwrapped key-encryption keys of a store.
type Keys struct {
	keys []kek // the last one seals

	sealing sync.Mutex // guards sealers
	sealers map[string]*Sealer
}

type kek struct {
	number byte // from 1
	key    []byte
}

// record is the stored form of the keys; it also identifies their root key.
type record struct {
	Version int       `json:"version"` // 1
	Root    string    `json:"root"`    // the id of the root key
	Keys    []wrapped `json:"keys"`
}

type wrapped struct {
	Number byte   `json:"number"`
	Key    []byte `json:"key"` // sealed with a key derived from the root key
}

// NewKeys generates the keys of a new store, and returns their record, which must be stored
// before anything is sealed with them.
func NewKeys(root *Root) (*Keys, []byte, error) {
	k := &Keys{keys: []kek{{number: 1, key: random.GetRandomBytes(KeySize)}}, sealers: map[string]*Sealer{}}
	text, err := k.Rewrap(root)
	return k, text, err
}

// OpenKeys opens a store's record with its root key. It fails with ErrWrongRoot, which has the
// ids of both keys, or ErrRecord.
func OpenKeys(root *Root, text []byte) (*Keys, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil || r.Version != 1 || len(r.Keys) == 0 {
		return nil, ErrRecord
	}
	if r.Root != root.id {
		return nil, fmt.Errorf("%w: that has the id %s, and this one %s", ErrWrongRoot, r.Root, root.id)
	}
	wrapping, err := root.wrapping()
	if err != nil {
		return nil, err
	}
	k := &Keys{sealers: map[string]*Sealer{}}
	for _, w := range r.Keys {
		key, err := wrapping.Open(w.Key, wrapContext(r.Root, w.Number))
		if err != nil || len(key) != KeySize || w.Number == 0 {
			return nil, ErrRecord
		}
		k.keys = append(k.keys, kek{w.Number, key})
	}
	return k, nil
}

// RootOf is the id of the root key that a record needs.
func RootOf(text []byte) (id string, err error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil || r.Version != 1 {
		return "", ErrRecord
	}
	return r.Root, nil
}

// Rewrap returns a record of the same keys under another root key, which is to replace the
// stored one.
func (k *Keys) Rewrap(root *Root) ([]byte, error) {
	wrapping, err := root.wrapping()
	if err != nil {
		return nil, err
	}
	r := record{Version: 1, Root: root.id}
	for _, key := range k.keys {
		sealed, err := wrapping.Seal(key.key, wrapContext(root.id, key.number))
		if err != nil {
			return nil, err
		}
		r.Keys = append(r.Keys, wrapped{key.number, sealed})
	}
	return json.Marshal(r)
}

// String hides the keys.
func (k *Keys) String() string { return strconv.Itoa(len(k.keys)) + " key-encryption keys" }

// GoString hides the keys.
func (k *Keys) GoString() string { return k.String() }

// LogValue hides the keys.
func (k *Keys) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Sealer is the sealer of a purpose, as "identity": a value sealed for one purpose cannot be
// opened for another. It may be called concurrently.
func (k *Keys) Sealer(purpose string) *Sealer {
	k.sealing.Lock()
	defer k.sealing.Unlock()
	if s := k.sealers[purpose]; s != nil {
		return s
	}
	s := &Sealer{}
	for _, key := range k.keys {
		s.add(key.number, derive(key.key, "seals "+purpose))
	}
	k.sealers[purpose] = s
	return s
}

func (r *Root) wrapping() (*Sealer, error) {
	return WithKey(derive(r.key[:], "wraps key-encryption keys"))
}

func wrapContext(root string, number byte) []byte {
	return Context("key-encryption key", root, strconv.Itoa(int(number)))
}
