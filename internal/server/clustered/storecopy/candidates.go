package storecopy

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Candidate is a node whose store may be copied.
type Candidate struct {
	Peer   roster.Peer
	number uint64
	Serves bool
	Full   bool // its disk is full
}

// Candidates are the nodes whose store continues in a log that begins at a position, and that
// do not lag far behind the others; those that do not serve come first.
func Candidates(ctx context.Context, peers []roster.Peer, first uint64, ask func(context.Context, roster.Peer) (status.Cluster, error)) (all []Candidate) {
	most := uint64(0)
	for _, peer := range peers {
		s, err := ask(ctx, peer)
		if err != nil || len(s.Nodes) != 1 {
			continue
		}
		if n := s.Nodes[0]; n.Needs > 0 && n.Durable+1 >= first && n.Number > 0 {
			all = append(all, Candidate{Peer: peer, number: n.Number, Serves: n.State == status.Serving, Full: n.LogStopped})
			most = max(most, n.Number)
		}
	}
	all = slices.DeleteFunc(all, func(c Candidate) bool { return c.number+status.SuccessorLag < most })
	slices.SortStableFunc(all, func(a, b Candidate) int {
		switch {
		case a.Serves == b.Serves:
			return 0
		case b.Serves:
			return -1
		default:
			return 1
		}
	})
	return all
}
