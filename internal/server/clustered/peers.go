package clustered

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
)

// ParsePeers takes nodes apart that are written [NAME=]HOST:PORT. Their logs speak to each
// other at PORT, and they at the next one.
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

// AskAs asks nodes how their cluster stands, in turn, as the node whose certificate is in a
// directory: the first that answers counts.
func AskAs(ctx context.Context, dir, node string, peers []Peer) (s Status, err error) {
	names := []string{node}
	for _, p := range peers {
		names = append(names, p.Name)
	}
	id, err := ca.Load(dir, node, names, clock.System.Now)
	if err != nil {
		return s, err
	}
	network := peer.Secured(id)
	failures := errors.New("no node answers")
	for _, p := range peers {
		ctx, cancel := context.WithTimeout(ctx, 4*askTime)
		s, err := ask(ctx, network.Client(), network.URL(p.Address)+clusterPath)
		cancel()
		if err == nil {
			return s, nil
		}
		failures = errors.Join(failures, err)
	}
	return s, failures
}
