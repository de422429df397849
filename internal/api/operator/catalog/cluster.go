package catalog

import (
	"context"
	"os"

	"godwit.dev/godwit/internal/api/operator/rest"
)

// Cluster is the state of a cluster's nodes. A single server is a cluster of one node.
type Cluster struct {
	Nodes []ClusterNode `json:"nodes"`
	Cells []ClusterCell `json:"cells" doc:"The parts of the state, each with its owner."`
}

// ClusterNode is a node of a cluster.
type ClusterNode struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	PID     int    `json:"pid,omitempty"`
	Process string `json:"process,omitempty" doc:"What the log calls the node's process."`
	Version string `json:"version,omitempty" doc:"Of the program."`
	State   string `json:"state" doc:"serving: it owns the state."`
	Number  int64  `json:"number" doc:"Of the latest record that it has; 0 of a single server."`
	Lag     int64  `json:"lag" doc:"Records behind the node that is most advanced."`
	Durable int64  `json:"durable" doc:"Position in the log up to which its disk has all; 0 of a single server."`
	Needs   int64  `json:"needs" doc:"Position from which on it needs the log; 0 of a single server."`
	Copied  int64  `json:"copied,omitempty" doc:"Bytes that it has copied of another node's store."`
	ToCopy  int64  `json:"toCopy,omitempty" doc:"Bytes of that store."`
	Fresh   bool   `json:"fresh,omitempty" doc:"Its own part of the log has not had all yet."`
	// LogStopped is omitted if false.
	LogStopped bool `json:"logStopped,omitempty" doc:"Its part of the log has stopped, as a write to its disk failed: it counts for no majority."`
	// DiskLow is omitted if false.
	DiskLow   bool  `json:"diskLow,omitempty" doc:"It is short of disk space: as the owner it refuses what writes."`
	Answered  int64 `json:"answered" doc:"Requests that it has answered itself since its start, those that others have forwarded to it among them; 0 of a single server."`
	Forwarded int64 `json:"forwarded" doc:"Requests that it has forwarded to the owner since its start."`
	// Certificate is omitted if nodes have none.
	Certificate *ClusterCertificate `json:"certificate,omitempty" doc:"What the node shows the others, where nodes have certificates."`
}

// ClusterCertificate is a node's certificate, and the authorities that it trusts.
type ClusterCertificate struct {
	Expires   string   `json:"expires"`
	Authority string   `json:"authority" doc:"Fingerprint of the authority that has signed it."`
	Trusts    []string `json:"trusts" doc:"Fingerprints of the authorities that the node trusts."`
}

// ClusterCell is a part of the state.
type ClusterCell struct {
	Cell     int    `json:"cell"`
	Owner    string `json:"owner" doc:"The node's name; empty: none."`
	Epoch    int64  `json:"epoch" doc:"How often it was taken over; 0 of a single server."`
	Number   int64  `json:"number"`
	Lag      int64  `json:"lag" doc:"Of the node that is most behind."`
	Leader   string `json:"leader" doc:"The node that leads the log, without which it takes nothing; empty: none, or not known."`
	LogFirst int64  `json:"logFirst"`
	LogLast  int64  `json:"logLast"`
	LogBytes int64  `json:"logBytes"`
}

// self is the node's name of a single server.
const self = "local"

// GetCluster describes a single server. In a cluster, nodes answer for all nodes before this
// is called.
func (c *Catalog) GetCluster(context.Context, *rest.Call, *Nothing) (*Cluster, error) {
	return &Cluster{
		Nodes: []ClusterNode{{Name: self, URL: c.Server().Endpoint, PID: os.Getpid(), Version: c.Server().Version, State: "serving"}},
		Cells: []ClusterCell{{Owner: self}},
	}, nil
}
