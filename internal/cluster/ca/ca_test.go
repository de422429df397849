package ca_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/cluster/ca"
)

var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T) (*ca.Authority, string) {
	t.Helper()
	dir := t.TempDir()
	if err := ca.Init(dir, "a", began); err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func token(t *testing.T, a *ca.Authority, node string, life time.Duration) string {
	t.Helper()
	text, err := a.NewToken(node, began, life)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A token is of use once, for one node, for a while, and where it was made.
func TestTokens(t *testing.T) {
	a, _ := authority(t)
	other, _ := authority(t)
	soon, late := began.Add(time.Minute), began.Add(2*time.Hour)
	text := token(t, a, "b", time.Hour)
	secret, of, _ := strings.Cut(text, ".")
	for name, redeem := range map[string]func() error{
		"for another node":     func() error { return a.Redeem(text, "c", soon) },
		"of another authority": func() error { return other.Redeem(text, "b", soon) },
		"cut short":            func() error { return a.Redeem(secret, "b", soon) },
		"made up":              func() error { return a.Redeem("x."+of, "b", soon) },
		"a path":               func() error { return a.Redeem("../../ca."+of, "b", soon) },
		"empty":                func() error { return a.Redeem("", "b", soon) },
	} {
		if err := redeem(); !errors.Is(err, ca.ErrToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Redeem(text, "b", soon); err != nil {
		t.Errorf("as it should be: %v", err)
	}
	if err := a.Redeem(text, "b", soon); !errors.Is(err, ca.ErrToken) {
		t.Errorf("a second time: %v", err)
	}
	if err := a.Redeem(token(t, a, "b", time.Hour), "b", late); !errors.Is(err, ca.ErrToken) {
		t.Errorf("too late: %v", err)
	}
	text = token(t, a, "b", time.Hour)
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if a.Redeem(text, "b", soon) == nil {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != 1 {
		t.Errorf("at once it was of use %d times", n)
	}
	for _, life := range []time.Duration{0, -1, ca.MaxTokenLife + 1} {
		if _, err := a.NewToken("b", began, life); err == nil {
			t.Errorf("a token is made for %v", life)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "-a", "a-", "a b", "a/b", "../a", "a\n", strings.Repeat("a", 64)} {
		if err := ca.CheckName(name); !errors.Is(err, ca.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		if err := ca.Init(filepath.Join(t.TempDir(), "x"), name, began); !errors.Is(err, ca.ErrName) {
			t.Errorf("init with %q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "1", "node-1.example.test", "10.0.0.1"} {
		if err := ca.CheckName(name); err != nil {
			t.Error(err)
		}
	}
}

// A certificate is for a node's name and a key that the requester has.
func TestSign(t *testing.T) {
	a, _ := authority(t)
	r, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Sign(r.DER, "../b", began); !errors.Is(err, ca.ErrName) {
		t.Errorf("for another name: %v", err)
	}
	if _, err := a.Sign(r.DER, "b", began); err != nil {
		t.Error(err)
	}
	r.DER[len(r.DER)-1] ^= 1 // of the signature
	if _, err := a.Sign(r.DER, "b", began); err == nil {
		t.Error("a certificate is issued for a key that has not signed the request")
	}
	if _, err := a.Sign(r.DER[:len(r.DER)/2], "b", began); err == nil {
		t.Error("a certificate is issued for half a request")
	}
}

// An authority is not opened with the key of another one.
func TestKeyOfAnother(t *testing.T) {
	_, dir := authority(t)
	_, other := authority(t)
	key, err := os.ReadFile(filepath.Join(other, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.key", "ca.next.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), key, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ca.Open(dir); err == nil {
			t.Errorf("opened with another's %s", name)
		}
	}
}

// What was made is not made anew, and nobody else may read the keys.
func TestInitOnce(t *testing.T) {
	_, dir := authority(t)
	if err := ca.Init(dir, "a", began); !errors.Is(err, ca.ErrMade) {
		t.Errorf("a second time: %v", err)
	}
	for _, name := range []string{"ca.key", "node.pem"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// An identity is of one node, takes what was renewed, and keeps what it has where that
// cannot be used.
func TestIdentity(t *testing.T) {
	a, dir := authority(t)
	now := began
	clock := func() time.Time { return now }
	members := []string{"a", "b"}
	id, err := ca.Load(dir, "a", members, clock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Load(dir, "b", members, clock); err == nil {
		t.Error("a certificate of a is taken for b's")
	}
	if _, err := ca.Load(dir, "b", []string{"b", "c"}, clock); err == nil || !strings.Contains(err.Error(), `it is for the node "a", not "b"`) {
		t.Errorf("the directory of another node: %v", err)
	}
	if _, err := ca.Load(dir, "a", []string{"b", "c"}, clock); !errors.Is(err, ca.ErrUntrusted) {
		t.Errorf("a node that is none of the cluster's: %v", err)
	}
	first, renew := id.Expires()
	if renew {
		t.Error("it is renewed at once")
	}
	now = now.Add(ca.NodeLife * 3 / 4)
	if _, renew := id.Expires(); !renew {
		t.Error("it is not renewed in time")
	}
	if err := a.Renew("a", now); err != nil {
		t.Fatal(err)
	}
	if err := id.Reload(); err != nil {
		t.Fatal(err)
	}
	second, renew := id.Expires()
	if !second.After(first) || renew {
		t.Errorf("renewed, it is good until %v", second)
	}
	if err := os.WriteFile(filepath.Join(dir, "node.pem"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := id.Reload(); err == nil {
		t.Error("garbage is taken")
	}
	if at, _ := id.Expires(); at != second {
		t.Error("what was good is dropped for garbage")
	}
	now = second.Add(time.Hour)
	if _, err := ca.Load(dir, "a", members, clock); err == nil {
		t.Error("a certificate that has expired is taken")
	}
}

// Where an authority comes from elsewhere, each node gets a certificate of its own once, and
// only the node that it was made for its key.
func TestTake(t *testing.T) {
	_, from := authority(t)
	members := []string{"a", "b"}
	now := began.Add(ca.NodeLife / 2)
	clock := func() time.Time { return now }
	ids := map[string]*ca.Identity{}
	for _, node := range members {
		dir := filepath.Join(t.TempDir(), "node")
		if err := ca.Take(from, dir, node, now); err != nil {
			t.Fatal(err)
		}
		id, err := ca.Load(dir, node, members, clock)
		if err != nil {
			t.Fatal(err)
		}
		if at, _ := id.Expires(); at != now.Add(ca.NodeLife) {
			t.Errorf("%s's certificate is good until %v", node, at)
		}
		ids[node] = id
		if _, err := ca.Open(dir); (err == nil) != (node == "a") {
			t.Errorf("that the authority is with %s: %v", node, err)
		}
		made, err := os.ReadFile(filepath.Join(dir, "node.pem"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ca.Take(from, dir, node, now); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if again, err := os.ReadFile(filepath.Join(dir, "node.pem")); err != nil || !bytes.Equal(again, made) {
			t.Errorf("what there was is replaced: %v", err)
		}
		for _, name := range []string{"ca.key", "node.pem"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
		}
	}
	if ids["a"].Signer() != ids["b"].Signer() {
		t.Error("they have other authorities")
	}
	if err := ca.Take(from, filepath.Join(t.TempDir(), "x"), "../b", now); !errors.Is(err, ca.ErrName) {
		t.Errorf("a node with another name: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "x")
	if err := ca.Take(t.TempDir(), empty, "b", now); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where there is no authority: %v", err)
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("a directory is made for nothing")
	}
}
