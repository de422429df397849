package clustered

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
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
	// State is "serving" (the owner), "taking over", "following", "catching up",
	// "joining" (the log has no majority yet) or "unreachable".
	State   string `json:"state"`
	Number  uint64 `json:"number"`  // of the latest record that its replica has
	Lag     uint64 `json:"lag"`     // records behind the most advanced replica that answered
	Durable uint64 `json:"durable"` // position in the log up to which its disk has all
}

// CellStatus is how a part of the state stands.
type CellStatus struct {
	Cell   int    `json:"cell"`
	Owner  string `json:"owner"` // the node's name; empty: none
	Epoch  uint64 `json:"epoch"`
	Number uint64 `json:"number"`
	Lag    uint64 `json:"lag"` // of the replica that is most behind, of those that answered
}

// own is how this node stands, and what it knows of the cell.
func (f *front) own() (NodeStatus, CellStatus) {
	p := f.part
	n := NodeStatus{Name: p.node.Name, URL: p.self.URL, PID: os.Getpid(), State: "joining"}
	s, ok := f.stateOf()
	if !ok {
		return n, CellStatus{Cell: cell}
	}
	n.Number, n.Durable = s.Number, s.Durable
	switch {
	case s.Own && s.Serving:
		n.State = "serving"
	case s.Own:
		n.State = "taking over"
	case s.Behind:
		n.State = "catching up"
	default:
		n.State = "following"
	}
	return n, CellStatus{Cell: cell, Owner: s.Owner, Epoch: s.Epoch, Number: s.Number}
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
	n, c := f.own()
	if !peers {
		return Status{Nodes: []NodeStatus{n}, Cells: []CellStatus{c}}
	}
	status := Status{Nodes: make([]NodeStatus, len(f.part.node.Peers)), Cells: []CellStatus{c}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i, peer := range f.part.node.Peers {
		if peer.Name == n.Name {
			status.Nodes[i] = n
			continue
		}
		asking.Go(func() {
			asked, err := Ask(ctx, peer.URL, true)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(asked.Nodes) != 1 || len(asked.Cells) != 1 {
				status.Nodes[i] = NodeStatus{Name: peer.Name, URL: peer.URL, State: "unreachable"}
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
		if n := &status.Nodes[i]; n.State != "unreachable" {
			n.Lag = head.Number - n.Number
			head.Lag = max(head.Lag, n.Lag)
		}
	}
	return status
}

// trimmable is the position below which every node's own disk has all of the log; 0 where
// a node does not answer.
func (f *front) trimmable(ctx context.Context) (below uint64) {
	for i, n := range f.status(ctx, true).Nodes {
		if n.State == "unreachable" || n.State == "joining" {
			return 0
		}
		if i == 0 || n.Durable+1 < below {
			below = n.Durable + 1
		}
	}
	return below
}

// Ask asks a node how its cluster stands; alone: only how it does itself.
func Ask(ctx context.Context, url string, alone bool) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*askTime)
	if alone {
		cancel()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), askTime)
	}
	defer cancel()
	path := url + clusterPath
	if alone {
		path += "?local=1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s answers %s: it is no node of a cluster", url, answer.Status)
	}
	return s, json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&s)
}
