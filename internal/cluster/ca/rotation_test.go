package ca_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/cluster/ca"
)

// member makes a directory of a node that was let in by an authority, and loads it.
func member(t *testing.T, a *ca.Authority, node string) (*ca.Identity, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), node)
	r, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := a.Sign(r.DER, node, began)
	if err == nil {
		err = r.Joined(dir, node, token(t, a, node, time.Hour), signed, clock)
	}
	if err != nil {
		t.Fatal(err)
	}
	return load(t, dir, node), dir
}

func clock() time.Time { return began }

func load(t *testing.T, dir, node string) *ca.Identity {
	t.Helper()
	id, err := ca.Load(dir, node, []string{"a", "b", "c"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// shows is a connection at whose other end a node's certificate was shown.
func shows(t *testing.T, dir string) *tls.ConnectionState {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "node.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
}

func begin(t *testing.T, dir string) (r *ca.Rotation, both, turned, alone []byte) {
	t.Helper()
	r, err := ca.BeginRotation(dir, began)
	if err != nil {
		t.Fatal(err)
	}
	if both, turned, alone, err = r.Steps(); err != nil {
		t.Fatal(err)
	}
	return r, both, turned, alone
}

func trust(t *testing.T, roots, voucher []byte, ids ...*ca.Identity) {
	t.Helper()
	for _, id := range ids {
		if err := id.MayTrust(roots, voucher); err != nil {
			t.Error(err)
		}
		if _, _, err := id.Trust(roots, voucher); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRotation: in every step of it, each node knows the others by what they show then; after
// it nobody is known by what the authority of before has signed. It goes on where it was broken
// off, also where all nodes were started again.
func TestRotation(t *testing.T) {
	authority, dir := authority(t)
	a := load(t, dir, "a")
	b, dirB := member(t, authority, "b")
	old, oldB := a.Trusts(), shows(t, dirB)
	stale := token(t, authority, "c", time.Hour)
	know := func(step string) {
		t.Helper()
		// As the nodes that run see it, and as those do that were started again.
		for _, id := range []*ca.Identity{a, b, load(t, dir, "a"), load(t, dirB, "b")} {
			for node, of := range map[string]string{"a": dir, "b": dirB} {
				if name, err := id.Peer(shows(t, of)); name != node || err != nil {
					t.Errorf("%s: %s does not know %s: %v", step, id.Node(), node, err)
				}
			}
		}
	}
	r, both, turned, alone := begin(t, dir)
	resumed := func(step string) {
		t.Helper()
		_, againBoth, againTurned, againAlone := begin(t, dir)
		if !bytes.Equal(againBoth, both) || !bytes.Equal(againTurned, turned) || !bytes.Equal(againAlone, alone) {
			t.Errorf("%s: resumed, the steps are others", step)
		}
	}
	know("begun")
	trust(t, both, r.Voucher(), a)
	know("of two nodes one trusts the next authority")
	if again, _, _, _ := begin(t, dir); again.Next() != r.Next() {
		t.Error("what was broken off begins anew")
	}
	trust(t, both, r.Voucher(), a, b)
	if a.Outdated() || b.Outdated() || a.Signer() != old[0] {
		t.Error("certificates are replaced before all trust the next authority")
	}
	know("both trust both")
	resumed("both trust both")

	trust(t, turned, r.Voucher(), a, b)
	if _, due := b.Expires(); !due || !b.Outdated() {
		t.Error("a certificate of the authority of before is not replaced")
	}
	resumed("the next authority signs")
	next, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(next.Renew("a", began), a.Reload()); err != nil {
		t.Fatal(err)
	}
	know("of two nodes one has a new certificate")
	if err := r.Finish(); err == nil {
		t.Error("it is finished while nodes trust the authority of before")
	}
	request, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := next.Sign(request.DER, "b", began)
	if err := errors.Join(err, request.Keep(dirB, signed), b.Reload()); err != nil {
		t.Fatal(err)
	}
	know("both have")
	if a.Signer() != r.Next() || b.Signer() != r.Next() || b.Outdated() {
		t.Error("new certificates are not of the next authority")
	}
	if _, err := a.Peer(oldB); err != nil {
		t.Errorf("what b has shown before is refused before all have new ones: %v", err)
	}

	versionBefore := a.Version()
	trust(t, alone, r.Voucher(), a, b)
	if a.Version() == versionBefore {
		t.Error("connections are not made anew")
	}
	know("the next authority alone")
	for _, id := range []*ca.Identity{a, b, load(t, dir, "a")} {
		if _, err := id.Peer(oldB); !errors.Is(err, ca.ErrUntrusted) {
			t.Errorf("%s takes a certificate of the authority of before: %v", id.Node(), err)
		}
	}
	r, _, _, last := begin(t, dir) // broken off here
	if string(last) != string(alone) {
		t.Error("the last step is another one")
	}
	for range 2 {
		if err := r.Finish(); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if next, err = ca.Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := next.Redeem(stale, "c", began); !errors.Is(err, ca.ErrToken) {
		t.Errorf("a token of the authority of before: %v", err)
	}
	if _, err := member(t, next, "c"); err == "" {
		t.Error("nobody is let in any more")
	}
	if again, _, _, _ := begin(t, dir); again.Next() == r.Next() {
		t.Error("the authority is replaced once only")
	}
}

// TestVouchers: a node trusts no authority but one that its own vouches for.
func TestVouchers(t *testing.T) {
	one, dir := authority(t)
	_, elsewhere := authority(t)
	b, dirB := member(t, one, "b")
	r, both, turned, alone := begin(t, dir)
	foreign, bothThere, _, aloneThere := begin(t, elsewhere)
	copied := t.TempDir() // where the same authority vouches for another one
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(copied, "ca.next.key")); err != nil {
		t.Fatal(err)
	}
	second, _, _, _ := begin(t, copied)
	before := b.Trusts()
	for name, of := range map[string]struct{ roots, voucher []byte }{
		"nobody vouches":                 {alone, nil},
		"a stranger vouches":             {alone, foreign.Voucher()},
		"ours vouches for another one":   {alone, second.Voucher()},
		"another cluster's":              {aloneThere, foreign.Voucher()},
		"two of another cluster":         {bothThere, foreign.Voucher()},
		"one of ours, one of another's":  {append(slices.Clone(alone), aloneThere...), foreign.Voucher()},
		"garbage":                        {[]byte("garbage"), r.Voucher()},
		"nothing":                        {nil, r.Voucher()},
		"three":                          {append(slices.Clone(both), alone...), r.Voucher()},
		"garbage vouches":                {alone, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
		"vouching for itself, unsigned":  {alone, alone},
		"a node's certificate as a root": {nodeOf(t, dirB), r.Voucher()},
	} {
		if changed, _, err := b.Trust(of.roots, of.voucher); err == nil || changed {
			t.Errorf("%s: taken", name)
		}
		if err := b.MayTrust(of.roots, of.voucher); err == nil {
			t.Errorf("%s: may be taken", name)
		}
	}
	if err := b.MayTrust(both, nil); err == nil {
		t.Error("the unknown one of two may be taken")
	}
	if changed, _, err := b.Trust(both, nil); changed || err != nil {
		t.Errorf("the unknown one of two: changed %v, %v", changed, err)
	}
	if !slices.Equal(b.Trusts(), before) || !slices.Equal(load(t, dirB, "b").Trusts(), before) {
		t.Error("what is trusted has changed")
	}
	trust(t, turned, r.Voucher(), b) // without the first step
	if len(b.Trusts()) != 2 {
		t.Errorf("trusts %v", b.Trusts())
	}
}

func nodeOf(t *testing.T, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "node.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
