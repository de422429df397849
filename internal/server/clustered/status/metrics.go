package status

import (
	"context"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// collector makes metrics of a status.
type collector struct{ status func(context.Context) Cluster }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("godwit_cluster_"+name, help, labels, nil)
}

var (
	nodeUp       = describe("node_up", "1 for a node that this one reaches.", "node")
	nodeState    = describe("node_state", "1 for the state that a node is in.", "node", "state")
	nodeLag      = describe("node_lag_records", "Records that a node is behind the most advanced one.", "node")
	nodeCopied   = describe("node_copy_left_bytes", "What a node that copies another's store has yet to copy.", "node")
	nodeRequests = describe("node_requests_total", "Requests that a node has answered itself, or forwarded to the owner.", "node", "how")
	nodeStopped  = describe("node_log_stopped", "1 if the node's part of the log has stopped, as a write to its disk failed.", "node")
	nodeLow      = describe("node_disk_low", "1 if the node is short of disk space: as the owner it refuses what writes.", "node")
	nodeExpires  = describe("node_certificate_expires_seconds", "When a node's certificate for others expires, in seconds since 1970.", "node")
	cellOwned    = describe("cell_owned", "1 if a node owns the cell and serves.", "cell")
	cellEpoch    = describe("cell_epoch", "Epoch of the cell: it grows with each owner.", "cell")
	cellNumber   = describe("cell_records", "Number of the cell's latest record.", "cell")
	logFirst     = describe("log_first_position", "Position of the first record in the cell's log.", "cell")
	logLast      = describe("log_last_position", "Position of the last record in the cell's log.", "cell")
	logBytes     = describe("log_bytes", "About what the cell's log takes on the disk of a node.", "cell")
	allMeasures  = []*prometheus.Desc{nodeUp, nodeState, nodeLag, nodeCopied, nodeRequests, nodeStopped, nodeLow, nodeExpires, cellOwned, cellEpoch, cellNumber, logFirst, logLast, logBytes}
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range allMeasures {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.status(context.Background())
	tell := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	count := func(d *prometheus.Desc, value uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	serves := flag(s.Owner() != "")
	for _, n := range s.Nodes {
		up := n.State != Unreachable
		tell(nodeUp, flag(up), n.Name)
		tell(nodeState, 1, n.Name, n.State)
		if up {
			tell(nodeLag, float64(n.Lag), n.Name)
			tell(nodeStopped, flag(n.LogStopped), n.Name)
			tell(nodeLow, flag(n.DiskLow), n.Name)
			count(nodeRequests, n.Answered, n.Name, "answered")
			count(nodeRequests, n.Forwarded, n.Name, "forwarded")
		}
		tell(nodeCopied, float64(n.ToCopy-n.Copied), n.Name)
		if n.Certificate != nil {
			tell(nodeExpires, float64(n.Certificate.Expires.Unix()), n.Name)
		}
	}
	for _, cell := range s.Cells {
		name := strconv.Itoa(cell.Cell)
		tell(cellOwned, serves, name)
		tell(cellEpoch, float64(cell.Epoch), name)
		tell(cellNumber, float64(cell.Number), name)
		tell(logFirst, float64(cell.LogFirst), name)
		tell(logLast, float64(cell.LogLast), name)
		tell(logBytes, float64(cell.LogBytes), name)
	}
}

// flag is a condition's value: 1 if it is true.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Metrics serves Prometheus the metrics of a status that is read for each request.
func Metrics(status func(context.Context) Cluster) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{status})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
