package local

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/server/clustered"
)

// Convert is clustered.Convert of the data of godwit dev, for godwit dev --nodes: the store goes
// to the first node's directory.
func Convert(data string, log *slog.Logger) error {
	first := filepath.Join(data, "1")
	if _, err := os.Stat(filepath.Join(first, clustered.StoreName)); err == nil {
		return fmt.Errorf("%w: in %s", clustered.ErrThere, first)
	}
	if err := clustered.Convert(data, log); err != nil {
		return err
	}
	if err := os.MkdirAll(first, 0o700); err != nil {
		return err
	}
	return os.Rename(filepath.Join(data, clustered.StoreName), filepath.Join(first, clustered.StoreName))
}

// Peers reads of whom to ask about the cluster of the node in a directory of godwit dev
// --nodes, and where the nodes' root key is.
func Peers(dir string) (asking *clustered.Asking, rootKey string, err error) {
	n, err := ReadNode(filepath.Join(dir, nodeFile))
	if err != nil {
		return nil, "", err
	}
	return n.Asking(), n.RootKey, nil
}

// CopyRootKey gives a copy of a cluster on one machine its root key.
func CopyRootKey(from, to string) error {
	key, err := bootstrap.ReadRootKey(from)
	if err != nil {
		return err
	}
	return bootstrap.WriteDevRootKey(filepath.Join(to, bootstrap.DevRootKey), key)
}
