package upgrade_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/built"
	"godwit.dev/godwit/test/upgrade"
)

// The directory of an earlier version goes through development into production: everything
// in it is there, queues give the same when all that waits is due, and no message of it is in
// clear any more. Production runs with a virtual clock here, and without asking for
// signatures, so that its answers can be held against those of the earlier version.
func TestEarlierVersionsInProduction(t *testing.T) {
	binary, err := built.Server(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("there are no directories: %v", err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(archive, ".tar.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			want := recorded(t, name+".json.gz")
			dir := t.TempDir()
			data, prod := filepath.Join(dir, "data"), filepath.Join(dir, "prod")
			if err := upgrade.Unpack(archive, data); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(data, 0o700); err != nil {
				t.Fatal(err)
			}
			straight(t, archive, want.Asked)
			s, stop := start(t, binary, data)
			compare(t, want.Asked, upgrade.Ask, s)
			stop()
			for _, args := range [][]string{
				{"init", "--dir", prod, "--data", data},
				{"keys", "rotate-root", "--dir", prod, "--from", filepath.Join(data, "dev-root.key")},
			} {
				if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
					t.Fatalf("godwit %v: %v: %s", args, err, out)
				}
			}
			s, end := produce(t, data, filepath.Join(prod, "root.key"))
			compare(t, want.Asked, upgrade.Ask, s)
			end()
			holdSealed(t, data)
			// Then what waits in queues comes out. What topics still have for queues does not,
			// where these do not admit them: production asks.
			s, end = produce(t, data, filepath.Join(prod, "root.key"))
			got, err := upgrade.Use(s)
			if err != nil || len(got) != len(want.Used) {
				t.Fatalf("%d answers, want %d: %v", len(got), len(want.Used), err)
			}
			end()
			compared := 0
			for i, then := range want.Used {
				if !strings.HasPrefix(then.Call, "receive ") || !slices.Contains([]string{"standard", "delayed", "orders.fifo", "source"}, strings.TrimPrefix(then.Call, "receive ")) {
					continue
				}
				compared++
				got[i].Body = asThen(then.Body, got[i].Body)
				byGroup(then.Body)
				byGroup(got[i].Body)
				if diff := cmp.Diff(then, got[i]); diff != "" {
					t.Errorf("%s (-then +now):\n%s", then.Call, diff)
				}
			}
			if compared < 8 {
				t.Errorf("%d answers were compared", compared)
			}
			holdSealed(t, data)
		})
	}
}

// straight has a directory of an earlier version go into production without development in
// between: it is sealed with no root key yet.
func straight(t *testing.T, archive string, asked []upgrade.Answer) {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := upgrade.Unpack(archive, data); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, bootstrap.DevRootKey)); err == nil {
		return // development has sealed it, and has to go on until its key is replaced
	}
	key := filepath.Join(dir, "root.key")
	if err := bootstrap.WriteRootKey(key, seal.NewRoot()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and again
		s, end := produce(t, data, key)
		compare(t, asked, upgrade.Ask, s)
		end()
		holdSealed(t, data)
	}
}

// byGroup sorts what a FIFO queue gives by message group: there is an order in each of them,
// and none between those whose heads came back at the same moment.
func byGroup(body any) {
	messages, _ := body.([]any)
	slices.SortStableFunc(messages, func(a, b any) int { return strings.Compare(groupOf(a), groupOf(b)) })
}

func groupOf(message any) string {
	m, _ := message.(map[string]any)
	attributes, _ := m["Attributes"].(map[string]any)
	group, _ := attributes["MessageGroupId"].(string)
	return group
}

// produce starts a server of production on a directory.
func produce(t *testing.T, data, key string) (s upgrade.Server, end func()) {
	t.Helper()
	running := server.New(config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.VirtualClock, Data: data, RootKey: key, Production: true,
		Region: upgrade.Region, Account: upgrade.Account, AllowPrivateEndpoints: true, Metrics: true, RetryAfter: true, Retry429: true,
		EndpointConcurrency: 50, DeliveryConcurrency: 5000, LambdaConcurrency: 1000, LambdaCodeStorage: 80_530_636_800, FunctionIsolation: config.IsolationNone,
	}, slog.New(slog.DiscardHandler), nil)
	if err := running.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return upgrade.Server{Base: "http://" + running.Addr().String()}, func() {
		t.Helper()
		if err := running.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// holdSealed looks for what messages of the directories say, in files and in records.
func holdSealed(t *testing.T, data string) {
	t.Helper()
	look := func(what string, text []byte) {
		for _, clear := range []string{"order 1", "order 24", "poison ", "entry ", "tenant's ", "in a quarter of an hour", "in ten minutes"} {
			if bytes.Contains(text, []byte(clear)) {
				t.Errorf("%s has %q", what, clear)
			}
		}
	}
	err := filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	st, err := pebble.Open(filepath.Join(data, "store"), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range storetest.Dump(t, st) {
		look(fmt.Sprintf("the record %q", key), value)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
