package clustered

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/durable"
)

// Names in a node's directory.
const (
	nodesFile   = "nodes.json" // the list of nodes, once it has changed
	removedFile = "removed"    // exists once the node was removed
)

// nodesTime is the interval at which a node polls the list of nodes.
const nodesTime = time.Second

// membership is the list of a cluster's nodes. The log has it, and each node a copy; until its
// first change it is that of the settings.
type membership struct {
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

// Member is a node: its name, and its log's address for the others.
type Member struct {
	Name  string `json:"name"`
	Route string `json:"route"`
}

// members is a running node's knowledge of the nodes.
type members struct {
	known    atomic.Pointer[membership]
	adopting sync.Mutex
	changing sync.Mutex         // held while the nodes are changed
	joins    bool               // this node has never counted in the log
	end      context.CancelFunc // ends the node gracefully
}

// peers are the nodes that count.
func (m *membership) peers() (all []Peer, err error) {
	var texts []string
	for _, n := range m.Nodes {
		if n.Name != m.Leaving {
			texts = append(texts, n.Name+"="+n.Route)
		}
	}
	return ParsePeers(texts)
}

func (m *membership) routes() (all []string) {
	for _, n := range m.Nodes {
		if n.Name != m.Leaving {
			all = append(all, n.Route)
		}
	}
	return all
}

func (m *membership) names() (all []string) {
	for _, n := range m.Nodes {
		if n.Name != m.Leaving {
			all = append(all, n.Name)
		}
	}
	return all
}

// has reports that a node has this name.
func (m *membership) has(name string) bool {
	return slices.ContainsFunc(m.Nodes, func(n Member) bool { return n.Name == name })
}

// next is a copy with the next version, to be changed.
func (m *membership) next() *membership {
	next := *m
	next.Version++
	next.Nodes, next.Removed = slices.Clone(m.Nodes), slices.Clone(m.Removed)
	return &next
}

var errRemoved = errors.New("this node was removed from its cluster: let the machine in again under another name, with an empty directory")

// readNodes reads the list of nodes into a node. A stored list is newer than that of the
// settings.
func readNodes(data string, n *Node) (*membership, error) {
	if _, err := os.Stat(filepath.Join(data, removedFile)); err == nil {
		return nil, fmt.Errorf("%w (%s)", errRemoved, data)
	}
	m := &membership{}
	text, err := os.ReadFile(filepath.Join(data, nodesFile)) //nolint:gosec // the data directory is the operator's
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, p := range n.Peers {
			m.Nodes = append(m.Nodes, Member{p.Name, p.Route})
		}
		return m, nil
	case err == nil:
		err = json.Unmarshal(text, m)
	}
	if err == nil {
		n.Peers, err = m.peers()
	}
	if err != nil {
		return nil, fmt.Errorf("who the nodes are cannot be read: %w", err)
	}
	n.Joins = false
	return m, nil
}

// peers are the current nodes, including this one.
func (p *part) peers() []Peer {
	m := p.members.known.Load()
	if m == nil || m.Version == 0 {
		return p.node.Peers // with URLs, where the settings have them
	}
	all, err := m.peers()
	if err != nil {
		return p.node.Peers // adopt has checked it
	}
	return all
}

// adopt takes over a list of nodes, if it is newer than the known one.
func (p *part) adopt(ctx context.Context, m *membership) error {
	p.members.adopting.Lock()
	defer p.members.adopting.Unlock()
	if m.Version <= p.members.known.Load().Version {
		return nil
	}
	peers, err := m.peers()
	if err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	changed, dropped, err := p.trust(m)
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(p.cfg.Data, nodesFile), text); err != nil {
		return fmt.Errorf("who the nodes are cannot be kept: %w", err)
	}
	p.members.known.Store(m)
	p.log.Info("the cluster's nodes", "are", m.names(), "version", m.Version)
	p.net.SetMembers(m.names())
	p.front.handOnTo(peers)
	if p.engine == nil {
		return nil
	}
	if changed {
		if err := p.engine.SetTLS(ctx, p.net.Routes(), dropped); err != nil {
			return err
		}
	}
	return p.engine.SetRoutes(m.routes())
}

// watchNodes follows the list of nodes in the log.
func (p *part) watchNodes(ctx context.Context) {
	roster, ok := p.record.(replog.Membership)
	for ok && pause(ctx, nodesTime) {
		if id := p.net.Identity(); id != nil && id.Stale() {
			if err := p.engine.SetTLS(ctx, p.net.Routes(), true); err != nil {
				p.log.Warn("connections between logs", "reason", err)
			}
		}
		m, err := readMembership(ctx, roster)
		if err == nil && m != nil {
			err = p.adopt(ctx, m)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, replog.ErrUnavailable) {
			p.log.Warn("who the nodes are", "reason", err)
		}
	}
}

// readMembership is the list in the log; nil: it has never changed.
func readMembership(ctx context.Context, roster replog.Membership) (*membership, error) {
	text, err := roster.Nodes(ctx)
	if err != nil || text == "" {
		return nil, err
	}
	m := &membership{}
	return m, json.Unmarshal([]byte(text), m)
}

// awaitAdded returns once the node has been added to the cluster.
func (p *part) awaitAdded(ctx context.Context) error {
	if !p.node.Joins {
		p.members.joins = p.members.known.Load().Joining == p.node.Name
		return nil
	}
	p.log.Info("the node waits until it is added (godwit cluster add)")
	for {
		if m := p.learn(ctx); m != nil && m.has(p.node.Name) && m.Leaving != p.node.Name {
			if !slices.Contains(m.Nodes, Member{p.node.Name, p.self.Route}) {
				return fmt.Errorf("the node is added with another address than it has in its own --cluster-peers, which is %s", p.self.Route)
			}
			p.members.joins = m.Joining == p.node.Name
			return p.adopt(ctx, m)
		}
		if !pause(ctx, freshTime) {
			return context.Cause(ctx)
		}
	}
}

// learn requests the list of nodes from the others; nil: none has a newer one.
func (p *part) learn(ctx context.Context) (latest *membership) {
	for _, peer := range p.others() {
		m, err := askNodes(ctx, p.net.Client(), p.net.URL(peer.Address)+nodesPath)
		if err == nil && m.Version > p.members.known.Load().Version && (latest == nil || m.Version > latest.Version) {
			latest = m
		}
	}
	return latest
}

// nodesPath serves and changes the list of nodes; endPath ends a node that is removed.
const (
	nodesPath = clusterPath + "/nodes"
	endPath   = nodesPath + "/end"
)

func askNodes(ctx context.Context, client *http.Client, url string) (*membership, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	m := &membership{}
	return m, question(ctx, client, http.MethodGet, url, m)
}

// handleRemoval ends the node, which is being removed, and keeps it from starting again.
func (p *part) handleRemoval(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if err := durable.Replace(filepath.Join(p.cfg.Data, removedFile), nil); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.log.Info("the node is removed from the cluster, and ends")
	p.members.end()
}
