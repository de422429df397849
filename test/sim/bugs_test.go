package sim

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/store"
)

// storeBug is a fault between the journal and the store.
type storeBug struct {
	// rewrite changes or drops one write.
	rewrite func(k keyspace.Key, op mutation.Op, key, value []byte) (newValue []byte, keep bool)
	// sync is done in the place of the store's.
	sync func(s store.Store) error
	// files changes what the store's files do.
	files func(vfs.FS) vfs.FS
}

func (b *storeBug) apply(in *mutation.Batch) *mutation.Batch {
	out := new(mutation.Batch)
	err := in.Each(func(op mutation.Op, key, value []byte) error {
		k, err := keyspace.Parse(key)
		if err == nil {
			changed, keep := b.rewrite(k, op, key, value)
			if !keep {
				return nil
			}
			value = changed
		}
		switch op {
		case mutation.Set:
			out.Set(key, value)
		case mutation.Delete:
			out.Delete(key)
		case mutation.SingleDelete:
			out.SingleDelete(key)
		case mutation.DeleteRange:
			out.DeleteRange(key, value)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return out
}

// fault is a planted bug.
type fault struct {
	name    string
	seed    uint64
	twoStep bool // it shows only where transfers do not share a commit
	// store makes what changes what a machine writes.
	store func(w *world) *storeBug
	// request changes what the server is asked.
	request func(w *world, r *http.Request) *http.Request
}

// faults are the planted bugs. Each is one that a real change could have brought.
var faults = []fault{
	{name: "a sync is skipped", store: syncing(func(store.Store) error { return nil })},
	{name: "a reply is released before its commit", store: syncing(func(s store.Store) error {
		time.AfterFunc(8*time.Millisecond, func() { _ = s.Sync() }) // too late is too late
		return nil
	})},
	{name: "the error of a sync is ignored", seed: 1, store: syncs(ignored, logFile)},
	{name: "a sync that failed is tried again, and then believed", seed: 1, store: syncs(retried, logFile)},
	{name: "a table that cannot be synced is believed", seed: 19, store: syncs(ignored, tableFile)},
	{name: "a manifest that cannot be synced is believed", seed: 15, store: syncs(ignored, manifestFile)},
	{name: "the mark of a transfer is dropped", seed: 1, twoStep: true, store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		return value, k.ID != keyspace.KindTransfer || op != mutation.Set
	})},
	{name: "a dead letter is lost", seed: 1, store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		lane, _ := k.Number("lane")
		return value, k.ID != keyspace.KindMessage || op != mutation.Set || layout.Lane(lane) != layout.MovedLane
	})},
	{name: "a deduplication id is not written", store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		return value, k.ID != keyspace.KindDuplicate || op != mutation.Set
	})},
	{name: "the deduplication ids of a batch are not written", store: rewriting(drops(keyspace.KindDuplicateBatch, mutation.Set))},
	{name: "a lease does not end", store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		if k.ID == keyspace.KindLease && op == mutation.Set {
			value = bytes.Clone(value)
			binary.BigEndian.PutUint64(value, uint64(began.AddDate(100, 0, 0).UnixMilli()))
		}
		return value, true
	})},
	{name: "a FIFO group is unlocked too early", seed: 6, store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		if k.ID == keyspace.KindLease && op == mutation.Set && layout.Lane(binary.BigEndian.Uint64(value[stateLane:])).Grouped() {
			value = bytes.Clone(value)
			copy(value[:8], value[stateReceived:])
		}
		return value, true
	})},
	{name: "a purge keeps the messages", seed: 1, request: func(_ *world, r *http.Request) *http.Request {
		if r.Header.Get("X-Amz-Target") == "AmazonSQS.PurgeQueue" {
			r.Header.Set("X-Amz-Target", "AmazonSQS.ListQueueTags") // which is answered well, too
		}
		return r
	}},
	{name: "a redrive forgets how far it is", seed: 9, store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		if k.ID == keyspace.KindMoveTask && op == mutation.Set {
			value = moved.ReplaceAll(value, []byte(`"moved":0`))
		}
		return value, true
	})},
	{name: "a schedule of retries begins anew", seed: 64, store: rewriting(receives(func(uint32) uint32 { return 0 }))},
	{name: "a retry is counted twice", seed: 4, store: rewriting(receives(func(n uint32) uint32 { return n + 1 }))},
	{name: "a delete with an old handle deletes", seed: 58, request: func(w *world, r *http.Request) *http.Request {
		if !strings.Contains(r.Header.Get("X-Amz-Target"), "DeleteMessage") {
			return r
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		for _, old := range w.receipts {
			body = bytes.ReplaceAll(body, []byte(old.handle), []byte(old.letter.handle))
		}
		changed := newRequest(r.Method, r.URL.Path, body)
		changed.Header = r.Header
		return changed
	}},
	{name: "the cursor of a fan-out skips an entry", seed: 6, store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		if k.ID == keyspace.KindFanout && op == mutation.Set {
			const behind = "ffffffff-ffff-4fff-bfff-ffffffffffff" // all subscriptions' ids
			if n, w := binary.Uvarint(value); n == 0 {
				value = append(append([]byte{byte(len(behind))}, behind...), value[w:]...)
			}
		}
		return value, true
	})},
	{name: "a delivery stream forgets what it has begun to deliver", seed: 1, store: rewriting(drops(keyspace.KindFirehoseBatch, mutation.Set))},
	{name: "records of a delivery stream are lost", store: rewriting(drops(keyspace.KindFirehoseRecords, mutation.Set))},
	{name: "what was deleted of an identity comes back", seed: 19, store: rewriting(drops(keyspace.KindIdentity, mutation.Delete))},
	{name: "a key forgets its rotation", seed: 8, store: rewriting(drops(keyspace.KindKey, mutation.Set))},
	{name: "an alarm is not written", seed: 16, store: rewriting(drops(keyspace.KindAlarm, mutation.Set))},
	{name: "an event of a log is lost", store: rewriting(drops(keyspace.KindLogEvent, mutation.Set))},
	{name: "a queue's counters are not written", store: rewriting(func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		return value, k.ID != keyspace.KindCounters || op != mutation.Set
	})},
}

// syncs changes what comes of the syncs of some kinds of files.
func syncs(change func(sync func() error) error, kinds ...fileKind) func(*world) *storeBug {
	return func(*world) *storeBug {
		return &storeBug{files: func(f vfs.FS) vfs.FS { return &resyncedFS{f, change, kinds} }}
	}
}

type resyncedFS struct {
	vfs.FS
	change func(sync func() error) error
	kinds  []fileKind
}

func (r *resyncedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := r.FS.Create(name, category)
	if err != nil || !slices.Contains(r.kinds, kindOf(name)) {
		return f, err
	}
	return &resyncedFile{f, r.change}, nil
}

type resyncedFile struct {
	vfs.File
	change func(sync func() error) error
}

func (r *resyncedFile) Sync() error     { return r.change(r.File.Sync) }
func (r *resyncedFile) SyncData() error { return r.change(r.File.SyncData) }

func ignored(sync func() error) error {
	_ = sync()
	return nil
}

func retried(sync func() error) error {
	if err := sync(); err != nil {
		return sync()
	}
	return nil
}

// Where a State has what, as package layout writes it.
const (
	stateReceived = 24
	stateReceives = 32
	stateLane     = 40
	stateFlags    = 56
)

var moved = regexp.MustCompile(`"moved":\d+`)

func syncing(sync func(store.Store) error) func(*world) *storeBug {
	return func(*world) *storeBug { return &storeBug{sync: sync} }
}

type rewrite = func(k keyspace.Key, op mutation.Op, key, value []byte) ([]byte, bool)

func rewriting(f rewrite) func(*world) *storeBug {
	return func(*world) *storeBug { return &storeBug{rewrite: f} }
}

// drops loses writes of a kind.
func drops(kind keyspace.ID, what mutation.Op) rewrite {
	return func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		return value, k.ID != kind || op != what
	}
}

// receives changes how often a delivery was attempted that waits for its next attempt.
func receives(change func(uint32) uint32) rewrite {
	return func(k keyspace.Key, op mutation.Op, _, value []byte) ([]byte, bool) {
		if k.ID == keyspace.KindDue && op == mutation.Set && layout.Flags(value[stateFlags])&layout.History != 0 {
			value = bytes.Clone(value)
			n := binary.BigEndian.Uint32(value[stateReceives:])
			binary.BigEndian.PutUint32(value[stateReceives:], change(n))
		}
		return value, true
	}
}
