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
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/server/clustered/storecopy"
)

// Copy copies the state of a running cluster, as its owner has it now, into a data directory of
// a single node, which must have no store. If it is interrupted, another call continues.
func (c *Client) Copy(ctx context.Context, to string, log *slog.Logger, progress func(done, all int64)) error {
	if _, err := os.Stat(filepath.Join(to, storecopy.StoreName)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: in %s", storecopy.ErrThere, to), err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	network, err := c.connections()
	if err != nil {
		return err
	}
	defer network.Close()
	all := storecopy.Candidates(ctx, c.peers, 0, func(ctx context.Context, p roster.Peer) (status.Cluster, error) {
		return at(network, p).Own(ctx)
	})
	if len(all) == 0 || !all[len(all)-1].Serves {
		return errors.New("no node serves, of those that answer")
	}
	from := all[len(all)-1].Peer // it has everything acknowledged
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
	return storecopy.Standalone(filepath.Join(to, storecopy.StoreName), log)
}
