package keys

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/seal"
)

// A ciphertext is opaque to clients: a version, the key's id, the number of its material, and
// the sealed plaintext, which is bound to all that and to the encryption context.
const (
	blobVersion = 1
	blobHeader  = 1 + 16 + 4
)

// The errors of ciphertexts.
var (
	ErrCiphertext = fault.NewRule(fault.InvalidCiphertext, "keys: not a ciphertext, or not for the context")
	// ErrForeign is the common answer for a ciphertext whose key does not exist, or that the
	// caller may not use.
	ErrForeign = fault.NewRule(fault.KMSAccessDenied, "keys: no such key, or no right to use it")
)

// secret opens the material of a key: a *seal.Sealer of a symmetric key, the result of
// parseSecret of others.
func (m *Module) secret(k *kms.Key, material *kms.Material) (any, error) {
	m.opening.Lock()
	defer m.opening.Unlock()
	if found, ok := m.secrets[material.ID]; ok {
		return found, nil
	}
	plain, err := m.sealer.Open(material.Sealed, materialContext(k.Account, k.Region, k.ID, material.ID))
	if err != nil {
		return nil, fmt.Errorf("the material of %s: %w", k.ARN(), err)
	}
	var opened any
	if k.Symmetric() {
		opened, err = seal.WithKey(plain)
	} else {
		opened, err = parseSecret(k.Spec, plain)
	}
	if err != nil {
		return nil, err
	}
	m.secrets[material.ID] = opened
	return opened, nil
}

// forget removes the opened material of a deleted key.
func (m *Module) forget(k *kms.Key) {
	m.opening.Lock()
	defer m.opening.Unlock()
	for i := range k.Materials {
		delete(m.secrets, k.Materials[i].ID)
	}
}

// Encrypt makes a ciphertext under a symmetric key, whatever its state.
func (m *Module) Encrypt(k *kms.Key, plaintext []byte, context map[string]string) ([]byte, error) {
	id, err := uuid.Parse(k.ID)
	if err != nil {
		return nil, err
	}
	sealer, err := m.secret(k, k.Current())
	if err != nil {
		return nil, err
	}
	blob := append(make([]byte, 0, blobHeader+len(plaintext)+seal.Overhead), blobVersion)
	blob = binary.BigEndian.AppendUint32(append(blob, id[:]...), uint32(len(k.Materials)))
	sealed, err := sealer.(*seal.Sealer).Seal(plaintext, blobContext(blob, context))
	return append(blob, sealed...), err
}

// blobContext is the context that a ciphertext is bound to: its header, and the encryption
// context in the order of its keys.
func blobContext(header []byte, context map[string]string) []byte {
	parts := append(make([]string, 0, 2+2*len(context)), "kms ciphertext", hex.EncodeToString(header))
	for _, key := range slices.Sorted(maps.Keys(context)) {
		parts = append(parts, key, context[key])
	}
	return seal.Context(parts...)
}

// KeyOf is the key of a ciphertext. Errors: ErrCiphertext, and ErrForeign for a key that does
// not exist.
func (m *Module) KeyOf(region string, blob []byte) (k *kms.Key, err error) {
	if len(blob) < blobHeader+seal.Overhead || blob[0] != blobVersion {
		return nil, ErrCiphertext
	}
	id := uuid.UUID(blob[1:17]).String()
	_ = m.run(func() error {
		k = m.keys[id]
		return nil
	})
	if k == nil || k.Region != region || !k.Symmetric() {
		return nil, ErrForeign
	}
	return k, nil
}

// Decrypt decrypts a ciphertext with its key, which KeyOf has found, whatever its state. It
// fails with ErrCiphertext.
func (m *Module) Decrypt(k *kms.Key, blob []byte, context map[string]string) (plaintext []byte, material string, err error) {
	number := binary.BigEndian.Uint32(blob[17:])
	if number == 0 || uint64(number) > uint64(len(k.Materials)) {
		return nil, "", ErrCiphertext
	}
	of := &k.Materials[number-1]
	sealer, err := m.secret(k, of)
	if err != nil {
		return nil, "", err
	}
	plaintext, err = sealer.(*seal.Sealer).Open(blob[blobHeader:], blobContext(blob[:blobHeader], context))
	if err != nil {
		return nil, "", ErrCiphertext
	}
	return plaintext, of.ID, nil
}

// Random draws random bytes for keys.
func Random(size int) ([]byte, error) {
	drawn := make([]byte, size)
	_, err := rand.Read(drawn)
	return drawn, err
}
