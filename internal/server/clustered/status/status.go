// Package status is how the nodes of a cluster stand, as they tell each other, operators and
// Prometheus.
package status

import "time"

// Cluster is what GET /_godwit/v1/cluster answers.
type Cluster struct {
	Nodes []Node `json:"nodes"`
	Cells []Cell `json:"cells"`
}

// Node is how a node stands.
type Node struct {
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
	// LogStopped says that the node's part of the log has stopped, as a write to its disk failed:
	// it keeps no records, and counts for no majority.
	LogStopped bool `json:"logStopped,omitempty"`
	// Requests since the process began that it has answered itself, those that others have
	// forwarded to it among them, and that it has forwarded to the owner.
	Answered  uint64 `json:"answered"`
	Forwarded uint64 `json:"forwarded"`
	// Certificate is what the node shows the others; nil: they know each other by a secret.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Certificate is what a node shows others, and what it knows them by. Authorities are
// told apart by the fingerprints of their certificates.
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

// Cell is how a part of the state stands.
type Cell struct {
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

// Owner is the name of the node that serves; empty: none.
func (c *Cluster) Owner() string {
	for _, n := range c.Nodes {
		if n.State == Serving {
			return n.Name
		}
	}
	return ""
}

// Node is the one of a name; the zero one: there is none.
func (c *Cluster) Node(name string) Node {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	return Node{}
}
