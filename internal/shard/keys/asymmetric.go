package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // RSAES_OAEP_SHA_1 is one of KMS's algorithms, and OAEP needs no hash without collisions
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"errors"
	"hash"
	"strings"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/seal"
)

// The errors of operations with asymmetric keys, with their fields.
var (
	ErrDigest    = fault.NewRule(fault.ValidationFailed, "keys: a digest of another size")           // algorithm
	ErrTooLong   = fault.NewRule(fault.ValidationFailed, "keys: too long for the key")               // algorithm, spec, bytes
	ErrSignature = fault.NewRule(fault.InvalidSignature, "keys: the signature is not the message's") // none
	ErrMAC       = fault.NewRule(fault.InvalidMAC, "keys: the code is not the message's")            // none
)

var rsaBits = map[string]int{"RSA_2048": 2048, "RSA_3072": 3072, "RSA_4096": 4096}

var curves = map[string]elliptic.Curve{"ECC_NIST_P256": elliptic.P256(), "ECC_NIST_P384": elliptic.P384(), "ECC_NIST_P521": elliptic.P521()}

var macHashes = map[string]func() hash.Hash{
	"HMAC_SHA_224": sha256.New224, "HMAC_SHA_256": sha256.New, "HMAC_SHA_384": sha512.New384, "HMAC_SHA_512": sha512.New,
}

// newSecret draws the secret of a spec: bytes, or a private key in PKCS #8 form.
func newSecret(spec string) ([]byte, error) {
	if bits, ok := strings.CutPrefix(spec, "HMAC_"); ok {
		return Random(macHashes["HMAC_SHA_"+bits]().Size())
	}
	if spec == kms.SymmetricDefault {
		return Random(seal.KeySize)
	}
	private, err := newPair(spec)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(private)
}

func newPair(spec string) (crypto.Signer, error) {
	if bits := rsaBits[spec]; bits > 0 {
		return rsa.GenerateKey(rand.Reader, bits)
	}
	if curve := curves[spec]; curve != nil {
		return ecdsa.GenerateKey(curve, rand.Reader)
	}
	return nil, kms.ErrUnbuilt.With("the key spec " + spec)
}

// parseSecret parses a secret of newSecret: []byte, *rsa.PrivateKey or *ecdsa.PrivateKey.
func parseSecret(spec string, secret []byte) (any, error) {
	if strings.HasPrefix(spec, "HMAC_") {
		return secret, nil
	}
	return x509.ParsePKCS8PrivateKey(secret)
}

// NewPair draws a key pair of a spec: the private key in PKCS #8 form, the public one as its
// SubjectPublicKeyInfo, both in DER.
func NewPair(spec string) (private, public []byte, err error) {
	pair, err := newPair(spec)
	if err != nil {
		return nil, nil, err
	}
	if private, err = x509.MarshalPKCS8PrivateKey(pair); err != nil {
		return nil, nil, err
	}
	public, err = x509.MarshalPKIXPublicKey(pair.Public())
	return private, public, err
}

// PublicKey is the public key of an asymmetric key, as its SubjectPublicKeyInfo in DER.
func (m *Module) PublicKey(k *kms.Key) ([]byte, error) {
	secret, err := m.secret(k, k.Current())
	if err != nil {
		return nil, err
	}
	pair, ok := secret.(crypto.Signer)
	if !ok {
		return nil, kms.ErrAsymmetric
	}
	return x509.MarshalPKIXPublicKey(pair.Public())
}

// MAC is the authentication code of a message.
func (m *Module) MAC(k *kms.Key, algorithm string, message []byte) ([]byte, error) {
	secret, err := m.secret(k, k.Current())
	if err != nil {
		return nil, err
	}
	code := hmac.New(macHashes[algorithm], secret.([]byte))
	code.Write(message)
	return code.Sum(nil), nil
}

// VerifyMAC checks an authentication code, in constant time. It fails with ErrMAC.
func (m *Module) VerifyMAC(k *kms.Key, algorithm string, message, code []byte) error {
	right, err := m.MAC(k, algorithm, message)
	if err == nil && !hmac.Equal(right, code) {
		err = ErrMAC
	}
	return err
}

// hashOf is the hash at the end of an algorithm's name.
func hashOf(algorithm string) crypto.Hash {
	switch {
	case strings.HasSuffix(algorithm, "SHA_1"):
		return crypto.SHA1
	case strings.HasSuffix(algorithm, "SHA_384"):
		return crypto.SHA384
	case strings.HasSuffix(algorithm, "SHA_512"):
		return crypto.SHA512
	default:
		return crypto.SHA256
	}
}

// digestOf is the digest of a message, or the message itself if digested. It fails with
// ErrDigest.
func digestOf(algorithm string, message []byte, digested bool) ([]byte, error) {
	h := hashOf(algorithm)
	if !digested {
		sum := h.New()
		sum.Write(message)
		return sum.Sum(nil), nil
	}
	if len(message) != h.Size() {
		return nil, ErrDigest.With(algorithm)
	}
	return message, nil
}

// Sign signs a message, or a digest.
func (m *Module) Sign(k *kms.Key, algorithm string, message []byte, digested bool) ([]byte, error) {
	digest, err := digestOf(algorithm, message, digested)
	if err != nil {
		return nil, err
	}
	secret, err := m.secret(k, k.Current())
	if err != nil {
		return nil, err
	}
	var o crypto.SignerOpts = hashOf(algorithm)
	if strings.HasPrefix(algorithm, "RSASSA_PSS") {
		o = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hashOf(algorithm)}
	}
	return secret.(crypto.Signer).Sign(rand.Reader, digest, o)
}

// Verify checks a signature. It fails with ErrSignature.
func (m *Module) Verify(k *kms.Key, algorithm string, message []byte, digested bool, signature []byte) error {
	digest, err := digestOf(algorithm, message, digested)
	if err != nil {
		return err
	}
	secret, err := m.secret(k, k.Current())
	if err != nil {
		return err
	}
	valid := false
	switch pair := secret.(type) {
	case *ecdsa.PrivateKey:
		valid = ecdsa.VerifyASN1(&pair.PublicKey, digest, signature)
	case *rsa.PrivateKey:
		if h := hashOf(algorithm); strings.HasPrefix(algorithm, "RSASSA_PSS") {
			valid = rsa.VerifyPSS(&pair.PublicKey, h, digest, signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		} else {
			valid = rsa.VerifyPKCS1v15(&pair.PublicKey, h, digest, signature) == nil
		}
	}
	if !valid {
		return ErrSignature
	}
	return nil
}

func oaepHash(algorithm string) hash.Hash {
	if hashOf(algorithm) == crypto.SHA1 {
		return sha1.New() //nolint:gosec // as above
	}
	return sha256.New()
}

// EncryptRSA encrypts under an RSA key.
func (m *Module) EncryptRSA(k *kms.Key, algorithm string, plaintext []byte) ([]byte, error) {
	secret, err := m.secret(k, k.Current())
	if err != nil {
		return nil, err
	}
	public := &secret.(*rsa.PrivateKey).PublicKey
	sealed, err := rsa.EncryptOAEP(oaepHash(algorithm), rand.Reader, public, plaintext, nil)
	if errors.Is(err, rsa.ErrMessageTooLong) {
		return nil, ErrTooLong.With(algorithm, k.Spec, public.Size()-2*oaepHash(algorithm).Size()-2)
	}
	return sealed, err
}

// DecryptRSA decrypts a ciphertext of EncryptRSA, or of any library. It fails with
// ErrCiphertext.
func (m *Module) DecryptRSA(k *kms.Key, algorithm string, ciphertext []byte) ([]byte, error) {
	secret, err := m.secret(k, k.Current())
	if err != nil {
		return nil, err
	}
	plaintext, err := rsa.DecryptOAEP(oaepHash(algorithm), nil, secret.(*rsa.PrivateKey), ciphertext, nil)
	if err != nil {
		return nil, ErrCiphertext
	}
	return plaintext, nil
}
