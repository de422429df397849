package clustered

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"godwit.dev/godwit/internal/cluster/replog"
)

// electing is a log that has no leader when it is asked the first times.
type electing struct {
	replog.Membership
	left int
}

func (e *electing) Replicas(context.Context) (all, caughtUp []string, err error) {
	if e.left--; e.left >= 0 {
		return nil, nil, replog.ErrUnavailable
	}
	return []string{"a", "b"}, []string{"a"}, nil
}

// TestReplicasAfterLeader: a change of the nodes waits for a leader of the log, as the node that
// the change has ended may have been it.
func TestReplicasAfterLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &changing{membership: &electing{left: 3}}
		if all, err := g.replicas(t.Context()); err != nil || !slices.Equal(all, []string{"a", "b"}) {
			t.Errorf("the log is kept by %q, %v", all, err)
		}
		g.membership = &electing{left: 1 << 30}
		if _, err := g.replicas(t.Context()); !errors.Is(err, replog.ErrUnavailable) {
			t.Errorf("without a leader: %v", err)
		}
	})
}
