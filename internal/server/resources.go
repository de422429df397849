package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"godwit.dev/godwit/internal/server/banner"
	declared "godwit.dev/godwit/internal/server/resources"
)

// applyResources has a server that has just started have what the file of --resources has. It
// fails with what it refuses of it.
func (s *Server) applyResources(ctx context.Context) error {
	if s.cfg.Resources == "" {
		return nil
	}
	f, err := os.Open(s.cfg.Resources)
	if err != nil {
		return fmt.Errorf("--resources: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	set, err := declared.Read(f)
	if err != nil {
		return fmt.Errorf("--resources: %s: %w", s.cfg.Resources, err)
	}
	changes, err := (&declared.Applying{
		To: &declared.Server{
			Endpoint: banner.Reachable(false, s.Addr().String()), Region: s.cfg.Region,
			Key: cmp.Or(s.cfg.Root.AccessKeyID, s.cfg.Account), Secret: s.cfg.Root.Secret, HTTP: within{s.Handler()},
		},
		Account: s.cfg.Account, Region: s.cfg.Region, Out: io.Discard,
	}).Run(ctx, set)
	for _, c := range changes {
		if c.Refused != nil {
			err = errors.Join(err, fmt.Errorf("--resources: %s: %w", c.What, c.Refused))
		}
	}
	if err == nil && len(changes) > 0 {
		s.log.Info("resources of the file are there", "file", s.cfg.Resources, "changes", len(changes))
	}
	return err
}

// within asks a handler of the same process.
type within struct{ http.Handler }

// Do implements resources.Doer.
func (w within) Do(r *http.Request) (*http.Response, error) {
	r.RemoteAddr, r.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	a := &answer{header: http.Header{}, status: http.StatusOK}
	w.ServeHTTP(a, r)
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.body)}, nil
}

// answer keeps what a handler answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }
