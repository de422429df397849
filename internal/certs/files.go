// Package certs has the server's certificates, from files that may change while it runs.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// look is the interval between checks of the files.
const look = 5 * time.Second

// Protocols are the protocols over TLS, in order of preference.
var Protocols = []string{"h2", "http/1.1"}

// Options are the settings of Files. ClientCA may be empty: then clients need no certificate.
type Options struct {
	Cert, Key string // files in PEM form, the certificate with its chain
	ClientCA  string // file in PEM form
	Logger    *slog.Logger
}

// Files are a certificate and its key, as of the last valid state of the files.
type Files struct {
	Options
	current atomic.Pointer[tls.Config]
	problem atomic.Pointer[string] // of the current files; nil: none

	mu   sync.Mutex
	seen [3]content // of the files when they were last read
}

// content is a file's content, or the error of reading it. Only the content is compared: a
// copy that keeps the old time and size, as by rsync and tar, is a change, too.
type content struct {
	text   string
	failed string
}

// Open reads the files. It fails if they are invalid.
func Open(o Options) (*Files, error) {
	f := &Files{Options: o}
	f.seen = f.contents()
	read, err := f.parse(f.seen)
	if err != nil {
		return nil, err
	}
	f.current.Store(read)
	return f, nil
}

// Config is the configuration of a listener: each connection uses the current files.
func (f *Files) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: Protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current.Load(), nil },
	}
}

// Failing is what is wrong with the files, or that the certificate has expired; nil: nothing.
// Meanwhile the last valid state is used.
func (f *Files) Failing() error {
	if problem := f.problem.Load(); problem != nil {
		return errors.New(*problem)
	}
	if leaf := f.current.Load().Certificates[0].Leaf; clock.System.Now().After(leaf.NotAfter) {
		return fmt.Errorf("the certificate (--tls-cert) has expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Watch checks the files for changes until it is stopped.
func (f *Files) Watch() (stop func()) {
	var mu sync.Mutex
	var timer clock.Timer
	stopped := false
	var again func()
	again = func() {
		f.Reload()
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			timer = clock.System.AfterFunc(look, again)
		}
	}
	mu.Lock()
	timer = clock.System.AfterFunc(look, again)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// Reload reads changed files. Invalid ones are logged, and change nothing.
func (f *Files) Reload() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.contents()
	if now == f.seen {
		return
	}
	f.seen = now
	read, err := f.parse(now)
	if err != nil {
		text := "the new certificate cannot be used, the old one still is: " + err.Error()
		f.problem.Store(&text)
		f.Logger.Error("the certificate has changed and cannot be used; the old one still is", "error", err)
		return
	}
	f.current.Store(read)
	f.problem.Store(nil)
	f.Logger.Info("the certificate was read anew", "expires", read.Certificates[0].Leaf.NotAfter)
}

// contents reads the files: certificate, key, clients' authority.
func (f *Files) contents() (all [3]content) {
	for i, name := range [...]string{f.Cert, f.Key, f.ClientCA} {
		if name == "" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			all[i].failed = err.Error()
		}
		all[i].text = string(text)
	}
	return all
}

// parse parses these contents without reading the files again, so that what was compared is
// used.
func (f *Files) parse(all [3]content) (*tls.Config, error) {
	for i, flag := range [...]string{"--tls-cert", "--tls-key", "--tls-client-ca"} {
		if all[i].failed != "" {
			return nil, fmt.Errorf("%s: %s", flag, all[i].failed)
		}
	}
	pair, err := tls.X509KeyPair([]byte(all[0].text), []byte(all[1].text))
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	if pair.Leaf == nil { // only by GODEBUG=x509keypairleaf=0
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: Protocols, Certificates: []tls.Certificate{pair}}
	if f.ClientCA == "" {
		return c, nil
	}
	return c, requireClients(c, f.ClientCA, []byte(all[2].text))
}

// RequireClients makes c require client certificates signed by an authority in a file, in PEM
// form. Without a file it does nothing.
func RequireClients(c *tls.Config, file string) error {
	if file == "" {
		return nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--tls-client-ca: %w", err)
	}
	return requireClients(c, file, pem)
}

func requireClients(c *tls.Config, file string, pem []byte) error {
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("--tls-client-ca: %s has no certificate in PEM form", file)
	}
	return nil
}
