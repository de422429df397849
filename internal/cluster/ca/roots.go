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

// maxRoots is how many certificates of an authority nodes trust at once: two while one
// replaces the other.
const maxRoots = 2

// Roots are the certificates of a cluster's authority that its nodes trust. The first is that
// of the key that signs.
type Roots []*x509.Certificate

// ReadRoots reads those that a node's directory has.
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

// ParseRoots reads them in PEM form: one or two, of one cluster.
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
			return nil, fmt.Errorf("%w: a certificate is not of the cluster's authority", ErrStranger)
		}
	}
	return roots, nil
}

// PEM is what ParseRoots reads.
func (r Roots) PEM() (text []byte) {
	for _, root := range r {
		text = append(text, encodeCert(root)...)
	}
	return text
}

// Fingerprints tell them apart.
func (r Roots) Fingerprints() (all []string) {
	for _, root := range r {
		all = append(all, fingerprint(root))
	}
	return all
}

func (r Roots) has(root *x509.Certificate) bool { return slices.ContainsFunc(r, root.Equal) }

// trusted is what certificates of nodes are verified with.
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

// acceptable are those of other roots that nodes that trust these may trust, too: vouchers are
// certificates of the same names and keys, which a root that is trusted has signed.
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

// Trust has the node go by other certificates of the authority from now on, and keeps them in
// its directory. It takes those that it goes by already, and those that one of them vouches
// for; the others it leaves out. dropped: it goes by one less than before, and ends the
// connections between logs that others have made to this node with what that has signed.
// Errors: ErrStranger if there is none to go by; those of the disk, which change nothing.
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
	i.EndStrangers()
	return true, dropped, nil
}

// MayTrust reports why Trust would leave something out.
func (i *Identity) MayTrust(roots, vouchers []byte) error {
	wanted, _, err := i.judge(roots, vouchers)
	if err != nil {
		return err
	}
	if all, err := ParseRoots(roots); err != nil || len(all) != len(wanted) {
		return fmt.Errorf("%w: no authority that is trusted vouches for it", ErrStranger)
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
		return nil, nil, fmt.Errorf("%w: no authority that is trusted vouches for the cluster's", ErrStranger)
	}
	return wanted, known, nil
}

func encodeCert(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: c.Raw})
}

// parseChain reads the certificates of a text, beside which it may have a key.
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
