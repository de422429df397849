package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/server/clustered/storecopy"
	"godwit.dev/godwit/internal/server/recovery"
)

// Copy copies the state of a running cluster, as its owner has it now, into a data directory of
// a single node, which must have no store, and returns once the copy was read through. It waits for
// twenty seconds until a node serves. If it is interrupted, another call continues.
func (c *Client) Copy(ctx context.Context, to string, log *slog.Logger, progress func(done, all int64)) error {
	if _, err := os.Stat(filepath.Join(to, recovery.StoreName)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: in %s", storecopy.ErrThere, to), err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	all, err := c.all(ctx)
	if err != nil {
		return err
	}
	network, err := all.connections()
	if err != nil {
		return err
	}
	defer network.Close()
	from, err := all.serving(ctx, network) // it has everything acknowledged
	if err != nil {
		return err
	}
	fetch := snapshot.Fetch{
		Data: to, Source: from.Name, URL: network.URL(from.Address), Client: network.Client(), Progress: progress,
		Verify: func(dir string) error { return storecopy.Verify(dir, log) },
	}
	if err := fetch.Run(ctx); err != nil {
		return err
	}
	if _, err := snapshot.Install(to); err != nil {
		return err
	}
	return storecopy.Standalone(filepath.Join(to, recovery.StoreName), log)
}

// serving is the node that serves. It waits for knowTime.
func (c *Client) serving(ctx context.Context, network network) (peer roster.Peer, err error) {
	err = until(ctx, knowTime, func(context.Context) (over bool, err error) {
		failures, refused := errors.New("no node serves, of those that answer"), true
		all := storecopy.Candidates(ctx, c.peers, 0, func(ctx context.Context, p roster.Peer) (status.Cluster, error) {
			s, err := at(network, p).Own(ctx)
			failures, refused = errors.Join(failures, err), refused && nodeapi.Refused(err)
			return s, err
		})
		if len(all) > 0 && all[len(all)-1].Serves {
			peer = all[len(all)-1].Peer
			return true, nil
		}
		return refused, failures
	})
	return peer, err
}
