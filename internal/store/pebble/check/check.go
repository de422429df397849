// Package check reads a whole store that no process has open, and reports its damage. It
// changes nothing.
package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/files"
)

// Records interprets the records of a store.
type Records interface {
	// Check reports why a record cannot be decoded.
	Check(key, value []byte) error
	// LostEarlier reports that a record replaces one that an earlier salvage lost.
	LostEarlier(key, value []byte) bool
	// Add learns names from a record.
	Add(key, value []byte)
	// Describe returns the kind and the resource of a record.
	Describe(key []byte) (kind, resource string)
	// Required reports that a start is refused if a record of [from, to) cannot be read. A nil
	// to is the end.
	Required(from, to []byte) bool
}

// Report is the result of a check.
type Report struct {
	// Refusal is why a start would refuse the directory; nil: it would not.
	Refusal error
	// Required says that lost records are required for a start.
	Required bool
	Files    []File
	Lost     []Lost // in the order of resource and kind
	// Earlier are the records that a salvage lost when it made this store. They are no damage.
	Earlier []Lost // in the order of resource and kind
	Writes  int64  // read, including overwritten and deleted ones
}

// File is a damaged file.
type File struct{ Name, Problem string }

// Lost are records of one kind and resource that cannot be read.
type Lost struct {
	Resource, Kind string
	Records        int64
}

// OK reports that nothing is damaged.
func (r *Report) OK() bool { return r.Refusal == nil && len(r.Files) == 0 && len(r.Lost) == 0 }

// maxGaps bounds the ranges that are reported one by one.
const maxGaps = 100

// Tally counts lost records by resource. The resources are known when all records have been read.
type Tally struct {
	records Records
	lost    keys
	earlier keys
	files   map[string]string
	gaps    []files.Gap

	required bool
}

// NewTally makes an empty tally.
func NewTally(r Records) *Tally { return &Tally{records: r, files: map[string]string{}} }

// maxKeys bounds the keys that are kept until their resources are known.
const maxKeys = 1 << 20

// Record counts a record that cannot be read.
func (t *Tally) Record(key []byte) {
	t.lost.add(key)
	t.required = t.required || t.records.Required(key, append(bytes.Clone(key), 0))
}

// Earlier counts a record that an earlier salvage lost.
func (t *Tally) Earlier(key []byte) { t.earlier.add(key) }

// keys is an unordered set of records' keys.
type keys struct {
	list [][]byte
	more int64 // how many keys were not kept
}

func (k *keys) add(key []byte) {
	if len(k.list) == maxKeys {
		k.more++
		return
	}
	k.list = append(k.list, bytes.Clone(key))
}

// count counts records by resource and kind.
func (t *Tally) count(k *keys) (lost []Lost) {
	counts := map[Lost]int64{}
	for _, key := range k.list {
		kind, resource := t.records.Describe(key)
		counts[Lost{Resource: resource, Kind: kind}]++
	}
	if k.more > 0 {
		counts[Lost{Kind: "more records"}] = k.more
	}
	for l, n := range counts {
		l.Records = n
		lost = append(lost, l)
	}
	return lost
}

func sortLost(lost []Lost) {
	slices.SortFunc(lost, func(a, b Lost) int { return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Kind, b.Kind)) })
}

// File notes a damaged file, and a range of its keys, if it is not nil.
func (t *Tally) File(p files.Problem, gap *files.Gap) {
	if _, known := t.files[p.File]; !known {
		first, _, _ := strings.Cut(p.Err.Error(), "\n")
		t.files[p.File] = first
	}
	if gap == nil {
		return
	}
	t.required = t.required || t.records.Required(gap.From, gap.To)
	if len(t.gaps) < maxGaps {
		t.gaps = append(t.gaps, *gap)
	}
}

// Noted counts the damage that a server has found in files that do not belong to the store any
// more.
func (t *Tally) Noted(f vfs.FS, dir string, list *files.Listing) error {
	notes, err := badblocks.Read(f, dir)
	if errors.Is(err, badblocks.ErrDamaged) {
		t.File(files.Problem{File: badblocks.Name, Err: err}, nil)
	} else if err != nil {
		return err
	}
	for _, note := range notes.All() {
		if slices.Contains(list.Names, note.File) {
			continue // it is read
		}
		p := files.Problem{File: note.File, Err: errors.New(note.Reason)}
		t.File(p, nil)
		for _, span := range note.Spans {
			if note.Table() { // lost values have a marker
				t.File(p, &files.Gap{From: span.From, To: span.Last, Err: p.Err})
			}
		}
	}
	return nil
}

// Report adds the counts to a report.
func (t *Tally) Report(r *Report) {
	for name, problem := range t.files {
		r.Files = append(r.Files, File{name, problem})
	}
	slices.SortFunc(r.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	r.Lost, r.Earlier, r.Required = t.count(&t.lost), t.count(&t.earlier), t.required
	for _, g := range t.gaps {
		from, resource := t.records.Describe(g.From)
		to, owned := "the end", ""
		if g.To != nil {
			to, owned = t.records.Describe(g.To)
		}
		r.Lost = append(r.Lost, Lost{Resource: resource, Kind: fmt.Sprintf("all records from %s to %s %s", from, to, owned), Records: 0})
	}
	sortLost(r.Lost)
	sortLost(r.Earlier)
}

// Run reads the store in a directory. It fails if the store cannot be read at all, or is open.
func Run(f vfs.FS, dir string, records Records) (*Report, error) {
	return run(f, dir, pebble.Verify, records)
}

// RunCopy is Run of a directory that no server has open, such as a backup: it writes nothing.
func RunCopy(f vfs.FS, dir string, records Records) (*Report, error) {
	return run(f, dir, pebble.VerifyCopy, records)
}

func run(f vfs.FS, dir string, verify func(f vfs.FS, dir string) error, records Records) (*Report, error) {
	report := new(Report)
	if err := verify(f, dir); err != nil {
		if !errors.Is(err, pebble.ErrDamaged) && !errors.Is(err, pebble.ErrLoss) && !errors.Is(err, pebble.ErrFormat) {
			return nil, err
		}
		report.Refusal = err
	}
	src, err := files.OpenSource(f, dir)
	if err != nil {
		return nil, err
	}
	tally := NewTally(records)
	for _, p := range src.Problems {
		if len(src.List.Tables)+len(src.List.Logs)+len(src.List.Manifests) > 0 {
			tally.File(p, nil)
		}
	}
	if err := tally.Noted(f, dir, src.List); err != nil {
		return nil, err
	}
	err = src.Read(func(w files.Write) error {
		report.Writes++
		_, covered := badblocks.ParseCovered(w.Key)
		switch {
		case w.Kind != files.Set || covered:
		case w.Err == nil && badblocks.Lost(w.Value):
			tally.Record(w.Key)
		case w.Err != nil:
			tally.Record(w.Key)
			tally.File(files.Problem{File: ValuesFile(w.Err), Err: w.Err}, nil)
		case records.LostEarlier(w.Key, w.Value):
			tally.Earlier(w.Key)
		case records.Check(w.Key, w.Value) != nil:
			tally.Record(w.Key)
		default:
			records.Add(w.Key, w.Value)
		}
		return nil
	}, tally.File)
	if err != nil {
		return nil, err
	}
	tally.Report(report)
	return report, nil
}

// ValuesFile is the name of the file that the error of a value begins with.
func ValuesFile(err error) string {
	name, _, _ := bytes.Cut([]byte(err.Error()), []byte(":"))
	if !bytes.HasSuffix(name, []byte(".blob")) {
		return "a file of values"
	}
	return string(name)
}

// Write prints a report.
func (r *Report) Write(w io.Writer) error {
	var b bytes.Buffer
	for _, f := range r.Files {
		fmt.Fprintf(&b, "damaged: %s: %s\n", f.Name, f.Problem)
	}
	for _, l := range r.Lost {
		l.write(&b, "unreadable")
	}
	for _, l := range r.Earlier {
		l.write(&b, "lost earlier")
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (l *Lost) write(b *bytes.Buffer, what string) {
	resource := cmp.Or(l.Resource, "the server")
	if l.Records == 0 {
		fmt.Fprintf(b, "%s: %s: %s\n", what, resource, l.Kind)
	} else {
		fmt.Fprintf(b, "%s: %s: %d × %s\n", what, resource, l.Records, l.Kind)
	}
}
