package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// A machine alone does not serve the data of a node of a cluster: what it changed would part
// that from the other nodes. The refusal says what to do, and nothing is written.
func TestAMembersDataIsNotServedAlone(t *testing.T) {
	data := t.TempDir()
	path := filepath.Join(data, recovery.StoreName)
	st, err := pebble.Open(path, pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(replica.Bootstrap(st, 0), st.Close()); err != nil {
		t.Fatal(err)
	}
	c := testConfig()
	c.Data, c.Store = data, config.PebbleStore
	for range 2 {
		err := New(c, slog.New(slog.DiscardHandler), Assemble).Start(t.Context())
		if !errors.Is(err, recovery.ErrMember) || !strings.Contains(err.Error(), data) ||
			!strings.Contains(err.Error(), "--cluster-peers") || !strings.Contains(err.Error(), "godwit cluster copy") {
			t.Errorf("%v", err)
		}
	}
	for _, name := range [...]string{bootstrap.DevRootKey, "root-key.id"} {
		if _, err := os.Stat(filepath.Join(data, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	st, err = pebble.Open(path, pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	err = store.Each(st, keyspace.Span{}, func(key, _ []byte) error {
		if key[0] != keyspace.ClusterSpace {
			t.Errorf("the record %q was written", key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
