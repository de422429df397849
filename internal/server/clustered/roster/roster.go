// Package roster is who the nodes of a cluster are: the list that the log has, and of which each
// node keeps a copy in its data directory.
package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/durable"
)

// Names in a node's data directory.
const (
	nodesFile   = "nodes.json" // the list of nodes, once it has changed
	removedFile = "removed"    // exists once the node was removed
)

// List is a version of the list of nodes. Until its first change, version 0, it is that of the
// settings.
type List struct {
	Version uint64   `json:"version"`
	Nodes   []Member `json:"nodes"`
	Joining string   `json:"joining,omitempty"` // one of Nodes that does not count yet for the requester
	Leaving string   `json:"leaving,omitempty"` // one of Nodes that the others do not talk to any more
	Removed []string `json:"removed,omitempty"` // names of former nodes
	// The certificates of the cluster's authority that nodes trust, and what certifies the
	// latest, in PEM form; empty: the original ones.
	Roots    string `json:"roots,omitempty"`
	Vouchers string `json:"vouchers,omitempty"`
}

// Fewest is the minimum number of nodes that remain: a single one would be no cluster.
const Fewest = 2

// Member is a node: its name, and its log's address for the others.
type Member struct {
	Name  string `json:"name"`
	Route string `json:"route"`
}

// Peers are the nodes that count.
func (l *List) Peers() ([]Peer, error) {
	var texts []string
	for _, n := range l.counted() {
		texts = append(texts, n.Name+"="+n.Route)
	}
	return ParsePeers(texts)
}

// Routes are the addresses of the logs of the nodes that count.
func (l *List) Routes() (all []string) {
	for _, n := range l.counted() {
		all = append(all, n.Route)
	}
	return all
}

// Names are those of the nodes that count.
func (l *List) Names() (all []string) {
	for _, n := range l.counted() {
		all = append(all, n.Name)
	}
	return all
}

func (l *List) counted() []Member {
	return slices.DeleteFunc(slices.Clone(l.Nodes), func(n Member) bool { return n.Name == l.Leaving })
}

// Has reports that a node has this name.
func (l *List) Has(name string) bool {
	return slices.ContainsFunc(l.Nodes, func(n Member) bool { return n.Name == name })
}

// HasRemoved reports that a node of this name was removed.
func (l *List) HasRemoved(name string) bool {
	return slices.Contains(l.Removed, name)
}

// Next is a copy with the next version, to be changed.
func (l *List) Next() *List {
	next := *l
	next.Version++
	next.Nodes, next.Removed = slices.Clone(l.Nodes), slices.Clone(l.Removed)
	return &next
}

// ErrRemoved reports a directory of a node that was removed.
var ErrRemoved = errors.New("this node was removed from its cluster: let the machine in again under another name, with an empty directory")

// Load reads the list that a node keeps in its data directory; nil: it keeps none yet. Errors:
// ErrRemoved.
func Load(data string) (*List, error) {
	if _, err := os.Stat(filepath.Join(data, removedFile)); err == nil {
		return nil, fmt.Errorf("%w (%s)", ErrRemoved, data)
	}
	text, err := os.ReadFile(filepath.Join(data, nodesFile)) //nolint:gosec // the data directory is the operator's
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	l := &List{}
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err != nil {
		return nil, fmt.Errorf("who the nodes are cannot be read: %w", err)
	}
	return l, nil
}

// Keep replaces the list in a node's data directory.
func (l *List) Keep(data string) error {
	text, err := json.Marshal(l)
	if err == nil {
		err = durable.Replace(filepath.Join(data, nodesFile), text)
	}
	if err != nil {
		return fmt.Errorf("who the nodes are cannot be kept: %w", err)
	}
	return nil
}

// MarkRemoved keeps the node of a data directory from starting again.
func MarkRemoved(data string) error {
	return durable.Replace(filepath.Join(data, removedFile), nil)
}

// Read is the list in the log; nil: it has never changed. Errors: replog.ErrUnavailable.
func Read(ctx context.Context, log replog.Membership) (*List, error) {
	text, err := log.Nodes(ctx)
	if err != nil || text == "" {
		return nil, err
	}
	l := &List{}
	return l, json.Unmarshal([]byte(text), l)
}
