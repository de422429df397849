package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// rotateTime bounds the wait for the nodes in a step of a rotation.
const rotateTime = 30 * time.Second

// RotateCA replaces the cluster's authority, whose key is in the directory of the node: all nodes
// trust both, then get certificates of the new one, then trust only that. It waits for the nodes for
// half a minute in each step, and returns once all are through with the last one. It continues an
// interrupted rotation. without are nodes that are not waited for: if one does not answer, it must
// be admitted again. Errors: those of the directory; of a node that does not complete a step.
func (c *Client) RotateCA(ctx context.Context, without []string, line func(string)) error {
	rotation, err := ca.BeginRotation(c.dir, clock.System.Now())
	if err != nil {
		return fmt.Errorf("the authority is not in %s: %w", c.dir, err)
	}
	both, swapped, alone, err := rotation.Steps()
	if err != nil {
		return err
	}
	if slices.Contains(without, c.node) {
		return fmt.Errorf("--without: node %s is where the authority is, and signs", c.node)
	}
	next := rotation.Next()
	steps := []step{
		{both, "the nodes trust the next authority, too.", func(held *status.Certificate) bool { return slices.Contains(held.Trusts, next) }},
		{swapped, "the nodes have certificates of the next authority.", func(held *status.Certificate) bool { return held.Authority == next }},
		{alone, "the nodes trust the next authority alone.", func(held *status.Certificate) bool { return len(held.Trusts) == 1 && held.Trusts[0] == next }},
	}
	for n, now := range steps {
		m, err := c.newest(ctx)
		if err != nil {
			return err
		}
		// A repeated command does not undo completed steps.
		if !slices.ContainsFunc(steps[n:], func(s step) bool { return m.Roots == string(s.roots) }) {
			if err := c.change(ctx, nodeapi.Change{Roots: string(now.roots), Vouchers: string(rotation.Voucher())}, line); err != nil {
				return err
			}
		}
		if err := c.allHave(ctx, without, now.done); err != nil {
			return err
		}
		if roots, err := ca.ReadRoots(c.dir); err != nil || !slices.Contains(roots.Fingerprints(), next) {
			return errors.Join(err, fmt.Errorf("node %s runs with another --cluster-dir than %s, which has the authority", c.node, c.dir))
		}
		line(fmt.Sprintf("Step %d of 3: %s", n+1, now.tell))
	}
	return rotation.Finish()
}

// newest is the newest list of nodes that any node has: one that was away may have an older one,
// with the certificates of an earlier step.
func (c *Client) newest(ctx context.Context) (latest *roster.List, err error) {
	all, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	if latest, err = all.membership(ctx); err != nil {
		return nil, err
	}
	network, err := all.connections()
	if err != nil {
		return nil, err
	}
	defer network.Close()
	for _, p := range all.peers {
		if l, err := at(network, p).Nodes(ctx); err == nil && l.Version > latest.Version {
			latest = l
		}
	}
	return latest, nil
}

// step is a step of a rotation.
type step struct {
	roots []byte // that the nodes are to trust
	tell  string
	done  func(*status.Certificate) bool // by the certificate of a node
}

// allHave waits until the certificates of all nodes are as required.
func (c *Client) allHave(ctx context.Context, without []string, done func(*status.Certificate) bool) error {
	return until(ctx, rotateTime, func(context.Context) (over bool, err error) {
		err = c.lacking(ctx, without, done)
		return err == nil, err
	})
}

// lacking describes the nodes whose certificates are not as required.
func (c *Client) lacking(ctx context.Context, without []string, done func(*status.Certificate) bool) error {
	all, err := c.all(ctx)
	if err != nil {
		return err
	}
	s, err := all.Status(ctx)
	if err != nil {
		return err
	}
	var lacks []string
	for _, n := range s.Nodes {
		switch {
		case slices.Contains(without, n.Name):
		case n.State == status.Unreachable:
			lacks = append(lacks, "node "+n.Name+" does not answer")
		case n.Certificate == nil:
			lacks = append(lacks, "node "+n.Name+" does not tell what it trusts, and is of an older version")
		case !done(n.Certificate):
			lacks = append(lacks, "node "+n.Name+" is not through with this step")
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%s: start what is down, and give the command again; one that is gone for long may be left out (--without)", strings.Join(lacks, "; "))
}
