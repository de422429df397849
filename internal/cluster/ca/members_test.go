package ca_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"godwit.dev/godwit/internal/cluster/ca"
)

// admitted is the identity of a node whose certificate is issued at a time.
func admitted(t *testing.T, a *ca.Authority, node string, at time.Time, now func() time.Time) *ca.Identity {
	t.Helper()
	_, dir := member(t, a, node)
	r, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := a.Sign(r.DER, node, at)
	if err := errors.Join(err, r.Keep(dir, signed)); err != nil {
		t.Fatal(err)
	}
	id, err := ca.Load(dir, node, []string{"a", "b", "c"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// connect connects the logs of two nodes. isOpen reports whether the end that has accepted the
// connection is open. Errors: those of the handshake at that end.
func connect(t *testing.T, from, to *ca.Identity) (isOpen func() bool, err error) {
	t.Helper()
	near, far := net.Pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, tls.Client(near, from.Config(false)))
	}()
	t.Cleanup(func() {
		near.Close()
		far.Close()
		<-over
	})
	err = tls.Server(far, to.Config(false)).Handshake()
	return func() bool { return far.SetDeadline(time.Time{}) == nil }, err
}

// TestIncoming: a connection from another node's log stays for as long as the node is trusted, and
// is not made again after that.
func TestIncoming(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(t *testing.T, a *ca.Identity, later func())
		cStays  bool
		dropped bool
	}{
		"nothing happens": {end: func(_ *testing.T, a *ca.Identity, _ func()) { a.CloseUntrusted() }},
		"removed":         {end: func(_ *testing.T, a *ca.Identity, _ func()) { a.SetMembers([]string{"a", "c"}) }, cStays: true, dropped: true},
		"expired": {end: func(_ *testing.T, a *ca.Identity, later func()) {
			later()
			a.CloseUntrusted()
		}, cStays: true, dropped: true},
		"the authority was replaced": {end: func(t *testing.T, a *ca.Identity, _ func()) {
			r, both, _, alone := begin(t, a.Dir())
			if changed, dropped, err := a.Trust(both, r.Voucher()); !changed || dropped || err != nil {
				t.Errorf("both: changed %t, dropped %t, %v", changed, dropped, err)
			}
			if changed, dropped, err := a.Trust(alone, nil); !changed || !dropped || err != nil {
				t.Errorf("the next one alone: changed %t, dropped %t, %v", changed, dropped, err)
			}
		}, dropped: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := began
			clock := func() time.Time { return now }
			authority, dir := authority(t)
			a, err := ca.Load(dir, "a", []string{"a", "b", "c"}, clock)
			if err != nil {
				t.Fatal(err)
			}
			b, third := admitted(t, authority, "b", began, clock), admitted(t, authority, "c", began.Add(time.Minute), clock)
			ofB, errB := connect(t, b, a)
			ofC, errC := connect(t, third, a)
			if err := errors.Join(errB, errC); err != nil {
				t.Fatal(err)
			}
			c.end(t, a, func() { now = began.Add(ca.NodeLife + time.Second) })
			if ofB() == c.dropped || ofC() != (c.cStays || !c.dropped) {
				t.Errorf("b's is open: %t, and c's: %t", ofB(), ofC())
			}
			if _, err := connect(t, b, a); (err != nil) != c.dropped {
				t.Errorf("b's is made again: %v", err)
			}
		})
	}
}

// TestStale: once the certificate of any node that was connected to has expired, connections are
// made again, once.
func TestStale(t *testing.T) {
	now := began
	clock := func() time.Time { return now }
	authority, _ := authority(t)
	later := began.Add(time.Minute)
	for _, order := range [][2]time.Time{{began, later}, {later, began}} {
		now = began
		a := admitted(t, authority, "a", began, clock)
		for i, node := range []string{"b", "c"} {
			if _, err := connect(t, a, admitted(t, authority, node, order[i], clock)); err != nil {
				t.Fatal(err)
			}
		}
		if a.Stale() {
			t.Error("stale at once")
		}
		now = began.Add(ca.NodeLife)
		before := a.Version()
		if !a.Stale() || a.Version() == before {
			t.Error("connections to a node whose certificate has expired stay")
		}
		if a.Stale() {
			t.Error("they are made again twice")
		}
	}
}

// TestJoined: a node takes no certificate but that for its own key and name, of the authority that
// its token names.
func TestJoined(t *testing.T) {
	one, dir := authority(t)
	other, _ := authority(t)
	r, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	sign := func(a *ca.Authority, r *ca.Request, node string) []byte {
		signed, err := a.Sign(r.DER, node, began)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	root, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(signed []byte) []byte {
		block, _ := pem.Decode(signed)
		return pem.EncodeToMemory(block)
	}
	good := sign(one, r, "b")
	for name, signed := range map[string][]byte{
		"of another authority":                sign(other, r, "b"),
		"of another one, under our root":      append(leaf(sign(other, r, "b")), root...),
		"for another node":                    sign(one, r, "c"),
		"for another key":                     sign(one, foreign, "b"),
		"without a root":                      leaf(good),
		"with more roots than a node can use": append(append(append([]byte{}, good...), root...), root...),
		"nothing":                             nil,
	} {
		to := filepath.Join(t.TempDir(), "b")
		err := r.Joined(to, "b", token(t, one, "b", time.Hour), signed, clock)
		if !errors.Is(err, ca.ErrUntrusted) {
			t.Errorf("%s: %v", name, err)
		}
		if ca.CheckNew(to) != nil {
			t.Errorf("%s: it is kept", name)
		}
	}
	if err := r.Joined(filepath.Join(t.TempDir(), "b"), "b", token(t, one, "b", time.Hour), good, clock); err != nil {
		t.Error(err)
	}
}
