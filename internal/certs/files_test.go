package certs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/certs"
	"godwit.dev/godwit/internal/clock"
)

// write makes a certificate that lives until a time, and returns its files.
func write(t *testing.T, dir string, serial int64, until time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func serial(t *testing.T, f *certs.Files) int64 {
	t.Helper()
	c, err := f.Config().GetConfigForClient(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Certificates[0].Leaf.SerialNumber.Int64()
}

func TestReload(t *testing.T) {
	dir, later := t.TempDir(), clock.System.Now().Add(time.Hour)
	cert, key := write(t, dir, 1, later)
	f, err := certs.Open(certs.Options{Cert: cert, Key: key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	broken := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("broken by a test"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.Reload()
		if err := f.Failing(); err == nil || !strings.Contains(err.Error(), "the old one still is") || strings.Contains(err.Error(), "broken by") {
			t.Errorf("told: %v", err)
		}
	}
	broken(key)
	if got := serial(t, f); got != 1 {
		t.Errorf("the certificate is %d", got)
	}
	write(t, dir, 2, later.Add(time.Second))
	f.Reload()
	if err := f.Failing(); err != nil || serial(t, f) != 2 {
		t.Errorf("the new certificate: %d, %v", serial(t, f), err)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	f.Reload()
	if f.Failing() == nil || serial(t, f) != 2 {
		t.Error("a file that is gone is not told, or counts")
	}
}

// A pair that was put in place with the time and the sizes of the one before is another.
func TestReloadLooksAtTheContent(t *testing.T) {
	dir, later := t.TempDir(), clock.System.Now().Add(time.Hour)
	stamp := later.Add(-24 * time.Hour)
	pair := func(serial int64) (cert, key string) {
		cert, key = write(t, dir, serial, later)
		for _, path := range []string{cert, key} {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, strings.Repeat("\n", 4096-len(text))...)
			if err := errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, stamp, stamp)); err != nil {
				t.Fatal(err)
			}
		}
		return cert, key
	}
	cert, key := pair(1)
	f, err := certs.Open(certs.Options{Cert: cert, Key: key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	pair(2)
	f.Reload()
	if got := serial(t, f); got != 2 {
		t.Errorf("the certificate is %d", got)
	}
}

func TestExpiredIsReported(t *testing.T) {
	cert, key := write(t, t.TempDir(), 1, clock.System.Now().Add(-time.Minute))
	f, err := certs.Open(certs.Options{Cert: cert, Key: key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Failing(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("told: %v", err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	cert, key := write(t, dir, 1, clock.System.Now().Add(time.Hour))
	for flag, o := range map[string]certs.Options{
		"--tls-cert": {Cert: filepath.Join(dir, "none"), Key: key}, "--tls-client-ca": {Cert: cert, Key: key, ClientCA: key},
		"--tls-client-ca: open": {Cert: cert, Key: key, ClientCA: filepath.Join(dir, "none")},
	} {
		if _, err := certs.Open(o); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// Who needs no certificate is served with the same one as all, also after it has changed, and resumes
// sessions.
func TestForAnyClient(t *testing.T) {
	dir, later := t.TempDir(), clock.System.Now().Add(time.Hour)
	cert, key := write(t, dir, 1, later)
	f, err := certs.Open(certs.Options{Cert: cert, Key: key, ClientCA: cert, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	strict, open := f.Config(), certs.ForAnyClient(f.Config())
	client := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(1), ServerName: "host"}
	shake := func(server *tls.Config) (tls.ConnectionState, error) {
		l, err := tls.Listen("tcp", "127.0.0.1:0", server)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte("x"))
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		}()
		c, err := tls.Dial("tcp", l.Addr().String(), client)
		if err != nil {
			return tls.ConnectionState{}, err
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 1)) // behind the ticket of the session
		return c.ConnectionState(), err
	}
	if _, err := shake(strict); err == nil {
		t.Error("a client without a certificate is taken where all need one")
	}
	for i, resumed := range []bool{false, true} {
		state, err := shake(open)
		if err != nil || state.PeerCertificates[0].SerialNumber.Int64() != 1 || state.DidResume != resumed {
			t.Errorf("connection %d: %v, resumed: %v", i, err, state.DidResume)
		}
	}
	if _, err := shake(strict); err == nil {
		t.Error("a session without a certificate is resumed where all need one")
	}
	write(t, dir, 2, later)
	f.Reload()
	client.ClientSessionCache = nil
	if state, err := shake(open); err != nil || state.PeerCertificates[0].SerialNumber.Int64() != 2 {
		t.Errorf("with another certificate: %v", err)
	}
}
