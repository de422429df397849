package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/mark"
)

// Source is the readable content of a store's directory.
type Source struct {
	FS  vfs.FS
	Dir string
	// Exact says that the manifest tells which tables and logs are in use. Otherwise all
	// existing ones are read, and recently deleted records may be among them.
	Exact    bool
	Problems []Problem // with files that describe the store
	List     *Listing

	durable map[uint64]int64 // bytes of logs, according to the mark
	tables  []Table
	logs    []uint64
	ever    map[uint64][]uint64
	physics map[uint64]uint64
}

// Problem is something wrong with a file.
type Problem struct {
	File string
	Err  error
}

// OpenSource lists a store's directory. It fails if that is impossible.
func OpenSource(f vfs.FS, dir string) (*Source, error) {
	list, err := List(f, dir)
	if err != nil {
		return nil, err
	}
	s := &Source{FS: f, Dir: dir, List: list, ever: map[uint64][]uint64{}, physics: map[uint64]uint64{}, durable: map[uint64]int64{}}
	switch m, _, err := mark.Read(f, dir); {
	case err == nil:
		for _, log := range m.Logs {
			s.durable[log.Number] = log.Durable
		}
	case !errors.Is(err, mark.ErrNone):
		s.problem(mark.Name, fmt.Errorf("it is empty or unreadable, so that nobody can say whether the logs are whole: %w", err))
	}
	if _, ok := ParseManifestName(list.ManifestMarker); ok {
		v, e, err := ReadManifest(f, f.PathJoin(dir, list.ManifestMarker), true)
		switch {
		case err != nil:
			s.problem(list.ManifestMarker, err)
		case e.Records == 0: // the engine writes the first one before it names the file
			s.problem(list.ManifestMarker, errors.New("it is empty"))
		case len(e.Faults) > 0 || !e.Clean():
			s.problem(list.ManifestMarker, fmt.Errorf("unreadable at byte %d of %d", e.Valid, e.Size))
			s.learn(v)
		default:
			s.exact(v)
			return s, nil
		}
	} else {
		s.problem("marker.manifest.*", errors.New("it is missing, or names no MANIFEST"))
	}
	for _, n := range list.Manifests {
		if v, _, err := ReadManifest(f, f.PathJoin(dir, ManifestName(n)), true); err == nil {
			s.learn(v)
		}
	}
	for _, n := range list.Tables {
		s.tables = append(s.tables, Table{File: n})
	}
	s.logs = list.Logs
	return s, nil
}

func (s *Source) problem(file string, err error) {
	s.Problems = append(s.Problems, Problem{file, err})
}

func (s *Source) learn(v *Version) {
	maps.Copy(s.ever, v.Ever)
	maps.Copy(s.physics, v.EverValues)
}

func (s *Source) exact(v *Version) {
	s.Exact, s.physics = true, v.Values
	for _, t := range v.Tables {
		s.tables = append(s.tables, t)
		s.ever[t.File] = t.Values
	}
	for _, n := range s.List.Logs {
		if n >= v.FirstLog {
			s.logs = append(s.logs, n)
		}
	}
	for n := range s.durable {
		if n >= v.FirstLog && !slices.Contains(s.logs, n) {
			s.logs = append(s.logs, n) // it is missing
		}
	}
	slices.Sort(s.logs)
}

// Read calls f for every write, in no order, and report for each part that cannot be read.
func (s *Source) Read(f func(Write) error, report func(Problem, *Gap)) error {
	for _, t := range s.tables {
		if err := s.readTable(t, f, report); err != nil {
			return err
		}
	}
	for i, n := range s.logs {
		if err := s.readLog(n, i == len(s.logs)-1, f, report); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) readTable(t Table, f func(Write) error, report func(Problem, *Gap)) error {
	name := TableName(t.File)
	path := s.FS.PathJoin(s.Dir, name)
	var values []uint64
	refs, known := s.ever[t.File]
	for _, id := range refs {
		values = append(values, s.physics[id])
	}
	if !known {
		var err error
		if values, err = findValues(s.FS, s.Dir, path, s.List.Values); err != nil && !errors.Is(err, ErrUnreadable) {
			return err
		}
	}
	v := NewValues(s.FS, s.Dir, values)
	defer v.Close()
	gaps, err := ReadTable(s.FS, path, v, func(w Write) error {
		if t.Virtual && !t.clip(&w) {
			return nil
		}
		return f(w)
	})
	if errors.Is(err, ErrUnreadable) || errors.Is(err, fs.ErrNotExist) {
		report(Problem{name, err}, &Gap{From: t.Smallest, To: t.Largest, Err: err})
		return nil
	}
	for i := range gaps {
		report(Problem{name, gaps[i].Err}, &gaps[i])
	}
	return err
}

// clip reports whether a write belongs to a table that is a part of its file.
func (t *Table) clip(w *Write) bool {
	if w.Kind == DeleteRange {
		if bytes.Compare(w.Key, t.Smallest) < 0 {
			w.Key = t.Smallest
		}
		if bytes.Compare(w.Value, t.Largest) > 0 {
			w.Value = append(bytes.Clone(t.Largest), 0)
			if t.LargestExclusive {
				w.Value = t.Largest
			}
		}
		return bytes.Compare(w.Key, w.Value) < 0
	}
	c := bytes.Compare(w.Key, t.Largest)
	return bytes.Compare(w.Key, t.Smallest) >= 0 && (c < 0 || c == 0 && !t.LargestExclusive)
}

func (s *Source) readLog(n uint64, latest bool, f func(Write) error, report func(Problem, *Gap)) error {
	name := LogName(n)
	var bad error
	e, err := ReadLog(s.FS, s.FS.PathJoin(s.Dir, name), n, true, func(sequence uint64, batch []byte) error {
		var stop error
		func() {
			defer guard(&bad)
			r := batchrepr.Read(batch)
			for i := uint64(0); ; i++ {
				kind, key, value, ok, err := r.Next()
				if !ok || err != nil {
					bad = errors.Join(bad, err)
					return
				}
				if stop = f(Write{Key: key, Value: value, Kind: uint8(kind), Sequence: sequence + i}); stop != nil {
					return
				}
			}
		}()
		return stop
	})
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			report(Problem{name, err}, nil)
			return nil
		}
		return err
	}
	switch {
	case bad != nil:
		report(Problem{name, bad}, nil)
	case e.Valid < max(s.durable[n], e.Synced):
		report(Problem{name, fmt.Errorf("%d of its %d durable bytes can be read", e.Valid, max(s.durable[n], e.Synced))}, nil)
	case len(e.Faults) > 1 || len(e.Faults) == 1 && !latest:
		report(Problem{name, fmt.Errorf("unreadable at byte %d of %d", e.Faults[0], e.Size)}, nil)
	}
	return nil
}
