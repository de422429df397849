package local

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/server/clustered"
)

// Convert is clustered.Convert for the data of godwit dev, for godwit dev --nodes: the store
// moves to the first node's directory.
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

// Peers reads the nodes' addresses from a directory of godwit dev --nodes, and the place of
// their root key.
func Peers(dir string) (asking *clustered.Asking, rootKey string, err error) {
	n, err := ReadNode(filepath.Join(dir, nodeFile))
	if err != nil {
		return nil, "", err
	}
	return n.Asking(), n.RootKey, nil
}

// CopyRootKey copies the root key of a cluster on one machine to a copy of its data.
func CopyRootKey(from, to string) error {
	key, err := bootstrap.ReadRootKey(from)
	if err != nil {
		return err
	}
	return bootstrap.WriteDevRootKey(filepath.Join(to, bootstrap.DevRootKey), key)
}
