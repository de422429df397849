package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/pace"
)

// isDamage reports that an error is about unreadable bytes, or a missing file, in the store. An
// I/O error of the disk is not damage.
func isDamage(err error) bool {
	_, unreadable := errors.AsType[*badblocks.Unreadable](err)
	return unreadable || pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist)
}

// maxDamage bounds each of the damaged files, ranges and values that are remembered.
const maxDamage = 1000

// damage is the damage that was found since the store was opened.
type damage struct {
	any   atomic.Bool
	count atomic.Int64 // of ranges and values

	mu     sync.Mutex // guards what follows
	files  map[string]string
	ranges []keyRange // in key order
	values map[string]struct{}
	noted  map[string][]keyRange // of files with replaced blocks
	warned pace.LogLimiter
}

// keyRange is [from, to); a nil to is the end of the key space.
type keyRange struct{ from, to []byte }

func (r *keyRange) has(key []byte) bool {
	return bytes.Compare(key, r.from) >= 0 && (r.to == nil || bytes.Compare(key, r.to) < 0)
}

func (r *keyRange) meets(lower, upper []byte) bool {
	return (upper == nil || bytes.Compare(r.from, upper) < 0) && (r.to == nil || bytes.Compare(lower, r.to) < 0)
}

var (
	fileName   = regexp.MustCompile(`\b\d{6,}\.(sst|blob)\b`)
	fileNumber = regexp.MustCompile(`\bfile (\d{6,})\b`)
)

// damagedFile is the name of the file that an error is about; empty: it is not known.
func damagedFile(err error) string {
	if k, ok := errors.AsType[*badblocks.Known](err); ok {
		return k.File
	}
	if u, ok := errors.AsType[*badblocks.Unreadable](err); ok {
		return u.File
	}
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return path.Base(info.Path)
	}
	if name := fileName.FindString(err.Error()); name != "" {
		return name
	}
	if m := fileNumber.FindStringSubmatch(err.Error()); m != nil {
		return m[1] + badblocks.ValuesSuffix // an error of a table names the file
	}
	return ""
}

func reason(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// damagedIn notes the damaged file of an error, and logs it once.
func (s *Store) damagedIn(err error) { s.damagedFile(damagedFile(err), err) }

func (s *Store) damagedFile(name string, err error) {
	d := &s.damage
	if name == "" {
		name = "a file of before"
	} else {
		s.blocks.Learn(name, err)
		s.repairs.want(name, err)
	}
	d.mu.Lock()
	_, known := d.files[name]
	if !known && len(d.files) < maxDamage {
		if d.files == nil {
			d.files = map[string]string{}
		}
		d.files[name] = reason(err)
	}
	d.mu.Unlock()
	d.any.Store(true)
	if !known {
		s.log.Error("a file of the store is damaged; what else there is is served on. "+
			"To see what is lost, stop godwit and run: godwit check; to get rid of it, restore a backup or run: godwit salvage",
			"file", name, "error", reason(err))
	}
}

// unreadableRange notes a range of keys that cannot be read, which iterators skip.
func (s *Store) unreadableRange(from, to []byte, err error) {
	s.damagedIn(err)
	d := &s.damage
	d.mu.Lock()
	i, known := slices.BinarySearchFunc(d.ranges, from, func(r keyRange, key []byte) int { return bytes.Compare(r.from, key) })
	if !known && len(d.ranges) < maxDamage {
		d.ranges = slices.Insert(d.ranges, i, keyRange{bytes.Clone(from), bytes.Clone(to)})
	}
	d.mu.Unlock()
	if !known {
		d.count.Add(1)
		s.log.Error("records cannot be read and are left out", "from", s.describe(from), "to", s.describe(to), "file", damagedFile(err))
	}
}

// unreadableValue notes a key whose value cannot be read.
func (s *Store) unreadableValue(key []byte, err error) {
	name := damagedFile(err)
	if !errors.Is(err, errLost) || !s.damage.any.Load() { // otherwise the damaged file is known already
		s.damagedFile(name, err)
	}
	d := &s.damage
	d.mu.Lock()
	_, known := d.values[string(key)]
	if !known && len(d.values) < maxDamage {
		if d.values == nil {
			d.values = map[string]struct{}{}
		}
		d.values[string(key)] = struct{}{}
	}
	d.mu.Unlock()
	if !known {
		d.count.Add(1)
		s.log.Error("a record cannot be read", "record", s.describe(key), "file", name)
	}
}

// Damage describes the damage that was found; nil: none was.
func (s *Store) Damage() error { return s.DamageIn(nil, nil) }

// DamageIn implements store.Damaged.
func (s *Store) DamageIn(lower, upper []byte) error {
	d := &s.damage
	if !d.any.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	in := 0
	count := func(ranges []keyRange) {
		for i := range ranges {
			if ranges[i].meets(lower, upper) {
				in++
			}
		}
	}
	count(d.ranges)
	for _, ranges := range d.noted {
		count(ranges)
	}
	for key := range d.values {
		if (&keyRange{lower, upper}).has([]byte(key)) {
			in++
		}
	}
	if in == 0 && (lower != nil || upper != nil) {
		return nil
	}
	names := make([]string, 0, len(d.files))
	for name, why := range d.files {
		names = append(names, fmt.Sprintf("%s (%s)", name, why))
	}
	slices.Sort(names)
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("%d more files", len(names)-3))
	}
	what := "and none of them is known to hold records that were asked for"
	if in > 0 {
		what = fmt.Sprintf("and with them records in %d places", in)
	}
	return fmt.Errorf("%w: %s, %s. Stop godwit and run godwit check to see what is lost; restore a backup, or run godwit salvage",
		store.ErrDamaged, strings.Join(names, ", "), what)
}

// counts is how many files are damaged, and how many ranges and values are unreadable.
func (d *damage) counts() (files, places int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ranges := range d.noted {
		places += int64(len(ranges))
	}
	return int64(len(d.files)), places + d.count.Load()
}

// rename replaces the reason for which a file is damaged.
func (d *damage) rename(file string, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files = map[string]string{}
	}
	d.files[file] = reason(why)
}

// note adds a file with replaced blocks.
func (d *damage) note(n *badblocks.Note) {
	ranges := make([]keyRange, len(n.Spans))
	for i, span := range n.Spans {
		ranges[i] = keyRange{span.From, append(bytes.Clone(span.Last), 0)}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files = map[string]string{}
	}
	if d.noted == nil {
		d.noted = map[string][]keyRange{}
	}
	d.files[n.File], d.noted[n.File] = n.Reason, ranges
	d.any.Store(true)
}

// errLost is the error of a value that salvage has replaced by a marker, as it was lost.
var errLost = errors.New("it was lost earlier")

// get is get without errors of damage: an unreadable value is empty, and an unreadable key does
// not exist.
func (s *Store) get(r pebble.Reader, dst, key []byte) ([]byte, bool, error) {
	value, ok, err := get(r, dst, key)
	if ok && badblocks.Lost(value[len(dst):]) {
		s.unreadableValue(key, errLost)
		return dst, true, nil
	}
	if err == nil || !isDamage(err) {
		return value, ok, err
	}
	// Only the table's filter may be damaged, which an iterator does not use.
	it, err := s.iter(r, key, append(bytes.Clone(key), 0))
	if err != nil {
		return dst, false, err
	}
	if ok = it.Next(); ok {
		dst = append(dst, it.Value()...)
	}
	return dst, ok, it.Close()
}

// iterator skips damage, and notes it.
type iterator struct {
	s       *Store
	it      *pebble.Iterator
	lower   []byte
	upper   []byte
	from    []byte // where the ascending scan began; nil: at lower
	passed  int    // keys returned since from, as damage may be repaired while it is skipped
	sought  []byte // backs from
	started bool
	key     []byte // the current key, if its value is unreadable; nil: it is not
	skipped bool
	open    *pace.View

	// A descending scan (back) that has skipped damage continues before it. With at, from
	// is a key there, the first to be returned. With below, pending has the keys above the
	// damage that are still to be returned before it.
	back, at, below bool
	pending         [][]byte
}

func (i *iterator) Next() bool { return i.counted(i.next()) }

func (i *iterator) counted(ok bool) bool {
	if ok {
		i.passed++
	}
	return ok
}

func (i *iterator) next() bool {
	switch key := i.key; {
	case !i.started:
		i.started = true
		return i.it.First() || i.past()
	case key != nil:
		i.key = nil
		return i.fresh().SeekGE(append(key, 0)) || i.past()
	}
	return i.it.Next() || i.past()
}

func (i *iterator) Prev() bool { return i.counted(i.prev()) }

func (i *iterator) prev() bool {
	switch key := i.key; {
	case !i.started:
		i.started, i.back = true, true
		return i.it.Last() || i.past()
	case i.below:
		i.key = nil
		return i.down() || i.past()
	case key != nil:
		i.key = nil
		return i.fresh().SeekLT(key) || i.past()
	}
	return i.it.Prev() || i.past()
}

// fresh replaces the engine's iterator by a clone with the same view: after an error, an
// iterator may find nothing at the next seek.
func (i *iterator) fresh() *pebble.Iterator {
	if it, err := i.it.Clone(pebble.CloneOptions{}); err == nil {
		_ = i.it.Close()
		i.it = it
	}
	return i.it
}

func (i *iterator) Seek(key []byte) bool {
	if i.started = true; i.key != nil {
		i.key = nil
		i.fresh()
	}
	i.sought = append(i.sought[:0], key...)
	i.from, i.passed = i.sought, 0
	return i.counted(i.it.SeekGE(key) || i.past())
}

func (i *iterator) Key() []byte {
	if i.key != nil {
		return i.key
	}
	return i.it.Key()
}

func (i *iterator) Value() []byte {
	if i.key != nil {
		return nil
	}
	v, err := i.it.ValueAndErr()
	if err == nil && badblocks.Lost(v) {
		i.s.unreadableValue(i.it.Key(), errLost)
		return nil
	}
	if err == nil {
		return v
	}
	if isDamage(err) {
		i.key, i.skipped = bytes.Clone(i.it.Key()), true
		i.s.unreadableValue(i.key, err)
	}
	return nil
}

func (i *iterator) Close() error {
	defer i.open.Leave()
	if err := i.it.Close(); err != nil && (!i.skipped || !isDamage(err)) {
		return err
	}
	return nil
}

// past skips the damage that has ended a scan; false: the scan has ended otherwise.
func (i *iterator) past() bool {
	for {
		err := i.it.Error()
		if err == nil || !isDamage(err) {
			return false
		}
		i.skipped = true
		if i.back {
			if !i.pastDown(err) {
				return false
			}
		} else if !i.pastUp(err) {
			return false
		}
		if i.it.Valid() {
			return true
		}
	}
}

// pastUp seeks the first key above the damage that follows the last returned key.
func (i *iterator) pastUp(err error) bool {
	begin := i.lower
	if i.from != nil && bytes.Compare(i.from, begin) > 0 {
		begin = i.from
	}
	bad := bytes.Clone(begin) // the lowest key that may be unreadable
	if len(begin) == 0 {
		bad = []byte{}
	}
	passed := 0
	for ok := seek(i.fresh(), bad); ok; ok = i.it.Next() {
		if passed == i.passed {
			return true // the damage was repaired meanwhile
		}
		passed++
		bad = append(append(bad[:0], i.it.Key()...), 0)
	}
	if i.it.Error() == nil {
		return false
	}
	hole := i.s.hole(i.it, bad, err)
	if hole.to == nil || i.upper != nil && bytes.Compare(hole.to, i.upper) >= 0 {
		return false
	}
	i.from, i.passed = hole.to, 0
	i.fresh().SeekGE(hole.to)
	return true
}

// seek is SeekGE. It avoids SeekGE of an empty key, which fails Pebble's own checks.
func seek(it *pebble.Iterator, key []byte) bool {
	if len(key) == 0 {
		return it.First()
	}
	return it.SeekGE(key)
}

// hole is the whole range of unreadable keys around bad. It is noted, so that it is searched
// for once.
func (s *Store) hole(at *pebble.Iterator, bad []byte, err error) keyRange {
	if r, known := s.damage.find(bad); known {
		return r
	}
	readable := func(key []byte) bool {
		it, err := at.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}})
		if err != nil {
			return false
		}
		seek(it, key)
		ok := it.Error() == nil
		_ = it.Close()
		return ok
	}
	hole := keyRange{from: bad}
	first := files.Largest(func(key []byte) bool { return bytes.Compare(key, bad) < 0 && readable(key) })
	if len(first) > 0 && len(first) < files.LongestKey {
		hole.from = append(first, 0)
	} else if len(first) == 0 && !readable(nil) {
		hole.from = []byte{}
	}
	next := append(files.Largest(func(key []byte) bool { return bytes.Compare(key, bad) <= 0 || !readable(key) }), 0)
	if len(next) <= files.LongestKey {
		hole.to = next
	}
	s.unreadableRange(hole.from, hole.to, err)
	return hole
}

// find finds the noted range that contains a key.
func (d *damage) find(key []byte) (keyRange, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.ranges {
		if d.ranges[i].has(key) {
			return d.ranges[i], true
		}
	}
	return keyRange{}, false
}

// pastDown seeks the last key below the damage that precedes the last returned key. A descending
// scan of the engine reads one key ahead, so it fails before it has returned the key above the
// damage. Hence the keys on both sides are searched for in ascending order.
func (i *iterator) pastDown(err error) bool {
	end := i.upper
	var ok bool
	switch {
	case i.from == nil:
		ok = i.fresh().Last()
	case i.at:
		end, ok = i.from, i.fresh().SeekGE(i.from)
	default:
		end, ok = i.from, i.fresh().SeekLT(i.from)
	}
	for passed := 0; ok; ok = i.it.Prev() {
		if passed == i.passed {
			return true // the damage was repaired meanwhile
		}
		passed++
		end = bytes.Clone(i.it.Key())
	}
	if i.it.Error() == nil {
		return false
	}
	inside := func(key []byte) bool { return end == nil || bytes.Compare(key, end) < 0 }
	good := files.Largest(func(key []byte) bool {
		if !inside(key) || bytes.Compare(key, i.lower) <= 0 {
			return inside(key)
		}
		i.fresh().SeekLT(key)
		return i.it.Error() == nil
	})
	bad, found := good, false
	for ok := seek(i.fresh(), good); ok && inside(i.it.Key()); ok = i.it.Next() {
		bad, found = append(bytes.Clone(i.it.Key()), 0), true
	}
	next := append(files.Largest(func(key []byte) bool {
		if bytes.Compare(key, bad) <= 0 || !inside(key) {
			return inside(key)
		}
		i.fresh().SeekGE(key)
		return i.it.Error() != nil
	}), 0)
	if len(next) <= files.LongestKey && inside(next) {
		for ok := i.fresh().SeekGE(next); ok && inside(i.it.Key()); ok = i.it.Next() {
			i.pending = append(i.pending, bytes.Clone(i.it.Key()))
		}
		slices.Reverse(i.pending)
		i.s.unreadableRange(bad, next, err)
	} else {
		i.s.unreadableRange(bad, end, err)
	}
	if i.at = found; found {
		i.from = bad[:len(bad)-1]
	} else {
		i.from = good
	}
	i.below = true
	return i.down()
}

// down moves to the next key that pastDown has found.
func (i *iterator) down() bool {
	i.passed = 0
	if n := len(i.pending); n > 0 {
		key := i.pending[0]
		i.pending, i.passed = i.pending[1:], -1 // the key itself does not count
		return i.fresh().SeekGE(key)
	}
	i.below = false
	if i.at {
		return i.fresh().SeekGE(i.from)
	}
	return bytes.Compare(i.from, i.lower) > 0 && i.fresh().SeekLT(i.from)
}

// compactionEnded makes compactions pause after one that failed because of damage.
func (s *Store) compactionEnded(job int, err error) {
	pause := s.compactions.End(job, err)
	if err == nil || !isDamage(err) {
		return
	}
	s.damagedIn(err)
	s.gate.change(func() {})
	if pause > 0 && s.damage.warned.Allow() {
		s.log.Error("tables cannot be merged, as one of them is damaged: it is tried again later, and takes space until then",
			"file", damagedFile(err), "error", reason(err), "pause", pause)
	}
}
