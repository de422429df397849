// Package signing stores the keys that sign envelopes, serves their certificates and makes
// the signatures.
//
// The first start of a server chooses the id of its key, stores it, and generates the key in
// the background: a publish only needs the id. Signing waits until the key is generated and
// durable. When a certificate nears its end, the next start generates a new key for all later
// signatures. Old keys are kept: messages in queues may refer to them and be signed only when
// they are received, and certificates are fetched for as long as anyone keeps a message.
package signing

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"godwit.dev/godwit/internal/clock"
)

const (
	keyBits = 2048
	// commonName is the common name of the certificates.
	commonName = "sns.amazonaws.com"
	// lifetime is the lifetime of a certificate. A start within renewal of its end generates
	// a new key.
	lifetime = 20 * 365 * 24 * time.Hour
	renewal  = 365 * 24 * time.Hour
	// early is the start of a certificate's validity before its creation, for receivers with
	// a clock behind this server's.
	early = 24 * time.Hour
)

// Store stores keys; *shard.Engine implements it.
type Store interface {
	// SigningKeys returns all keys, by id.
	SigningKeys() (map[[16]byte][]byte, error)
	// PutSigningKey stores a key; it is durable on return.
	PutSigningKey(id [16]byte, key []byte) error
}

// Options are the dependencies of Keys. Store and Clock are required.
type Options struct {
	Store  Store
	Clock  clock.Clock // for dates of certificates: the machine's, because receivers use theirs
	Logger *slog.Logger
	// Pair generates a key pair; nil: a new one of 2,048 bits.
	Pair func() (*rsa.PrivateKey, error)
	// Kept bounds the signatures in memory; the default is 16,384, in about 10 MB.
	Kept int
}

// Keys are the keys of a server.
type Keys struct {
	options Options
	kept    *lru.Cache[signed, *signature]
	made    atomic.Uint64
	working sync.WaitGroup
	making  sync.Mutex

	mu     sync.RWMutex
	byID   map[[16]byte]*key
	newest *key // never nil
}

// key is a key pair and its certificate.
type key struct {
	id     [16]byte
	number uint64        // grows with each key
	ready  chan struct{} // closed once the key is generated, or failed

	private     *rsa.PrivateKey
	certificate *x509.Certificate
	pem         []byte
	failed      error
}

// Open reads the keys of a store, and generates one in the background if none is valid for
// long enough.
func Open(o Options) (*Keys, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Pair == nil {
		o.Pair = func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) }
	}
	kept, err := lru.New[signed, *signature](cmp.Or(o.Kept, 16_384))
	if err != nil {
		return nil, err
	}
	k := &Keys{options: o, kept: kept, byID: map[[16]byte]*key{}}
	stored, err := o.Store.SigningKeys()
	if err != nil {
		return nil, err
	}
	for id, value := range stored {
		found, err := decodeKey(id, value)
		if err != nil {
			return nil, fmt.Errorf("the signing key %x: %w", id, err)
		}
		k.add(found)
	}
	switch {
	case k.newest == nil:
		first, err := newKey(1)
		if err == nil {
			err = o.Store.PutSigningKey(first.id, first.encode())
		}
		if err != nil {
			return nil, fmt.Errorf("the key that signs messages: %w", err)
		}
		k.add(first)
		fallthrough
	case k.newest.private == nil: // or the process ended before it was generated
		k.working.Go(func() { k.finish(k.newest) })
	case k.newest.certificate.NotAfter.Sub(o.Clock.Now()) < renewal:
		k.working.Go(func() { _ = k.Rotate() }) // the old one is used until then
	}
	return k, nil
}

// Stop waits for keys that are being generated.
func (k *Keys) Stop() { k.working.Wait() }

// finish generates the rest of a new key.
func (k *Keys) finish(unmade *key) {
	defer close(unmade.ready)
	if err := k.fill(unmade); err != nil {
		unmade.failed = fmt.Errorf("the key that signs messages was not made: %w", err)
		k.options.Logger.Error("no key could be made to sign messages with", "error", err)
	}
}

// Rotate generates a new key for all later signatures.
func (k *Keys) Rotate() error {
	k.making.Lock()
	defer k.making.Unlock()
	k.mu.RLock()
	number := k.newest.number + 1
	k.mu.RUnlock()
	next, err := newKey(number)
	if err != nil {
		return err
	}
	if k.finish(next); next.failed != nil {
		return next.failed
	}
	k.add(next)
	return nil
}

func (k *Keys) add(added *key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[added.id] = added
	if k.newest == nil || added.number > k.newest.number {
		k.newest = added
	}
}

// Key is the id of the current key, which may still be being generated.
func (k *Keys) Key() [16]byte {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.newest.id
}

func (k *Keys) find(id [16]byte) (*key, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	found, ok := k.byID[id]
	return found, ok
}

// newKey chooses the id of a key.
func newKey(number uint64) (*key, error) {
	k := &key{number: number, ready: make(chan struct{})}
	_, err := rand.Read(k.id[:])
	return k, err
}

// fill generates the key pair and its certificate, and stores them.
func (k *Keys) fill(unmade *key) error {
	private, err := k.options.Pair()
	if err != nil {
		return err
	}
	// A serial number is positive and has at most 20 bytes.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 159))
	if err != nil {
		return err
	}
	now := k.options.Clock.Now().UTC().Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName}, DNSNames: []string{commonName},
		NotBefore: now.Add(-early), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return err
	}
	made := key{number: unmade.number, private: private}
	if err := made.certify(der); err != nil {
		return err
	}
	if err := k.options.Store.PutSigningKey(unmade.id, made.encode()); err != nil {
		return err
	}
	unmade.private, unmade.certificate, unmade.pem = made.private, made.certificate, made.pem
	return nil
}

// certify gives the key its certificate.
func (k *key) certify(der []byte) (err error) {
	if k.certificate, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	if public, ok := k.certificate.PublicKey.(*rsa.PublicKey); !ok || !public.Equal(k.private.Public()) {
		return errors.New("the certificate is for another key")
	}
	k.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return nil
}

const keyVersion = 1

// encode is the persisted form of a key: a version and the number; then, unless it is still
// to be generated, the length of the private key, the private key in PKCS #1, and the
// certificate, both in DER.
func (k *key) encode() []byte {
	value := binary.AppendUvarint([]byte{keyVersion}, k.number)
	if k.private == nil {
		return value
	}
	private := x509.MarshalPKCS1PrivateKey(k.private)
	value = binary.AppendUvarint(value, uint64(len(private)))
	value = append(value, private...)
	return append(value, k.certificate.Raw...)
}

var errUnreadable = errors.New("the record is unreadable; it was written by a newer godwit, or is damaged")

func decodeKey(id [16]byte, value []byte) (*key, error) {
	if len(value) == 0 || value[0] != keyVersion {
		return nil, errUnreadable
	}
	value = value[1:]
	k := &key{id: id, ready: make(chan struct{})}
	var w int
	if k.number, w = binary.Uvarint(value); w <= 0 {
		return nil, errUnreadable
	}
	value = value[w:]
	if len(value) == 0 {
		return k, nil
	}
	close(k.ready)
	size, w := binary.Uvarint(value)
	if w <= 0 || size > uint64(len(value)-w) {
		return nil, errUnreadable
	}
	value = value[w:]
	var err error
	if k.private, err = x509.ParsePKCS1PrivateKey(value[:size]); err != nil {
		return nil, errUnreadable // its text might quote the key
	}
	if k.private.N.BitLen() != keyBits {
		return nil, errUnreadable
	}
	return k, k.certify(value[size:])
}

// CheckRecord reports whether a key's record is readable.
func CheckRecord(value []byte) error {
	_, err := decodeKey([16]byte{}, value)
	return err
}
