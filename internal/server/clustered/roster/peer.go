package roster

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/cluster/ca"
)

// Peer is a node as known to the others.
type Peer struct {
	Name    string `json:"name"`
	URL     string `json:"url"`     // its address for clients; may be empty of others
	Route   string `json:"route"`   // its log's address for other nodes
	Address string `json:"address"` // its address for peers
}

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
