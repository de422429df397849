package ca

import (
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"godwit.dev/godwit/internal/durable"
)

// Rotation replaces a cluster's authority by another one of the same name, in three steps: all
// nodes trust both roots, all get certificates of the next one, all drop the old one. The state
// of the rotation is in the nodes; the directory of the authority has the next key until its
// end.
type Rotation struct {
	dir     string
	next    *x509.Certificate
	voucher *x509.Certificate // of next, signed by the old root
}

// BeginRotation makes the next authority in the directory of the current one, or continues with
// the one that was made there before. Errors: fs.ErrNotExist if there is no authority.
func BeginRotation(dir string, now time.Time) (*Rotation, error) {
	r, err := readRotation(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	a, err := Open(dir)
	if err != nil {
		return nil, err
	}
	key, next, err := newRoot(a.cert.Subject.CommonName, now)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, rootTemplate(a.cert.Subject.CommonName, now), a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	voucher, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	text := append(encoded, Roots{next, voucher}.PEM()...)
	return &Rotation{dir, next, voucher}, durable.Replace(filepath.Join(dir, nextFile), text)
}

func readRotation(dir string) (*Rotation, error) {
	text, err := os.ReadFile(filepath.Join(dir, nextFile))
	if err != nil {
		return nil, err
	}
	pair, err := parseChain(text)
	if err == nil && len(pair) != 2 {
		err = fmt.Errorf("it has %d certificates", len(pair))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nextFile, err)
	}
	return &Rotation{dir, pair[0], pair[1]}, nil
}

// Next is the fingerprint of the next authority.
func (r *Rotation) Next() string { return fingerprint(r.next) }

// Voucher is the certificate by which nodes accept the next root, in PEM form.
func (r *Rotation) Voucher() []byte { return encodeCert(r.voucher) }

// Steps are the roots that nodes are to trust in the three steps, in PEM form, given those that
// the directory's node trusts now.
func (r *Rotation) Steps() (both, swapped, alone []byte, err error) {
	roots, err := ReadRoots(r.dir)
	if err != nil {
		return nil, nil, nil, err
	}
	alone = Roots{r.next}.PEM()
	old := roots[0]
	if old.Equal(r.next) {
		if len(roots) == 1 {
			return alone, alone, alone, nil
		}
		old = roots[1]
	}
	return Roots{old, r.next}.PEM(), Roots{r.next, old}.PEM(), alone, nil
}

// Finish replaces the old key by the next one, once all nodes trust only that. It is idempotent.
func (r *Rotation) Finish() error {
	switch roots, err := ReadRoots(r.dir); {
	case err != nil:
		return err
	case len(roots) != 1 || !roots[0].Equal(r.next):
		return fmt.Errorf("%s has another authority than the next one still", rootFile)
	}
	key, err := readKey(r.dir, nextFile)
	if err != nil {
		return err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(r.dir, keyFile), encoded); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.dir, nextFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDir(r.dir)
}
