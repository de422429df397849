// Package seal keeps secrets that are on disk: it is the one place that encrypts what
// the store holds.
//
// A root key, from a file outside of the data, wraps the store's key-encryption keys,
// which are in the store. From those a key is derived for each purpose, and a Sealer
// seals values with that by an AEAD of Tink's (XChaCha20-Poly1305, whose nonces may be
// drawn at random without a bound on how many). Each value is bound to its place: who
// opens it has to name the same one. Another root key therefore means new wraps of a few
// bytes, and no other value changes.
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

// rootForm begins the line of a root key's file: the version of its form.
const rootForm = "godwit-root-key-1"

// ErrRootFile refuses a root key's file that cannot be read.
var ErrRootFile = errors.New("it is not a root key: one line is expected, " + rootForm + ", the key's id and the key")

// Root is a root key. It never prints its secret.
type Root struct {
	id  string
	key [KeySize]byte
}

// NewRoot draws a root key.
func NewRoot() *Root {
	r := &Root{}
	copy(r.key[:], random.GetRandomBytes(KeySize))
	r.id = rootID(r.key[:])
	return r
}

// ParseRoot reads a root key as Encode writes it: lines that are empty or begin with #,
// and one of three words, the form's version, the id and the key in base64. The id
// follows from the key, so that a damaged file is found out. The error never holds what
// the file does.
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

// Encode writes the key as a file holds it. It is the secret.
func (r *Root) Encode() []byte {
	return []byte("# A root key of Godwit. Who has it can read what is sealed, and without it nothing can be\n" +
		"# read: keep a copy, apart from the data.\n" +
		rootForm + " " + r.id + " " + base64.StdEncoding.EncodeToString(r.key[:]) + "\n")
}

// ID names the key, and tells nothing about it: 16 hexadecimal digits.
func (r *Root) ID() string { return r.id }

// String hides the secret.
func (r *Root) String() string { return "root key " + r.id }

// GoString hides the secret.
func (r *Root) GoString() string { return r.String() }

// LogValue hides the secret.
func (r *Root) LogValue() slog.Value { return slog.StringValue(r.String()) }

func rootID(key []byte) string { return hex.EncodeToString(derive(key, "root key's id")[:8]) }

// derive makes a key for a purpose out of another.
func derive(key []byte, purpose string) []byte {
	derived, err := subtle.ComputeHKDF("SHA256", key, nil, []byte("godwit: "+purpose), sha256.Size)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return derived
}
