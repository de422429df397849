package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// offering is a node that others copy the store of.
type offering struct {
	source *snapshot.Source
	clock  *clock.Virtual
	server *httptest.Server
	asked  int // requests for chunks
	// meddle changes an answer to a request for a chunk, or refuses it; may be nil.
	meddle func(n int, body []byte) (changed []byte, refuse bool)
}

// offer offers what take writes.
func offer(t *testing.T, take func(dir string) (uint64, error)) *offering {
	t.Helper()
	o := &offering{clock: clock.NewVirtual(time.Unix(1e9, 0))}
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "store.offered", "of a process before"), 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.source, err = snapshot.NewSource(filepath.Join(data, snapshot.ForNodes), take, o.clock); err != nil {
		t.Fatal(err)
	}
	o.server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(func() {
		o.server.Close()
		if err := o.source.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
			t.Errorf("what was offered is left: %v, %v", left, err)
		}
	})
	return o
}

func (o *offering) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || o.meddle == nil {
		o.source.ServeHTTP(w, r)
		return
	}
	o.asked++
	answer := httptest.NewRecorder()
	o.source.ServeHTTP(answer, r)
	body, refuse := o.meddle(o.asked, answer.Body.Bytes())
	if refuse {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}

// files takes snapshots of given files.
func files(all map[string]string) func(dir string) (uint64, error) {
	return func(dir string) (uint64, error) {
		for name, text := range all {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return 0, err
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return 0, err
			}
		}
		return 41, nil
	}
}

func (o *offering) fetch(data string) *snapshot.Fetch {
	return &snapshot.Fetch{Data: data, Source: "a", URL: o.server.URL, Client: o.server.Client(), Verify: func(string) error { return nil }}
}

// holds compares the store of a data directory with files.
func holds(t *testing.T, data string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(data, "store", name))
		if err != nil || string(got) != text {
			t.Errorf("%s is %d bytes, %v; want %d", name, len(got), err, len(text))
		}
	}
	left, err := os.ReadDir(data)
	if err != nil || len(left) != 1 {
		t.Errorf("beside the store there is more: %v, %v", left, err)
	}
}

var some = map[string]string{"empty": "", "small": "text", "of three": strings.Repeat("0123456789", snapshot.ChunkSize/4), "below/it": "inner", "with space %2f?": "odd"}

// What is damaged on the way is asked for again; what is interrupted goes on with the
// files that are missing.
func TestFetch(t *testing.T) {
	o := offer(t, files(some))
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "store", "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.MarkDamaged(data, errors.New("worn out")); err != nil {
		t.Fatal(err)
	}
	var done, all int64
	f := o.fetch(data)
	f.Progress = func(d, a int64) { done, all = d, a }
	o.meddle = func(n int, body []byte) ([]byte, bool) {
		if n == 2 {
			body = bytes.ToUpper(append([]byte{}, body...))
			body[len(body)-1] ^= 1
		}
		return body, n == 4
	}
	if err := f.Run(t.Context()); err == nil || errors.Is(err, snapshot.ErrGone) {
		t.Fatalf("a refusal: %v", err)
	}
	if installed, err := snapshot.Install(data); installed || err != nil {
		t.Fatalf("half a copy is installed: %v", err)
	}
	if why := snapshot.Damaged(data); !strings.Contains(why, "worn out") {
		t.Errorf("marked as damaged: %q", why)
	}
	o.meddle = func(_ int, body []byte) ([]byte, bool) { return body, false }
	o.asked = 0
	f = o.fetch(data)
	f.Progress = func(d, a int64) { done, all = d, a }
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o.asked != 5 { // of the eight with which it began
		t.Errorf("%d parts were asked for where some had come", o.asked)
	}
	if done != all || all == 0 {
		t.Errorf("%d of %d bytes came", done, all)
	}
	for range 2 { // a second does nothing
		if _, err := snapshot.Install(data); err != nil {
			t.Fatal(err)
		}
	}
	if snapshot.Damaged(data) != "" {
		t.Error("the new store is marked as damaged")
	}
	holds(t, data, some)
}

// A copy of a store that is damaged for good, is refused by whoever reads it, or is not
// offered any more, is begun anew.
func TestFetchAnew(t *testing.T) {
	o := offer(t, files(some))
	data := t.TempDir()
	o.meddle = func(n int, body []byte) ([]byte, bool) {
		return append([]byte{}, bytes.Repeat([]byte{1}, len(body))...), false
	}
	if err := o.fetch(data).Run(t.Context()); !errors.Is(err, snapshot.ErrChecksum) {
		t.Errorf("what never comes as it was sent: %v", err)
	}
	o.meddle = nil
	f := o.fetch(data)
	f.Verify = func(string) error { return fmt.Errorf("%w: a hole", snapshot.ErrUnfit) }
	if err := f.Run(t.Context()); !errors.Is(err, snapshot.ErrUnfit) {
		t.Errorf("an unfit copy: %v", err)
	}
	o.meddle = func(n int, body []byte) ([]byte, bool) { return body, n > 1 }
	o.asked = 0
	if err := o.fetch(data).Run(t.Context()); err == nil {
		t.Error("half of it came")
	}
	if p, ok := o.source.Position(); !ok || p != 41 {
		t.Errorf("the log is needed from %d on, %v", p, ok)
	}
	if _, err := o.clock.Advance(t.Context(), 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, ok := o.source.Position(); ok {
		t.Error("the log is needed for what is not offered any more")
	}
	o.meddle = nil
	if err := o.fetch(data).Run(t.Context()); !errors.Is(err, snapshot.ErrGone) {
		t.Errorf("what is not offered any more: %v", err)
	}
	if err := o.fetch(data).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := snapshot.Install(data); err != nil {
		t.Error(err)
	}
	holds(t, data, some)
}

// What is left of a download is of use only where it is of the same source, and can be read: nothing
// else counts as downloaded.
func TestFetchOfAnother(t *testing.T) {
	other := map[string]string{"below/it": "other", "small": "otherwise"}
	for name, leave := range map[string]func(data string, begun []byte) error{
		"of another source": func(string, []byte) error { return nil },
		"half a note": func(data string, begun []byte) error {
			return os.WriteFile(filepath.Join(data, "store.incoming.json"), begun[:len(begun)/2], 0o600)
		},
		"a note of no files": func(data string, _ []byte) error {
			return os.WriteFile(filepath.Join(data, "store.incoming.json"), []byte(`{"source":"b","done":{}}`), 0o600)
		},
		"a note of no progress": func(data string, _ []byte) error {
			return os.WriteFile(filepath.Join(data, "store.incoming.json"), []byte(`{"source":"b","manifest":{"id":"x"}}`), 0o600)
		},
	} {
		o, data := offer(t, files(some)), t.TempDir()
		o.meddle = func(n int, body []byte) ([]byte, bool) { return body, n == 2 }
		if err := o.fetch(data).Run(t.Context()); err == nil {
			t.Fatalf("%s: all of it came", name)
		}
		begun, err := os.ReadFile(filepath.Join(data, "store.incoming.json"))
		if err == nil {
			err = leave(data, begun)
		}
		if err != nil {
			t.Fatal(err)
		}
		f := offer(t, files(other)).fetch(data)
		f.Source = "b"
		if err := f.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := snapshot.Install(data); err != nil {
			t.Error(err)
		}
		holds(t, data, other)
		if left, err := os.ReadDir(filepath.Join(data, "store")); len(left) != len(other) {
			t.Errorf("%s: the store has %v, %v", name, left, err)
		}
	}
}

// Room is looked for again where a download is resumed, for what is missing of it.
func TestNoRoomForRest(t *testing.T) {
	o, data, full := offer(t, files(some)), t.TempDir(), errors.New("full")
	o.meddle = func(n int, body []byte) ([]byte, bool) { return body, n == 2 }
	if err := o.fetch(data).Run(t.Context()); err == nil {
		t.Fatal("all of it came")
	}
	asked, size := int64(0), 0
	f := o.fetch(data)
	f.CheckSpace = func(bytes int64) error { asked = bytes; return full }
	if err := f.Run(t.Context()); !errors.Is(err, full) {
		t.Errorf("without room: %v", err)
	}
	for _, text := range some {
		size += len(text)
	}
	if want := size - len(some["below/it"]); asked != int64(want) {
		t.Errorf("room for %d bytes is looked for, of %d", asked, want)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A mark that cannot be read is a mark: the store is not used.
func TestUnreadableMark(t *testing.T) {
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "store.damaged"), 0o700); err != nil {
		t.Fatal(err)
	}
	if snapshot.Damaged(data) == "" {
		t.Error("the store is taken for whole")
	}
}

// The log is needed from the lowest position on that is offered, for as long as its snapshot is, which
// stays while its parts are asked for and goes with its end.
func TestPositions(t *testing.T) {
	next := uint64(0)
	o := offer(t, func(dir string) (uint64, error) {
		next++
		_, err := files(some)(dir)
		return []uint64{0, 30, 10, 20}[next], err
	})
	var made []snapshot.Manifest
	for range 3 {
		m, err := o.source.Begin()
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, m)
	}
	needs := func(when string, want uint64) {
		t.Helper()
		if p, ok := o.source.Position(); p != want || ok != (want > 0) {
			t.Errorf("%s: the log is needed from %d on, %t; want %d", when, p, ok, want)
		}
	}
	needs("three", 10)
	o.source.End(made[1].ID)
	o.source.End("unknown")
	needs("one has ended", 20)
	for range 3 {
		if _, err := o.clock.Advance(t.Context(), 90*time.Second); err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.source.Part(made[0].ID, "small", 0); err != nil {
			t.Fatalf("a snapshot whose parts are asked for: %v", err)
		}
	}
	needs("one is asked for", 30)
	for offset, want := range map[int64]error{-1: snapshot.ErrOffset, 5: snapshot.ErrOffset, 4: nil} {
		if _, _, err := o.source.Part(made[0].ID, "small", offset); !errors.Is(err, want) {
			t.Errorf("from %d on: %v", offset, err)
		}
	}
	if _, err := o.clock.Advance(t.Context(), 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	needs("nobody asks", 0)
	if _, _, err := o.source.Part(made[0].ID, "small", 0); !errors.Is(err, snapshot.ErrGone) {
		t.Errorf("what is not offered any more: %v", err)
	}
}

// A snapshot stays for as long as somebody asks for it, and there are not many.
func TestOffers(t *testing.T) {
	o := offer(t, files(some))
	begin := func() int {
		answer, err := o.server.Client().Post(o.server.URL+snapshot.Path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	for range 4 {
		if status := begin(); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if status := begin(); status != http.StatusServiceUnavailable {
		t.Errorf("a fifth: status %d", status)
	}
	if _, err := o.clock.Advance(t.Context(), 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	if status := begin(); status != http.StatusOK {
		t.Errorf("once the others are gone: status %d", status)
	}
}

// Nothing but the files of a snapshot is given away, and nothing outside of its directory
// is written.
func TestPaths(t *testing.T) {
	o := offer(t, files(some))
	if err := o.fetch(t.TempDir()).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/x/small", "/../small", "/%2e%2e/%2e%2e/small"} {
		answer, err := o.server.Client().Get(o.server.URL + snapshot.Path + path + "?offset=0")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Errorf("%s is answered", path)
		}
	}
	for name, manifest := range map[string]string{
		"a file outside":        `{"id":"x","files":[{"name":"../../outside","size":1}]}`,
		"a file of no size":     `{"id":"x","files":[{"name":"inside","size":-1}]}`,
		"no file":               `{"id":"x"}`,
		"files that none offer": `{"files":[{"name":"inside","size":0}]}`,
		"a refusal":             "",
	} {
		hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if manifest == "" {
				w.WriteHeader(http.StatusServiceUnavailable)
				manifest = `{"id":"x","files":[{"name":"inside","size":0}]}`
			}
			_, _ = io.WriteString(w, manifest)
		}))
		f := o.fetch(t.TempDir())
		f.URL = hostile.URL
		if err := f.Run(t.Context()); err == nil || errors.Is(err, snapshot.ErrUnfit) == (name == "a refusal") {
			t.Errorf("%s: %v", name, err)
		}
		hostile.Close()
	}
}

// A store that is copied holds what the other one did when it was asked.
func TestStore(t *testing.T) {
	st := memory.New()
	b := new(mutation.Batch)
	for i := range 1000 {
		b.Set(fmt.Appendf(nil, "key %d", i), bytes.Repeat([]byte{byte(i)}, i))
	}
	if err := st.Apply(store.NoSync, b); err != nil {
		t.Fatal(err)
	}
	o := offer(t, func(dir string) (uint64, error) { return 1, st.Checkpoint(dir) })
	data := t.TempDir()
	if err := o.fetch(data).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Install(data); err != nil {
		t.Fatal(err)
	}
	got, err := memory.Open(filepath.Join(data, "store"))
	if err != nil {
		t.Fatal(err)
	}
	if !storetest.Equal(t, store.Store(st), store.Store(got)) {
		t.Error("the copy differs")
	}
}

// A copy that there is no room for leaves nothing, and comes once there is; a store is removed
// for it only if it is marked as damaged.
func TestNoRoom(t *testing.T) {
	o := offer(t, files(some))
	data, full := t.TempDir(), errors.New("full")
	var asked int64
	f := o.fetch(data)
	f.CheckSpace = func(bytes int64) error { asked = bytes; return full }
	if err := f.Run(t.Context()); !errors.Is(err, full) {
		t.Errorf("without room: %v", err)
	}
	size := 0
	for _, text := range some {
		size += len(text)
	}
	if asked != int64(size) {
		t.Errorf("room for %d bytes was asked for, of %d", asked, size)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	store := filepath.Join(data, "store")
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Discard(data); err == nil {
		t.Error("a store that is not marked as damaged is removed")
	}
	if err := snapshot.MarkDamaged(data, errors.New("worn out")); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Discard(data); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("the store is there: %v", err)
	}
	if snapshot.Damaged(data) == "" {
		t.Error("what was removed is not marked as damaged any more")
	}
	f.CheckSpace = func(int64) error { return nil }
	if err := f.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := snapshot.Install(data); err != nil {
		t.Error(err)
	}
	holds(t, data, some)
}

// Who is closed makes no snapshot any more, neither a new one nor the one that it has begun: the
// store may be closed next, and another Source begin in the directory.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan struct{}), make(chan struct{})
		dir := filepath.Join(t.TempDir(), "offered")
		s, err := snapshot.NewSource(dir, func(dir string) (uint64, error) {
			close(begun)
			<-release
			return 1, os.Mkdir(dir, 0o700)
		}, clock.System)
		if err != nil {
			t.Fatal(err)
		}
		made, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := s.Begin()
			made <- err
		}()
		<-begun
		go func() { closed <- s.Close() }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("it is closed, and makes a snapshot")
		}
		if _, err := s.Begin(); !errors.Is(err, snapshot.ErrBusy) {
			t.Errorf("another one: %v", err)
		}
		close(release)
		if err := <-made; !errors.Is(err, snapshot.ErrBusy) {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was made is left: %v", err)
		}
	})
}
