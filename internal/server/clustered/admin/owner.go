package admin

import (
	"context"
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// errNoOwner reports that no node is known to serve.
var errNoOwner = errors.New("no node owns the state: there is no majority of nodes, or they are choosing")

// StepDown has the owner of the state hand it over, and returns which node did, and which one
// serves now. It asks again while no other node follows closely enough, and waits until ctx ends.
func (c *Client) StepDown(ctx context.Context) (from, to string, err error) {
	if from, err = c.awaitOwner(ctx); err == nil {
		to, err = c.replaceOwner(ctx, from)
	}
	return from, to, err
}

// replaceOwner has the owner hand the state over, and returns the next one. It is asked again while
// no other node follows closely enough, for a moment, and if the hand-over has failed, until ctx
// ends.
func (c *Client) replaceOwner(ctx context.Context, owner string) (string, error) {
	for {
		var failed error
		limit := shortTime
		// Another may own it by now, and start to serve, if an answer was lost.
		if s, err := c.Status(ctx); err == nil && s.Owner() == owner {
			var refused bool
			refused, failed = c.reach(func(n nodeapi.Node) error {
				_, err := n.StepDown(ctx, owner)
				return err
			})
			switch {
			case refused:
				return "", failed
			case failed == nil:
				limit = 2 * nodeapi.HandOverTime
			}
		}
		soon, cancel := context.WithTimeout(ctx, limit)
		next, err := c.awaitOther(soon, owner)
		cancel()
		if err == nil {
			return next, nil
		}
		if ctx.Err() != nil {
			return "", errors.Join(failed, err)
		}
	}
}

// awaitOther waits until another node than the given one serves, and returns its name.
func (c *Client) awaitOther(ctx context.Context, than string) (name string, err error) {
	for {
		s, err := c.Status(ctx)
		for _, n := range s.Nodes {
			if err == nil && n.State == status.Serving && n.Name != than {
				return n.Name, nil
			}
		}
		if !pause(ctx, shortLook) {
			return "", errors.Join(err, fmt.Errorf("no other node than %s serves: %w", than, context.Cause(ctx)))
		}
	}
}

// awaitOwner is the name of the serving node: after one has ended, the others need a moment to
// elect the next. It waits for knowTime.
func (c *Client) awaitOwner(ctx context.Context) (name string, err error) {
	err = until(ctx, knowTime, func(ctx context.Context) (over bool, err error) {
		s, refused, err := c.status(ctx)
		switch {
		case refused:
			return true, err
		case err != nil || s.Owner() == "":
			return false, errors.Join(errNoOwner, err)
		case c.single(s):
			return true, c.errSingle()
		}
		name = s.Owner()
		return true, nil
	})
	return name, err
}
