package clustered

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/store/pebble"
)

// StoreName is the store's directory in a data directory.
const StoreName = "store"

// ErrThere reports that the target of a conversion exists.
var ErrThere = errors.New("there is data already")

// Convert converts the data of a single node, which no server has open, to that of a cluster's
// first node: the other nodes are empty, and copy it when they start. Repeating it has no
// effect, unless the node was started since. Errors: replica.ErrBootstrapped; fs.ErrNotExist if
// there is no data.
func Convert(data string, log *slog.Logger) error {
	dir := filepath.Join(data, StoreName)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	st, err := pebble.Open(dir, pebble.Options{Logger: log, Fatal: func(error) {}}) // its calls return failures
	if err != nil {
		return err
	}
	return errors.Join(replica.Bootstrap(st, cell), st.Close())
}

// Asking requests from the nodes of this node's cluster, on loopback.
func (n *Node) Asking() *Asking { return &Asking{network: peer.Loopback(n.Secret), Peers: n.Peers} }

// Copy copies the state of a running cluster, as its owner has it now, into a data directory of
// a single node, which must have no store. If it is interrupted, another call continues.
func (a *Asking) Copy(ctx context.Context, to string, log *slog.Logger, progress func(done, all int64)) error {
	if _, err := os.Stat(filepath.Join(to, StoreName)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: in %s", ErrThere, to), err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	network, err := a.reached()
	if err != nil {
		return err
	}
	defer network.Close()
	all := candidates(ctx, a.Peers, 0, func(ctx context.Context, p roster.Peer) (status.Cluster, error) {
		return askAlone(ctx, network, p)
	})
	if len(all) == 0 || !all[len(all)-1].serves {
		return errors.New("no node serves, of those that answer")
	}
	from := all[len(all)-1].peer // it has everything acknowledged
	fetch := snapshot.Fetch{
		Data: to, Source: from.Name, URL: network.URL(from.Address), Client: network.Client(), Progress: progress,
		Verify: func(dir string) error { return verify(dir, log) },
	}
	if err := fetch.Run(ctx); err != nil {
		return err
	}
	if _, err := snapshot.Install(to); err != nil {
		return err
	}
	return forget(filepath.Join(to, StoreName), log)
}

// forget converts a node's store to that of a single node.
func forget(dir string, log *slog.Logger) error {
	st, err := pebble.Open(dir, pebble.Options{Logger: log, Fatal: func(error) {}}) // its calls return failures
	if err != nil {
		return err
	}
	return errors.Join(replica.Standalone(st, cell), st.Close())
}

// askAlone requests a peer's own status.
func askAlone(ctx context.Context, network *peer.Network, p roster.Peer) (status.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	return ask(ctx, network.Client(), network.URL(p.Address)+clusterPath+"?local=1")
}
