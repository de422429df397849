package peer_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
)

// A refused question for a certificate is answered without one, and leaves the token valid. A granted one
// is answered by nothing else than the certificate and the roots, also where its sender is a peer.
func TestCertificateQuestions(t *testing.T) {
	now := clock.System.Now()
	authority, dir := cluster(t, now)
	id, err := ca.Load(dir, "a", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	a := peer.Secured(id)
	defer a.Close()
	address, answered := serve(t, a)
	b := peer.Secured(identity(t, authority, dir, "b", now))
	defer b.Close()
	withoutAuthority, _ := serve(t, b)
	token, err := authority.NewToken("c", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	request, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := ca.Joining(token, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(token, ".")
	guest := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	bare := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} // whoever it speaks to
	question := func(of map[string]any) string {
		text, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	granted := question(map[string]any{"token": token, "node": "c", "request": request.DER})
	for _, c := range []struct {
		name               string
		as                 http.RoundTripper
		at, method, path   string
		body               string
		status             int
		certificates, next bool
	}{
		{"no question", guest, address, http.MethodPost, "/join", "x", http.StatusBadRequest, false, false},
		{"one that is read", guest, address, http.MethodGet, "/join", granted, http.StatusBadRequest, false, false},
		{"one that is large", guest, address, http.MethodPost, "/join", question(map[string]any{"token": strings.Repeat("x", 64<<10), "node": "c"}), http.StatusBadRequest, false, false},
		{"another token", guest, address, http.MethodPost, "/join", question(map[string]any{"token": "x" + token, "node": "c", "request": request.DER}), http.StatusForbidden, false, false},
		{"half a token", guest, address, http.MethodPost, "/join", question(map[string]any{"token": secret, "node": "c", "request": request.DER}), http.StatusForbidden, false, false},
		{"a token of another node", guest, address, http.MethodPost, "/join", question(map[string]any{"token": token, "node": "a", "request": request.DER}), http.StatusForbidden, false, false},
		{"renewal by a guest", guest, address, http.MethodPost, "/renew", granted, http.StatusForbidden, false, false},
		{"of a node without the authority", bare, withoutAuthority, http.MethodPost, "/join", granted, http.StatusNotFound, false, false},
		{"a renewal of no key", b, address, http.MethodPost, "/renew", question(map[string]any{"node": "b", "request": []byte("x")}), http.StatusBadRequest, false, false},
		{"a renewal", b, address, http.MethodPost, "/renew", question(map[string]any{"node": "b", "request": request.DER}), http.StatusOK, true, false},
		{"a valid token, of a peer", b, address, http.MethodPost, "/join", granted, http.StatusOK, true, false},
		{"another path", b, address, http.MethodPost, "/joined", granted, http.StatusOK, false, true},
	} {
		before := answered.Load()
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://"+c.at+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.as.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.status || bytes.Contains(text, []byte("CERTIFICATE")) != c.certificates || (answered.Load() != before) != c.next {
			t.Errorf("%s: status %d, want %d: %s, %v", c.name, answer.StatusCode, c.status, text, err)
		}
		if c.certificates && !bytes.HasSuffix(text, []byte("-----END CERTIFICATE-----\n")) {
			t.Errorf("%s: it ends with more than certificates: %s", c.name, text)
		}
	}
}

// A node that has a certificate does not join by accident, and uses up no token then; where its files are
// to be replaced it does.
func TestJoinAgain(t *testing.T) {
	now := clock.System.Now()
	authority, dir := cluster(t, now)
	id, err := ca.Load(dir, "a", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	a := peer.Secured(id)
	defer a.Close()
	address, _ := serve(t, a)
	ofB := filepath.Join(t.TempDir(), "b")
	join := func(token string, again bool) error {
		return peer.Join(t.Context(), address, ofB, "b", token, again)
	}
	var tokens [2]string
	for i := range tokens {
		if tokens[i], err = authority.NewToken("b", now, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := join(tokens[0], false); err != nil {
		t.Fatal(err)
	}
	idB, err := ca.Load(ofB, "b", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	before := idB.Version()
	if err := errors.Join(join(tokens[1], false), idB.Reload()); !errors.Is(err, ca.ErrMade) || idB.Version() != before {
		t.Errorf("a node that has joined joins again: %v", err)
	}
	if err := errors.Join(join(tokens[1], true), idB.Reload()); err != nil || idB.Version() == before {
		t.Errorf("a node does not replace its certificate: %v", err)
	}
	if err := join("x", true); !errors.Is(err, ca.ErrToken) {
		t.Errorf("half a token: %v", err)
	}
}

// A certificate is renewed by the authority on the node itself, or else by the first peer that has it:
// one that has not, or does not answer, keeps nobody from it. Where nobody has, each says why.
func TestRenewal(t *testing.T) {
	now := clock.System.Now()
	authority, dir := cluster(t, now)
	id, err := ca.Load(dir, "a", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	a := peer.Secured(id)
	defer a.Close()
	withAuthority, _ := serve(t, a)
	before := id.Version()
	if err := a.Renew(t.Context(), nil); err != nil || id.Version() == before {
		t.Errorf("by its own authority: %v", err)
	}

	idB, idC := identity(t, authority, dir, "b", now), identity(t, authority, dir, "c", now)
	b, c := peer.Secured(idB), peer.Secured(idC)
	defer b.Close()
	defer c.Close()
	without, _ := serve(t, c)
	const down = "127.0.0.1:1"
	before = idB.Version()
	if err := b.Renew(t.Context(), nil); err == nil || idB.Version() != before {
		t.Errorf("by nobody: %v", err)
	}
	if err := b.Renew(t.Context(), []string{down, without}); err == nil || !strings.Contains(err.Error(), down) ||
		!strings.Contains(err.Error(), without+": 404") || idB.Version() != before {
		t.Errorf("by those that cannot: %v", err)
	}
	if err := b.Renew(t.Context(), []string{down, without, withAuthority}); err != nil || idB.Version() == before {
		t.Errorf("by the last of them: %v", err)
	}
}

// A node that has come to trust another authority speaks with a peer whose certificate is of that one.
func TestPeerOfNextAuthority(t *testing.T) {
	now := clock.System.Now()
	authority, dir := cluster(t, now)
	id, err := ca.Load(dir, "a", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	a := peer.Secured(id)
	defer a.Close()
	address, _ := serve(t, a)
	idB := identity(t, authority, dir, "b", now)
	b := peer.Secured(idB)
	defer b.Close()
	ask := func(what string) {
		t.Helper()
		answer, err := b.Client().Get(b.URL(address) + "/x")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", what, answer.StatusCode)
		}
	}
	ask("of one authority")
	rotation, err := ca.BeginRotation(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	both, swapped, _, err := rotation.Steps()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range [][]byte{both, swapped} {
		for _, i := range []*ca.Identity{id, idB} {
			if _, _, err := i.Trust(step, rotation.Voucher()); err != nil {
				t.Fatal(err)
			}
		}
		ask("of either")
	}
	before := id.Signer()
	if err := a.Renew(t.Context(), nil); err != nil || id.Signer() == before {
		t.Fatalf("the certificate is not of the next authority: %v", err)
	}
	b.Close()
	ask("of the next")
}
