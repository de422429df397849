package ca

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"godwit.dev/godwit/internal/durable"
)

// maxRoots is how many roots nodes trust at most: two, while one replaces the other.
const maxRoots = 2

// Roots are the root certificates that the nodes of a cluster trust. The first is that of the
// signing key.
type Roots []*x509.Certificate

// ReadRoots reads the roots in a node's directory.
func ReadRoots(dir string) (Roots, error) {
	text, err := os.ReadFile(filepath.Join(dir, rootFile))
	if err != nil {
		return nil, err
	}
	roots, err := ParseRoots(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rootFile, err)
	}
	return roots, nil
}

// ParseRoots decodes roots in PEM form: one or two, of one cluster.
func ParseRoots(text []byte) (Roots, error) {
	roots, err := parseChain(text)
	switch {
	case err != nil:
		return nil, err
	case len(roots) == 0 || len(roots) > maxRoots:
		return nil, fmt.Errorf("there are %d certificates of an authority, and not 1 or %d", len(roots), maxRoots)
	}
	for _, root := range roots {
		if !root.IsCA || root.Subject.CommonName != roots[0].Subject.CommonName {
			return nil, fmt.Errorf("%w: a certificate is not of the cluster's authority", ErrUntrusted)
		}
	}
	return roots, nil
}

// PEM encodes the roots for ParseRoots.
func (r Roots) PEM() (text []byte) {
	for _, root := range r {
		text = append(text, encodeCert(root)...)
	}
	return text
}

// Fingerprints are the fingerprints of the roots.
func (r Roots) Fingerprints() (all []string) {
	for _, root := range r {
		all = append(all, fingerprint(root))
	}
	return all
}

func (r Roots) has(root *x509.Certificate) bool { return slices.ContainsFunc(r, root.Equal) }

// trusted are roots, and the pool by which certificates are verified.
type trusted struct {
	roots Roots
	pool  *x509.CertPool
}

func (r Roots) trusted() *trusted {
	t := &trusted{r, x509.NewCertPool()}
	for _, root := range r {
		t.pool.AddCert(root)
	}
	return t
}

// acceptable are those of other roots that a node that trusts r may trust as well: the roots of
// r, and those with a voucher, which is a certificate of the same name and key that is signed
// by a root of r.
func (r Roots) acceptable(others, vouchers Roots) (all Roots) {
	for _, other := range others {
		if r.has(other) || slices.ContainsFunc(vouchers, func(v *x509.Certificate) bool {
			return string(v.RawSubject) == string(other.RawSubject) && string(v.RawSubjectPublicKeyInfo) == string(other.RawSubjectPublicKeyInfo) &&
				slices.ContainsFunc(r, func(root *x509.Certificate) bool { return v.CheckSignatureFrom(root) == nil })
		}) {
			all = append(all, other)
		}
	}
	return all
}

// Trust replaces the roots that the node trusts, also in its directory. It leaves out roots that
// are not acceptable. dropped: a former root is not trusted any more, and incoming log
// connections with a certificate of it were closed. Errors: ErrUntrusted if no root is
// acceptable; those of the disk, which change nothing.
func (i *Identity) Trust(roots, vouchers []byte) (changed, dropped bool, err error) {
	wanted, known, err := i.judge(roots, vouchers)
	if err != nil {
		return false, false, err
	}
	if slices.EqualFunc(wanted, known, (*x509.Certificate).Equal) {
		return false, false, nil
	}
	if err := durable.Replace(filepath.Join(i.dir, rootFile), wanted.PEM()); err != nil {
		return false, false, fmt.Errorf("the certificates of the authority cannot be kept: %w", err)
	}
	i.trusts.Store(wanted.trusted())
	i.version.Add(1)
	dropped = slices.ContainsFunc(known, func(root *x509.Certificate) bool { return !wanted.has(root) })
	i.CloseUntrusted()
	return true, dropped, nil
}

// MayTrust fails if Trust would leave out a root. Errors: ErrUntrusted.
func (i *Identity) MayTrust(roots, vouchers []byte) error {
	wanted, _, err := i.judge(roots, vouchers)
	if err != nil {
		return err
	}
	if all, err := ParseRoots(roots); err != nil || len(all) != len(wanted) {
		return fmt.Errorf("%w: no authority that is trusted vouches for it", ErrUntrusted)
	}
	return nil
}

func (i *Identity) judge(roots, vouchers []byte) (wanted, known Roots, err error) {
	all, err := ParseRoots(roots)
	if err != nil {
		return nil, nil, err
	}
	vouching, err := parseChain(vouchers)
	if err != nil {
		return nil, nil, err
	}
	known = i.trusts.Load().roots
	if wanted = known.acceptable(all, vouching); len(wanted) == 0 || wanted[0].Subject.CommonName != i.cluster {
		return nil, nil, fmt.Errorf("%w: no authority that is trusted vouches for the cluster's", ErrUntrusted)
	}
	return wanted, known, nil
}

func encodeCert(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: c.Raw})
}

// parseChain decodes the certificates of a text in PEM form; it ignores other blocks.
func parseChain(text []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all, nil
		}
		if block.Type != certBlock {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
}
