// Package nodeapi is what a node of a cluster answers to its peers and to an operator's commands:
// paths, the forms of requests and answers, and the requests to one node.
package nodeapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Paths that a node answers by itself, for its peers. Clients reach the first three.
const (
	StatusPath   = "/_godwit/v1/cluster"     // ?local: of the node alone
	MetricsPath  = StatusPath + "/metrics"   // the status, for Prometheus
	StepDownPath = StatusPath + "/step-down" // has the owner hand the state over; any node accepts it
	RestartPath  = StatusPath + "/restart"   // ends the node gracefully, to be started again
	NodesPath    = StatusPath + "/nodes"     // the list of nodes, and changes of it
	EndPath      = StatusPath + "/nodes/end" // ends a node that is removed, for good
)

// OperatorHeader is required where authentication is off: pages of other origins cannot send
// it.
const OperatorHeader = "X-Godwit-Operator"

// Cell is the only cell so far: it has all shards.
const Cell = 0

// Bounds of requests: for the status of a node alone, for that of all, and of those that end
// something, whose answer the end may cut off.
const (
	askTime      = 500 * time.Millisecond
	statusTime   = 4 * askTime
	HandOverTime = 5 * time.Second
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 20

// HandedOver reports which node hands the state over to which.
type HandedOver struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Node is a node that is asked.
type Node struct {
	Client *http.Client
	URL    string // without a path
}

// Status is the status of the cluster, as seen by the node. It waits for two seconds at most.
func (n Node) Status(ctx context.Context) (s status.Cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	err = n.do(ctx, http.MethodGet, StatusPath, &s)
	return s, err
}

// Own is the status of the node alone. It waits for half a second at most, also if ctx ends.
func (n Node) Own(ctx context.Context) (s status.Cluster, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	err = n.do(ctx, http.MethodGet, StatusPath+"?local=1", &s)
	return s, err
}

// Nodes is the list of nodes that the node knows. It waits for half a second at most.
func (n Node) Nodes(ctx context.Context) (*roster.List, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	l := &roster.List{}
	return l, n.do(ctx, http.MethodGet, NodesPath, l)
}

// The parameters of a request to hand over: which node is to, if it owns the state, and that the
// node that is asked does not ask the owner if that is another one.
const (
	OwnerParameter   = "owner"
	RelayedParameter = "relayed"
)

// StepDown has the owner hand the state over, which then begins. It waits for HandOverTime at
// most. Another owner than the given one refuses: it may be the one that the first of two such
// requests, whose answer was lost, has made; empty: any.
func (n Node) StepDown(ctx context.Context, owner string) (HandedOver, error) {
	return n.stepDown(ctx, owner, url.Values{})
}

// RelayStepDown is StepDown of a node that was asked by another one: it does not ask the owner if
// that is another one.
func (n Node) RelayStepDown(ctx context.Context, owner string) (HandedOver, error) {
	return n.stepDown(ctx, owner, url.Values{RelayedParameter: {""}})
}

func (n Node) stepDown(ctx context.Context, owner string, query url.Values) (h HandedOver, err error) {
	ctx, cancel := context.WithTimeout(ctx, HandOverTime)
	defer cancel()
	if owner != "" {
		query.Set(OwnerParameter, owner)
	}
	path := StepDownPath
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	err = n.do(ctx, http.MethodPost, path, &h)
	return h, err
}

// Restart ends the node, to be started again. It waits for HandOverTime at most. The end may cut
// off the answer that it is about.
func (n Node) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, HandOverTime)
	defer cancel()
	return n.do(ctx, http.MethodPost, RestartPath, nil)
}

// End ends the node, which is removed, as Restart does.
func (n Node) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, HandOverTime)
	defer cancel()
	return n.do(ctx, http.MethodPost, EndPath, nil)
}

// do sends a request, and decodes the answer into into unless that is nil.
func (n Node) do(ctx context.Context, method, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, n.URL+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set(OperatorHeader, "yes")
	answer, err := n.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return refused(answer)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into)
}
