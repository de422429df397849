package seal

import (
	"encoding/binary"
	"errors"

	aead "github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Form is the first byte of every sealed value: the version of its form. It distinguishes
// sealed values from those in clear, if these never begin so.
const Form byte = 0xf1

const header = 2 // the form, and the number of the key

// Overhead is the increase in length by sealing, in bytes.
const Overhead = header + 24 + 16 // with the nonce and the tag

// ErrSealed refuses a value that was sealed with another key or for another place, or was
// changed since.
var ErrSealed = errors.New("seal: the value cannot be opened: it was sealed with another key or for another place, or is damaged")

// Sealer seals values and opens them. It is safe for concurrent use, and its keys are hidden in
// formatted output.
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

// Seal seals a value for a place, made by Context, which must be given to open it. The result
// is Overhead bytes longer and begins with Form.
func (s *Sealer) Seal(plaintext, context []byte) ([]byte, error) {
	return s.AppendSealed(make([]byte, 0, len(plaintext)+Overhead), plaintext, context)
}

// AppendSealed appends the result of Seal to dst.
func (s *Sealer) AppendSealed(dst, plaintext, context []byte) ([]byte, error) {
	c := s.ciphers[len(s.ciphers)-1]
	sealed, err := c.aead.Encrypt(plaintext, bound(c.number, context))
	if err != nil {
		return nil, err
	}
	return append(append(dst, Form, c.number), sealed...), nil
}

// Open opens a value that Seal has sealed for the same place. It fails with ErrSealed, without
// the reason.
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

// bound is the additional authenticated data of a value: its header and its place.
func bound(number byte, context []byte) []byte {
	return append(append(make([]byte, 0, header+len(context)), Form, number), context...)
}

// Context encodes a place by its parts, such as a kind of record and the record's name, so that
// different parts never make the same context.
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
