package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// AddNode adds a node, written NAME=HOST:PORT, that waits to be added, and returns once it has all
// and counts. The node that adds it waits for two minutes until it comes, and without bound until
// it has all. line is called with the progress, here and below.
func (c *Client) AddNode(ctx context.Context, node string, line func(string)) error {
	return c.change(ctx, nodeapi.Change{Add: node}, line)
}

// RemoveNode removes a node permanently, and returns once no other node speaks with it and the log
// is at all others. The owner of the state hands it over first, for which it has half a minute.
func (c *Client) RemoveNode(ctx context.Context, node string, line func(string)) error {
	return c.change(ctx, nodeapi.Change{Remove: node}, line)
}

// ReplaceNode replaces a node by another. A node that answers is removed after the new one has
// been added; one that does not, for three seconds, before, so that the number of nodes that may
// fail does not decrease. It waits as AddNode and RemoveNode do. Broken off, it goes on in the
// order in which it was begun.
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
	if err := mayReplace(m, old, roster.Member{Name: peers[0].Name, Route: peers[0].Route}); err != nil {
		return err
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

// mayReplace refuses what would only remove the old node, as the other one comes to nothing new.
func mayReplace(m *roster.List, old string, node roster.Member) error {
	gone := m.HasRemoved(old)
	at := slices.IndexFunc(m.Nodes, func(n roster.Member) bool { return n.Name != old && n.Route == node.Route })
	switch {
	case !m.Has(old) && !gone:
		return fmt.Errorf("there is no node %s: the nodes are %s", old, strings.Join(m.Names(), ", "))
	case node.Name == old:
		return fmt.Errorf("a name is of no use once its node is removed: let the machine that takes the place of %s in under another one", old)
	case m.HasRemoved(node.Name):
		return fmt.Errorf("a node %s was removed before: let the machine in under another name", node.Name)
	case at >= 0 && m.Nodes[at].Name != node.Name:
		return fmt.Errorf("there is a node at %s already: %s", node.Route, m.Nodes[at].Name)
	case !m.Has(node.Name) || m.Joining == node.Name && slices.Contains(m.Nodes, node):
		return nil
	case !slices.Contains(m.Nodes, node):
		return fmt.Errorf("there is a node %s already, at another address", node.Name)
	case gone == (len(m.Nodes)%2 == 0): // broken off behind the addition there is an even number; with the old one gone an odd one
		return fmt.Errorf("node %s is one of the %d nodes already, and does not replace %s: name one that is none of them, or give godwit cluster remove",
			node.Name, len(m.Nodes), old)
	}
	return nil
}

// answers reports whether a node answers the others: one that is slow may miss a question.
func (c *Client) answers(ctx context.Context, name string) (does bool, err error) {
	err = until(ctx, silentTime, func(context.Context) (over bool, err error) {
		s, err := c.Status(ctx)
		n := s.Node(name)
		does = err == nil && n.Name == name && n.State != status.Unreachable
		return does, err
	})
	return does, err
}
