package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// AddNode adds a node, written NAME=HOST:PORT, that waits to be added.
func (c *Client) AddNode(ctx context.Context, node string, line func(string)) error {
	return c.change(ctx, nodeapi.Change{Add: node}, line)
}

// RemoveNode removes a node permanently. The owner of the state hands it over first.
func (c *Client) RemoveNode(ctx context.Context, node string, line func(string)) error {
	return c.change(ctx, nodeapi.Change{Remove: node}, line)
}

// ReplaceNode replaces a node by another. A node that answers is removed after the new one has
// been added; one that does not, before, so that the number of nodes that may fail does not
// decrease.
func (c *Client) ReplaceNode(ctx context.Context, old, node string, line func(string)) error {
	peers, err := roster.ParsePeers([]string{node})
	if err != nil {
		return err
	}
	all, err := c.all(ctx)
	if err != nil {
		return err
	}
	m, err := all.membership(ctx)
	if err != nil {
		return err
	}
	switch {
	case !m.Has(old) && !m.HasRemoved(old):
		return fmt.Errorf("there is no node %s: the nodes are %s", old, strings.Join(m.Names(), ", "))
	case m.HasRemoved(peers[0].Name):
		return fmt.Errorf("a node %s was removed before: let the machine in under another name", peers[0].Name)
	}
	// What was begun in one order is finished in that.
	answers := m.Joining == peers[0].Name
	if !answers && !m.HasRemoved(old) && m.Leaving != old {
		if answers, err = all.answers(ctx, old); err != nil {
			return err
		}
	}
	remove := func() error {
		if m.HasRemoved(old) {
			return nil
		}
		return c.RemoveNode(ctx, old, line)
	}
	if !answers {
		if err := remove(); err != nil {
			return err
		}
	}
	if !m.Has(peers[0].Name) || m.Joining == peers[0].Name {
		if err := c.AddNode(ctx, node, line); err != nil {
			return err
		}
	}
	if answers {
		return remove()
	}
	return nil
}

// answers reports whether a node answers the others: one that is slow may miss a question.
func (c *Client) answers(ctx context.Context, name string) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, silentTime)
	defer cancel()
	for {
		s, err := c.Status(ctx)
		if n := s.Node(name); err == nil && n.Name == name && n.State != status.Unreachable {
			return true, nil
		}
		if !pause(waiting, look) {
			return false, err
		}
	}
}

// change requests a change of nodes from the owner of the state, which may be another one by the
// time that it is asked.
func (c *Client) change(ctx context.Context, ch nodeapi.Change, line func(string)) error {
	waiting, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	for {
		err := c.changeOnce(ctx, ch, line)
		if !errors.Is(err, nodeapi.ErrNotOwner) || !pause(waiting, look) {
			return err
		}
	}
}

func (c *Client) changeOnce(ctx context.Context, ch nodeapi.Change, line func(string)) error {
	all, err := c.all(ctx)
	if err != nil {
		return err
	}
	owner, err := all.awaitOwner(ctx)
	if err != nil {
		return err
	}
	if owner != "" && owner == ch.Remove {
		if m, err := all.membership(ctx); err == nil && len(m.Nodes) > roster.Fewest {
			line("Node " + owner + " hands the state over.")
			if owner, err = all.replaceOwner(ctx, owner); err != nil {
				return err
			}
		}
	}
	for _, p := range all.peers {
		if p.Name == owner {
			network, err := all.connections()
			if err != nil {
				return err
			}
			defer network.Close()
			return at(network, p).Change(ctx, ch, line)
		}
	}
	return errors.New("no node owns the state: there is no majority of nodes, or they are choosing")
}
