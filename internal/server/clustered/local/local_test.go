package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/clustered"
	"godwit.dev/godwit/internal/server/clustered/storecopy"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
)

func prepared(dir, listen string) ([]clustered.Node, error) {
	return (&cluster{Options{Nodes: Nodes, LogLimit: 7, Config: config.Config{Listen: listen, Data: dir}}}).prepare()
}

// Each node finds in its directory who it is, and all know the same of each other.
func TestNodesAreConfigured(t *testing.T) {
	dir := t.TempDir()
	if _, err := prepared(dir, "localhost:4700"); err != nil {
		t.Fatal(err)
	}
	key, err := bootstrap.ReadRootKey(filepath.Join(dir, bootstrap.DevRootKey))
	if err != nil {
		t.Fatal(err)
	}
	taken, secret := map[string]bool{}, ""
	for _, name := range []string{"1", "2", "3"} {
		path := filepath.Join(dir, name, nodeFile)
		n, err := ReadNode(path)
		if err != nil || n.Name != name || len(n.Peers) != Nodes || n.LogLimit != 7 {
			t.Fatalf("node %s is %+v: %v", name, n, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the secret is in a file of mode %v: %v", info.Mode(), err)
		}
		if secret == "" {
			secret = n.Secret
		}
		if n.Secret == "" || n.Secret != secret {
			t.Errorf("node %s does not share the secret", name)
		}
		for _, p := range n.Peers {
			if p.Name != name {
				continue
			}
			for _, address := range []string{strings.TrimPrefix(p.URL, "http://"), p.Route, p.Address} {
				_, port, err := net.SplitHostPort(address)
				if err != nil || taken[port] {
					t.Errorf("node %s has %s, which is taken: %v", name, address, err)
				}
				taken[port] = true
			}
		}
		read, err := NodeOf(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := CopyRootKey(read.RootKey, to); err != nil {
			t.Fatal(err)
		}
		if got, err := bootstrap.ReadRootKey(filepath.Join(to, bootstrap.DevRootKey)); err != nil || !reflect.DeepEqual(got, key) {
			t.Errorf("node %s has another root key: %v", name, err)
		}
	}
	if _, err := prepared(dir, "localhost:4700"); err != nil {
		t.Fatal(err)
	}
	if again, err := bootstrap.ReadRootKey(filepath.Join(dir, bootstrap.DevRootKey)); err != nil || !reflect.DeepEqual(again, key) {
		t.Errorf("a second start made another root key: %v", err)
	}
}

func TestWhatDoesNotGo(t *testing.T) {
	single := t.TempDir()
	if err := os.Mkdir(filepath.Join(single, recovery.StoreName), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, listen, says string }{
		{t.TempDir(), "localhost", "--listen"},
		{t.TempDir(), "localhost:0", "a port that is given"},
		{t.TempDir(), "192.0.2.1:4700", "loopback only"},
		{t.TempDir(), "localhost:65514", "none behind"}, // 65536 would be the last
		{t.TempDir(), "example.test:4700", "loopback only"},
		{single, "localhost:4700", "is the data of one node"},
	} {
		if _, err := prepared(c.dir, c.listen); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.listen, err, c.says)
		}
	}
	if _, err := ReadNode(filepath.Join(single, nodeFile)); err == nil {
		t.Error("a node without a file was read")
	}
	to := t.TempDir()
	if err := CopyRootKey(filepath.Join(single, bootstrap.DevRootKey), to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root key that is not there is copied: %v", err)
	}
	for _, listen := range []string{"127.0.0.1:4700", "[::1]:4700", "127.0.0.2:4700", "localhost:65513"} {
		if _, err := prepared(t.TempDir(), listen); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

// A node that panics is started again, and does not take the others with it.
func TestEndsThatAreFinal(t *testing.T) {
	for _, c := range []struct {
		status int
		ran    time.Duration
		want   bool
	}{
		{1, time.Second, true},
		{1, time.Hour, true},
		{2, time.Second, true},
		{2, time.Hour, false},
		{75, time.Second, false},
		{-1, time.Second, false}, // a signal
	} {
		if got := isFinal(c.status, c.ran); got != c.want {
			t.Errorf("status %d after %v: %v, want %v", c.status, c.ran, got, c.want)
		}
	}
}

// What a single node had goes to the first node, once.
func TestConvert(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	if err := Convert(dir, log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing is converted: %v", err)
	}
	open := func(dir string) *pebble.Store {
		st, err := pebble.Open(filepath.Join(dir, recovery.StoreName), pebble.Options{Logger: log, Fatal: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := open(dir)
	if err := errors.Join(st.Apply(store.Sync, storetest.Sets("k", "v")), st.Close()); err != nil {
		t.Fatal(err)
	}
	if err := Convert(dir, log); err != nil {
		t.Fatal(err)
	}
	if err := Convert(dir, log); !errors.Is(err, storecopy.ErrThere) {
		t.Errorf("converted twice: %v", err)
	}
	if _, err := prepared(dir, "localhost:4700"); err != nil {
		t.Errorf("nodes do not start on what was converted: %v", err)
	}
	st = open(filepath.Join(dir, "1"))
	defer st.Close()
	if v, ok, err := st.Get(nil, []byte("k")); err != nil || !ok || string(v) != "v" {
		t.Errorf("the first node has %q, %v, %v", v, ok, err)
	}
}

// Where the root key of data that is there is missing, no other one takes its place: it is named, and
// nodes begin once it is there.
func TestMissingRootKey(t *testing.T) {
	for _, of := range []string{".", "2"} { // of a single node that was converted, or of a node
		dir, root := t.TempDir(), seal.NewRoot()
		if err := os.MkdirAll(filepath.Join(dir, of), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := bootstrap.NoteSealedWith(filepath.Join(dir, of), root.ID()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, bootstrap.DevRootKey)
		if _, err := prepared(dir, "localhost:4700"); err == nil || !strings.Contains(err.Error(), root.ID()) {
			t.Errorf("it is not told which root key is missing: %v", err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("another one is there: %v", err)
		}
		if err := bootstrap.WriteDevRootKey(path, root); err != nil {
			t.Fatal(err)
		}
		if _, err := prepared(dir, "localhost:4700"); err != nil {
			t.Error(err)
		}
	}
	// Where it cannot be read what the data is sealed with, it may be sealed.
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "3"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := bootstrap.NoteSealedWith(filepath.Join(dir, "3"), seal.NewRoot().ID()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "3", "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%q: %v", names, err)
	}
	if err := errors.Join(os.Remove(names[0]), os.Mkdir(names[0], 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := prepared(dir, "localhost:4700"); err == nil {
		t.Error("a root key is made beside data of which nothing is known")
	}
	if _, err := os.Stat(filepath.Join(dir, bootstrap.DevRootKey)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root key is there: %v", err)
	}
}
