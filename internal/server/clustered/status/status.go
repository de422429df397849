// Package status has the status of a cluster's nodes, as reported to each other, operators and
// Prometheus.
package status

import (
	"slices"
	"time"
)

// Cluster is the answer of GET /_godwit/v1/cluster.
type Cluster struct {
	Nodes []Node `json:"nodes"`
	Cells []Cell `json:"cells"`
}

// Node is the status of a node.
type Node struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	PID  int    `json:"pid,omitempty"`
	// Process is the log's name of the node's process.
	Process string `json:"process,omitempty"`
	// Version is that of the program.
	Version string `json:"version,omitempty"`
	// State is one of those below.
	State   string `json:"state"`
	Number  uint64 `json:"number"`  // of the latest record that its replica has
	Lag     uint64 `json:"lag"`     // records behind the most advanced replica that answered
	Durable uint64 `json:"durable"` // position in the log up to which its disk has all
	Needs   uint64 `json:"needs"`   // position from which on it, or a copier of its store, needs the log
	// Bytes copied of another node's store, and its size.
	Copied int64 `json:"copied,omitempty"`
	ToCopy int64 `json:"toCopy,omitempty"`
	// Fresh says that the node's own part of the log is still catching up.
	Fresh bool `json:"fresh,omitempty"`
	// LogStopped says that the node's part of the log has stopped after a failed write to its
	// disk: it stores no records, and counts for no majority.
	LogStopped bool `json:"logStopped,omitempty"`
	// DiskLow says that the node is short of disk space: as the owner it would refuse what writes.
	DiskLow bool `json:"diskLow,omitempty"`
	// Requests since the process began: answered by itself, including forwarded ones, and
	// forwarded to the owner.
	Answered  uint64 `json:"answered"`
	Forwarded uint64 `json:"forwarded"`
	// Certificate is the node's certificate for peers; nil: they use a secret.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Certificate is a node's certificate for peers, and the authorities that it trusts.
// Authorities are identified by the fingerprints of their certificates.
type Certificate struct {
	Expires   time.Time `json:"expires"`
	Authority string    `json:"authority"` // that has signed it
	Trusts    []string  `json:"trusts"`
}

// States of a node.
const (
	Serving     = "serving" // it is the owner
	TakingOver  = "taking over"
	Following   = "following"
	CatchingUp  = "catching up"
	Copying     = "copying" // another node's store
	Joining     = "joining" // the log has no majority yet
	Stopping    = "stopping"
	Leaving     = "stepping down" // it was the owner, and stops what it served
	Unreachable = "unreachable"
)

// SuccessorLag is how many records a node may lag behind the most advanced one to count as one
// that has all: it may take over at once, and its store may be copied.
const SuccessorLag = 1000

// Cell is the status of a part of the state.
type Cell struct {
	Cell   int    `json:"cell"`
	Owner  string `json:"owner"` // the node's name; empty: none
	Epoch  uint64 `json:"epoch"`
	Number uint64 `json:"number"`
	Lag    uint64 `json:"lag"` // of the replica that lags most, of those that answered
	// The leader of the log; the log's positions, and its approximate size on a node's disk, in
	// bytes. Some seconds old.
	Leader   string `json:"leader"`
	LogFirst uint64 `json:"logFirst"`
	LogLast  uint64 `json:"logLast"`
	LogBytes uint64 `json:"logBytes"`
}

// Owner is the name of the serving node; empty: none.
func (c *Cluster) Owner() string {
	for _, n := range c.Nodes {
		if n.State == Serving {
			return n.Name
		}
	}
	return ""
}

// Reached reports that all nodes have answered.
func (c *Cluster) Reached() bool {
	return !slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.State == Unreachable })
}

// Node is the node of a name; zero: there is none.
func (c *Cluster) Node(name string) Node {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	return Node{}
}
