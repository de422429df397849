package signing_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/deliver/envelope/signing"
	"godwit.dev/godwit/internal/queue/message"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store keeps keys in memory.
type store struct {
	mu       sync.Mutex
	keys     map[[16]byte][]byte
	hold     chan struct{} // puts behind the first wait for it
	fail     error         // of every put
	failNext error         // of those behind the first
}

func (s *store) SigningKeys() (map[[16]byte][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.keys), nil
}

func (s *store) PutSigningKey(id [16]byte, key []byte) error {
	s.mu.Lock()
	first := s.keys == nil
	s.mu.Unlock()
	if s.hold != nil && !first {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first {
		s.keys = map[[16]byte][]byte{}
	} else if s.failNext != nil {
		return s.failNext
	}
	s.keys[id] = bytes.Clone(key)
	return s.fail
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t *testing.T, s *store, at time.Time) *signing.Keys {
	t.Helper()
	k, err := signing.Open(signing.Options{Store: s, Clock: clock.NewVirtual(at)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	return k
}

func notification(body string, version byte) *message.Message {
	return &message.Message{ID: message.ID{1}, Sent: start.UnixMilli(), Body: []byte(body), Notice: &message.Notice{
		Kind: message.Notification, Topic: "arn:aws:sns:us-east-1:000000000000:t", Subscription: "s", SignatureVersion: version,
	}}
}

// fetch gets a certificate over HTTP.
func fetch(t *testing.T, k *signing.Keys, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	k.Serve(next).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w
}

func certificate(t *testing.T, k *signing.Keys, id [16]byte) *x509.Certificate {
	t.Helper()
	w := fetch(t, k, http.MethodGet, envelope.CertificatePath(id))
	block, rest := pem.Decode(w.Body.Bytes())
	if w.Code != http.StatusOK || block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sign renders an envelope and signs it, and returns its signature.
func sign(t *testing.T, s *signing.Signer, m *message.Message, key [16]byte) []byte {
	t.Helper()
	body, unsigned := envelope.Append(nil, m, envelope.Issuer{URL: "http://host", Key: key})
	before := bytes.Clone(body)
	if err := s.Sign(body, unsigned); err != nil {
		t.Fatal(err)
	}
	end := unsigned.Offset + envelope.SignatureSize
	if !bytes.Equal(before[:unsigned.Offset], body[:unsigned.Offset]) || !bytes.Equal(before[end:], body[end:]) {
		t.Fatal("more than the signature was written")
	}
	raw, err := base64.StdEncoding.DecodeString(string(body[unsigned.Offset:end]))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestBothVersionsVerify(t *testing.T) {
	k := open(t, &store{}, start)
	s, id := k.NewSigner(), k.Key()
	public := certificate(t, k, id).PublicKey.(*rsa.PublicKey)
	text := "Message\nhello\nMessageId\n01000000-0000-0000-0000-000000000000\nTimestamp\n2026-01-02T03:04:05.000Z\n" +
		"TopicArn\narn:aws:sns:us-east-1:000000000000:t\nType\nNotification\n"
	first, second := sha1.Sum([]byte(text)), sha256.Sum256([]byte(text))
	if err := rsa.VerifyPKCS1v15(public, crypto.SHA1, first[:], sign(t, s, notification("hello", 1), id)); err != nil {
		t.Error("version 1:", err)
	}
	if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, second[:], sign(t, s, notification("hello", 2), id)); err != nil {
		t.Error("version 2:", err)
	}
}

func TestCertificate(t *testing.T) {
	k := open(t, &store{}, start)
	id := k.Key()
	c := certificate(t, k, id)
	if c.Subject.CommonName != "sns.amazonaws.com" || c.VerifyHostname("sns.amazonaws.com") != nil {
		t.Errorf("it is for %s, %v", c.Subject, c.DNSNames)
	}
	if !c.NotBefore.Before(start) || c.NotAfter.Before(start.AddDate(19, 0, 0)) {
		t.Errorf("valid from %s to %s", c.NotBefore, c.NotAfter)
	}
	if err := c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature); err != nil {
		t.Error("not signed by its own key:", err)
	}
	path := envelope.CertificatePath(id)
	for _, tc := range []struct {
		method, path string
		want         int
	}{
		{http.MethodHead, path, http.StatusOK},
		{http.MethodPost, path, http.StatusMethodNotAllowed},
		{http.MethodGet, envelope.CertificatePath([16]byte{1}), http.StatusNotFound},
		{http.MethodGet, envelope.CertificatePrefix + "00.pem", http.StatusNotFound},
		{http.MethodGet, envelope.CertificatePrefix + ".pem", http.StatusNotFound},
		{http.MethodGet, envelope.CertificatePrefix + strings.Repeat("x", 32) + ".pem", http.StatusNotFound},
		{http.MethodGet, strings.TrimSuffix(path, ".pem"), http.StatusTeapot},
		{http.MethodGet, "/000000000000" + path, http.StatusTeapot},
		{http.MethodPost, "/", http.StatusTeapot},
	} {
		if got := fetch(t, k, tc.method, tc.path).Code; got != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.method, tc.path, got, tc.want)
		}
	}
}

// TestOneSignatureForAll: however many copies of a message there are, and
// however many want one at once, it is signed once; another text, another time.
func TestOneSignatureForAll(t *testing.T) {
	k := open(t, &store{}, start)
	id := k.Key()
	signers := []*signing.Signer{k.NewSigner(), k.NewSigner()}
	first := sign(t, signers[0], notification("hello", 1), id)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			m := notification("hello", 1)
			m.Notice.Subscription += strings.Repeat("x", i)
			if got := sign(t, signers[i%2], m, id); !bytes.Equal(got, first) {
				t.Error("another signature")
			}
			sign(t, signers[i%2], notification("other", 1), id)
		})
	}
	wg.Wait()
	if n := k.Made(); n != 2 {
		t.Errorf("%d signatures were made of two texts", n)
	}
	sign(t, signers[0], notification("hello", 2), id)
	if n := k.Made(); n != 3 {
		t.Errorf("%d signatures with another version", n)
	}
}

// TestForgottenSignatureIsTheSame: memory is bounded, and what was forgotten is
// made again, the same.
func TestForgottenSignatureIsTheSame(t *testing.T) {
	k, err := signing.Open(signing.Options{Store: &store{}, Clock: clock.NewVirtual(start), Kept: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Stop()
	s, id := k.NewSigner(), k.Key()
	first := sign(t, s, notification("a", 1), id)
	sign(t, s, notification("b", 1), id)
	if again := sign(t, s, notification("a", 1), id); !bytes.Equal(again, first) || k.Made() != 3 {
		t.Errorf("made %d times, the same: %v", k.Made(), bytes.Equal(again, first))
	}
}

// TestKeyIsKept: a restart signs with the same key, and the same signature.
func TestKeyIsKept(t *testing.T) {
	s := &store{}
	k := open(t, s, start)
	id := k.Key()
	first := sign(t, k.NewSigner(), notification("hello", 2), id)
	again := open(t, s, start.AddDate(1, 0, 0))
	if again.Key() != id {
		t.Fatal("another key")
	}
	if !bytes.Equal(sign(t, again.NewSigner(), notification("hello", 2), id), first) {
		t.Error("another signature")
	}
	again.Stop()
	if len(s.keys) != 1 {
		t.Errorf("%d keys", len(s.keys))
	}
}

// TestRotation: near the end of a certificate's life a start makes a new key.
// What names the old one is still signed with it.
func TestRotation(t *testing.T) {
	s := &store{}
	k := open(t, s, start)
	old := k.Key()
	first := sign(t, k.NewSigner(), notification("hello", 1), old)
	k = open(t, s, start.AddDate(19, 6, 0))
	k.Stop()
	id := k.Key()
	if id == old || len(s.keys) != 2 {
		t.Fatalf("%d keys, another one: %v", len(s.keys), id != old)
	}
	if !bytes.Equal(sign(t, k.NewSigner(), notification("hello", 1), old), first) {
		t.Error("the old key signs otherwise")
	}
	if certificate(t, k, old).Equal(certificate(t, k, id)) {
		t.Error("one certificate for both")
	}
	if open(t, s, start).Key() != id { // a clock set back changes nothing
		t.Error("the old key signs again")
	}
}

// TestFirstKeyIsMadeInTheBackground: opening does not wait for it, but its id is
// there and durable; who signs waits, and so does who fetches the certificate. A
// process that ends before has promised nothing but the id.
func TestFirstKeyIsMadeInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hold: make(chan struct{})}
		k := open(t, s, start)
		id := k.Key()
		if _, ok := s.keys[id]; !ok || len(s.keys) != 1 {
			t.Fatalf("%d keys are kept, that one: %v", len(s.keys), ok)
		}
		reserved := maps.Clone(s.keys)
		signer, done := k.NewSigner(), make(chan []byte, 2)
		go func() { done <- sign(t, signer, notification("hello", 1), id) }()
		go func() { done <- fetch(t, k, http.MethodGet, envelope.CertificatePath(id)).Body.Bytes() }()
		synctest.Wait()
		if len(done) != 0 {
			t.Error("a key signs that is not durable")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		k.Serve(nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, envelope.CertificatePath(id), nil))
		close(s.hold)
		for range 2 {
			if got := <-done; len(got) == 0 {
				t.Error("nothing came")
			}
		}
		again := open(t, &store{keys: reserved}, start)
		if again.Key() != id || len(sign(t, again.NewSigner(), notification("hello", 1), id)) != 256 {
			t.Error("the key that was promised is not made")
		}
	})
}

// TestNoKey: a key that cannot be kept signs nothing, and whoever waits is told.
func TestNoKey(t *testing.T) {
	broken := errors.New("broken")
	if _, err := signing.Open(signing.Options{Store: &store{fail: broken}, Clock: clock.NewVirtual(start)}); !errors.Is(err, broken) {
		t.Errorf("opened: %v", err)
	}
	var log bytes.Buffer
	k, err := signing.Open(signing.Options{
		Store: &store{failNext: broken}, Clock: clock.NewVirtual(start), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Stop()
	body, unsigned := envelope.Append(nil, notification("hello", 1), envelope.Issuer{Key: k.Key()})
	if err := k.NewSigner().Sign(body, unsigned); !errors.Is(err, broken) {
		t.Errorf("signed: %v", err)
	}
	if !strings.Contains(log.String(), "broken") {
		t.Errorf("logged %q", log.String())
	}
	if w := fetch(t, k, http.MethodGet, envelope.CertificatePath(k.Key())); w.Code != http.StatusNotFound {
		t.Errorf("a certificate: %d", w.Code)
	}
}

func TestUnreadableKeysAreRefused(t *testing.T) {
	s := &store{}
	k := open(t, s, start)
	id := k.Key()
	k.Stop()
	whole := s.keys[id]
	for name, value := range map[string][]byte{
		"empty": {}, "without a number": {1}, "of a later version": append([]byte{9}, whole[1:]...), "cut off": whole[:len(whole)-1],
		"without a certificate": whole[:1200], "of another key": append(bytes.Clone(whole), 0),
	} {
		_, err := signing.Open(signing.Options{Store: &store{keys: map[[16]byte][]byte{id: value}}, Clock: clock.NewVirtual(start)})
		if err == nil {
			t.Errorf("a key %s was read", name)
		}
	}
}

func TestSignRefusesWhatItCannotSign(t *testing.T) {
	k := open(t, &store{}, start)
	s, id := k.NewSigner(), k.Key()
	digest := make([]byte, 32)
	for name, tc := range map[string]struct {
		body []byte
		u    message.Unsigned
	}{
		"no room":     {make([]byte, 343), message.Unsigned{Key: id, Version: 2, Digest: digest}},
		"behind":      {make([]byte, 344), message.Unsigned{Key: id, Version: 2, Digest: digest, Offset: 1}},
		"long digest": {make([]byte, 344), message.Unsigned{Key: id, Version: 2, Digest: make([]byte, 33)}},
		"another's":   {make([]byte, 344), message.Unsigned{Key: [16]byte{1}, Version: 2, Digest: digest}},
		"no digest":   {make([]byte, 344), message.Unsigned{Key: id, Version: 2}},
	} {
		before := bytes.Clone(tc.body)
		if err := s.Sign(tc.body, &tc.u); err == nil || !bytes.Equal(before, tc.body) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	k, err := signing.Open(signing.Options{Store: &store{}, Clock: clock.System})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Stop()
	s, id := k.NewSigner(), k.Key()
	for _, kept := range []bool{false, true} {
		name := "made"
		if kept {
			name = "kept"
		}
		b.Run(name, func(b *testing.B) {
			m := notification(strings.Repeat("x", 1024), 2)
			for i := 0; b.Loop(); i++ {
				if !kept {
					m.Sent++
				}
				body, unsigned := envelope.Append(nil, m, envelope.Issuer{URL: "http://host", Key: id})
				if err := s.Sign(body, unsigned); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
