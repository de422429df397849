package peer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var members = []string{"a", "b", "c"}

func unbounded(l net.Listener) net.Listener { return l }

// serve serves peers of a network, and counts those that it answers.
func serve(t *testing.T, n *peer.Network) (address string, answered *atomic.Int32) {
	t.Helper()
	l, err := n.Listen(t.Context(), "127.0.0.1:0", unbounded)
	if err != nil {
		t.Fatal(err)
	}
	answered = new(atomic.Int32)
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: n.Only(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered.Add(1)
		_, _ = io.WriteString(w, strings.Join(r.Header.Values("X-Godwit-Cluster-Secret"), ","))
	}))}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-over
	})
	return l.Addr().String(), answered
}

// get asks as a node of a network; status is 0 where there is no answer.
func get(t *testing.T, rt http.RoundTripper, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: rt}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(text)
}

func TestLoopback(t *testing.T) {
	n := peer.Loopback("the secret")
	address, answered := serve(t, n)
	if status, shown := get(t, n, n.URL(address)+"/x"); status != http.StatusOK || shown != "" {
		t.Errorf("a peer: status %d, and the secret is handed on: %q", status, shown)
	}
	n.Close()
	for name, of := range map[string]http.RoundTripper{
		"without a secret": &http.Transport{DisableKeepAlives: true},
		"with another":     peer.Loopback("the secre"),
		"with an empty":    peer.Loopback(""),
	} {
		if status, _ := get(t, of, n.URL(address)+"/x"); status != http.StatusForbidden {
			t.Errorf("%s: status %d", name, status)
		}
		if c, ok := of.(*peer.Network); ok {
			c.Close()
		}
	}
	if got := answered.Load(); got != 1 {
		t.Errorf("%d were answered", got)
	}
	// Without a secret nobody is a peer.
	open := peer.Loopback("")
	anywhere, heard := serve(t, open)
	if status, _ := get(t, open, open.URL(anywhere)+"/x"); status != http.StatusForbidden || heard.Load() != 0 {
		t.Errorf("of a network without a secret: status %d", status)
	}
	open.Close()
	// There are no certificates to ask for, and the secret is left in no request of the caller's.
	for _, path := range []string{"/join", "/renew"} {
		before := answered.Load()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL(address)+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := n.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answered.Load() != before+1 || len(r.Header) > 0 {
			t.Errorf("%s: status %d; the request has %v", path, answer.StatusCode, r.Header)
		}
	}
	n.Close()
	for _, at := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "node.example.test:0"} {
		if l, err := n.Listen(t.Context(), at, unbounded); err == nil {
			l.Close()
			t.Errorf("listens at %s, without certificates", at)
		}
	}
}

// cluster is the directory of an authority that is older than any node's certificate lasts,
// with a node a.
func cluster(t *testing.T, now time.Time) (*ca.Authority, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a")
	if err := ca.Init(dir, "a", now.Add(-3*ca.NodeLife)); err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(dir)
	if err == nil {
		err = a.Renew("a", now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// identity makes and loads the identity of a node, as of some time.
func identity(t *testing.T, a *ca.Authority, rootOf, node string, at time.Time) *ca.Identity {
	t.Helper()
	dir := t.TempDir()
	r, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := a.Sign(r.DER, node, at)
	if err == nil {
		err = r.Keep(dir, signed)
	}
	if err == nil {
		var root []byte
		if root, err = os.ReadFile(filepath.Join(rootOf, "ca.crt")); err == nil {
			err = os.WriteFile(filepath.Join(dir, "ca.crt"), root, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := ca.Load(dir, node, []string{node, "a", "b", "c"}, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestStrangers: nobody but a node of the cluster is answered.
func TestStrangers(t *testing.T) {
	now := clock.System.Now()
	authority, dir := cluster(t, now)
	var ahead atomic.Int64
	id, err := ca.Load(dir, "a", members, func() time.Time { return now.Add(time.Duration(ahead.Load())) })
	if err != nil {
		t.Fatal(err)
	}
	n := peer.Secured(id)
	defer n.Close()
	address, answered := serve(t, n)
	b := peer.Secured(identity(t, authority, dir, "b", now))
	defer b.Close()
	if status, _ := get(t, b, b.URL(address)+"/x"); status != http.StatusOK {
		t.Fatalf("a peer: status %d", status)
	}

	other, otherDir := cluster(t, now)
	past := now.Add(-2 * ca.NodeLife)
	bare := func(c *tls.Config) http.RoundTripper {
		return &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}
	}
	withCert := func(id *ca.Identity) http.RoundTripper { // it does not look at whom it speaks to
		c := id.Config(false)
		c.InsecureSkipVerify, c.VerifyConnection = true, nil
		return bare(c)
	}
	for name, rt := range map[string]http.RoundTripper{
		"without a certificate":                 bare(&tls.Config{InsecureSkipVerify: true}),
		"of another cluster":                    withCert(identity(t, other, otherDir, "b", now)),
		"expired":                               withCert(identity(t, authority, dir, "b", past)),
		"a node that was taken away":            withCert(identity(t, authority, dir, "d", now)),
		"an old version of TLS":                 bare(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}),
		"with the secret of a loopback cluster": peer.Loopback("x"),
	} {
		if status, _ := get(t, rt, "https://"+address+"/x"); status != 0 && status != http.StatusForbidden {
			t.Errorf("%s: status %d", name, status)
		}
		if c, ok := rt.(*peer.Network); ok {
			c.Close()
		}
	}
	if status, _ := get(t, &http.Transport{DisableKeepAlives: true}, "http://"+address+"/x"); status == http.StatusOK {
		t.Error("without TLS: answered")
	}
	if got := answered.Load(); got != 1 {
		t.Fatalf("%d were answered", got)
	}
	// Nor does a node speak to others than nodes of its cluster.
	otherID, err := ca.Load(otherDir, "a", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	foreign := peer.Secured(otherID)
	defer foreign.Close()
	elsewhere, heard := serve(t, foreign)
	if status, _ := get(t, b, b.URL(elsewhere)+"/x"); status != 0 || heard.Load() != 0 {
		t.Errorf("a node speaks to another cluster: status %d", status)
	}
	// A certificate that expires while its connection is open counts no longer.
	if status, _ := get(t, b, b.URL(address)+"/x"); status != http.StatusOK {
		t.Fatalf("a peer: status %d", status)
	}
	ahead.Store(int64(ca.NodeLife + time.Hour))
	if status, _ := get(t, b, b.URL(address)+"/x"); status == http.StatusOK {
		t.Error("answered with a certificate that has expired since")
	}
}

// TestNewCertificate: a node that has another certificate shows it, though it has a connection
// that it has made with the one before; one that trusts another authority does not speak over
// a connection to who does not show a certificate of that.
func TestNewCertificate(t *testing.T) {
	now := clock.System.Now()
	authority, dir := cluster(t, now)
	var ahead atomic.Int64
	at := func() time.Time { return now.Add(time.Duration(ahead.Load())) }
	id, err := ca.Load(dir, "a", members, at)
	if err != nil {
		t.Fatal(err)
	}
	a := peer.Secured(id)
	defer a.Close()
	address, answered := serve(t, a)
	ofB := filepath.Join(t.TempDir(), "b")
	r, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	token, err := authority.NewToken("b", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := authority.Sign(r.DER, "b", now)
	if err == nil {
		err = r.Joined(ofB, "b", token, signed, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	idB, err := ca.Load(ofB, "b", members, at)
	if err != nil {
		t.Fatal(err)
	}
	b := peer.Secured(idB)
	defer b.Close()
	ask := func() int { // over the connection that there is
		t.Helper()
		answer, err := b.Client().Get(b.URL(address) + "/x")
		if err != nil {
			return 0
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	if status := ask(); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	// It is renewed before it expires, by the node where the authority is.
	ahead.Store(int64(ca.NodeLife * 3 / 4))
	if err := errors.Join(authority.Renew("a", at()), id.Reload()); err != nil {
		t.Fatal(err)
	}
	if r, err = ca.NewRequest(); err == nil {
		if signed, err = authority.Sign(r.DER, "b", at()); err == nil {
			err = errors.Join(r.Keep(ofB, signed), idB.Reload())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(ca.NodeLife + time.Hour))
	if status := ask(); status != http.StatusOK {
		t.Errorf("with a new certificate, after the one before has expired: status %d", status)
	}
	before := answered.Load()
	rotation, err := ca.BeginRotation(dir, at())
	if err != nil {
		t.Fatal(err)
	}
	_, _, alone, err := rotation.Steps()
	if err == nil {
		_, _, err = idB.Trust(alone, rotation.Voucher())
	}
	if err != nil {
		t.Fatal(err)
	}
	if status := ask(); status != 0 || answered.Load() != before {
		t.Errorf("a peer of an authority that is trusted no more: status %d", status)
	}
}

// TestJoin: a token lets one node in, once; a node gets another certificate of its own name
// only.
func TestJoin(t *testing.T) {
	now := clock.System.Now()
	authority, dir := cluster(t, now)
	id, err := ca.Load(dir, "a", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	a := peer.Secured(id)
	defer a.Close()
	address, answered := serve(t, a)
	token, err := authority.NewToken("b", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ofB := filepath.Join(t.TempDir(), "b")
	if err := peer.Join(t.Context(), address, ofB, "c", token, false); err == nil {
		t.Error("a token of b lets c in")
	}
	if err := peer.Join(t.Context(), address, ofB, "b", token, false); err != nil {
		t.Fatal(err)
	}
	if err := peer.Join(t.Context(), address, t.TempDir(), "b", token, false); err == nil {
		t.Error("a token lets two in")
	}
	other, otherDir := cluster(t, now)
	foreign, err := other.NewToken("b", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Join(t.Context(), address, t.TempDir(), "b", foreign, false); err == nil {
		t.Error("a token of another cluster lets a node in")
	}
	_ = otherDir
	idB, err := ca.Load(ofB, "b", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	b := peer.Secured(idB)
	defer b.Close()
	if status, _ := get(t, b, b.URL(address)+"/x"); status != http.StatusOK {
		t.Errorf("who has joined: status %d", status)
	}
	before := idB.Version()
	if err := b.Renew(context.Background(), []string{"127.0.0.1:1", address}); err != nil || idB.Version() == before {
		t.Fatalf("the certificate is not renewed: %v", err)
	}
	r, err := ca.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	question, err := json.Marshal(map[string]any{"node": "a", "request": r.DER})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.Client().Post(b.URL(address)+"/renew", "", bytes.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusForbidden || bytes.Contains(text, []byte("CERTIFICATE")) {
		t.Errorf("b gets a certificate of a: status %d, %s, %v", answer.StatusCode, text, err)
	}
	// What a node forwards for a client, who may be anybody, is no question of its own.
	for path, question := range map[string]map[string]any{
		"/renew": {"node": "b", "request": r.DER},
		"/join":  {"node": "c", "request": r.DER, "token": token},
	} {
		body, err := json.Marshal(question)
		if err != nil {
			t.Fatal(err)
		}
		before := answered.Load()
		forwarded, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL(address)+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		forwarded.Header.Set(peer.ForwardedHeader, "b")
		answer, err := b.Client().Do(forwarded)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answered.Load() != before+1 || bytes.Contains(text, []byte("CERTIFICATE")) {
			t.Errorf("%s of a client is answered by the peer's own: status %d, %s", path, answer.StatusCode, text)
		}
	}
	// A node without the authority lets nobody in.
	withoutIt, _ := serve(t, b)
	token, err = authority.NewToken("c", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Join(t.Context(), withoutIt, t.TempDir(), "c", token, false); err == nil {
		t.Error("a node without the authority lets another in")
	}
	// Who joins shows its token to nobody but the authority that the token names.
	var shown atomic.Bool
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	foreignID, err := ca.Load(otherDir, "a", members, clock.System.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { shown.Store(true) })}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Serve(tls.NewListener(l, foreignID.Config(true)))
	}()
	if err := peer.Join(t.Context(), l.Addr().String(), t.TempDir(), "c", token, false); err == nil || shown.Load() {
		t.Errorf("the token is shown to a stranger: %v", err)
	}
	_ = s.Close()
	<-over
}
