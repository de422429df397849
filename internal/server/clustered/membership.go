package clustered

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/server/clustered/roster"
)

// nodesTime is the interval at which a node polls the list of nodes.
const nodesTime = time.Second

// members is a running node's knowledge of the nodes.
type members struct {
	known    atomic.Pointer[roster.List]
	adopting sync.Mutex
	newTLS   bool                     // the log's connections do not go by the latest list yet; adopting guards it
	dropped  bool                     // nor are those closed that it does not trust
	changing atomic.Pointer[underWay] // nil: the nodes are not being changed
	joins    bool                     // this node has never counted in the log
	end      context.CancelFunc       // ends the node gracefully
}

// knownNodes is the list of nodes that the node's data directory has, or else that of its
// settings. A stored list is newer than the settings, and replaces what they say.
func (n *Node) knownNodes(data string) (*roster.List, error) {
	known, err := roster.Load(data)
	if err != nil {
		return nil, err
	}
	if known == nil {
		known = &roster.List{}
		for _, p := range n.Peers {
			known.Nodes = append(known.Nodes, roster.Member{Name: p.Name, Route: p.Route})
		}
		return known, nil
	}
	n.Joins = false
	n.Peers, err = known.Peers()
	return known, err
}

// peers are the current nodes, including this one.
func (p *part) peers() []roster.Peer {
	m := p.members.known.Load()
	if m == nil || m.Version == 0 {
		return p.node.Peers // with URLs, where the settings have them
	}
	all, err := m.Peers()
	if err != nil {
		return p.node.Peers // adopt has checked it
	}
	return all
}

// adopt takes over a list of nodes, if it is newer than the known one, and finishes what is left
// to do of that.
func (p *part) adopt(ctx context.Context, m *roster.List) error {
	p.members.adopting.Lock()
	defer p.members.adopting.Unlock()
	if m.Version > p.members.known.Load().Version {
		if err := p.take(m); err != nil {
			return err
		}
	}
	if p.engine == nil {
		p.members.newTLS, p.members.dropped = false, false // it starts with the list
		return nil
	}
	return p.members.connect(ctx, p.engine, p.net.Routes(), p.members.known.Load().Routes())
}

// take makes a list of nodes the known one.
func (p *part) take(m *roster.List) error {
	peers, err := m.Peers()
	if err != nil {
		return err
	}
	changed, dropped, err := p.trust(m)
	// What is trusted now may not be new when this is tried again.
	p.members.newTLS, p.members.dropped = p.members.newTLS || changed, p.members.dropped || dropped
	if err != nil {
		return err
	}
	if err := m.Keep(p.cfg.Data); err != nil {
		return err
	}
	p.members.known.Store(m)
	p.log.Info("the cluster's nodes", "are", m.Names(), "version", m.Version)
	p.net.SetMembers(m.Names())
	p.front.handOnTo(peers)
	p.front.limits.SetNodes(len(peers))
	return nil
}

// connections are those of a log to other nodes.
type connections interface {
	SetTLS(config *tls.Config) error
	Reconnect(ctx context.Context, config *tls.Config) error
	SetRoutes(addresses []string) error
}

// connect has the log's connections go by the latest list. What fails, or is broken off with the
// command, is tried again by the next call.
func (k *members) connect(ctx context.Context, log connections, config *tls.Config, routes []string) (err error) {
	if k.newTLS {
		if k.dropped {
			err = log.Reconnect(ctx, config)
		} else {
			err = log.SetTLS(config)
		}
		if err == nil {
			k.newTLS, k.dropped = false, false
		}
	}
	return errors.Join(err, log.SetRoutes(routes))
}

// watchNodes follows the list of nodes in the log.
func (p *part) watchNodes(ctx context.Context) {
	membership, ok := p.record.(replog.Membership)
	for ok && pause(ctx, nodesTime) {
		if id := p.net.Identity(); id != nil && id.Stale() {
			if err := p.engine.Reconnect(ctx, p.net.Routes()); err != nil {
				p.log.Warn("connections between logs", "reason", err)
			}
		}
		m, err := roster.Read(ctx, membership)
		if err != nil || m == nil { // what is left to do of the known one may be why the log is not reached
			m = p.members.known.Load()
		}
		if failed := p.adopt(ctx, m); failed != nil {
			err = failed
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, replog.ErrUnavailable) {
			p.log.Warn("who the nodes are", "reason", err)
		}
	}
}

// awaitAdded returns once the node has been added to the cluster.
func (p *part) awaitAdded(ctx context.Context) error {
	if !p.node.Joins {
		p.members.joins = p.members.known.Load().Joining == p.node.Name
		return nil
	}
	p.log.Info("the node waits until it is added (godwit cluster add)")
	for {
		if m := p.learn(ctx); m != nil && m.Has(p.node.Name) && m.Leaving != p.node.Name {
			if !slices.Contains(m.Nodes, roster.Member{Name: p.node.Name, Route: p.self.Route}) {
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
func (p *part) learn(ctx context.Context) (latest *roster.List) {
	for _, peer := range p.others() {
		m, err := p.at(peer).Nodes(ctx)
		if err == nil && m.Version > p.members.known.Load().Version && (latest == nil || m.Version > latest.Version) {
			latest = m
		}
	}
	return latest
}

// handleRemoval ends the node, which is being removed, and keeps it from starting again.
func (p *part) handleRemoval(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if err := roster.MarkRemoved(p.cfg.Data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.log.Info("the node is removed from the cluster, and ends")
	p.members.end()
}

// restart ends the node, as SIGTERM does.
func (p *part) restart(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	p.log.Info("the node ends, to be started again")
	p.members.end()
}
