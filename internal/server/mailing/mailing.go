// Package mailing makes the sender of mails that the settings ask for.
package mailing

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/server/secret"
)

// Mailing sends mails, or keeps them.
type Mailing struct {
	Sender *mailsender.Sender
	Outbox *mailsender.Outbox // nil: mails are sent, or there is no relay
	close  func()
}

// Open makes it. trust is whose certificates a relay may have; nil: as the system does.
// injected is the outage that an operator has asked for; may be nil. through takes mails
// further in place of what the settings name; may be nil.
func Open(c config.Config, now clock.Clock, trust *tls.Config, injected func(arn.ARN) error, through mailsender.Transport) (*Mailing, error) {
	o := mailsender.Options{From: c.MailFrom, Injected: injected}
	m := &Mailing{close: func() {}}
	var err error
	if o.DKIM, err = readDKIM(c); err != nil {
		return nil, err
	}
	switch {
	case through != nil:
		o.Transport = through
	case c.MailRelay != "":
		relay, err := openRelay(c, trust)
		if err != nil {
			return nil, err
		}
		o.Transport, m.close = relay, relay.Close
	case !c.Production:
		dir := ""
		if c.Store != config.MemoryStore {
			dir = filepath.Join(c.DevFiles(), "outbox")
		}
		if m.Outbox, err = mailsender.OpenOutbox(dir, now); err != nil {
			return nil, fmt.Errorf("the outbox cannot be opened: %w", err)
		}
		o.Transport = m.Outbox
	}
	m.Sender = mailsender.New(o)
	return m, nil
}

func openRelay(c config.Config, trust *tls.Config) (*mailsender.Relay, error) {
	server, err := config.ParseMailRelay(c.MailRelay)
	if err != nil {
		return nil, fmt.Errorf("--mail-relay: %w", err)
	}
	o := mailsender.RelayOptions{Address: server.Address, User: server.User, TLS: trust, Name: c.MailFrom[strings.LastIndexByte(c.MailFrom, '@')+1:]}
	switch {
	case server.TLS:
		o.Security = mailsender.ImplicitTLS
	case server.Local:
		o.Security = mailsender.Plain
	}
	if c.MailPasswordFile != "" {
		text, err := secret.Read(c, c.MailPasswordFile)
		if err != nil {
			return nil, fmt.Errorf("--mail-password-file: %w", err)
		}
		o.Password = strings.TrimRight(string(text), "\r\n")
	}
	return mailsender.NewRelay(o), nil
}

// readDKIM reads the key that mails are signed with; nil where they are not.
func readDKIM(c config.Config) (*mailsender.DKIM, error) {
	if c.MailDKIMKey == "" {
		return nil, nil //nolint:nilnil // as mailsender.Options has it
	}
	text, err := secret.Read(c, c.MailDKIMKey)
	if err != nil {
		return nil, fmt.Errorf("--mail-dkim-key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("--mail-dkim-key: %s has no key in PEM form", c.MailDKIMKey)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		var old *rsa.PrivateKey
		if old, err = x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			key = old
		}
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return &mailsender.DKIM{Selector: c.MailDKIMSelector, Key: key}, nil
	case ed25519.PrivateKey:
		return &mailsender.DKIM{Selector: c.MailDKIMSelector, Key: key}, nil
	}
	return nil, fmt.Errorf("--mail-dkim-key: %s has no RSA or Ed25519 key", c.MailDKIMKey)
}

// Sends reports that mails go somewhere.
func (m *Mailing) Sends() bool { return m.Sender.Transport != nil }

// Handler answers operators who look into the outbox.
func (m *Mailing) Handler() http.Handler {
	if m.Outbox == nil {
		return admin.ListOutbox(nil)
	}
	return admin.ListOutbox(m.Outbox)
}

// Close ends connections.
func (m *Mailing) Close() { m.close() }
