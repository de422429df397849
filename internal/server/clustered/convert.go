package clustered

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/store/pebble"
)

// storeName is the store's directory in a data directory.
const storeName = "store"

// ErrThere reports a conversion into a place that is taken.
var ErrThere = errors.New("there is data already")

// Convert makes the data of a single node, which no server has open, that of a cluster's
// first node: the others, which have none yet, copy it when they are started. What was
// converted is converted once more without effect if it was never started since. Errors:
// replica.ErrFounded; fs.ErrNotExist where there is no data.
func Convert(data string, log *slog.Logger) error {
	dir := filepath.Join(data, storeName)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	st, err := pebble.Open(dir, pebble.Options{Logger: log, Fatal: func(error) {}}) // a failure is that of a call
	if err != nil {
		return err
	}
	return errors.Join(replica.Found(st, cell), st.Close())
}

// ConvertLocal is Convert of the data of godwit dev, for godwit dev --nodes: the store goes
// to the first node's directory.
func ConvertLocal(data string, log *slog.Logger) error {
	first := filepath.Join(data, "1")
	if _, err := os.Stat(filepath.Join(first, storeName)); err == nil {
		return fmt.Errorf("%w: in %s", ErrThere, first)
	}
	if err := Convert(data, log); err != nil {
		return err
	}
	if err := os.MkdirAll(first, 0o700); err != nil {
		return err
	}
	return os.Rename(filepath.Join(data, storeName), filepath.Join(first, storeName))
}

// LocalPeers reads what the node in a directory of godwit dev --nodes knows of the others
// and itself.
func LocalPeers(dir string) (*Asking, string, error) {
	n, err := ReadNode(filepath.Join(dir, nodeFile))
	if err != nil {
		return nil, "", err
	}
	return &Asking{network: peer.Loopback(n.Secret), Peers: n.Peers}, n.RootKey, nil
}

// Copy copies the state of a cluster that runs, as its owner has it now, into a data
// directory of a single node, which must have no store. It can be interrupted, and goes on
// when it is called again.
func (a *Asking) Copy(ctx context.Context, to string, log *slog.Logger, progress func(done, all int64)) error {
	if _, err := os.Stat(filepath.Join(to, storeName)); !errors.Is(err, fs.ErrNotExist) {
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
	all := candidates(ctx, a.Peers, 0, func(ctx context.Context, p Peer) (Status, error) {
		return askAlone(ctx, network, p)
	})
	if len(all) == 0 || !all[len(all)-1].serves {
		return errors.New("no node serves, of those that answer")
	}
	from := all[len(all)-1].peer // all that was acknowledged is there
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
	return forget(filepath.Join(to, storeName), log)
}

// forget makes a node's store one of a single node.
func forget(dir string, log *slog.Logger) error {
	st, err := pebble.Open(dir, pebble.Options{Logger: log, Fatal: func(error) {}}) // a failure is that of a call
	if err != nil {
		return err
	}
	return errors.Join(replica.Leave(st, cell), st.Close())
}

// CopyRootKey gives a copy of a cluster on one machine its root key.
func CopyRootKey(from, to string) error {
	key, err := bootstrap.ReadRootKey(from)
	if err != nil {
		return err
	}
	return bootstrap.WriteDevRootKey(filepath.Join(to, bootstrap.DevRootKey), key)
}

// askAlone asks a peer how it stands itself.
func askAlone(ctx context.Context, network *peer.Network, p Peer) (Status, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	return ask(ctx, network.Client(), network.URL(p.Address)+clusterPath+"?local=1")
}
