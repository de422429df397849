package files_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/files"
)

// logFile is what a log's writer has written and synced.
type logFile struct{ bytes.Buffer }

func (*logFile) Sync() error { return nil }

// logOf is a log with two synced batches, the second of size bytes, which was not closed. Its
// number is 4, or 3.
func logOf(t *testing.T, number, size int) []byte {
	t.Helper()
	var f logFile
	o := record.LogWriterConfig{WriteWALSyncOffsets: func() bool { return true }}
	var w *record.LogWriter
	if number == 3 {
		w = record.NewLogWriter(&f, 3, o)
	} else {
		w = record.NewLogWriter(&f, 4, o)
	}
	for _, n := range []int{20, size} {
		batch := make([]byte, n)
		batchrepr.SetSeqNum(batch, 1)
		batchrepr.SetCount(batch, 1)
		var synced sync.WaitGroup
		synced.Add(1)
		var err error
		_, failed := w.SyncRecord(batch, &synced, &err)
		check(t, failed)
		synced.Wait()
		check(t, err)
	}
	written := bytes.Clone(f.Bytes())
	check(t, w.Close())
	return written
}

// TestPadding: what is left of a block behind its last chunk, if no other begins there, belongs
// to what is durable, so that a crash at that moment is no damage.
func TestPadding(t *testing.T) {
	const block = 32 << 10
	fs := vfs.NewMem()
	old := logOf(t, 3, 100)
	padded := 0
	for size := block - 120; size < block; size++ {
		log := logOf(t, 4, size)
		if len(log) == block {
			padded++
		}
		for name, behind := range map[string][]byte{"alone": nil, "recycled": old} {
			path := fmt.Sprint("000004.log", size, name)
			f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
			check(t, err)
			_, err = f.Write(append(bytes.Clone(log), behind...))
			check(t, err)
			check(t, f.Close())
			e, err := files.ReadLog(fs, path, 4, false, nil)
			check(t, err)
			if e.Records != 2 || e.Valid != int64(len(log)) {
				t.Errorf("%s: of a log of %d bytes, %d bytes with %d records are valid", name, len(log), e.Valid, e.Records)
			}
		}
	}
	if padded < 10 {
		t.Errorf("only %d logs ended in padding", padded)
	}
}
