package clustered

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// ParsePeers parses nodes written [NAME=]HOST:PORT. PORT is that of the log; the next one is
// that for peers.
func ParsePeers(texts []string) (peers []Peer, err error) {
	seen := map[string]bool{}
	for _, text := range texts {
		name, address, named := strings.Cut(text, "=")
		if !named {
			address = text
		}
		host, digits, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("a node is written [NAME=]HOST:PORT: %w", err)
		}
		port, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || port == 0 || port == 1<<16-1 || host == "" {
			return nil, fmt.Errorf("a node is written [NAME=]HOST:PORT, with a port of 1 to 65534, and not %q", text)
		}
		if !named {
			name = host
		}
		if err := ca.CheckName(name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("two nodes are called %q", name)
		}
		seen[name] = true
		peers = append(peers, Peer{Name: name, Route: address, Address: net.JoinHostPort(host, strconv.FormatUint(port+1, 10))})
	}
	return peers, nil
}

// Asking is a command's access to the nodes of a cluster: at a URL for clients, or, with Dir,
// at their addresses for peers, authenticated by the certificate there.
type Asking struct {
	URL   string
	Dir   string
	Node  string
	Peers []Peer
	// Client sends requests to URL; nil: http.DefaultClient.
	Client *http.Client

	network *peer.Network // nil: that of Dir
}

// reached is the network of the nodes.
func (a *Asking) reached() (*peer.Network, error) {
	if a.network != nil {
		return a.network, nil
	}
	names := []string{a.Node}
	for _, p := range a.Peers {
		names = append(names, p.Name)
	}
	id, err := ca.Load(a.Dir, a.Node, names, clock.System.Now)
	if err != nil {
		return nil, err
	}
	return peer.Secured(id), nil
}

// reach calls f with a client and a URL prefix, for one node after the other, until it
// succeeds.
func (a *Asking) reach(f func(client *http.Client, base string) error) error {
	if a.Dir == "" && a.network == nil {
		return f(cmp.Or(a.Client, http.DefaultClient), a.URL)
	}
	network, err := a.reached()
	if err != nil {
		return err
	}
	defer network.Close()
	failures := errors.New("no node answers")
	for _, p := range a.Peers {
		err := f(network.Client(), network.URL(p.Address))
		if err == nil {
			return nil
		}
		failures = errors.Join(failures, err)
	}
	return failures
}

// Status requests the status of the cluster.
func (a *Asking) Status(ctx context.Context) (s status.Cluster, err error) {
	return s, a.reach(func(client *http.Client, base string) error {
		ctx, cancel := context.WithTimeout(ctx, 4*askTime)
		defer cancel()
		s, err = ask(ctx, client, base+clusterPath)
		return err
	})
}

// StepDown requests that the owner hand over the state.
func (a *Asking) StepDown(ctx context.Context) (h HandedOver, err error) {
	return h, a.reach(func(client *http.Client, base string) error {
		ctx, cancel := context.WithTimeout(ctx, handOverTime)
		defer cancel()
		h, err = askStepDown(ctx, client, base+stepDownPath)
		return err
	})
}

// AwaitOther waits until another node than the given one serves, and returns its name.
func (a *Asking) AwaitOther(ctx context.Context, than string) (name string, err error) {
	for {
		s, err := a.Status(ctx)
		for _, n := range s.Nodes {
			if err == nil && n.State == status.Serving && n.Name != than {
				return n.Name, nil
			}
		}
		if !pause(ctx, 4*quietLook) {
			return "", errors.Join(err, context.Cause(ctx))
		}
	}
}

// refusal is the error in an answer.
func refusal(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, 1000))
	if err != nil {
		return err
	}
	return errors.New(strings.TrimSpace(string(text)))
}
