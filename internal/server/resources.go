package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"godwit.dev/godwit/internal/server/banner"
	declared "godwit.dev/godwit/internal/server/resources"
)

// applyResources applies the file of --resources to a server that has just started. It fails
// with the server's refusals.
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
	to := &declared.Server{
		Endpoint: banner.Reachable(false, s.Addr().String()), Region: s.cfg.Region,
		Key: cmp.Or(s.cfg.Root.AccessKeyID, s.cfg.Account), Secret: s.cfg.Root.Secret, HTTP: declared.Within(s.handlers.Clients),
	}
	if s.handlers.Operators != nil {
		to.OperatorHTTP = declared.Within(s.handlers.Operators)
	}
	applying := &declared.Applying{To: to, Account: s.cfg.Account, Region: s.cfg.Region, Out: io.Discard}
	changes, err := applying.Run(ctx, set)
	if len(applying.LeftOut) > 0 {
		s.log.Warn("tags of the file are left out, as AWS keeps those that begin with aws: for itself", "file", s.cfg.Resources, "tags", applying.LeftOut)
	}
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
