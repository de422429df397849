package local

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/server/clustered"
	"godwit.dev/godwit/internal/server/clustered/storecopy"
	"godwit.dev/godwit/internal/server/recovery"
)

// Convert is storecopy.Convert for the data of godwit dev, for godwit dev --nodes: the store
// moves to the first node's directory.
func Convert(data string, log *slog.Logger) error {
	first := filepath.Join(data, "1")
	if _, err := os.Stat(filepath.Join(first, recovery.StoreName)); err == nil {
		return fmt.Errorf("%w: in %s", storecopy.ErrThere, first)
	}
	if err := storecopy.Convert(data, log); err != nil {
		return err
	}
	if err := os.MkdirAll(first, 0o700); err != nil {
		return err
	}
	return os.Rename(filepath.Join(data, recovery.StoreName), filepath.Join(first, recovery.StoreName))
}

// NodeOf reads the configuration of a node in its directory of godwit dev --nodes.
func NodeOf(dir string) (clustered.Node, error) { return ReadNode(filepath.Join(dir, nodeFile)) }

// CopyRootKey copies the root key of a cluster on one machine to a copy of its data.
func CopyRootKey(from, to string) error {
	key, err := bootstrap.ReadRootKey(from)
	if err != nil {
		return err
	}
	return bootstrap.WriteDevRootKey(filepath.Join(to, bootstrap.DevRootKey), key)
}
