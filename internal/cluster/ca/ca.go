// Package ca is a cluster's own certificate authority: it issues the certificates by which nodes
// authenticate each other.
//
// The node with the authority's key admits a new node by a token, which is valid once, for one
// name and for a limited time. The token has the fingerprint of the authority, so that the new
// node can verify the node that it asks. The key stays in the directory where it was made; the
// other nodes only have the authority's certificate.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"godwit.dev/godwit/internal/durable"
)

// Names in a node's directory.
const (
	nodeFile  = "node.pem" // certificates and key
	rootFile  = "ca.crt"
	keyFile   = "ca.key"      // only where the authority is
	nextFile  = "ca.next.key" // likewise, while the authority is replaced
	tokensDir = "tokens"      // likewise
)

// Kinds of blocks in these files.
const (
	keyBlock  = "PRIVATE KEY"
	certBlock = "CERTIFICATE"
)

// How long certificates are valid. A node's is renewed when a third of that is left.
const (
	rootLife = 10 * 365 * 24 * time.Hour
	NodeLife = 90 * 24 * time.Hour
	skew     = 5 * time.Minute // between the clocks of nodes
)

// MaxTokenLife bounds the validity of a token.
const MaxTokenLife = 7 * 24 * time.Hour

// Errors of tokens and names.
var (
	ErrToken = errors.New("the token is not known, was used, has expired or is for another node")
	ErrName  = errors.New("a node's name is 1 to 63 letters, digits, dots and hyphens, and begins and ends with a letter or digit")
	ErrMade  = errors.New("the directory has a node's certificate already")
)

var nodeName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$`)

// CheckName fails for an invalid node name. Errors: ErrName.
func CheckName(node string) error {
	if !nodeName.MatchString(node) {
		return fmt.Errorf("%w: %q", ErrName, node)
	}
	return nil
}

// Authority signs the certificates of a cluster's nodes.
type Authority struct {
	dir   string
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	roots Roots // cert, and the other root that nodes trust while one replaces the other
}

// Init makes a cluster's authority in a directory, and the certificate of its first node.
// Errors: ErrName, ErrMade, those of the disk.
func Init(dir, node string, now time.Time) error {
	if err := CheckName(node); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range [...]string{nodeFile, rootFile, keyFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s is there", ErrMade, filepath.Join(dir, name))
		}
	}
	key, cert, err := newRoot(strings.ToLower(rand.Text()), now)
	if err != nil {
		return err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return err
	}
	if err := errors.Join(
		durable.Replace(filepath.Join(dir, keyFile), encoded),
		durable.Replace(filepath.Join(dir, rootFile), encodeCert(cert)),
	); err != nil {
		return err
	}
	a, err := Open(dir)
	if err != nil {
		return err
	}
	return a.Renew(node, now)
}

// Take issues the certificate of a node in a directory, by the authority of the directory from.
// The authority's key is copied too, if the node is the one that Init was called for. A
// directory that has a node's certificate is not changed. Errors: ErrName, those of Open and
// of the disk.
func Take(from, dir, node string, now time.Time) error {
	if err := CheckName(node); err != nil {
		return err
	}
	if CheckNew(dir) != nil {
		return nil
	}
	a, err := Open(from)
	if err != nil {
		return err
	}
	first, err := os.ReadFile(filepath.Join(from, nodeFile))
	if err != nil {
		return err
	}
	block, _ := pem.Decode(first)
	if block == nil {
		return fmt.Errorf("%s has no certificate", nodeFile)
	}
	of, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", nodeFile, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if of.Subject.CommonName == node {
		key, err := encodeKey(a.key)
		if err == nil {
			err = durable.Replace(filepath.Join(dir, keyFile), key)
		}
		if err != nil {
			return err
		}
	}
	if err := durable.Replace(filepath.Join(dir, rootFile), a.roots.PEM()); err != nil {
		return err
	}
	return (&Authority{dir: dir, cert: a.cert, key: a.key, roots: a.roots}).Renew(node, now) // last: CheckNew takes it for complete
}

// newRoot generates the key of a cluster's authority, and its certificate.
func newRoot(cluster string, now time.Time) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := rootTemplate(cluster, now)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return key, cert, err
}

func rootTemplate(cluster string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: cluster, Organization: []string{"Godwit cluster"}},
		NotBefore: now.Add(-skew), NotAfter: now.Add(rootLife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage:                    x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{serverName(cluster)},
	}
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), err
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // it never fails
	return n
}

// serverName is the DNS name in the certificates of all nodes of a cluster.
func serverName(cluster string) string { return cluster + ".cluster.godwit" }

// Open opens the authority in a directory, with the key of the first root. During a rotation
// that may be the next key. Errors: fs.ErrNotExist if there is none.
func Open(dir string) (*Authority, error) {
	roots, err := ReadRoots(dir)
	if err != nil {
		return nil, err
	}
	key, err := readKey(dir, keyFile)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(roots[0].PublicKey) {
		if key, err = readKey(dir, nextFile); err != nil || !key.PublicKey.Equal(roots[0].PublicKey) {
			return nil, fmt.Errorf("%s is of another authority than %s: its copy is needed", keyFile, rootFile)
		}
	}
	return &Authority{dir: dir, cert: roots[0], key: key, roots: roots}, nil
}

func readKey(dir, name string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no key", name)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s has another kind of key", name)
	}
	return key, nil
}

// Sign issues a node's certificate for the key of a request; it ignores the rest of the request.
// It returns the certificate and the roots that nodes trust, the signing one first, in PEM form.
func (a *Authority) Sign(request []byte, node string, now time.Time) ([]byte, error) {
	if err := CheckName(node); err != nil {
		return nil, err
	}
	csr, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("the request for a certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: node}, DNSNames: []string{serverName(a.cert.Subject.CommonName)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(NodeLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: der}), a.roots.PEM()...), nil
}

// Renew issues the certificate of the node in whose directory the authority is.
func (a *Authority) Renew(node string, now time.Time) error {
	r, err := NewRequest()
	if err != nil {
		return err
	}
	signed, err := a.Sign(r.DER, node, now)
	if err != nil {
		return err
	}
	return r.Keep(a.dir, signed)
}

// Request is a request for a certificate, with its key.
type Request struct {
	DER []byte
	key *ecdsa.PrivateKey
}

// NewRequest generates a key and a request for its certificate.
func NewRequest() (*Request, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return &Request{der, key}, err
}

// Keep writes the certificates of Sign and the key into a directory.
func (r *Request) Keep(dir string, signed []byte) error {
	encoded, err := encodeKey(r.key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, nodeFile), append(append([]byte{}, signed...), encoded...))
}

// token is the stored form of a token, whose file is named by the hash of its secret.
type token struct {
	Node    string    `json:"node"`
	Expires time.Time `json:"expires"`
}

// NewToken makes a token for a node that is valid once, for a limited time.
func (a *Authority) NewToken(node string, now time.Time, validity time.Duration) (string, error) {
	if err := CheckName(node); err != nil {
		return "", err
	}
	if validity <= 0 || validity > MaxTokenLife {
		return "", fmt.Errorf("a token is of use for up to %v", MaxTokenLife)
	}
	secret := rand.Text()
	text, err := json.Marshal(token{node, now.Add(validity)})
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(a.dir, tokensDir), 0o700); err != nil {
		return "", err
	}
	if err := durable.Replace(a.tokenFile(secret), text); err != nil {
		return "", err
	}
	return secret + "." + fingerprint(a.cert), nil
}

func (a *Authority) tokenFile(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return filepath.Join(a.dir, tokensDir, hex.EncodeToString(sum[:])+".json")
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Redeem invalidates a token. Errors: ErrToken.
func (a *Authority) Redeem(text, node string, now time.Time) error {
	secret, of, _ := strings.Cut(text, ".")
	if of != fingerprint(a.cert) {
		return ErrToken
	}
	path := a.tokenFile(secret)
	kept, err := os.ReadFile(path) //nolint:gosec // the name is a hash
	if err != nil {
		return ErrToken
	}
	var t token
	if err := json.Unmarshal(kept, &t); err != nil || t.Node != node {
		return ErrToken // it stays valid for its node
	}
	if err := os.Remove(path); err != nil { // only one of concurrent calls succeeds
		return ErrToken
	}
	if now.After(t.Expires) {
		return ErrToken
	}
	return durable.SyncDir(filepath.Dir(path))
}
