// Package seal seals secrets on disk: it is the only place that encrypts the store's content.
//
// A root key, from a file outside of the data, wraps the store's key-encryption keys, which are
// in the store. From those a key is derived for each purpose, with which a Sealer seals values
// by an AEAD of Tink's (XChaCha20-Poly1305, whose random nonces need no bound on their number).
// Each value is bound to its place, which must be given to open it. So another root key only
// needs new wraps of a few bytes, and no other value changes.
package seal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tink-crypto/tink-go/v2/subtle"
	"github.com/tink-crypto/tink-go/v2/subtle/random"
)

// KeySize is the size of every key of this package, in bytes.
const KeySize = 32

// rootForm is the version at the beginning of the line in a root key's file.
const rootForm = "godwit-root-key-1"

// ErrRootFile refuses an invalid file of a root key.
var ErrRootFile = errors.New("it is not a root key: one line is expected, " + rootForm + ", the key's id and the key")

// Root is a root key. Its secret is hidden in formatted output.
type Root struct {
	id  string
	key [KeySize]byte
}

// NewRoot generates a root key.
func NewRoot() *Root {
	r := &Root{}
	copy(r.key[:], random.GetRandomBytes(KeySize))
	r.id = rootID(r.key[:])
	return r
}

// ParseRoot parses a root key as Encode writes it: lines that are empty or begin with #, and
// one of three words, the version, the id and the key in base64. The id is derived from the
// key, so that a damaged file is detected. The error never quotes the file.
func ParseRoot(text []byte) (*Root, error) {
	var found []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			found = append(found, strings.Fields(line)...)
		}
	}
	if len(found) != 3 || found[0] != rootForm {
		return nil, ErrRootFile
	}
	key, err := base64.StdEncoding.Strict().DecodeString(found[2])
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("%w; the key is not %d bytes in base64", ErrRootFile, KeySize)
	}
	r := &Root{id: rootID(key)}
	copy(r.key[:], key)
	if r.id != found[1] {
		return nil, fmt.Errorf("%w; the id does not belong to the key", ErrRootFile)
	}
	return r, nil
}

// Encode encodes the key for a file, including the secret.
func (r *Root) Encode() []byte {
	return []byte("# A root key of Godwit. Who has it can read what is sealed, and without it nothing can be\n" +
		"# read: keep a copy, apart from the data.\n" +
		rootForm + " " + r.id + " " + base64.StdEncoding.EncodeToString(r.key[:]) + "\n")
}

// ID identifies the key without revealing it: 16 hexadecimal digits.
func (r *Root) ID() string { return r.id }

// String hides the secret.
func (r *Root) String() string { return "root key " + r.id }

// GoString hides the secret.
func (r *Root) GoString() string { return r.String() }

// LogValue hides the secret.
func (r *Root) LogValue() slog.Value { return slog.StringValue(r.String()) }

func rootID(key []byte) string { return hex.EncodeToString(derive(key, "root key's id")[:8]) }

// derive derives a key for a purpose from another.
func derive(key []byte, purpose string) []byte {
	derived, err := subtle.ComputeHKDF("SHA256", key, nil, []byte("godwit: "+purpose), sha256.Size)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return derived
}
