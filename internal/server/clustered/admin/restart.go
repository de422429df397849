package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// comeBackTime bounds how long a node may take to end, to be restarted, and to catch up.
const comeBackTime = 10 * time.Minute

// Restart restarts one node after the other gracefully, the owner of the state last, and waits
// until each has restarted and caught up, for ten minutes each. Before the first, it waits for
// twenty seconds until all nodes have all. Errors: a node lacks something before, refuses to end, at
// once, or does not come back.
func (c *Client) Restart(ctx context.Context, line func(string)) error {
	all, err := c.all(ctx)
	if err != nil {
		return err
	}
	s, err := all.awaitWhole(ctx, knowTime, func(*status.Cluster) string { return "" })
	if err != nil {
		return err
	}
	network, err := all.connections()
	if err != nil {
		return err
	}
	defer network.Close()
	nodes := slices.Clone(s.Nodes)
	slices.SortStableFunc(nodes, func(x, y status.Node) int { return rankOf(x) - rankOf(y) })
	for _, n := range nodes {
		i := slices.IndexFunc(all.peers, func(p roster.Peer) bool { return p.Name == n.Name })
		if i < 0 {
			return fmt.Errorf("node %s was added meanwhile", n.Name)
		}
		line("Node " + n.Name + " ends, to be started again.")
		unanswered := end(ctx, at(network, all.peers[i]))
		if _, ok := errors.AsType[*nodeapi.Refusal](unanswered); ok || nodeapi.Refused(unanswered) || nodeapi.NotSent(unanswered) || errors.Is(unanswered, errSilent) {
			return fmt.Errorf("node %s does not end: %w", n.Name, unanswered)
		} // else its end may have cut its answer off
		s, err := all.awaitWhole(ctx, comeBackTime, func(s *status.Cluster) string {
			if now := s.Node(n.Name); now.Process == n.Process {
				return "node " + n.Name + " has not ended"
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("node %s does not come back (does anything start it when it ends?): %w", n.Name, errors.Join(err, unanswered))
		}
		line(fmt.Sprintf("Node %s is back, with version %s.", n.Name, s.Node(n.Name).Version))
	}
	return nil
}

// errSilent reports a node that answers nothing, such as one whose process is stopped, or whose
// network drops what is sent to it.
var errSilent = errors.New("it does not answer, though its machine does not refuse to be connected to: is its process stopped, or its network cut off?")

// end has a node end. One that is not reached, or does not answer, is asked again, for knowTime.
func end(ctx context.Context, n nodeapi.Node) error {
	silent := false
	err := until(ctx, knowTime, func(context.Context) (over bool, err error) {
		err = n.Restart(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			silent = true
			return false, err
		case nodeapi.NotSent(err) && silent: // it has ended since it was asked
			silent = false
			return true, nil
		}
		return !nodeapi.NotSent(err), err
	})
	if silent && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return err
}

// rankOf orders the owner last.
func rankOf(n status.Node) int {
	if n.State == status.Serving {
		return 1
	}
	return 0
}

// awaitWhole waits until every node has caught up, or nearly, one of them serves, and lacks
// reports nothing.
func (c *Client) awaitWhole(ctx context.Context, limit time.Duration, lacks func(*status.Cluster) string) (s status.Cluster, err error) {
	err = until(ctx, limit, func(context.Context) (over bool, err error) {
		if s, over, err = c.status(ctx); err != nil {
			return over, err
		}
		why := lacks(&s)
		for _, n := range s.Nodes {
			if n.State != status.Serving && n.State != status.Following || n.Lag > status.SuccessorLag || n.Fresh || n.Process == "" {
				why = "node " + n.Name + " is " + n.State
			}
			if n.LogStopped {
				why = "the log of node " + n.Name + " has stopped"
			}
		}
		if why == "" && s.Owner() == "" {
			why = "no node serves"
		}
		if why != "" {
			return false, errors.New(why)
		}
		return true, nil
	})
	return s, err
}
