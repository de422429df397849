// Package artifacts reads objects that requests name by a bucket and a key: templates, and code
// of functions.
package artifacts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/bucket"
	"godwit.dev/godwit/internal/publicnet"
)

// Options configure a Store.
type Options struct {
	Config config.Config
	Trust  *tls.Config
	// Own are the ports that this server listens at.
	Own  publicnet.Ports
	Dial limit.Dial // nil: the machine's
}

// Store reads objects. The nil Store has none.
type Store struct {
	server   *bucket.Server
	endpoint *url.URL
	reads    chan struct{} // has one element for each read in progress
}

// Open makes a Store; nil if the configuration has none.
func Open(o Options) (*Store, error) {
	a := &o.Config.Artifacts
	if a.Endpoint == "" {
		return nil, nil //nolint:nilnil // as it says
	}
	endpoint, err := config.ParseS3Endpoint(a.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("--artifacts-s3-endpoint: %w", err)
	}
	dial := o.Dial
	if dial == nil { // the operator has named the endpoint, wherever it is
		dial = outgoing.Dialer(publicnet.Guard{AllowPrivate: true, Own: o.Own}.Control).DialContext
	}
	s := bucket.Options{
		Endpoint: endpoint, Region: a.Region, PathStyle: !a.HostStyle, Dial: dial, Transport: &http.Transport{TLSClientConfig: o.Trust.Clone()},
	}
	if s.Region == "" {
		s.Region = o.Config.Region
	}
	if a.Credentials != "" {
		if s.AccessKey, s.Secret, err = bucket.ReadCredentials(a.Credentials, o.Config.Production); err != nil {
			return nil, fmt.Errorf("--artifacts-s3-credentials: %w", err)
		}
	}
	server, err := bucket.New(s)
	if err != nil {
		return nil, err
	}
	return &Store{server, endpoint, make(chan struct{}, maxReads)}, nil
}

// Host is the host of the objects' URLs; empty: there are none.
func (s *Store) Host() string {
	if s == nil {
		return ""
	}
	return s.endpoint.Host
}

var errNone = errors.New("there are no objects")

// ErrTooLarge refuses an object of more bytes than requested.
var ErrTooLarge = errors.New("the object is too large")

// maxReads bounds the concurrent reads: each object is in memory as a whole.
const maxReads = 4

// readTime bounds a read, and the wait for the reads before it: a step of a stack, which asks
// without a deadline of its own, would else wait for ever for a server that stalls.
const readTime = 2 * time.Minute

// Get reads an object of a maximum size. Its errors may be shown to the caller.
func (s *Store) Get(ctx context.Context, of, key string, limit int64) ([]byte, error) {
	if s == nil {
		return nil, errNone
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r, err := s.server.Get(ctx, outlet.Name{Bucket: of, Key: key})
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = ErrTooLarge
	}
	return body, err
}
