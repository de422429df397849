package clustered

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/config"
)

// askTime bounds how long a peer is asked how it stands.
const askTime = 500 * time.Millisecond

// Status is what GET /_godwit/v1/cluster answers.
type Status struct {
	Nodes []NodeStatus `json:"nodes"`
	Cells []CellStatus `json:"cells"`
}

// NodeStatus is how a node stands.
type NodeStatus struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	PID  int    `json:"pid,omitempty"`
	// Process is what the log calls the node's process.
	Process string `json:"process,omitempty"`
	// Version is that of the program.
	Version string `json:"version,omitempty"`
	// State is one of those below.
	State   string `json:"state"`
	Number  uint64 `json:"number"`  // of the latest record that its replica has
	Lag     uint64 `json:"lag"`     // records behind the most advanced replica that answered
	Durable uint64 `json:"durable"` // position in the log up to which its disk has all
	Needs   uint64 `json:"needs"`   // position from which on it needs the log, or who copies its store does
	// What it has copied of another node's store, and the size of that, in bytes.
	Copied int64 `json:"copied,omitempty"`
	ToCopy int64 `json:"toCopy,omitempty"`
	// Fresh says that the node's own part of the log has not had all yet that the log has.
	Fresh bool `json:"fresh,omitempty"`
	// Requests since the process began that it has answered itself, those that others have
	// forwarded to it among them, and that it has forwarded to the owner.
	Answered  uint64 `json:"answered"`
	Forwarded uint64 `json:"forwarded"`
	// Certificate is what the node shows the others; nil: they know each other by a secret.
	Certificate *CertificateStatus `json:"certificate,omitempty"`
}

// CertificateStatus is what a node shows others, and what it knows them by. Authorities are
// told apart by the fingerprints of their certificates.
type CertificateStatus struct {
	Expires   time.Time `json:"expires"`
	Authority string    `json:"authority"` // that has signed it
	Trusts    []string  `json:"trusts"`
}

// States of a node.
const (
	Serving     = "serving" // it is the owner
	takingOver  = "taking over"
	following   = "following"
	catchingUp  = "catching up"
	copying     = "copying" // another node's store
	joining     = "joining" // the log has no majority yet
	stopping    = "stopping"
	leaving     = "stepping down" // it was the owner, and stops what it served
	unreachable = "unreachable"
)

// CellStatus is how a part of the state stands.
type CellStatus struct {
	Cell   int    `json:"cell"`
	Owner  string `json:"owner"` // the node's name; empty: none
	Epoch  uint64 `json:"epoch"`
	Number uint64 `json:"number"`
	Lag    uint64 `json:"lag"` // of the replica that is most behind, of those that answered
	// The node that leads the log; what the log has: positions, and about how many bytes on a
	// node's disk. As of some seconds ago.
	Leader   string `json:"leader"`
	LogFirst uint64 `json:"logFirst"`
	LogLast  uint64 `json:"logLast"`
	LogBytes uint64 `json:"logBytes"`
}

func cellName(cell int) string { return strconv.Itoa(cell) }

// own is how this node stands, and what it knows of the cell.
func (f *front) own() (NodeStatus, CellStatus) {
	p := f.part
	n := NodeStatus{
		Name: p.node.Name, URL: p.self.URL, PID: os.Getpid(), Version: config.Version, State: joining, Fresh: p.fresh.Load(),
		Answered: f.answered.Load(), Forwarded: f.forwarded.Load(),
	}
	if id := p.net.Identity(); id != nil {
		until, _ := id.Expires()
		n.Certificate = &CertificateStatus{Expires: until.UTC(), Authority: id.Signer(), Trusts: id.Trusts()}
	}
	s, ok := f.stateOf()
	if !ok {
		if copied := p.copied.Load(); copied != nil {
			n.State, n.Copied, n.ToCopy = copying, copied.done, copied.all
		}
		return n, CellStatus{Cell: cell}
	}
	n.Process = s.Process
	n.Number, n.Durable, n.Needs = s.Number, s.Durable, s.Durable+1
	if source := p.source.Load(); source != nil {
		if position, ok := source.Position(); ok {
			n.Needs = min(n.Needs, position+1)
		}
	}
	switch {
	case s.Own && s.Serving:
		n.State = Serving
	case s.Own:
		n.State = takingOver
	case p.stopping.Load():
		n.State = stopping
	case s.Leaving:
		n.State = leaving
	case s.Behind:
		n.State = catchingUp
	default:
		n.State = following
	}
	return n, CellStatus{
		Cell: cell, Owner: s.Owner, Epoch: s.Epoch, Number: s.Number, Leader: s.Log.Leader, LogFirst: s.Log.First, LogLast: s.Log.Last, LogBytes: s.Log.Bytes,
	}
}

// cluster answers how the cluster stands, as this node finds it; with local=1 the node
// alone.
func (f *front) cluster(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "GET only", http.StatusMethodNotAllowed)
		return
	}
	status := f.status(r.Context(), r.URL.Query().Get("local") == "")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(status)
}

func (f *front) status(ctx context.Context, peers bool) Status {
	p := f.part
	n, c := f.own()
	if !peers {
		return Status{Nodes: []NodeStatus{n}, Cells: []CellStatus{c}}
	}
	all := p.peers()
	status := Status{Nodes: make([]NodeStatus, len(all)), Cells: []CellStatus{c}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i, peer := range all {
		if peer.Name == n.Name {
			status.Nodes[i] = n
			continue
		}
		asking.Go(func() {
			asked, err := p.ask(ctx, peer)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(asked.Nodes) != 1 || len(asked.Cells) != 1 {
				status.Nodes[i] = NodeStatus{Name: peer.Name, URL: peer.URL, State: unreachable}
				return
			}
			status.Nodes[i] = asked.Nodes[0]
			if asked.Cells[0].Epoch > status.Cells[0].Epoch {
				status.Cells[0] = asked.Cells[0]
			}
		})
	}
	asking.Wait()
	head := &status.Cells[0]
	for _, n := range status.Nodes {
		head.Number = max(head.Number, n.Number)
	}
	for i := range status.Nodes {
		if n := &status.Nodes[i]; n.State != unreachable {
			n.Lag = head.Number - n.Number
			head.Lag = max(head.Lag, n.Lag)
		}
	}
	return status
}

// members tells how far all nodes' own disks have come.
func (f *front) members(ctx context.Context) (all []node.Member) {
	for _, n := range f.status(ctx, true).Nodes {
		m := node.Member{Known: n.Needs > 0}
		if m.Known {
			m.Durable = n.Needs - 1
		}
		all = append(all, m)
	}
	return all
}

// ask asks a peer how it stands.
func (p *part) ask(ctx context.Context, peer Peer) (Status, error) { return askAlone(ctx, p.net, peer) }

func ask(ctx context.Context, client *http.Client, url string) (s Status, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return s, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return s, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		var problem struct{ Error string }
		if json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&problem) == nil && problem.Error != "" {
			return s, fmt.Errorf("%s answers %s: %q", url, answer.Status, problem.Error)
		}
		return s, fmt.Errorf("%s answers %s: it is no node of a cluster", url, answer.Status)
	}
	return s, json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&s)
}
