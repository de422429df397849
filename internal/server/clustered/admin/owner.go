package admin

import (
	"context"
	"errors"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// StepDown requests that the owner hand over the state.
func (c *Client) StepDown(ctx context.Context) (h nodeapi.HandedOver, err error) {
	return h, c.reach(func(n nodeapi.Node) error {
		h, err = n.StepDown(ctx, false)
		return err
	})
}

// AwaitOther waits until another node than the given one serves, and returns its name.
func (c *Client) AwaitOther(ctx context.Context, than string) (name string, err error) {
	for {
		s, err := c.Status(ctx)
		for _, n := range s.Nodes {
			if err == nil && n.State == status.Serving && n.Name != than {
				return n.Name, nil
			}
		}
		if !pause(ctx, shortLook) {
			return "", errors.Join(err, context.Cause(ctx))
		}
	}
}

// replaceOwner has the owner hand the state over, and returns the next one. It is asked again while
// no other node follows closely enough, for a moment, and if the hand-over has failed.
func (c *Client) replaceOwner(ctx context.Context, owner string) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	for {
		var refused error
		limit := shortTime
		// Another may own it by now, and start to serve, if an answer was lost.
		if s, err := c.Status(ctx); err == nil && s.Owner() == owner {
			if _, refused = c.StepDown(ctx); refused == nil {
				limit = 2 * nodeapi.HandOverTime
			}
		}
		soon, cancel := context.WithTimeout(ctx, limit)
		next, err := c.AwaitOther(soon, owner)
		cancel()
		if err == nil {
			return next, nil
		}
		if waiting.Err() != nil {
			return "", errors.Join(refused, err)
		}
	}
}

// awaitOwner is the name of the serving node: after one has ended, the others need a moment to
// elect the next.
func (c *Client) awaitOwner(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	for {
		s, err := c.Status(ctx)
		if name := s.Owner(); err == nil && name != "" {
			return name, nil
		}
		if !pause(ctx, look) {
			return "", errors.Join(errors.New("no node owns the state: there is no majority of nodes, or they are choosing"), err)
		}
	}
}
