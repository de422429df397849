package pebble_test

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		hold(dir)
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(soak.Size(25, 100))); err != nil { // the usual number, unless a flag says another
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// options are those of a test: no failure passes unseen, and buffers are so
// small that tables are written and compacted.
func options(t testing.TB, fs vfs.FS) pebble.Options {
	return pebble.Options{
		FS:            fs,
		Logger:        slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		CacheBytes:    1 << 20,
		MemTableBytes: 64 << 10,
		Fatal:         func(err error) { t.Errorf("fatal: %v", err) },
	}
}

func open(t testing.TB, dir string, o pebble.Options) *pebble.Store {
	t.Helper()
	s, err := pebble.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openRoomy opens a store in memory whose write buffers hold 1 MiB.
func openRoomy(t testing.TB) (*vfs.MemFS, *pebble.Store) {
	t.Helper()
	fs := vfs.NewMem()
	o := options(t, fs)
	o.MemTableBytes = 1 << 20
	return fs, open(t, "data", o)
}

func closed(t testing.TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestStore(t *testing.T) {
	suite := func(fs vfs.FS, noLog func() bool, dir func(testing.TB) string) func(*testing.T) {
		return func(t *testing.T) {
			var mu sync.Mutex
			dirs := map[store.Store]string{}
			at := func(t testing.TB, dir string) store.Store {
				o := options(t, fs)
				o.NoLog = noLog()
				s := open(t, dir, o)
				mu.Lock()
				defer mu.Unlock()
				dirs[s] = dir
				return s
			}
			storetest.Run(t, storetest.Engine{
				Open:           func(t testing.TB) store.Store { return at(t, dir(t)) },
				OpenCheckpoint: at,
				Reopen: func(t testing.TB, s store.Store) store.Store {
					closed(t, s)
					return at(t, dirs[s])
				},
			})
		}
	}
	always := func(is bool) func() bool { return func() bool { return is } }
	t.Run("Disk", suite(nil, always(false), func(t testing.TB) string { return t.TempDir() }))
	fs := vfs.NewMem()
	var mu sync.Mutex
	n := 0
	next := func(testing.TB) string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return "/data/" + strings.Repeat("x", n)
	}
	t.Run("MemFS", suite(fs, always(false), next))
	t.Run("NoLog", suite(fs, always(true), next))
	t.Run("NoLogByTurns", suite(fs, turns(), next))
}

// A directory whose format is not known is refused, in words that help, and
// left as it is. One of the version before is taken over.
func TestFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	mark := filepath.Join(dir, "godwit-format")
	s := open(t, dir, options(t, nil))
	if err := s.Apply(store.Sync, storetest.Sets("a", "1")); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	if got, err := os.ReadFile(mark); err != nil || string(got) != "5\n" {
		t.Fatalf("a new store's format file says %q, %v", got, err)
	}
	refused := func(what string, phrases ...string) {
		t.Helper()
		_, err := pebble.Open(dir, options(t, nil))
		if !errors.Is(err, pebble.ErrFormat) {
			t.Fatalf("%s: %v", what, err)
		}
		for _, p := range append(phrases, dir) {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %q does not say %q", what, err, p)
			}
		}
	}
	for _, damage := range []string{"6\n", "1\n"} {
		if err := os.WriteFile(mark, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		refused("a damaged format "+damage, "godwit salvage")
	}
	if err := os.Remove(filepath.Join(dir, "godwit-mark")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ mark, phrase string }{
		{"6\n", "a newer one"},
		{"1\n", "before the first release"},
		{"4000000000\n", "4000000000"},
		{"", "backup"},
		{"0\n", "backup"},
		{"one\n", "backup"},
	} {
		if err := os.WriteFile(mark, []byte(c.mark), 0o600); err != nil {
			t.Fatal(err)
		}
		refused("format "+c.mark, c.phrase)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	refused("no format file", "another directory")
	for _, before := range []string{"2\n", "3\n", "4\n"} {
		if err := os.WriteFile(mark, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, options(t, nil))
		if v, ok, err := s.Get(nil, []byte("a")); err != nil || !ok || string(v) != "1" {
			t.Errorf("after the refusals: %q, %v, %v", v, ok, err)
		}
		closed(t, s)
		if got, err := os.ReadFile(mark); err != nil || string(got) != "5\n" {
			t.Errorf("the format file of a store of version %q says %q, %v", before, got, err)
		}
	}
}

const holdEnv = "GODWIT_TEST_HOLD"

// hold opens the store in another process until its input ends.
func hold(dir string) {
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("open\n")
	os.Stdin.Read(make([]byte, 1))
	s.Close()
	os.Exit(0)
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	refused := func(phrase string) {
		t.Helper()
		_, err := pebble.Open(dir, options(t, nil))
		if !errors.Is(err, pebble.ErrInUse) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), phrase) {
			t.Errorf("Open of a store in use: %v", err)
		}
	}
	s := open(t, dir, options(t, nil))
	refused("this process")
	closed(t, s)

	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdEnv+"="+dir)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 5)
	if _, err := stdout.Read(line); err != nil || string(line) != "open\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	refused("another godwit")
	stdin.Close()
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
	closed(t, open(t, dir, options(t, nil)))
}

// A directory that may not be written to is not mistaken for one in use.
func TestOpenReportsTheFileSystemsError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := pebble.Open(filepath.Join(file, "data"), options(t, nil))
	if err == nil || errors.Is(err, pebble.ErrInUse) || !strings.Contains(err.Error(), file) {
		t.Errorf("Open below a file: %v", err)
	}
}

// Pebble's own log is for those who ask for it.
func TestPebbleLogsAtDebug(t *testing.T) {
	var buf bytes.Buffer
	o := options(t, vfs.NewMem())
	o.Logger = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelInfo}))
	s := open(t, "data", o)
	if err := s.Apply(store.Sync, storetest.Sets("a", "1")); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	if buf.Len() > 0 {
		t.Errorf("a quiet life logged %s", &buf)
	}
	o.Logger = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))
	closed(t, open(t, "data", o))
	if !strings.Contains(buf.String(), "level=DEBUG") {
		t.Errorf("at debug level: %q", &buf)
	}
}
