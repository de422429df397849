package storecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
)

// TestCandidates: a copy is made of a node that has what the log has not, and rather not of one that
// serves.
func TestCandidates(t *testing.T) {
	nodes := map[string]status.Node{
		"serves":  {State: status.Serving, Number: 5000, Durable: 90, Needs: 91},
		"follows": {State: status.Following, Number: 4001, Durable: 90, Needs: 91},
		"full":    {State: status.Following, Number: 5000, Durable: 90, Needs: 91, LogStopped: true},
		"just":    {State: status.Following, Number: 5000, Durable: 89, Needs: 90},
		"lags":    {State: status.Following, Number: 3999, Durable: 90, Needs: 91},
		"trimmed": {State: status.Following, Number: 5000, Durable: 88, Needs: 89},
		"empty":   {State: status.Following, Durable: 90, Needs: 91},
		"joining": {State: status.Joining, Number: 5000, Durable: 90},
	}
	var peers []roster.Peer
	for _, name := range []string{"gone", "serves", "follows", "full", "just", "lags", "trimmed", "empty", "joining"} {
		peers = append(peers, roster.Peer{Name: name})
	}
	got := ""
	for _, c := range Candidates(t.Context(), peers, 90, func(_ context.Context, p roster.Peer) (s status.Cluster, err error) {
		n, ok := nodes[p.Name]
		if !ok {
			return s, errors.New("it does not answer")
		}
		s.Nodes = []status.Node{n}
		return s, nil
	}) {
		got += fmt.Sprintf("%s %t %t, ", c.Peer.Name, c.Serves, c.Full)
	}
	if want := "follows false false, full false true, just false false, serves true false, "; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	// Nor are nodes that have nothing better for being all there are, or what several nodes are said to have.
	for _, nodes := range [][]status.Node{{nodes["empty"]}, {}, {nodes["follows"], nodes["serves"]}} {
		all := Candidates(t.Context(), peers[:1], 0, func(context.Context, roster.Peer) (status.Cluster, error) {
			return status.Cluster{Nodes: nodes}, nil
		})
		if len(all) > 0 {
			t.Errorf("a copy is made of %+v", nodes)
		}
	}
}

// A store goes from a single node, which has a log, to a cluster's, which has none, and back: also
// where the node was killed what was durable is there, and what is left of its log is taken for no
// loss.
func TestStoresWithoutLog(t *testing.T) {
	for _, killed := range []bool{false, true} {
		data, log := t.TempDir(), slog.New(slog.DiscardHandler)
		dir := filepath.Join(data, recovery.StoreName)
		run := func(from string, noLog bool, had string, write ...string) *pebble.Store {
			t.Helper()
			st, err := pebble.Open(from, pebble.Options{Logger: log, NoLog: noLog, Fatal: func(err error) { t.Error(err) }})
			if err != nil {
				t.Fatal(err)
			}
			if v, _, err := st.Get(nil, []byte("k")); err != nil || string(v) != had {
				t.Errorf("it has %q, %v; want %q", v, err, had)
			}
			for _, v := range write {
				if err := st.Apply(store.Sync, storetest.Sets("k", v)); err != nil {
					t.Fatal(err)
				}
			}
			return st
		}
		closed := func(st *pebble.Store) {
			t.Helper()
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
		closed(run(dir, false, "", "single"))
		if err := Convert(data, log); err != nil {
			t.Fatal(err)
		}
		for _, had := range []string{"single", "node"} {
			st := run(dir, true, had, "node")
			if err := st.Apply(store.NoSync, storetest.Sets("last", "1")); err != nil {
				t.Fatal(err)
			}
			if killed {
				left := filepath.Join(t.TempDir(), recovery.StoreName)
				if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				dir = left
			}
			closed(st)
			if err := pebble.Verify(vfs.Default, dir); err != nil {
				t.Errorf("after a node, killed %t: %v", killed, err)
			}
			if err := Verify(dir, log); err != nil {
				t.Errorf("after a node, killed %t: %v", killed, err)
			}
		}
		if err := Standalone(dir, log); err != nil {
			t.Fatal(err)
		}
		closed(run(dir, false, "node", "single again"))
		st := run(dir, false, "single again")
		if _, ok, err := st.Get(nil, []byte("last")); err != nil || ok == killed {
			t.Errorf("killed %t: what was not durable is there: %t, %v", killed, ok, err)
		}
		closed(st)
	}
}

// TestStores: the store of a single node becomes that of a cluster's, once, and the other way
// round, and one that is no node's is no copy.
func TestStores(t *testing.T) {
	data, log := t.TempDir(), slog.New(slog.DiscardHandler)
	dir := filepath.Join(data, recovery.StoreName)
	if err := Convert(data, log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is converted: %v", err)
	}
	open := func() *pebble.Store {
		st, err := pebble.Open(dir, pebble.Options{Logger: log, Fatal: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := open()
	if err := errors.Join(st.Apply(store.Sync, storetest.Sets("k", "v")), st.Close()); err != nil {
		t.Fatal(err)
	}
	if err := Verify(dir, log); !errors.Is(err, snapshot.ErrUnfit) {
		t.Errorf("the store of a single node as a copy: %v", err)
	}
	for range 2 {
		if err := Convert(data, log); err != nil {
			t.Error(err)
		}
	}
	if err := Verify(dir, log); err != nil {
		t.Errorf("the store of a node as a copy: %v", err)
	}
	if err := Standalone(dir, log); err != nil {
		t.Error(err)
	}
	if err := Verify(dir, log); !errors.Is(err, snapshot.ErrUnfit) {
		t.Errorf("the store of a single node as a copy: %v", err)
	}
	st = open()
	if v, ok, err := st.Get(nil, []byte("k")); err != nil || !ok || string(v) != "v" {
		t.Errorf("it has %q, %v, %v", v, ok, err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
