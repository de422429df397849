package clustered

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"sync"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// own is this node's status, and its knowledge of the cell.
func (f *front) own() (status.Node, status.Cell) {
	p := f.part
	n := status.Node{
		Name: p.node.Name, URL: p.self.URL, PID: os.Getpid(), Version: config.Version, State: status.Joining, Fresh: p.fresh.Load(),
		LogStopped: p.logStopped.Load(), Answered: f.answered.Load(), Forwarded: f.forwarded.Load(),
	}
	if id := p.net.Identity(); id != nil {
		until, _ := id.Expires()
		n.Certificate = &status.Certificate{Expires: until.UTC(), Authority: id.Signer(), Trusts: id.Trusts()}
	}
	s, ok := f.stateOf()
	if !ok {
		if copied := p.copied.Load(); copied != nil {
			n.State, n.Copied, n.ToCopy = status.Copying, copied.done, copied.all
		}
		return n, status.Cell{Cell: nodeapi.Cell}
	}
	n.Process = s.Process
	if guard := p.full.Load(); guard != nil {
		n.DiskLow = guard.Low()
	}
	n.Number, n.Durable, n.Needs = s.Number, s.Durable, s.Durable+1
	if source := p.source.Load(); source != nil {
		if position, ok := source.Position(); ok {
			n.Needs = min(n.Needs, position+1)
		}
	}
	switch {
	case s.Own && s.Serving:
		n.State = status.Serving
	case s.Own:
		n.State = status.TakingOver
	case p.stopping.Load():
		n.State = status.Stopping
	case s.Leaving:
		n.State = status.Leaving
	case s.Behind:
		n.State = status.CatchingUp
	default:
		n.State = status.Following
	}
	return n, status.Cell{
		Cell: nodeapi.Cell, Owner: s.Owner, Epoch: s.Epoch, Number: s.Number, Leader: s.Log.Leader, LogFirst: s.Log.First, LogLast: s.Log.Last, LogBytes: s.Log.Bytes,
	}
}

// cluster serves the status of the cluster, as seen by this node; with local=1 of the node
// alone.
func (f *front) cluster(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "GET only", http.StatusMethodNotAllowed)
		return
	}
	var found status.Cluster
	if r.URL.Query().Get("local") == "" {
		found = f.status(r.Context())
	} else {
		n, c := f.own()
		found = status.Cluster{Nodes: []status.Node{n}, Cells: []status.Cell{c}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found)
}

// status is the status of the cluster, as this node and its peers, which are asked, see it.
func (f *front) status(ctx context.Context) status.Cluster {
	p := f.part
	n, c := f.own()
	all := p.peers()
	found := status.Cluster{Nodes: make([]status.Node, len(all)), Cells: []status.Cell{c}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i, peer := range all {
		if peer.Name == n.Name {
			found.Nodes[i] = n
			continue
		}
		asking.Go(func() {
			asked, err := p.ask(ctx, peer)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(asked.Nodes) != 1 || len(asked.Cells) != 1 {
				found.Nodes[i] = status.Node{Name: peer.Name, URL: peer.URL, State: status.Unreachable}
				return
			}
			found.Nodes[i] = asked.Nodes[0]
			if asked.Cells[0].Epoch > found.Cells[0].Epoch {
				found.Cells[0] = asked.Cells[0]
			}
		})
	}
	asking.Wait()
	head := &found.Cells[0]
	for _, n := range found.Nodes {
		head.Number = max(head.Number, n.Number)
	}
	for i := range found.Nodes {
		if n := &found.Nodes[i]; n.State != status.Unreachable {
			n.Lag = head.Number - n.Number
			head.Lag = max(head.Lag, n.Lag)
		}
	}
	return found
}

// members has the positions up to which the nodes' own disks are durable.
func (f *front) members(ctx context.Context) (all []node.Member) {
	for _, n := range f.status(ctx).Nodes {
		m := node.Member{Known: n.Needs > 0}
		if m.Known {
			m.Durable = n.Needs - 1
		}
		all = append(all, m)
	}
	return all
}

// ask requests a peer's own status.
func (p *part) ask(ctx context.Context, peer roster.Peer) (status.Cluster, error) {
	return p.at(peer).Own(ctx)
}

// at is a peer that is asked.
func (p *part) at(peer roster.Peer) nodeapi.Node {
	return nodeapi.Node{Client: p.net.Client(), URL: p.net.URL(peer.Address)}
}
