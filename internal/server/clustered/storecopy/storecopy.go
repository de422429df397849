// Package storecopy has what copies of nodes' stores need: of which node one is made, whether it
// is whole, and how the store of a single node becomes that of a cluster's, and the other way
// round.
package storecopy

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store/pebble"
)

// ErrThere reports that the target of a conversion exists.
var ErrThere = errors.New("there is data already")

// Convert converts the data of a single node, which no server has open, to that of a cluster's
// first node: the other nodes are empty, and copy it when they start. Repeating it has no
// effect, unless the node was started since. Errors: replica.ErrBootstrapped; fs.ErrNotExist if
// there is no data.
func Convert(data string, log *slog.Logger) error {
	dir := filepath.Join(data, recovery.StoreName)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	st, err := open(dir, log)
	if err != nil {
		return err
	}
	return errors.Join(replica.Bootstrap(st, nodeapi.Cell), st.Close())
}

// Standalone converts a node's store to that of a single node.
func Standalone(dir string, log *slog.Logger) error {
	st, err := open(dir, log)
	if err != nil {
		return err
	}
	return errors.Join(replica.Standalone(st, nodeapi.Cell), st.Close())
}

// open opens a store, whose calls return its failures.
func open(dir string, log *slog.Logger) (*pebble.Store, error) {
	return pebble.Open(dir, pebble.Options{Logger: log, Fatal: func(error) {}})
}

// Verify reads the whole copy.
func Verify(dir string, log *slog.Logger) error {
	unfit := func(err error) error { return fmt.Errorf("%w: %w", snapshot.ErrUnfit, err) }
	st, err := open(dir, log)
	if err != nil {
		return unfit(err)
	}
	err = readThrough(st)
	if err = errors.Join(err, st.Close()); err != nil {
		return unfit(err)
	}
	return nil
}

func readThrough(st *pebble.Store) error {
	value, ok, err := st.Get(nil, record.Key(nodeapi.Cell))
	if err == nil && !ok {
		err = errors.New("it does not say how far it has come")
	}
	if err == nil {
		_, err = record.DecodeFence(value)
	}
	if err != nil {
		return err
	}
	it, err := st.Iter(nil, nil)
	if err != nil {
		return err
	}
	for it.Next() {
		_ = it.Value() // this reads values that are stored apart from their keys
	}
	return errors.Join(it.Close(), st.Damage())
}
