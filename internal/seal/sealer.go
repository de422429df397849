package seal

import (
	"encoding/binary"
	"errors"

	aead "github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Form is the first byte of everything that is sealed: the version of its form. What was
// kept in clear before can be distinguished from it where that never begins so.
const Form byte = 0xf1

const header = 2 // the form, and the number of the key

// Overhead is by how much a sealed value is longer than it was, in bytes.
const Overhead = header + 24 + 16 // with the nonce and the tag

// ErrSealed refuses to open what was not sealed so: with another key, for another place,
// or changed since.
var ErrSealed = errors.New("seal: the value cannot be opened: it was sealed with another key or for another place, or is damaged")

// Sealer seals values and opens them. It may be used from several goroutines, and never
// prints its keys.
type Sealer struct {
	ciphers []cipher // the last one seals
}

type cipher struct {
	number byte
	aead   tink.AEAD
}

// WithKey is a sealer with one key of KeySize bytes, as a data key.
func WithKey(key []byte) (*Sealer, error) {
	s := &Sealer{}
	if len(key) != KeySize {
		return nil, errors.New("seal: a key has another size")
	}
	s.add(0, key)
	return s, nil
}

func (s *Sealer) add(number byte, key []byte) {
	primitive, err := aead.NewXChaCha20Poly1305(key)
	if err != nil {
		panic(err) // the size is right
	}
	s.ciphers = append(s.ciphers, cipher{number, primitive})
}

// Seal seals a value for a place, which Context names: who opens it has to give the same.
// The result is Overhead bytes longer and begins with Form.
func (s *Sealer) Seal(plaintext, context []byte) ([]byte, error) {
	return s.AppendSealed(make([]byte, 0, len(plaintext)+Overhead), plaintext, context)
}

// AppendSealed is Seal behind what dst has.
func (s *Sealer) AppendSealed(dst, plaintext, context []byte) ([]byte, error) {
	c := s.ciphers[len(s.ciphers)-1]
	sealed, err := c.aead.Encrypt(plaintext, bound(c.number, context))
	if err != nil {
		return nil, err
	}
	return append(append(dst, Form, c.number), sealed...), nil
}

// Open opens what Seal has sealed for the same place. It fails with ErrSealed, and tells
// nothing about why.
func (s *Sealer) Open(sealed, context []byte) ([]byte, error) {
	if len(sealed) < Overhead || sealed[0] != Form {
		return nil, ErrSealed
	}
	for _, c := range s.ciphers {
		if c.number == sealed[1] {
			plaintext, err := c.aead.Decrypt(sealed[header:], bound(c.number, context))
			if err != nil {
				return nil, ErrSealed
			}
			return plaintext, nil
		}
	}
	return nil, ErrSealed
}

// String hides the keys.
func (s *Sealer) String() string { return "sealer" }

// GoString hides the keys.
func (s *Sealer) GoString() string { return "sealer" }

// bound is what a value is authenticated with: its header and its place.
func bound(number byte, context []byte) []byte {
	return append(append(make([]byte, 0, header+len(context)), Form, number), context...)
}

// Context names the place of a value by its parts, as a kind of record and the record's
// name, so that no two lists of parts are the same context.
func Context(parts ...string) []byte {
	size := 0
	for _, p := range parts {
		size += len(p) + binary.MaxVarintLen32
	}
	context := make([]byte, 0, size)
	for _, p := range parts {
		context = append(binary.AppendUvarint(context, uint64(len(p))), p...)
	}
	return context
}
