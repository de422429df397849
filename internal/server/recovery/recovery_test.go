package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/pebble/check"
	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/soak"
)

// kept is a data directory with queues, and what was acknowledged in them.
type kept struct {
	*testing.T
	fs      vfs.FS
	data    string
	rand    *rand.Rand
	log     output.Buffer
	clock   *clock.Virtual
	store   *pebble.Store
	engine  *shard.Engine
	journal *journal.Journal
	promise map[arn.ARN]map[string]bool // bodies by queue; false: in flight or deleted
}

var keptQueues = []string{"plain", "order.fifo", "fair", "late"}

func queueName(name string) arn.ARN { return arn.Queue("us-east-1", "000000000000", name) }

// open starts an engine as the server does.
func (k *kept) open(accept bool) (err error) {
	k.log.Take()
	k.store, err = pebble.Open(filepath.Join(k.data, "store"), pebble.Options{
		FS: k.fs, Logger: slog.New(slog.NewTextHandler(&k.log, &slog.HandlerOptions{Level: slog.LevelWarn})), AcceptLoss: accept,
		CacheBytes: 1 << 20, MemTableBytes: 1 << 20, Describe: Describe,
		Fatal: func(err error) { k.Errorf("the store ends the process: %v", err) },
	})
	if err != nil {
		return err
	}
	k.journal = journal.Open(journal.Options{Store: k.store, Fatal: func(err error) { k.Errorf("the journal ends the process: %v", err) }})
	k.engine, err = shard.Open(shard.Options{
		Journal: k.journal, Clock: k.clock, Logger: slog.New(slog.NewTextHandler(&k.log, nil)),
		Fatal: func(err error) { k.Errorf("the engine ends the process: %v", err) },
	})
	if err != nil {
		k.journal.Close()
		return errors.Join(err, k.store.Close())
	}
	return nil
}

func (k *kept) close() {
	k.Helper()
	err := k.engine.Close()
	k.journal.Close()
	if err := errors.Join(err, k.store.Close()); err != nil {
		k.Fatal(err)
	}
}

func keep(t *testing.T, r *rand.Rand) *kept {
	k := &kept{T: t, fs: vfs.NewMem(), data: "data", clock: clock.NewVirtual(clock.System.Now()), rand: r, promise: map[arn.ARN]map[string]bool{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(k.open(false))
	for _, name := range keptQueues {
		attributes := map[string]string{"VisibilityTimeout": "0"}
		if name == "order.fifo" {
			attributes["FifoQueue"] = "true"
		}
		must(k.engine.CreateQueue(t.Context(), shard.QueueSpec{ARN: queueName(name), Attributes: attributes}))
		k.promise[queueName(name)] = map[string]bool{}
	}
	id := 0
	for range 40 {
		_, err := k.clock.Advance(t.Context(), time.Millisecond) // what is late comes, and leases end
		must(err)
		name := keptQueues[r.IntN(len(keptQueues))]
		q := queueName(name)
		var out []shard.SendEntry
		for range 1 + r.IntN(10) {
			id++
			body := fmt.Sprintf("%s %06d %s", name, id, strings.Repeat("x", r.IntN(1200)))
			m := &message.Message{Sender: "000000000000", Body: []byte(body)}
			copy(m.ID[:], fmt.Sprintf("%016d", id))
			if name == "order.fifo" || name == "fair" {
				m.Group = fmt.Sprint(r.IntN(5))
			}
			m.Dedup = fmt.Sprint(id)
			m.Seal()
			delay := time.Duration(0)
			if name == "late" {
				delay = time.Millisecond
			}
			out = append(out, shard.SendEntry{Message: m, Delay: delay})
			k.promise[q][body] = true
		}
		_, err = k.engine.Send(t.Context(), q, out)
		must(err)
		if r.IntN(3) == 0 {
			got, err := k.engine.Receive(t.Context(), shard.ReceiveRequest{Queue: q, Max: 10, Visibility: time.Millisecond})
			must(err)
			if len(got) > 0 && r.IntN(2) == 0 {
				_, err := k.engine.DeleteMessages(t.Context(), q, []string{got[0].ReceiptHandle})
				must(err)
				delete(k.promise[q], string(got[0].Body))
			}
		}
		if r.IntN(20) == 0 {
			k.close()
			must(k.open(false))
		}
	}
	k.close()
	if r.IntN(3) > 0 { // what there is goes from the log into tables
		must(k.open(false))
		k.close()
	}
	return k
}

func (k *kept) read(path string) []byte {
	f, err := k.fs.Open(path)
	if err != nil {
		k.Fatal(err)
	}
	defer f.Close()
	p, err := io.ReadAll(f)
	if err != nil {
		k.Fatal(err)
	}
	return p
}

func (k *kept) write(path string, p []byte) error {
	f, err := k.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(p)
	return errors.Join(err, f.Sync(), f.Close())
}

// missing receives all that there is, and counts what was promised and is not there.
func (k *kept) missing() (n int) {
	k.Helper()
	if _, err := k.clock.Advance(k.Context(), 2*time.Millisecond); err != nil { // past the leases of a millisecond
		k.Fatal(err)
	}
	for q, bodies := range k.promise {
		left := len(bodies)
		seen := map[string]bool{}
		for empty := 0; empty < 5; {
			got, err := k.engine.Receive(context.Background(), shard.ReceiveRequest{Queue: q, Max: 10, Visibility: time.Hour})
			if fault.KindOf(err) == fault.QueueDoesNotExist {
				break // with its name
			}
			if err != nil {
				k.Errorf("%s: %v", q, err)
				return n
			}
			if len(got) == 0 {
				empty++
			}
			for _, m := range got {
				if bodies[string(m.Body)] && !seen[string(m.Body)] {
					left--
				}
				seen[string(m.Body)] = true
			}
			var handles []string
			for _, m := range got {
				handles = append(handles, m.ReceiptHandle)
			}
			if !q.FIFO() {
				continue
			}
			if _, err := k.engine.DeleteMessages(context.Background(), q, handles); err != nil {
				k.Errorf("%s: %v", q, err)
			}
		}
		n += left
	}
	return n
}

// TestDamagedData: whatever happens to any file of a data directory, the server
// starts and serves what is left, or refuses with a way out that works; and what is
// missing is reported.
func TestDamagedData(t *testing.T) {
	soak.Campaign(t, soak.Size(1, 3), func(t *testing.T, seed uint64) {
		testDamagedData(t, soak.Rand(seed, 0), fmt.Sprintf("seed %d", seed))
	})
}

func testDamagedData(t *testing.T, r *rand.Rand, what string) {
	k := keep(t, r)
	var checked bytes.Buffer
	if ok, err := checkIn(k.fs, k.data, &checked); err != nil || !ok {
		t.Errorf("%s: before: %v\n%s", what, err, &checked)
		return
	}
	dir := filepath.Join(k.data, "store")
	names, err := k.fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := names[r.IntN(len(names))]
	for n := range 20 { // markers and options are many, and small
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob") || strings.HasSuffix(name, ".log") || n > r.IntN(20) {
			break
		}
		name = names[r.IntN(len(names))]
	}
	path := filepath.Join(dir, name)
	content := k.read(path)
	kind := r.IntN(4)
	switch {
	case kind == 0:
		err = k.fs.Remove(path)
	case kind == 1 && len(content) > 0:
		err = k.write(path, content[:r.IntN(len(content))])
	case len(content) > 0:
		content[r.IntN(len(content))] ^= 1 << r.IntN(8)
		err = k.write(path, content)
	}
	if err != nil {
		t.Fatal(err)
	}
	what = fmt.Sprintf("%s: damage %d of %s", what, kind, name)
	checked.Reset()
	ok, err := checkIn(k.fs, k.data, &checked)
	if err != nil {
		t.Errorf("%s: check: %v", what, err)
	}
	if err := k.open(false); err != nil {
		if ok || !strings.Contains(checked.String(), "a start is refused") {
			t.Errorf("%s: the start says %v, and check\n%s", what, err, &checked)
		}
		text := err.Error()
		if !strings.Contains(text, "godwit salvage") {
			t.Errorf("%s: refused without a way out: %v", what, err)
		}
		to := "new"
		var report bytes.Buffer
		whole, err := salvageIn(k.fs, k.data, to, slog.New(slog.DiscardHandler), &report, nil)
		if err != nil {
			t.Errorf("%s: salvage: %v", what, err)
			return
		}
		k.data = to
		if err := k.open(false); err != nil {
			t.Errorf("%s: what was salvaged does not open: %v\n%s", what, err, &report)
			return
		}
		if n := k.missing(); n > 0 && whole {
			t.Errorf("%s: %d messages were not salvaged, and the report says\n%s", what, n, &report)
		}
		k.close()
		return
	}
	if strings.Contains(checked.String(), "a start is refused") {
		t.Errorf("%s: the server starts, and check says\n%s", what, &checked)
	}
	n := k.missing()
	if n > 0 && (k.store.Damage() == nil || !strings.Contains(k.log.String(), "cannot be read")) {
		t.Errorf("%s: %d messages are missing without a word:\n%s\ncheck says\n%s", what, n, &k.log, &checked)
	}
	if n > 0 && ok {
		t.Errorf("%s: %d messages are missing, and check finds nothing:\n%s", what, n, &k.log)
	}
	k.close()
}

// TestCheckOfNoData: what is no data directory is no sound one.
func TestCheckOfNoData(t *testing.T) {
	if ok, err := Check(t.TempDir(), io.Discard); ok || err == nil {
		t.Error("an empty directory is sound")
	}
}

// TestEmptiedFiles: files that were cut to nothing, all of them or those that say what is whole, are
// told by a check and by a salvage.
func TestEmptiedFiles(t *testing.T) {
	for what, of := range map[string]func(name string) bool{
		"all files":         func(string) bool { return true },
		"the MANIFEST":      func(name string) bool { return strings.HasPrefix(name, "MANIFEST-") },
		"the format":        func(name string) bool { return name == "godwit-format" },
		"the logs and mark": func(name string) bool { return strings.HasSuffix(name, ".log") || name == "godwit-mark" },
	} {
		k := keep(t, soak.Rand(1, 0))
		dir := filepath.Join(k.data, "store")
		names, err := k.fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if of(name) && !strings.HasPrefix(name, "marker.") && name != "LOCK" {
				if err := k.write(filepath.Join(dir, name), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		var out bytes.Buffer
		if ok, err := checkIn(k.fs, k.data, &out); err != nil || ok {
			t.Errorf("check without the content of %s: %v, %v\n%s", what, ok, err, &out)
		}
		out.Reset()
		if whole, err := salvageIn(k.fs, k.data, "new", slog.New(slog.DiscardHandler), &out, nil); err != nil || whole {
			t.Errorf("salvage without the content of %s: %v, %v\n%s", what, whole, err, &out)
		}
	}
}

// readonly is a file system that is mounted for reading only.
type readonly struct{ vfs.FS }

func refuse(name string) error { return &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS} }

func (readonly) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refuse(name)
}

func (readonly) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, refuse(name)
}

func (readonly) ReuseForWrite(_, name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refuse(name)
}
func (readonly) Lock(name string) (io.Closer, error)       { return nil, refuse(name) }
func (readonly) Link(_, name string) error                 { return refuse(name) }
func (readonly) Rename(_, name string) error               { return refuse(name) }
func (readonly) Remove(name string) error                  { return refuse(name) }
func (readonly) RemoveAll(name string) error               { return refuse(name) }
func (readonly) MkdirAll(name string, _ fs.FileMode) error { return refuse(name) }

// TestCheckWithoutWriting: data can be checked where nothing can be written, and a check of a
// copy leaves nothing in it.
func TestCheckWithoutWriting(t *testing.T) {
	k := keep(t, soak.Rand(1, 0))
	var out bytes.Buffer
	if ok, err := checkIn(readonly{k.fs}, k.data, &out); err != nil || !ok {
		t.Errorf("where nothing can be written: %v %v\n%s", ok, err, &out)
	}
	lock := filepath.Join(k.data, "store", "LOCK")
	if err := k.fs.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if ok, err := checkBy(check.RunCopy, k.fs, k.data, &out); err != nil || !ok {
		t.Errorf("of a copy: %v %v\n%s", ok, err, &out)
	}
	if _, err := k.fs.Stat(lock); err == nil {
		t.Error("it leaves a lock in a copy")
	}
}

// TestSalvageOfARunningServer: data that a server writes to is not copied in the middle of that, and
// nothing of it is in the other directory.
func TestSalvageOfARunningServer(t *testing.T) {
	k := &kept{T: t, fs: vfs.NewMem(), data: "data", clock: clock.NewVirtual(clock.System.Now())}
	if err := k.open(false); err != nil {
		t.Fatal(err)
	}
	if _, err := salvageIn(k.fs, k.data, "copy", slog.New(slog.DiscardHandler), io.Discard, nil); !errors.Is(err, pebble.ErrInUse) {
		t.Errorf("a salvage of a store that is open: %v", err)
	}
	if _, err := k.fs.Stat("copy"); err == nil {
		t.Error("it has made the other directory")
	}
	k.close()
	var out bytes.Buffer
	if whole, err := salvageIn(k.fs, k.data, "copy", slog.New(slog.DiscardHandler), &out, nil); err != nil || !whole {
		t.Errorf("when it is closed: %v, %v\n%s", whole, err, &out)
	}
}

// TestSalvageToAFullDisk: a copy whose disk is full ends with that, and does not wait for space.
func TestSalvageToAFullDisk(t *testing.T) {
	waits := make(chan struct{})
	defer close(waits)
	_, err := untilFull("copy", func(full func()) (bool, error) {
		full()
		full()
		<-waits
		return true, nil
	})
	if err == nil || !strings.Contains(err.Error(), "the disk of copy is full") {
		t.Errorf("%v", err)
	}
	if whole, err := untilFull("copy", func(func()) (bool, error) { return true, nil }); !whole || err != nil {
		t.Errorf("with space: %v, %v", whole, err)
	}
}

// TestCheckOfASalvagedCopy: what a salvage lost is no damage of its copy, and neither
// is a start, a check or another salvage told that it is.
func TestCheckOfASalvagedCopy(t *testing.T) {
	k := &kept{T: t, fs: vfs.NewMem(), data: "data", clock: clock.NewVirtual(clock.System.Now()), promise: map[arn.ARN]map[string]bool{}}
	if err := k.open(false); err != nil {
		t.Fatal(err)
	}
	q := queueName("plain")
	if err := k.engine.CreateQueue(t.Context(), shard.QueueSpec{ARN: q}); err != nil {
		t.Fatal(err)
	}
	var out []shard.SendEntry
	for id := range 3 {
		m := &message.Message{Sender: "000000000000", Body: fmt.Append(nil, "body ", id)}
		copy(m.ID[:], fmt.Sprintf("%016d", id))
		m.Seal()
		out = append(out, shard.SendEntry{Message: m})
	}
	if _, err := k.engine.Send(t.Context(), q, out); err != nil {
		t.Fatal(err)
	}
	var lost []byte // the key of a message
	it, err := k.store.Iter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		if keepPlace(it.Key()) {
			lost = bytes.Clone(it.Key())
		}
	}
	if err := it.Close(); err != nil || lost == nil {
		t.Fatal(err, lost)
	}
	b := new(mutation.Batch)
	b.Set(lost, []byte("garbage"))
	if err := k.store.Apply(store.Sync, b); err != nil {
		t.Fatal(err)
	}
	k.close()

	look := func(data string) (ok bool, text string) {
		t.Helper()
		var out bytes.Buffer
		ok, err := checkIn(k.fs, data, &out)
		if err != nil {
			t.Fatal(err)
		}
		return ok, out.String()
	}
	copyTo := func(from, to string) (whole bool, text string) {
		t.Helper()
		var out bytes.Buffer
		whole, err := salvageIn(k.fs, from, to, slog.New(slog.DiscardHandler), &out, nil)
		if err != nil {
			t.Fatal(err)
		}
		return whole, out.String()
	}
	if ok, text := look(k.data); ok || !strings.Contains(text, "unreadable: "+q.String()+": 1 ×") || !strings.Contains(text, "godwit salvage") {
		t.Errorf("of the damaged one: %v\n%s", ok, text)
	}
	if whole, text := copyTo(k.data, "copy"); whole || !strings.Contains(text, "unreadable: "+q.String()+": 1 ×") {
		t.Errorf("the salvage: %v\n%s", whole, text)
	}
	if ok, text := look("copy"); !ok || !strings.Contains(text, "lost earlier: "+q.String()+": 1 ×") || strings.Contains(text, "godwit salvage") || strings.Contains(text, "unreadable") {
		t.Errorf("of the copy: %v\n%s", ok, text)
	}
	if whole, text := copyTo("copy", "again"); !whole || !strings.Contains(text, "lost earlier: "+q.String()+": 1 ×") {
		t.Errorf("the second salvage: %v\n%s", whole, text)
	}
	if ok, text := look("again"); !ok || !strings.Contains(text, "lost earlier: "+q.String()+": 1 ×") {
		t.Errorf("of the second copy: %v\n%s", ok, text)
	}
}

// TestCheckOfWhatAStartNeeds: a check says that a start is refused where it is, and not for what
// costs only a message.
func TestCheckOfWhatAStartNeeds(t *testing.T) {
	for _, tt := range []struct {
		of      keyspace.ID
		refused bool
	}{{keyspace.KindQueue, true}, {keyspace.KindMessage, false}} {
		k := keep(t, soak.Rand(1, 0))
		if err := k.open(false); err != nil {
			t.Fatal(err)
		}
		b := new(mutation.Batch)
		err := store.Each(k.store, keyspace.Span{}, func(key, _ []byte) error {
			if of, err := keyspace.Parse(key); err == nil && of.ID == tt.of && b.Len() == 0 {
				b.Set(bytes.Clone(key), []byte("garbage"))
			}
			return nil
		})
		if err := errors.Join(err, k.store.Apply(store.Sync, b)); err != nil || b.Len() == 0 {
			t.Fatal(err, b.Len())
		}
		k.close()
		var out bytes.Buffer
		if ok, err := checkIn(k.fs, k.data, &out); ok || err != nil || strings.Contains(out.String(), "a start is refused") != tt.refused {
			t.Errorf("without a record of kind %v: %v, %v\n%s", tt.of, ok, err, &out)
		}
		err = k.open(false)
		if (err != nil) != tt.refused {
			t.Errorf("without a record of kind %v, a start says %v", tt.of, err)
		}
		if err == nil {
			k.close()
		}
	}
}

// TestSalvagedQueueWithoutAName: the messages of a queue whose own record is lost are
// salvaged under another name, in their order.
func TestSalvagedQueueWithoutAName(t *testing.T) {
	k := keep(t, rand.New(rand.NewPCG(1, 2)))
	if err := k.open(false); err != nil {
		t.Fatal(err)
	}
	b := new(mutation.Batch)
	it, err := k.store.Iter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		if key, err := keyspace.Parse(it.Key()); err == nil && key.ID == keyspace.KindQueue {
			if name, _ := key.Text(keyspace.PartName); name != "late" {
				b.Delete(bytes.Clone(it.Key()))
			}
		}
	}
	if err := errors.Join(it.Close(), k.store.Apply(store.Sync, b)); err != nil || b.Len() != 3 {
		t.Fatal(err, b.Len())
	}
	k.close()
	var report bytes.Buffer
	if whole, err := salvageIn(k.fs, k.data, "new", slog.New(slog.DiscardHandler), &report, nil); err != nil || whole {
		t.Fatalf("%v, %v\n%s", whole, err, &report)
	}
	k.data = "new"
	if err := k.open(false); err != nil {
		t.Fatal(err)
	}
	defer k.close()
	names, _, err := k.engine.ListQueues(t.Context(), "us-east-1", "000000000000", "", "", 10)
	if err != nil || len(names) != len(keptQueues) {
		t.Fatalf("%v, %v\n%s", names, err, &report)
	}
	// The first word of a body is its queue's name.
	former := map[string]map[string]bool{}
	for q, bodies := range k.promise {
		former[q.Resource] = bodies
	}
	k.promise = map[arn.ARN]map[string]bool{}
	for _, name := range names {
		q := queueName(name)
		got, err := k.engine.Receive(t.Context(), shard.ReceiveRequest{Queue: q, Max: 1, Visibility: 0})
		if err != nil || len(got) == 0 {
			t.Fatalf("%s: %d messages, %v\n%s", name, len(got), err, &report)
		}
		was, _, _ := strings.Cut(string(got[0].Body), " ")
		if q.FIFO() != (was == "order.fifo") || (name != was) != strings.HasPrefix(name, "salvaged-") || name != was && !strings.Contains(report.String(), name) {
			t.Errorf("%s is %s now\n%s", was, name, &report)
		}
		k.promise[q] = former[was]
	}
	if n := k.missing(); n > 0 || len(k.promise) != len(former) {
		t.Errorf("%d messages are missing, of %d queues\n%s", n, len(k.promise), &report)
	}
	if ok, err := checkIn(k.fs, "data", io.Discard); !ok || err != nil {
		t.Errorf("what was salvaged from has changed: %v", err)
	}
}
