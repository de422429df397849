package signing

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
)

// signed identifies a signature by what is signed. It is the same for all subscribers of a
// topic that receive the same text.
type signed struct {
	key     [16]byte
	version byte
	digest  [32]byte // the rest is zero for SHA-1
}

// signature is made by its first user; the others wait.
type signature struct {
	once sync.Once
	text []byte // base64
	err  error
}

// Signer makes signatures, a few at a time: each uses a processor for about a millisecond,
// and other work must not starve.
type Signer struct {
	*Keys
	slots chan struct{}
}

// NewSigner makes a signer that uses as many processors as there are. Signers do not delay
// each other.
func (k *Keys) NewSigner() *Signer {
	return &Signer{Keys: k, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

var errNoPlaceholder = errors.New("signing: the body has no placeholder for a signature")

// Sign inserts the signature into a body. While the first key is being generated it waits,
// usually a fraction of a second. Signatures are deterministic, and cached by their text.
func (s *Signer) Sign(body []byte, u *message.Unsigned) error {
	id := signed{key: u.Key, version: u.Version}
	if len(u.Digest) > len(id.digest) || u.Offset < 0 || len(body)-u.Offset < envelope.SignatureSize {
		return errNoPlaceholder
	}
	copy(id.digest[:], u.Digest)
	found, ok := s.kept.Get(id)
	if !ok {
		found = &signature{}
		if other, ok, _ := s.kept.PeekOrAdd(id, found); ok {
			found = other
		}
	}
	found.once.Do(func() {
		s.wait(u.Key)
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		found.text, found.err = s.make(u)
	})
	if found.err != nil {
		return found.err
	}
	copy(body[u.Offset:], found.text)
	return nil
}

// Made is the number of signatures made.
func (k *Keys) Made() uint64 { return k.made.Load() }

// wait waits until a key is generated.
func (k *Keys) wait(id [16]byte) {
	if found, ok := k.find(id); ok {
		<-found.ready
	}
}

func (k *Keys) make(u *message.Unsigned) ([]byte, error) {
	found, ok := k.find(u.Key)
	if !ok {
		return nil, fmt.Errorf("signing: the key %x is not in the store", u.Key)
	}
	if found.failed != nil {
		return nil, found.failed
	}
	hash := crypto.SHA256
	if u.Version == 1 {
		hash = crypto.SHA1
	}
	raw, err := rsa.SignPKCS1v15(nil, found.private, hash, u.Digest)
	if err != nil {
		return nil, err
	}
	k.made.Add(1)
	return base64.StdEncoding.AppendEncode(make([]byte, 0, envelope.SignatureSize), raw), nil
}
