package jetstream

import (
	"context"

	"godwit.dev/godwit/internal/cluster/replog"
)

// Host is the node that what a reader reads comes from.
func Host(ctx context.Context, r replog.Reader) (node string, err error) {
	of := r.(*reader)
	c, err := of.log.stream.Consumer(ctx, of.consumer)
	if err != nil {
		return "", err
	}
	return c.CachedInfo().Cluster.Leader, nil
}
