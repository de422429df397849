// Package receipt makes and checks receipt handles.
package receipt

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"sync"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/store"
)

// A receipt handle is the base64 of: shard, incarnation, sequence, lane, the
// number of the receive, the epoch of the shard, and an authentication code
// over them, so that nobody can make one up or use it on another queue.
const (
	bodySize = 2 + 8 + 8 + 8 + 4 + 4
	codeSize = 16
)

// Strict, so that each handle has one spelling only.
var encoding = base64.StdEncoding.Strict()

// Handles make and check receipt handles.
type Handles struct {
	codes sync.Pool // of hash.Hash, keyed
}

// New makes Handles that only the holder of the key can make.
func New(key []byte) *Handles {
	s := &Handles{}
	s.codes.New = func() any { return hmac.New(sha256.New, key) }
	return s
}

func (s *Handles) code(dst, body []byte) []byte {
	h := s.codes.Get().(hash.Hash)
	h.Reset()
	h.Write(body)
	var sum [sha256.Size]byte
	dst = append(dst, h.Sum(sum[:0])[:codeSize]...)
	s.codes.Put(h)
	return dst
}

// Seal makes the handle of a receive.
func (s *Handles) Seal(shard uint16, inc layout.Incarnation, l queue.Lease) string {
	buf := make([]byte, 0, bodySize+codeSize)
	buf = binary.BigEndian.AppendUint16(buf, shard)
	buf = binary.BigEndian.AppendUint64(buf, uint64(inc))
	buf = binary.BigEndian.AppendUint64(buf, l.Sequence)
	buf = binary.BigEndian.AppendUint64(buf, uint64(l.Lane))
	buf = binary.BigEndian.AppendUint32(buf, l.Receives)
	buf = binary.BigEndian.AppendUint32(buf, l.Epoch)
	buf = s.code(buf, buf)
	return encoding.EncodeToString(buf)
}

// Open reads a handle of the given queue; ok is false for anything else.
func (s *Handles) Open(handle string, shard uint16, inc layout.Incarnation) (h queue.Handle, ok bool) {
	var space [bodySize + codeSize + 2]byte
	if len(handle) != encoding.EncodedLen(bodySize+codeSize) {
		return h, false
	}
	n, err := encoding.Decode(space[:], []byte(handle))
	if err != nil || n != bodySize+codeSize {
		return h, false
	}
	var code [codeSize]byte
	if !hmac.Equal(s.code(code[:0], space[:bodySize]), space[bodySize:n]) {
		return h, false
	}
	p := space[:]
	if binary.BigEndian.Uint16(p) != shard || binary.BigEndian.Uint64(p[2:]) != uint64(inc) {
		return h, false
	}
	return queue.Handle{
		Sequence: binary.BigEndian.Uint64(p[10:]),
		Lane:     layout.Lane(binary.BigEndian.Uint64(p[18:])),
		Receives: binary.BigEndian.Uint32(p[26:]),
		Epoch:    binary.BigEndian.Uint32(p[30:]),
	}, true
}

// KeySize is the size of the key that handles are authenticated with, in bytes.
const KeySize = 32

// keyRecord holds that key, among the keys of shard 0.
var keyRecord = keyspace.Shard(0, keyspace.HandleKey)

// Load reads the key of a store. An empty one gets a key with shard 0's next commit, which
// is b, so that the stream of its commits is complete; and one that is kept in clear is
// sealed with it. A nil sealer leaves it in clear. Errors: seal.ErrSealed, the sealer's and
// the store's.
func Load(from store.Reader, sealer *seal.Sealer, b *mutation.Batch) (*Handles, error) {
	value, ok, err := from.Get(nil, keyRecord)
	if err != nil {
		return nil, err
	}
	key, sealed := value, false
	switch {
	case !ok:
		key = make([]byte, KeySize)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
	case len(value) != KeySize:
		if sealer == nil {
			return nil, seal.ErrSealed
		}
		if key, err = sealer.Open(value, keyRecord); err != nil {
			return nil, fmt.Errorf("the key of receipt handles: %w", err)
		}
		sealed = true
	}
	if sealer != nil && !sealed {
		if value, err = sealer.Seal(key, keyRecord); err != nil {
			return nil, err
		}
		b.Set(keyRecord, value)
	} else if !ok {
		b.Set(keyRecord, key)
	}
	return New(key), nil
}

// CheckKey reports whether the record of the key can be read, sealed or in clear.
func CheckKey(value []byte) bool {
	return len(value) == KeySize || len(value) == KeySize+seal.Overhead && value[0] == seal.Form
}
