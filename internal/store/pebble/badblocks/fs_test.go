package badblocks_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/test/soak"
)

type noLog struct{}

func (noLog) Infof(string, ...any)      {}
func (noLog) Errorf(string, ...any)     {}
func (noLog) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// A rewrite of a blob file that is the first to meet damage fails, and nothing else.
func TestRewriteMeetsDamage(t *testing.T) {
	disk := vfs.NewMem()
	b := badblocks.New(disk)
	ended := make(chan error, 100)
	name := func(i pebble.BlobFileRewriteInfo) string {
		return fmt.Sprintf("%06d.blob", uint64(i.Input.DiskFileNum))
	}
	// Only the rewrites of a store that has waste begin.
	opened := func(waste float64) *pebble.DB {
		o := &pebble.Options{
			FS: b, FormatMajorVersion: pebble.FormatValueSeparation, Logger: noLog{}, MemTableSize: 4 << 20,
			EventListener: &pebble.EventListener{
				BackgroundError:      func(error) {},
				DataCorruption:       func(pebble.DataCorruptionInfo) {},
				BlobFileRewriteBegin: func(i pebble.BlobFileRewriteInfo) { b.Rewriting(name(i), true) },
				BlobFileRewriteEnd: func(i pebble.BlobFileRewriteInfo) {
					b.Rewriting(name(i), false)
					select {
					case ended <- i.Err:
					default:
					}
				},
			},
		}
		o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
			return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 10, TargetGarbageRatio: waste}
		}
		db, err := pebble.Open("data", o)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	const records = 40
	key := func(n int) []byte { return fmt.Appendf(nil, "key %02d", n) }
	db := opened(1)
	r, value := rand.New(rand.NewPCG(1, 2)), make([]byte, 20<<10)
	for n := range records {
		for i := range value {
			value[i] = byte(r.Uint32())
		}
		if err := db.Set(key(n), value, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n := range records {
		if n%4 == 0 { // the others are waste
			continue
		}
		if n == 1 {
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Delete(key(n), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Flush(), db.Compact(t.Context(), []byte("a"), []byte("z"), false), db.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	flipped := 0
	for _, name := range names {
		if path.Ext(name) != ".blob" {
			continue
		}
		f, err := disk.OpenReadWrite("data/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		at, one := info.Size()*5/8, make([]byte, 1) // not in the first block that it reads
		if _, err := f.ReadAt(one, at); err != nil {
			t.Fatal(err)
		}
		one[0] ^= 8
		if _, err := f.WriteAt(one, at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		flipped++
	}
	if flipped == 0 {
		t.Fatal("no values stand apart")
	}
	db = opened(0.1)
	if err := errors.Join(db.Set([]byte("zz"), []byte("1"), nil), db.Flush()); err != nil { // after which it looks for waste
		t.Fatal(err)
	}
	err = <-ended
	if _, ok := errors.AsType[*badblocks.Unreadable](err); !ok {
		t.Errorf("the rewrite ended with %v", err)
	}
	if _, ok := badblocks.Place(err); !ok {
		t.Errorf("%v does not say where", err)
	}
	read := 0
	for n := 0; n < records; n += 4 {
		if _, closer, err := db.Get(key(n)); err == nil {
			read++
			_ = closer.Close()
		}
	}
	if read < records/4-flipped {
		t.Errorf("%d of %d records can be read", read, records/4)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestStandInsKeepTheOrder: a search in a table of which any block is replaced finds no
// key before the one that is sought. Pebble would begin again, for ever.
func TestStandInsKeepTheOrder(t *testing.T) {
	records := soak.Size(500, 2000)
	disk := vfs.NewMem()
	db, err := pebble.Open("data", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatValueSeparation, Logger: noLog{}})
	if err != nil {
		t.Fatal(err)
	}
	key := func(n int) []byte { return fmt.Appendf(nil, "key %06d", n) }
	r, value := rand.New(rand.NewPCG(1, 2)), make([]byte, 100)
	for n := range records {
		for i := range value {
			value[i] = byte(r.Uint32())
		}
		if err := db.Set(key(10*n), value, nil); err != nil { // so that blocks end between keys
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(names, func(name string) bool { return path.Ext(name) == ".sst" })
	name := "data/" + names[i]
	blocks := 0
	for at := int64(100); ; {
		f, err := disk.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		was := make([]byte, 1)
		if _, err := f.ReadAt(was, at); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{^was[0]}, at); err != nil {
			t.Fatal(err)
		}
		damaged, err := files.DamagedBlocks(disk, name)
		if errors.Is(err, files.ErrUnreadable) {
			break // behind the records
		}
		if err != nil || len(damaged) != 1 {
			t.Fatal(damaged, err)
		}
		blocks++
		d := damaged[0]
		note := badblocks.Note{File: path.Base(name), Blocks: []badblocks.Block{{Offset: d.Offset, Length: d.Length, Key: d.First}}}
		if len(d.First) == 0 {
			note.Blocks[0].Key = key(0)
		}
		patched := badblocks.New(disk)
		patched.Keep(note.File)
		if err := patched.Patch(&note); err != nil {
			t.Fatal(err)
		}
		searched(t, patched, name, 10*records, key)
		if _, err := f.WriteAt(was, at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		at = d.Offset + d.Length + files.BlockEnd + 100
	}
	if blocks < 3 {
		t.Errorf("%d blocks", blocks)
	}
}

// searched seeks keys of a table.
func searched(t *testing.T, fs vfs.FS, name string, keys int, key func(n int) []byte) {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		t.Fatal(err)
	}
	table, err := sstable.NewReader(t.Context(), readable, new(pebble.Options).MakeReaderOptions())
	if err != nil {
		t.Fatal(err)
	}
	it, err := table.NewIter(sstable.NoTransforms, nil, nil, sstable.DebugHandlesBlobContext)
	if err != nil {
		t.Fatal(err)
	}
	for n := range keys {
		if kv := it.SeekGE(key(n), 0); kv != nil && bytes.Compare(kv.K.UserKey, key(n)) < 0 {
			t.Errorf("%q comes at a search for %q", kv.K.UserKey, key(n))
			break
		}
	}
	var last []byte
	for kv := it.First(); kv != nil; kv = it.Next() {
		if bytes.Compare(kv.K.UserKey, last) < 0 {
			t.Errorf("%q follows %q", kv.K.UserKey, last)
		}
		last = bytes.Clone(kv.K.UserKey)
	}
	if err := errors.Join(it.Close(), table.Close()); err != nil {
		t.Error(err)
	}
}
