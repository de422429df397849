package pebble

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/pace"
)

const (
	// repairRetryDelay is the time between a failed repair and the next.
	repairRetryDelay = 10 * time.Second

	// One commit covers at most about coverRecords records, or coverBytes bytes: other
	// writes wait meanwhile.
	coverRecords = 256
	coverBytes   = 1 << 20

	maxWanted = 100 // files, and blocks of each

	// More than a block of a blob file can hold.
	maxValues = 1 << 16
)

// repairs replace damaged blocks, so that compactions do not fail on them. For a damaged
// block of a table, a note names the keys that it may hold. Older versions of these keys in
// lower levels, which would become visible without the block, are covered: deleted, and copied
// aside in the same commits. Then reads of the file see an empty block in its place. Reads of
// the keys still find nothing, and DamageIn still says why. For a damaged block of a blob file,
// the note has the keys that refer to it, and reads see a block of empty values.
type repairs struct {
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	run   pace.Delayed
	one   sync.Mutex // held while repairs run
	notes *badblocks.Notes

	mu      sync.Mutex // guards what follows
	begin   func()     // nil: the store is not open yet
	running bool       // files that are added to wanted meanwhile are repaired afterwards
	wanted  map[string]places
	stuck   map[string]bool // files that cannot be repaired

	// Held shared while a write is applied, and exclusively while records are covered.
	writing sync.RWMutex
	views   pace.Views
}

// places are damaged blocks of a file: lengths by offset, in bytes.
type places map[int64]int64

// want schedules the repair of a file. It may be called with any lock held.
func (c *repairs) want(file string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.wanted[file]
	if c.stuck[file] || of == nil && len(c.wanted) >= maxWanted || len(of) >= maxWanted {
		return
	}
	if of == nil {
		of = places{}
		c.wanted[file] = of
	}
	if b, ok := badblocks.Place(err); ok {
		of[b.Offset] = b.Length
	}
	if c.begin != nil && !c.running {
		c.run.After(0, c.begin)
	}
}

// isStuck reports whether there is damage that cannot be repaired.
func (c *repairs) isStuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.stuck) > 0
}

// opened starts the repairs that were scheduled before the store was open.
func (c *repairs) opened(run func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin = run
	if len(c.wanted) > 0 {
		c.run.After(0, run)
	}
}

// end stops the repairs.
func (c *repairs) end() {
	c.run.Refuse()
	c.stop()
	c.run.End()
}

// errStuck reports damage that cannot be replaced.
var errStuck = errors.New("compactions cannot go past it")

// repair repairs the files that are scheduled.
func (s *Store) repair() {
	c := &s.repairs
	c.one.Lock()
	defer c.one.Unlock()
	c.mu.Lock()
	wanted := c.wanted
	c.wanted, c.running = map[string]places{}, true
	maps.DeleteFunc(wanted, func(name string, _ places) bool { return c.stuck[name] }) // meanwhile
	c.mu.Unlock()
	repaired, wait := false, time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if c.ctx.Err() != nil {
			return
		}
		done, err := s.repairFile(name, wanted[name])
		repaired = repaired || done
		switch {
		case err == nil:
		case c.ctx.Err() != nil || s.failed() != nil:
			return
		case errors.Is(err, errStuck):
			c.mu.Lock()
			c.stuck[name] = true
			c.mu.Unlock()
			s.damage.rename(name, err)
			s.log.Error("damage stays in the way of compactions: what is written takes more and more space until the store is salvaged",
				"file", name, "error", reason(err))
		default:
			wait = repairRetryDelay
			s.log.Warn("damage is not yet out of the way of compactions: it is tried again", "file", name, "error", reason(err))
			c.mu.Lock()
			if c.wanted[name] == nil {
				c.wanted[name] = places{}
			}
			maps.Copy(c.wanted[name], wanted[name])
			c.mu.Unlock()
		}
	}
	if repaired {
		s.compactions.Repaired()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running = false; len(c.wanted) > 0 {
		c.run.After(wait, s.repair)
	}
}

// repairFile replaces the damaged blocks of a file. done is false if there was none.
func (s *Store) repairFile(name string, at places) (done bool, err error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.using.RUnlock()
	stem, suffix, _ := strings.Cut(name, ".")
	number, err := strconv.ParseUint(stem, 10, 64)
	if err != nil {
		return false, nil // neither a table nor a blob file
	}
	// An open iterator keeps the files of the version from being deleted.
	pin, err := s.db.NewIter(nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = pin.Close() }()
	v, err := s.version()
	if err != nil {
		return false, err
	}
	if suffix == "sst" {
		return s.repairTable(v, number, name, at)
	}
	return s.repairValues(v, number, name, at)
}

// version reads the current version from the manifest.
func (s *Store) version() (*files.Version, error) {
	list, err := files.List(s.fs, s.dir)
	if err != nil {
		return nil, err
	}
	v, _, err := files.ReadManifest(s.fs, s.fs.PathJoin(s.dir, list.ManifestMarker), false)
	return v, err
}

// repairTable replaces the damaged blocks of a table.
func (s *Store) repairTable(v *files.Version, number uint64, name string, at places) (done bool, err error) {
	before, _ := s.repairs.notes.Of(name)
	known := func(offset int64) bool {
		return slices.ContainsFunc(before.Blocks, func(b badblocks.Block) bool { return b.Offset == offset })
	}
	if before.Ready && len(at) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(at)), func(offset int64) bool { return !known(offset) }) {
		return false, nil // all are replaced
	}
	level := -1
	var smallest []byte
	for _, t := range v.Tables {
		if t.File != number {
			continue
		}
		if level < 0 || bytes.Compare(t.Smallest, smallest) < 0 {
			smallest = t.Smallest
		}
		level = t.Level
	}
	if level < 0 {
		return false, nil // it was compacted meanwhile
	}
	path := s.fs.PathJoin(s.dir, name)
	flips, err := files.Mend(s.fs, path, false, 0, 0)
	var bad []files.Block
	if err == nil {
		bad, err = files.DamagedBlocks(files.Flipped(s.fs, flips), path)
	}
	if errors.Is(err, files.ErrUnreadable) {
		return false, fmt.Errorf("%w: %w", errStuck, err)
	}
	if err != nil || len(bad)+len(flips) == 0 {
		return false, err
	}
	note := badblocks.Note{File: name, Found: clock.System.Now(), Flips: flips}
	for _, b := range bad {
		key := b.First // at most the block's first key, so that the table stays sorted
		if len(key) == 0 {
			key = smallest
		}
		if bytes.Compare(key, b.Last) > 0 {
			key = b.Last
		}
		note.Blocks = append(note.Blocks, badblocks.Block{Offset: b.Offset, Length: b.Length, Key: key, Sequence: v.LargestSequence(level) + 1})
		note.Spans = append(note.Spans, badblocks.Span{From: b.From, Last: b.Last})
	}
	note.Reason = damageOf(&note)
	if before.Ready && len(before.Flips) == len(flips) && !slices.ContainsFunc(bad, func(b files.Block) bool { return !known(b.Offset) }) {
		return false, nil
	}
	if err := s.repairs.notes.Check(&note); err != nil {
		return false, fmt.Errorf("%w: %w", errStuck, err)
	}
	if err := s.note(&note); err != nil {
		return false, err
	}
	covered, err := s.cover(v, number, level, &note)
	if err != nil {
		return false, err
	}
	if err := s.repairs.views.Pass(s.repairs.ctx); err != nil {
		return false, err
	}
	note.Ready = true
	return s.replace(&note, covered)
}

// note makes a note durable, and shows it to readers.
func (s *Store) note(note *badblocks.Note) error {
	if err := s.repairs.notes.Put(*note); err != nil {
		return err
	}
	s.blocks.Keep(note.File)
	s.damage.note(note)
	return nil
}

// replace makes reads see substitutes of a note's blocks, which are ready.
func (s *Store) replace(note *badblocks.Note, covered int) (done bool, err error) {
	if err := s.note(note); err != nil {
		return false, err
	}
	if err := s.blocks.Patch(note); err != nil {
		return false, fmt.Errorf("%w: %w", errStuck, err)
	}
	for _, span := range note.Spans {
		s.log.Error("records cannot be read and are left out", "from", s.describe(span.From), "to", s.describe(span.Last), "file", note.File)
	}
	s.log.Warn("damage is out of the way of compactions", "file", note.File, "blocks", len(note.Blocks), "covered", covered)
	return true, nil
}

// covering is an older record in a level below a damaged block.
type covering struct {
	key, value []byte
	stored     bool // it has a readable value
	standIn    bool // it is the key of the block that replaces a damaged one
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// cover deletes the records in lower levels that would become visible without a table's damaged
// blocks, and copies them aside. They are those whose reads fail now. It returns how many they
// were.
func (s *Store) cover(v *files.Version, number uint64, level int, note *badblocks.Note) (covered int, err error) {
	below := slices.DeleteFunc(slices.Collect(maps.Values(v.Tables)), func(t files.Table) bool {
		return t.File == number || t.Level < level || t.Level == level && level > 0
	})
	slices.SortFunc(below, func(a, b files.Table) int { // the latest first
		return cmp.Or(cmp.Compare(a.Level, b.Level), -cmp.Compare(a.LargestSequence, b.LargestSequence), cmp.Compare(a.Number, b.Number))
	})
	var batch []covering
	size := 0
	flush := func() error {
		n, err := s.coverBatch(number, batch)
		covered += n
		batch, size = batch[:0], 0
		return err
	}
	for i := range below {
		t := &below[i]
		for _, span := range note.Spans {
			if bytes.Compare(t.Smallest, span.Last) > 0 || bytes.Compare(t.Largest, span.From) < 0 {
				continue
			}
			if err := s.candidates(v, t, span, func(w files.Write) error {
				c := covering{key: bytes.Clone(w.Key), stored: w.Err == nil && (w.Kind == files.Set || w.Kind == uint8(pebble.InternalKeyKindSetWithDelete))}
				if c.stored {
					c.value = bytes.Clone(w.Value)
				}
				batch = append(batch, c)
				if size += len(c.key) + len(c.value); size < coverBytes && len(batch) < coverRecords {
					return nil
				}
				return flush()
			}); err != nil {
				return covered, err
			}
		}
		if err := flush(); err != nil { // so that the newest write of a key comes first
			return covered, err
		}
	}
	for _, block := range note.Blocks {
		batch = append(batch, covering{key: block.Key, standIn: true})
	}
	return covered, flush()
}

// candidates calls f for the writes of a table in a span of keys. It begins with no table once the store
// is closed: in a damaged one f may be called for nothing, while each block that is read takes tenths of a
// second, in which Pebble looks for the bit that has flipped.
func (s *Store) candidates(v *files.Version, t *files.Table, span badblocks.Span, f func(files.Write) error) error {
	if err := s.repairs.ctx.Err(); err != nil {
		return err
	}
	numbers := make([]uint64, len(t.Values))
	for i, id := range t.Values {
		numbers[i] = v.Values[id]
	}
	values := files.NewValues(s.blocks, s.dir, numbers)
	defer values.Close()
	_, err := files.ReadPoints(s.blocks, s.fs.PathJoin(s.dir, files.TableName(t.File)), values, span.From, func(w files.Write) error {
		if bytes.Compare(w.Key, span.Last) > 0 {
			return errEnough
		}
		if s.repairs.ctx.Err() != nil {
			return s.repairs.ctx.Err()
		}
		return f(w)
	})
	if errors.Is(err, errEnough) || errors.Is(err, files.ErrUnreadable) && !errors.Is(err, fs.ErrNotExist) {
		return nil // unreadable records there do not become visible either
	}
	return err
}

// coverBatch deletes the records of a batch whose reads fail, and copies them aside.
func (s *Store) coverBatch(number uint64, batch []covering) (covered int, err error) {
	if len(batch) == 0 {
		return 0, nil
	}
	s.repairs.writing.Lock()
	defer s.repairs.writing.Unlock()
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	for i := range batch {
		c := &batch[i]
		// If there is a newer record, the read does not reach the damaged table.
		value, there, bad := get(s.db, nil, c.key)
		switch {
		case there && bad == nil && c.standIn:
			// The substitute block deletes its key, so the value is written again.
			if err := errors.Join(b.Delete(c.key, nil), b.Set(c.key, value, nil)); err != nil {
				return 0, err
			}
			continue
		case bad == nil || isDamage(bad) && strings.HasSuffix(damagedFile(bad), badblocks.ValuesSuffix):
			continue
		case !isDamage(bad):
			return 0, bad
		}
		err := b.Delete(c.key, nil)
		if c.stored {
			covered++
			err = errors.Join(err, b.Set(badblocks.Covered(number, c.key), c.value, nil))
		}
		if err != nil {
			return 0, err
		}
	}
	// A substitute block has writes with up to two higher sequence numbers: these deletes
	// use them up, so that readers see the block's writes.
	unused := badblocks.Covered(number, nil)
	if err := errors.Join(b.Delete(unused, nil), b.Delete(unused, nil)); err != nil {
		return 0, err
	}
	return covered, s.commit(b)
}

// repairValues replaces the damaged blocks of a blob file.
func (s *Store) repairValues(v *files.Version, number uint64, name string, at places) (done bool, err error) {
	if !slices.Contains(slices.Collect(maps.Values(v.Values)), number) {
		return false, nil // it was compacted meanwhile
	}
	path := s.fs.PathJoin(s.dir, name)
	note, _ := s.repairs.notes.Of(name)
	note.File, note.Found, note.Ready = name, clock.System.Now(), true
	note.Blocks, note.Spans = slices.Clone(note.Blocks), slices.Clone(note.Spans)
	mend := func(offset, length int64) error {
		flips, err := files.Mend(files.Flipped(s.fs, note.Flips), path, true, offset, length)
		note.Flips = append(slices.Clone(note.Flips), flips...)
		if errors.Is(err, files.ErrUnreadable) {
			return fmt.Errorf("%w: %w", errStuck, err)
		}
		return err
	}
	before := len(note.Blocks) + len(note.Flips)
	if len(at) == 0 { // the file cannot be opened
		if err := mend(0, 0); err != nil {
			return false, err
		}
	}
	for offset, length := range at {
		if slices.ContainsFunc(note.Blocks, func(b badblocks.Block) bool { return b.Offset == offset }) {
			continue
		}
		if err := mend(offset, length); err != nil {
			return false, err
		}
		block, err := files.ReadValuesAt(files.Flipped(s.fs, note.Flips), path, offset, length)
		if err != nil {
			return false, err
		}
		if !block.Damaged || block.Index == nil {
			continue
		}
		bad := badblocks.Block{Offset: offset, Length: length}
		for _, t := range v.Tables {
			spans, err := s.refers(v, &t, number, &block, &bad)
			if err != nil {
				return false, err
			}
			note.Spans = append(note.Spans, spans...)
		}
		note.Blocks = append(note.Blocks, bad)
	}
	if len(note.Blocks)+len(note.Flips) == before {
		return false, nil
	}
	note.Reason = damageOf(&note)
	if err := s.repairs.notes.Check(&note); err != nil {
		return false, fmt.Errorf("%w: %w", errStuck, err)
	}
	return s.replace(&note, 0)
}

// damageOf describes the damage of a note.
func damageOf(n *badblocks.Note) string {
	if len(n.Blocks) == 0 {
		return fmt.Sprintf("%d flipped bits were put right, and nothing is lost", len(n.Flips))
	}
	return fmt.Sprintf("%d of its blocks are damaged", len(n.Blocks))
}

// refers finds the keys of a table whose values are in a damaged block of a blob file, as spans
// of adjacent keys, and the lengths of the values.
func (s *Store) refers(v *files.Version, t *files.Table, number uint64, block *files.ValuesAt, bad *badblocks.Block) (spans []badblocks.Span, err error) {
	if !slices.ContainsFunc(t.Values, func(id uint64) bool { return v.Values[id] == number }) {
		return nil, nil
	}
	following := false
	name := files.TableName(t.File)
	gaps, err := files.ReadPoints(s.blocks, s.fs.PathJoin(s.dir, name), nil, nil, func(w files.Write) error {
		index, is := 0, false
		if a := w.Apart; a != nil && int(a.File) < len(t.Values) && v.Values[t.Values[a.File]] == number {
			index, is = block.Index(a.Block, a.Value)
		}
		switch {
		case s.repairs.ctx.Err() != nil:
			return s.repairs.ctx.Err()
		case !is:
			following = false
			return nil
		case following:
			spans[len(spans)-1].Last = bytes.Clone(w.Key)
		default:
			spans = append(spans, badblocks.Span{From: bytes.Clone(w.Key), Last: bytes.Clone(w.Key)})
		}
		following = true
		if index >= maxValues {
			return fmt.Errorf("%w: a value is the %dth of its block", errStuck, index)
		}
		for index >= len(bad.Values) {
			bad.Values = append(bad.Values, 0)
		}
		bad.Values[index] = w.Apart.Size
		return nil
	})
	if err == nil && len(gaps) > 0 {
		// The table is damaged, too: its references are known once it is repaired.
		s.damagedFile(name, gaps[0].Err)
		err = fmt.Errorf("%s: %w", name, gaps[0].Err)
	}
	return spans, err
}

// recall reads the notes of damage of earlier processes, before the store is opened.
func (s *Store) recall() error {
	var err error
	if s.repairs.notes, err = badblocks.Read(s.fs, s.dir); errors.Is(err, badblocks.ErrDamaged) {
		s.log.Error("what damage there was before cannot be said", "error", err.Error())
		s.damage.note(&badblocks.Note{File: badblocks.Name, Reason: "it says what else is damaged, and cannot be read"})
	} else if err != nil {
		return err
	}
	for _, note := range s.repairs.notes.All() {
		s.log.Warn("a file of the store was found to be damaged earlier", "file", note.File, "found", note.Found, "places", len(note.Spans))
		s.blocks.Keep(note.File)
		s.damage.note(&note)
		if note.Ready {
			if err := s.blocks.Patch(&note); err == nil {
				continue
			}
		}
		s.repairs.want(note.File, errors.New(note.Reason))
	}
	return nil
}

// hidden bounds the keys that a server reads: only a salvage reads the records that were copied
// aside.
func hidden(upper []byte) []byte {
	if upper == nil || bytes.Compare(upper, badblocks.Reserved) > 0 {
		return badblocks.Reserved
	}
	return upper
}
