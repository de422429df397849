// Package admin has what an operator's commands ask of the nodes of a cluster that runs: their
// status, changes of the owner, of the nodes and of the authority, restarts, and copies of the
// state. It runs no node.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Intervals at which nodes are asked again, and bounds of waits.
const (
	look       = 100 * time.Millisecond
	shortLook  = 8 * time.Millisecond
	shortTime  = 500 * time.Millisecond // for another node to serve, where none was asked to
	silentTime = 3 * time.Second        // without an answer, after which a node is taken to be gone
	knowTime   = 20 * time.Second       // for a node to answer, and for an owner to be elected
)

// Client asks the nodes of a cluster. Its methods may be called one after the other.
type Client struct {
	url  string // of any node, for clients; empty: peers are asked
	http *http.Client

	dir, node string // where the certificate of the node is, as which peers are asked
	peers     []roster.Peer
	whole     bool // peers are all nodes, and stay so
	connect   func(peers []roster.Peer) (network, error)
}

// network is connections to the nodes' ports for peers.
type network interface {
	Client() *http.Client
	URL(address string) string
	Close()
}

// AtURL asks any node at its port for clients; a nil client is http.DefaultClient. There only
// Status and StepDown are answered.
func AtURL(url string, client *http.Client) *Client {
	return &Client{url: url, http: cmp.Or(client, http.DefaultClient)}
}

// AsNode asks nodes at their ports for peers, as a node whose certificate is in a directory: the
// first that answers counts.
func AsNode(dir, node string, peers []roster.Peer) *Client {
	return &Client{dir: dir, node: node, peers: peers, connect: func(peers []roster.Peer) (network, error) {
		names := []string{node}
		for _, p := range peers {
			names = append(names, p.Name)
		}
		id, err := ca.Load(dir, node, names, clock.System.Now)
		if err != nil {
			return nil, err
		}
		return peer.Secured(id), nil
	}}
}

// OnLoopback asks nodes on this machine that share a secret, which are all nodes of their cluster.
func OnLoopback(secret string, peers []roster.Peer) *Client {
	return &Client{peers: peers, whole: true, connect: func([]roster.Peer) (network, error) { return peer.Loopback(secret), nil }}
}

// connections are those to the nodes that are asked.
func (c *Client) connections() (network, error) { return c.connect(c.peers) }

func at(n network, p roster.Peer) nodeapi.Node {
	return nodeapi.Node{Client: n.Client(), URL: n.URL(p.Address)}
}

// reach has f ask one node after the other, until one answers. refused: asking again does not
// change the error.
func (c *Client) reach(f func(nodeapi.Node) error) (refused bool, err error) {
	if c.connect == nil {
		err = f(nodeapi.Node{Client: c.http, URL: c.url})
		return nodeapi.Refused(err), err
	}
	network, err := c.connections()
	if err != nil {
		return true, err
	}
	defer network.Close()
	refused = true
	failures := errors.New("no node answers")
	for _, p := range c.peers {
		err := f(at(network, p))
		if err == nil {
			return false, nil
		}
		refused = refused && nodeapi.Refused(err)
		if errors.Is(err, http.ErrSchemeMismatch) {
			err = fmt.Errorf("%w: it is no node of a cluster, or --from is not as --cluster-peers has it", err)
		}
		failures = errors.Join(failures, err)
	}
	return refused, failures
}

// insist is like reach, again and again for knowTime: a node that is asked may just be started
// again. The error is that of the last time.
func (c *Client) insist(ctx context.Context, f func(nodeapi.Node) error) error {
	return until(ctx, knowTime, func(context.Context) (over bool, err error) {
		refused, err := c.reach(f)
		return err == nil || refused, err
	})
}

// Status is how the nodes stand now, as the first that answers sees it. Each is asked once, and
// has two seconds to answer.
func (c *Client) Status(ctx context.Context) (status.Cluster, error) {
	s, _, err := c.status(ctx)
	return s, err
}

func (c *Client) status(ctx context.Context) (s status.Cluster, refused bool, err error) {
	refused, err = c.reach(func(n nodeapi.Node) (err error) {
		s, err = n.Status(ctx)
		return err
	})
	return s, refused, err
}

// membership is the list of nodes.
func (c *Client) membership(ctx context.Context) (latest *roster.List, err error) {
	err = c.insist(ctx, func(n nodeapi.Node) (err error) {
		latest, err = n.Nodes(ctx)
		return err
	})
	return latest, err
}

// single reports that s is how a server stands that is no node of a cluster.
func (c *Client) single(s status.Cluster) bool {
	return c.connect == nil && len(s.Nodes) < roster.Fewest
}

func (c *Client) errSingle() error {
	return fmt.Errorf("%s is a single server, and no node of a cluster: to end it, end its process; godwit backup copies its state, "+
		"and godwit cluster convert makes its data that of a cluster's first node", c.url)
}

// RefuseAtURL is why a command that only nodes answer is refused where no node's certificate is
// given; nil: one is.
func (c *Client) RefuseAtURL(ctx context.Context) error {
	if c.connect != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, silentTime)
	defer cancel()
	if s, err := c.Status(ctx); err == nil && c.single(s) {
		return c.errSingle()
	}
	return errors.New("this is asked as a node only: want --dir, --node and --from")
}

// all is like c for all current nodes.
func (c *Client) all(ctx context.Context) (*Client, error) {
	if err := c.RefuseAtURL(ctx); err != nil {
		return nil, err
	}
	if c.whole {
		return c, nil
	}
	m, err := c.membership(ctx)
	if err != nil {
		return nil, err
	}
	all := *c
	all.peers, err = m.Peers()
	return &all, err
}

// until calls f again and again, for limit, until it reports that it need not be called again. The
// error is that of the last time. f's context ends with the time.
func until(ctx context.Context, limit time.Duration, f func(ctx context.Context) (over bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		over, err := f(ctx)
		if over || !pause(ctx, look) {
			return err
		}
	}
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	return clock.Wait(ctx, clock.System, d) == nil
}
