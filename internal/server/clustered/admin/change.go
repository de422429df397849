package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

const (
	// settleTime bounds the wait until a change begins: for an owner to be elected, and for a change
	// whose command was broken off to end.
	settleTime = 30 * time.Second
	// mostLost is how many owners may end or be replaced in the middle of a change: one that they
	// end of is not to be given to each of them.
	mostLost = 3
	// watchTime is the interval at which it is looked whether the owner still does.
	watchTime = time.Second
)

// change has the owner of the state change the nodes, and the next one where that is replaced
// meanwhile.
func (c *Client) change(ctx context.Context, ch nodeapi.Change, line func(string)) error {
	for lost := 0; ; {
		err := c.begin(ctx, ch, line)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, nodeapi.ErrLost):
			if lost++; lost > mostLost || !pause(ctx, look) {
				return fmt.Errorf("%w: given again, the command goes on", err)
			}
			line("The node that changes the nodes does not answer any more, or does not own the state: the next owner is asked.")
		case lost > 0 && c.done(ctx, ch):
			return nil // before it was lost; what is done is refused
		default:
			return err
		}
	}
}

// done reports that the nodes are changed, by the list of them. Those that are asked may learn of
// it a moment later.
func (c *Client) done(ctx context.Context, ch nodeapi.Change) (is bool) {
	added, _ := roster.ParsePeers([]string{ch.Add}) // it was added by the same text
	_ = until(ctx, silentTime, func(ctx context.Context) (over bool, err error) {
		m, err := c.membership(ctx)
		is = err == nil && (ch.Remove != "" && m.HasRemoved(ch.Remove) ||
			len(added) == 1 && m.Joining != added[0].Name && slices.Contains(m.Nodes, roster.Member{Name: added[0].Name, Route: added[0].Route}))
		return is, err
	})
	return is
}

// begin has the owner change the nodes. It asks again, for settleTime, until the change begins.
func (c *Client) begin(ctx context.Context, ch nodeapi.Change, line func(string)) error {
	told := ""
	return until(ctx, settleTime, func(context.Context) (over bool, err error) {
		again, err := c.changeOnce(ctx, ch, line)
		if refusal, ok := errors.AsType[*nodeapi.Refusal](err); ok && again && refusal.Busy() && refusal.Reason != told {
			told = refusal.Reason
			line("Waiting for that to end: " + told)
		}
		return !again, err
	})
}

// changeOnce asks the present owner. again: the change has not begun, and may when it is asked again.
func (c *Client) changeOnce(ctx context.Context, ch nodeapi.Change, line func(string)) (again bool, err error) {
	all, err := c.all(ctx)
	if err != nil {
		return false, err
	}
	owner, err := all.awaitOwner(ctx)
	if err != nil {
		return false, err
	}
	if owner == ch.Remove {
		if m, err := all.membership(ctx); err == nil && len(m.Nodes) > roster.Fewest {
			line("Node " + owner + " hands the state over.")
			waiting, cancel := context.WithTimeout(ctx, settleTime)
			owner, err = all.replaceOwner(waiting, owner)
			cancel()
			if err != nil {
				return false, err
			}
		}
	}
	i := slices.IndexFunc(all.peers, func(p roster.Peer) bool { return p.Name == owner })
	if i < 0 {
		return true, errNoOwner // it was added after the list was read
	}
	network, err := all.connections()
	if err != nil {
		return false, err
	}
	defer network.Close()
	asking, lose := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { all.watch(asking, owner, lose) })
	err = at(network, all.peers[i]).Change(asking, ch, line)
	if cause := context.Cause(asking); errors.Is(cause, nodeapi.ErrLost) && err != nil {
		err = cause
	}
	lose(nil)
	watching.Wait()
	refusal, ok := errors.AsType[*nodeapi.Refusal](err)
	return ok && refusal.Later || nodeapi.NotSent(err), err
}

// watch ends the wait for an owner that is not reached any more, such as one that was stopped, once
// another node serves: its connection may stay open.
func (c *Client) watch(ctx context.Context, owner string, lose context.CancelCauseFunc) {
	for missed := time.Duration(0); pause(ctx, watchTime); {
		s, err := c.Status(ctx)
		if err != nil || s.Owner() == "" || s.Node(owner).State != status.Unreachable {
			missed = 0
			continue
		}
		if missed += watchTime; missed >= silentTime {
			lose(nodeapi.ErrLost)
			return
		}
	}
}
