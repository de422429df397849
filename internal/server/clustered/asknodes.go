package clustered

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// readLines reads the progress of a change.
func readLines(body io.Reader, line func(string)) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		text := lines.Text()
		if text == "done" {
			return nil
		}
		if reason, failed := strings.CutPrefix(text, "error: "); failed {
			return errors.New(reason)
		}
		line(text)
	}
	return errors.Join(errors.New("the node that changes the nodes ended, or another one owns the state now: ask again, and it goes on"), lines.Err())
}

// AddNode adds a node, written NAME=HOST:PORT, that waits to be added.
func (a *Asking) AddNode(ctx context.Context, node string, line func(string)) error {
	return a.change(ctx, change{Add: node}, line)
}

// RemoveNode removes a node permanently. The owner of the state hands it over first.
func (a *Asking) RemoveNode(ctx context.Context, node string, line func(string)) error {
	return a.change(ctx, change{Remove: node}, line)
}

// ReplaceNode replaces a node by another. A node that answers is removed after the new one has
// been added; one that does not, before, so that the number of nodes that may fail does not
// decrease.
func (a *Asking) ReplaceNode(ctx context.Context, old, node string, line func(string)) error {
	peers, err := roster.ParsePeers([]string{node})
	if err != nil {
		return err
	}
	all, err := a.all(ctx)
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
		return a.RemoveNode(ctx, old, line)
	}
	if !answers {
		if err := remove(); err != nil {
			return err
		}
	}
	if !m.Has(peers[0].Name) || m.Joining == peers[0].Name {
		if err := a.AddNode(ctx, node, line); err != nil {
			return err
		}
	}
	if answers {
		return remove()
	}
	return nil
}

// answers reports whether a node answers the others: one that is slow may miss a question.
func (a *Asking) answers(ctx context.Context, name string) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, silentTime)
	defer cancel()
	for {
		s, err := a.Status(ctx)
		if n := s.Node(name); err == nil && n.Name == name && n.State != status.Unreachable {
			return true, nil
		}
		if !pause(waiting, changeLook) {
			return false, err
		}
	}
}

// membership requests the list of nodes.
func (a *Asking) membership(ctx context.Context) (latest *roster.List, err error) {
	return latest, a.reach(func(client *http.Client, base string) error {
		latest, err = askNodes(ctx, client, base+nodesPath)
		return err
	})
}

// all is like a for all current nodes.
func (a *Asking) all(ctx context.Context) (*Asking, error) {
	if a.Dir == "" && a.network == nil {
		return nil, errors.New("nodes are changed as a node only: want --dir, --node and --from")
	}
	m, err := a.membership(ctx)
	if err != nil {
		return nil, err
	}
	peers, err := m.Peers()
	return &Asking{Dir: a.Dir, Node: a.Node, Peers: peers, network: a.network}, err
}

// change requests a change of nodes from the owner of the state, which may be another one by the
// time that it is asked.
func (a *Asking) change(ctx context.Context, c change, line func(string)) error {
	waiting, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	for {
		err := a.changeOnce(ctx, c, line)
		if !errors.Is(err, errNotOwner) || !pause(waiting, changeLook) {
			return err
		}
	}
}

func (a *Asking) changeOnce(ctx context.Context, c change, line func(string)) error {
	all, err := a.all(ctx)
	if err != nil {
		return err
	}
	owner, err := all.awaitOwner(ctx)
	if err != nil {
		return err
	}
	if owner != "" && owner == c.Remove {
		if m, err := all.membership(ctx); err == nil && len(m.Nodes) > fewestNodes {
			line("Node " + owner + " hands the state over.")
			if owner, err = all.replaceOwner(ctx, owner); err != nil {
				return err
			}
		}
	}
	for _, p := range all.Peers {
		if p.Name == owner {
			network, err := all.reached()
			if err != nil {
				return err
			}
			defer network.Close()
			return c.post(ctx, network.Client(), network.URL(p.Address)+nodesPath, line)
		}
	}
	return errors.New("no node owns the state: there is no majority of nodes, or they are choosing")
}

// replaceOwner has the owner hand the state over, and returns the next one. It is asked again while
// no other node follows closely enough, for a moment, and if the hand-over has failed.
func (a *Asking) replaceOwner(ctx context.Context, owner string) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	for {
		var refused error
		limit := askTime
		// Another may own it by now, and start to serve, if an answer was lost.
		if s, err := a.Status(ctx); err == nil && s.Owner() == owner {
			if _, refused = a.StepDown(ctx); refused == nil {
				limit = 2 * handOverTime
			}
		}
		soon, cancel := context.WithTimeout(ctx, limit)
		next, err := a.AwaitOther(soon, owner)
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
func (a *Asking) awaitOwner(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	for {
		s, err := a.Status(ctx)
		if name := s.Owner(); err == nil && name != "" {
			return name, nil
		}
		if !pause(ctx, changeLook) {
			return "", errors.Join(errors.New("no node owns the state: there is no majority of nodes, or they are choosing"), err)
		}
	}
}
