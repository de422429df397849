// Package ingesting makes what takes posts to sources.
package ingesting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/wire"
	"godwit.dev/godwit/internal/wire/receiver"
)

// Options are what Open needs.
type Options struct {
	Config   config.Config
	Sources  *sources.Module
	Wire     *wire.Handler // carries out what posts become
	Logger   *slog.Logger
	Requests *limit.Budget
	// Trust is whose certificates SNS may have; nil: as the system does.
	Trust *tls.Config
	Own   publicnet.Ports // the ports that this server listens at
	// Observe is called for each post; may be nil.
	Observe func(source string, refused ingest.Reason)
}

// Open makes what answers posts.
func Open(o Options) http.Handler {
	return receiver.New(receiver.Options{
		Find: o.Sources.Find, Within: o.Wire.Within, Certificates: receiver.NewCertificates(fetching(o)),
		Logger: o.Logger, Requests: o.Requests, Observe: o.Observe,
	})
}

// fetching gets what SNS names: without redirects, and from nowhere that endpoints may not be.
func fetching(o Options) func(ctx context.Context, address string, most int64) ([]byte, error) {
	dial := outgoing.Dialer(publicnet.Guard{AllowPrivate: o.Config.AllowPrivateEndpoints, Own: o.Own}.Control).DialContext
	client := &http.Client{
		Transport:     outgoing.New(&http.Transport{DialContext: dial, TLSClientConfig: o.Trust.Clone(), DisableKeepAlives: true}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}
	return func(ctx context.Context, address string, limit int64) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		answer, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer func() { _ = answer.Body.Close() }() // it was read
		if answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %d", answer.StatusCode)
		}
		return io.ReadAll(io.LimitReader(answer.Body, limit))
	}
}
