// Package salvage copies the readable records of a damaged store into a new one. It never
// writes to the source, and needs no manifest.
package salvage

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/check"
	"godwit.dev/godwit/internal/store/pebble/files"
)

// Report counts the copied and the lost records.
type Report struct {
	check.Report
	Copied   int64 // records
	Repaired int64 // records that were rebuilt from others
	// Exact says that the files in use are known from the manifest. Otherwise recently deleted
	// records may have come back.
	Exact bool
}

// Repair makes a store with lost records one that can be opened. It gets all records in the
// order of their keys, and then returns the writes that the store needs.
type Repair interface {
	See(key, value []byte)
	Repairs() *mutation.Batch
	// Lost lists what the repairs drop.
	Lost() []string
}

// Options configure Run.
type Options struct {
	FS      vfs.FS // of source and target
	Records check.Records
	Repair  Repair // nil: none
	// Keep reports whether a record whose value is lost is kept, with an empty value; nil: none
	// is.
	Keep   func(key []byte) bool
	Logger *slog.Logger
	// Full is called when the disk of the target is full, whereupon the copy waits for space.
	Full func()
}

// ErrTarget reports a target that is not new.
var ErrTarget = errors.New("the directory that is copied into must not exist, or be empty")

// scratchDir holds, in the target, every write by key and sequence during the copy: it takes as
// much space as the copy, and is removed at the end.
const scratchDir = "salvage-scratch"

// Run copies the store in the directory from into store, a directory in to, which must be new. It
// fails if a server has from open.
func Run(from, to, store string, o Options) (report *Report, err error) {
	if names, err := o.FS.List(to); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrTarget, to)
	}
	unlock, err := pebble.LockSource(o.FS, from)
	if err != nil {
		return nil, err
	}
	defer unlock()
	src, err := files.OpenSource(o.FS, from)
	if err != nil {
		return nil, err
	}
	if err := o.FS.MkdirAll(to, 0o700); err != nil {
		return nil, err
	}
	scratch := o.FS.PathJoin(to, scratchDir)
	w, err := newWrites(o.FS, scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(), o.FS.RemoveAll(scratch)) }()

	c := &copying{Options: o, report: &Report{Exact: src.Exact}, tally: check.NewTally(o.Records)}
	if err := c.noteProblems(from, src); err != nil {
		return nil, err
	}
	if err := c.sortWrites(src, w); err != nil {
		return nil, err
	}
	target, err := pebble.Open(store, pebble.Options{FS: o.FS, Logger: o.Logger, OnDiskFull: o.Full})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	c.target = target
	if err := c.copyLatest(w); err != nil {
		return nil, err
	}
	if err := c.repair(); err != nil {
		return nil, err
	}
	c.complete()
	return c.report, target.Sync()
}

// copying is a run of Run.
type copying struct {
	Options

	report *Report
	tally  *check.Tally
	target *pebble.Store
	batch  mutation.Batch // for the target
}

// noteProblems notes what of the source is known to be damaged before anything is read.
func (c *copying) noteProblems(from string, src *files.Source) error {
	for _, p := range src.Problems {
		c.tally.File(p, nil)
	}
	if err := pebble.CheckFormat(c.FS, from); err != nil {
		c.tally.File(files.Problem{File: pebble.FormatFile, Err: err}, nil)
	}
	return c.tally.Noted(c.FS, from, src.List)
}

// sortWrites reads all writes of the source, readable or not, into w.
func (c *copying) sortWrites(src *files.Source, w *writes) error {
	return src.Read(func(write files.Write) error {
		c.report.Writes++
		return w.add(write)
	}, c.tally.File)
}

// copyLatest writes the latest value of each key into the target.
func (c *copying) copyLatest(w *writes) error {
	if err := w.latest(c.copyRecord); err != nil {
		return err
	}
	return c.flush(0)
}

// copyRecord copies a record, unless its value is lost. With damage, it cannot be read.
func (c *copying) copyRecord(key, value []byte, damage error) error {
	switch {
	case damage != nil:
		c.tally.File(files.Problem{File: check.ValuesFile(damage), Err: damage}, nil)
		return c.lose(key)
	case badblocks.Lost(value):
		return c.lose(key)
	case c.Records.LostEarlier(key, value):
		c.tally.Earlier(key)
		return c.set(key, nil)
	case c.Records.Check(key, value) != nil:
		return c.lose(key)
	}
	c.Records.Add(key, value)
	c.report.Copied++
	return c.set(key, value)
}

// lose counts a record as lost, and keeps its key if that is asked for.
func (c *copying) lose(key []byte) error {
	c.tally.Record(key)
	if c.Keep == nil || !c.Keep(key) {
		return nil
	}
	return c.set(key, nil)
}

// batchBytes is how many bytes of records are written into the target together.
const batchBytes = 1 << 20

func (c *copying) set(key, value []byte) error {
	if c.Repair != nil {
		c.Repair.See(key, value)
	}
	c.batch.Set(key, value)
	return c.flush(batchBytes)
}

// flush writes the batch if it has at least so many bytes.
func (c *copying) flush(least int) error {
	if c.batch.Size() < least || c.batch.Len() == 0 {
		return nil
	}
	defer c.batch.Reset()
	return c.target.Apply(store.NoSync, &c.batch)
}

// repair makes the target one that can be opened.
func (c *copying) repair() error {
	if c.Repair == nil {
		return nil
	}
	repairs := c.Repair.Repairs()
	c.report.Repaired = int64(repairs.Len())
	return c.target.Apply(store.Sync, repairs)
}

// complete adds to the report what is lost.
func (c *copying) complete() {
	c.tally.Report(&c.report.Report)
	if c.Repair != nil {
		for _, what := range c.Repair.Lost() {
			c.report.Lost = append(c.report.Lost, check.Lost{Kind: what})
		}
	}
}
