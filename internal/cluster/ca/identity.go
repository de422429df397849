package ca

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/durable"
)

// ErrUntrusted reports a certificate that no trusted authority vouches for, or that is not of a
// node of the cluster.
var ErrUntrusted = errors.New("it is no node of this cluster")

// Identity is a node's certificate, and the roots and node names by which it verifies its peers.
// All of them may be replaced while it is in use.
type Identity struct {
	dir     string
	node    string
	cluster string
	trusts  atomic.Pointer[trusted]
	members atomic.Pointer[[]string]
	now     func() time.Time
	open    accepted
	met     met
	current atomic.Pointer[held]
	version atomic.Uint64 // grows with each change of current and trusts
}

// held is the current certificate, and the content of the file that it was read from.
type held struct {
	text []byte
	cert *tls.Certificate
}

// Load reads the identity in a directory. members are the names of the cluster's nodes:
// certificates of other names are refused, even if they are signed by a trusted root. Errors:
// those of the files; of a certificate that is for another node, or has expired.
func Load(dir, node string, members []string, now func() time.Time) (*Identity, error) {
	roots, err := ReadRoots(dir)
	if err != nil {
		return nil, fmt.Errorf("the cluster's authority: %w", err)
	}
	i := &Identity{dir: dir, node: node, cluster: roots[0].Subject.CommonName, now: now}
	members = slices.Clone(members)
	i.members.Store(&members)
	i.trusts.Store(roots.trusted())
	if err := i.Reload(); err != nil {
		return nil, err
	}
	return i, nil
}

// Reload reads the node's certificate again, if the file has changed. An error changes nothing.
func (i *Identity) Reload() error {
	text, err := os.ReadFile(filepath.Join(i.dir, nodeFile))
	if err != nil {
		return fmt.Errorf("the node's certificate: %w", err)
	}
	if h := i.current.Load(); h != nil && bytes.Equal(h.text, text) {
		return nil
	}
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return fmt.Errorf("the node's certificate: %w", err)
	}
	if name := cert.Leaf.Subject.CommonName; name != i.node { // before verify, to which it may be no member's
		return fmt.Errorf("the node's certificate: it is for the node %q, not %q", name, i.node)
	}
	if _, err := i.verify(cert.Leaf); err != nil {
		return fmt.Errorf("the node's certificate: %w", err)
	}
	i.current.Store(&held{text, &cert})
	i.version.Add(1)
	return nil
}

// Version grows with each change of the certificate or the roots. Connections that were made
// with an older version should be made again.
func (i *Identity) Version() uint64 { return i.version.Load() }

// verify verifies a certificate and returns the name of its node.
func (i *Identity) verify(leaf *x509.Certificate) (node string, err error) {
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: i.trusts.Load().pool, DNSName: serverName(i.cluster), CurrentTime: i.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if name := leaf.Subject.CommonName; slices.Contains(*i.members.Load(), name) {
		return name, nil
	}
	return "", fmt.Errorf("%w: %q is none of its nodes", ErrUntrusted, leaf.Subject.CommonName)
}

// Peer verifies the node at the other end of a connection at this time, not at that of the
// handshake, and returns its name. Errors: ErrUntrusted.
func (i *Identity) Peer(c *tls.ConnectionState) (node string, err error) {
	if c == nil || len(c.PeerCertificates) == 0 {
		return "", ErrUntrusted
	}
	return i.verify(c.PeerCertificates[0])
}

// Config is a TLS configuration with mutual authentication, for both ends of connections between
// nodes. Unless guests is set, the handshake fails for a client without a node's certificate.
// With guests, which is for nodes that join, Peer has to be called. Accepted connections are
// verified by the roots of that time, and outgoing ones by those at the time of this call.
func (i *Identity) Config(guests bool) *tls.Config {
	auth := tls.RequireAndVerifyClientCert
	if guests {
		auth = tls.VerifyClientCertIfGiven
	}
	roots := i.trusts.Load().pool
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: serverName(i.cluster), RootCAs: roots, ClientCAs: roots, ClientAuth: auth, Time: i.now,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.current.Load().cert, nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return i.current.Load().cert, nil
		},
		VerifyConnection: func(c tls.ConnectionState) error {
			if guests && len(c.PeerCertificates) == 0 {
				return nil
			}
			_, err := i.Peer(&c)
			if err == nil {
				i.met.add(c.PeerCertificates[0].NotAfter)
			}
			return err
		},
		SessionTicketsDisabled: true, // so that the certificate is verified for every connection
	}
	i.accept(config, !guests)
	return config
}

// Node and Dir are the node's name and directory.
func (i *Identity) Node() string { return i.node }

// Dir is where the identity is.
func (i *Identity) Dir() string { return i.dir }

// Expires is when the certificate expires; renew says that it should be renewed now.
func (i *Identity) Expires() (at time.Time, renew bool) {
	leaf := i.current.Load().cert.Leaf
	validity := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotAfter, i.Outdated() || i.now().After(leaf.NotAfter.Add(-validity/3))
}

// Outdated reports that the certificate was signed by a root that is being replaced.
func (i *Identity) Outdated() bool {
	return i.current.Load().cert.Leaf.CheckSignatureFrom(i.trusts.Load().roots[0]) != nil
}

// Signer is the fingerprint of the trusted root that has signed the node's certificate; empty:
// there is none.
func (i *Identity) Signer() string {
	for _, root := range i.trusts.Load().roots {
		if i.current.Load().cert.Leaf.CheckSignatureFrom(root) == nil {
			return fingerprint(root)
		}
	}
	return ""
}

// Trusts are the fingerprints of the root certificates that the node trusts.
func (i *Identity) Trusts() []string { return i.trusts.Load().roots.Fingerprints() }

// Joining is the TLS configuration for redeeming a token at a node, whose certificate is verified
// by the fingerprint of the root in the token. Errors: ErrToken if it is malformed.
func Joining(text string, now func() time.Time) (*tls.Config, error) {
	_, of, ok := strings.Cut(text, ".")
	if !ok || of == "" {
		return nil, fmt.Errorf("%w: it is cut short", ErrToken)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		InsecureSkipVerify: true, //nolint:gosec // the chain is verified below, against what the token names
		VerifyConnection: func(c tls.ConnectionState) error {
			for _, root := range c.PeerCertificates {
				if fingerprint(root) != of || !root.IsCA {
					continue
				}
				roots := x509.NewCertPool()
				roots.AddCert(root)
				_, err := c.PeerCertificates[0].Verify(x509.VerifyOptions{
					Roots: roots, DNSName: serverName(root.Subject.CommonName), CurrentTime: now(),
				})
				return err
			}
			return fmt.Errorf("%w: the other end has another authority than the token names", ErrUntrusted)
		},
	}, nil
}

// CheckNew refuses a directory that has a node's certificate. Errors: ErrMade.
func CheckNew(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, nodeFile)); err == nil {
		return fmt.Errorf("%w: %s", ErrMade, dir)
	}
	return nil
}

// Joined writes the answer to a redeemed token, a node's certificate and the roots, into a
// directory, replacing what is there. Errors: ErrUntrusted if the certificate is of another
// authority than the token's, or for another node.
func (r *Request) Joined(dir, node, text string, signed []byte, now func() time.Time) error {
	_, of, _ := strings.Cut(text, ".")
	chain, err := parseChain(signed)
	if err != nil {
		return err
	}
	if len(chain) < 2 || len(chain) > 1+maxRoots || fingerprint(chain[1]) != of || chain[0].Subject.CommonName != node ||
		!r.key.PublicKey.Equal(chain[0].PublicKey) || !slices.ContainsFunc(chain[1:], func(root *x509.Certificate) bool { return chain[0].CheckSignatureFrom(root) == nil }) {
		return fmt.Errorf("%w: it answers with a certificate that was not asked for", ErrUntrusted)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(dir, rootFile), Roots(chain[1:]).PEM()); err != nil {
		return err
	}
	if err := r.Keep(dir, signed); err != nil {
		return err
	}
	_, err = Load(dir, node, []string{node}, now)
	return err
}
