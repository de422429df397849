package receiver

import (
	"context"
	"crypto/x509"
	"net/http"
	"sync"
	"time"

	"godwit.dev/godwit/internal/ingest"
)

// Bounds of what is fetched for SNS.
const (
	fetchTime   = 5 * time.Second
	maxFetches  = 4 // at once
	maxKept     = 64
	certificate = 16 << 10 // bytes
)

// Certificates has the certificates that SNS signs with, which it fetches once. It also asks
// the addresses that confirm subscriptions.
type Certificates struct {
	// Fetch gets what is at an address that a source allows: at most so many bytes.
	fetch func(ctx context.Context, address string, limit int64) ([]byte, error)
	slots chan struct{}

	mu   sync.Mutex
	kept map[string]*x509.Certificate
}

// NewCertificates has them fetched by fetch, which gives an error for any status but 200.
func NewCertificates(fetch func(ctx context.Context, address string, most int64) ([]byte, error)) *Certificates {
	return &Certificates{fetch: fetch, slots: make(chan struct{}, maxFetches), kept: map[string]*x509.Certificate{}}
}

// get fetches. Anyone can cause a fetch, so only a few run at once.
func (c *Certificates) get(ctx context.Context, address string, limit int64) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return nil, refuse(ingest.Uncertified, "Too many certificates are being fetched: try again.")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	text, err := c.fetch(ctx, address, limit)
	if err != nil {
		return nil, refuse(ingest.Uncertified, "What SNS has named cannot be fetched: try again.")
	}
	return text, nil
}

// of is the certificate at an address. The address of another certificate is another one.
func (c *Certificates) of(ctx context.Context, address string) (*x509.Certificate, error) {
	c.mu.Lock()
	cert := c.kept[address]
	c.mu.Unlock()
	if cert != nil {
		return cert, nil
	}
	text, err := c.get(ctx, address, certificate)
	if err != nil {
		return nil, err
	}
	if cert, err = ingest.ParseCertificate(text); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxKept {
		clear(c.kept)
	}
	c.kept[address] = cert
	return cert, nil
}

// verifySNS verifies what SNS posts.
func (v *Receiver) verifySNS(ctx context.Context, source *ingest.Compiled, now time.Time, body []byte) (*ingest.FromSNS, error) {
	n, err := source.ReadSNS(body)
	if err != nil {
		return nil, err
	}
	cert, err := v.Certificates.of(ctx, n.SigningCertURL)
	if err != nil {
		return nil, err
	}
	return n, source.VerifySNS(now, n, cert)
}

// aboutSubscription confirms a subscription that a source's topic asks for. Its end needs
// nothing done: to confirm that would undo it.
func (v *Receiver) aboutSubscription(ctx context.Context, _ *ingest.Compiled, n *ingest.FromSNS) (outcome, error) {
	done := outcome{http.StatusOK, struct {
		Confirmed bool `json:"confirmed"`
	}{n.IsConfirmation()}}
	if !n.IsConfirmation() {
		return done, nil
	}
	_, err := v.Certificates.get(ctx, n.SubscribeURL, certificate)
	return done, err
}
