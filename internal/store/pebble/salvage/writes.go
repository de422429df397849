package salvage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/files"
)

// writes sorts all writes by key, the latest first.
type writes struct {
	db     *engine.DB
	batch  *engine.Batch
	ranges []deletion
}

type deletion struct {
	from, to []byte
	sequence uint64
}

func newWrites(f vfs.FS, dir string) (*writes, error) {
	db, err := engine.Open(dir, &engine.Options{
		FS: f, DisableWAL: true, MemTableSize: 16 << 20, FormatMajorVersion: engine.FormatNewest, Logger: quiet{},
	})
	if err != nil {
		return nil, err
	}
	return &writes{db: db, batch: db.NewBatch()}, nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// The first byte of a write's value in the scratch store.
const (
	isSet     = 's'
	isDeleted = 'd'
	isDamaged = 'x' // the value is the error's text
	isCovered = 'c' // a covered record, with the sequence (8) at which it was copied aside
)

// place is the scratch key of a write: its key, encoded so that none is a prefix of another,
// and its sequence, the latest first. The covered record follows all writes of the key.
func place(key []byte, sequence uint64) []byte {
	p := make([]byte, 0, len(key)+12)
	for _, b := range key {
		if p = append(p, b); b == 0 {
			p = append(p, 0xff)
		}
	}
	return binary.BigEndian.AppendUint64(append(p, 0, 1), ^sequence)
}

func readPlace(p []byte) (key []byte, sequence uint64) {
	sequence = ^binary.BigEndian.Uint64(p[len(p)-8:])
	for i, rest := 0, p[:len(p)-10]; i < len(rest); i++ {
		if key = append(key, rest[i]); rest[i] == 0 {
			i++
		}
	}
	return key, sequence
}

func (w *writes) add(write files.Write) error {
	var value []byte
	if key, ok := badblocks.ParseCovered(write.Key); ok {
		if write.Kind != files.Set || write.Err != nil {
			return nil
		}
		kept := binary.BigEndian.AppendUint64([]byte{isCovered}, write.Sequence)
		return w.set(place(key, 0), append(kept, write.Value...))
	}
	switch write.Kind {
	case files.DeleteRange:
		w.ranges = append(w.ranges, deletion{bytes.Clone(write.Key), bytes.Clone(write.Value), write.Sequence})
		return nil
	case files.Delete, files.SingleDelete:
		value = []byte{isDeleted}
	case files.Set, uint8(engine.InternalKeyKindSetWithDelete):
		value = append([]byte{isSet}, write.Value...)
		if write.Err != nil {
			value = append([]byte{isDamaged}, write.Err.Error()...)
		}
	default:
		return nil // not used by our stores
	}
	return w.set(place(write.Key, write.Sequence+1), value)
}

func (w *writes) set(at, value []byte) error {
	if err := w.batch.Set(at, value, nil); err != nil {
		return err
	}
	if w.batch.Len() < 1<<20 {
		return nil
	}
	return w.flush()
}

func (w *writes) flush() error {
	err := w.batch.Commit(engine.NoSync)
	w.batch = w.db.NewBatch()
	return err
}

// latest calls f with every key that is not deleted, in order.
func (w *writes) latest(f func(key, value []byte, damage error) error) error {
	if err := w.flush(); err != nil {
		return err
	}
	slices.SortFunc(w.ranges, func(a, b deletion) int { return bytes.Compare(a.from, b.from) })
	it, err := w.db.NewIter(nil)
	if err != nil {
		return err
	}
	var active []deletion
	next := 0
	var last []byte
	begun, deleted := false, uint64(0) // sequence of the latest write of last if it is a deletion; 0: it is none
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		key, at := readPlace(it.Key())
		value := it.Value()
		again := begun && bytes.Equal(key, last)
		if again && (deleted == 0 || value[0] != isCovered) {
			continue
		}
		for ; next < len(w.ranges) && bytes.Compare(w.ranges[next].from, key) <= 0; next++ {
			active = append(active, w.ranges[next])
		}
		active = slices.DeleteFunc(active, func(d deletion) bool { return bytes.Compare(d.to, key) <= 0 })
		sequence := at - 1
		if value[0] == isCovered {
			sequence = binary.BigEndian.Uint64(value[1:])
			if again && sequence > 0 && deleted > sequence { // deleted since
				continue
			}
		}
		last, begun, deleted = key, true, 0
		for _, d := range active {
			if d.sequence > sequence {
				deleted = max(deleted, d.sequence)
			}
		}
		if deleted > 0 {
			continue
		}
		switch value[0] {
		case isSet:
			err = f(key, value[1:], nil)
		case isCovered:
			err = f(key, value[9:], nil)
		case isDamaged:
			err = f(key, nil, errors.New(string(value[1:])))
		case isDeleted:
			deleted = max(sequence, 1)
		}
	}
	return cmp.Or(err, it.Close())
}

func (w *writes) close() error { return errors.Join(w.batch.Close(), w.db.Close()) }
