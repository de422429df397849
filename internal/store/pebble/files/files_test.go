package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/files"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written is a store's directory, with tables and a log that no table has yet, and what
// Pebble itself reads from it.
func written(t *testing.T) (fs *vfs.MemFS, want map[string]string) {
	t.Helper()
	fs = vfs.NewMem()
	o := &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatValueSeparation, DisableAutomaticCompactions: true, Logger: quiet{}}
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 10}
	}
	db, err := pebble.Open("d", o)
	check(t, err)
	set := func(key, value string) { check(t, db.Set([]byte(key), []byte(value), pebble.Sync)) }
	for i := range 40 {
		set(fmt.Sprintf("k%02d", i), fmt.Sprint("small ", i))
	}
	for i := range 8 {
		set(fmt.Sprintf("long%d", i), string(bytes.Repeat([]byte{byte('a' + i)}, 600)))
	}
	check(t, db.Flush())
	check(t, db.DeleteRange([]byte("k10"), []byte("k20"), pebble.Sync))
	set("k12", "again")
	check(t, db.Delete([]byte("k30"), pebble.Sync))
	check(t, db.Flush())
	set("k31", "in the log")
	check(t, db.Delete([]byte("k32"), pebble.Sync))
	want = map[string]string{}
	it, err := db.NewIter(nil)
	check(t, err)
	for it.First(); it.Valid(); it.Next() {
		want[string(it.Key())] = string(it.Value())
	}
	check(t, it.Close())
	crashed := vfs.NewMem() // the log is still needed: nothing was closed
	ok, err := vfs.Clone(fs, crashed, "d", "d")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	check(t, db.Close())
	return crashed, want
}

type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// content is what the writes of a directory come to, and what was told to be wrong.
func content(t *testing.T, fs vfs.FS) (got map[string]string, problems []files.Problem) {
	t.Helper()
	s, err := files.OpenSource(fs, "d")
	check(t, err)
	type latest struct {
		value    string
		sequence uint64
		gone     bool
	}
	keys, ranges := map[string]latest{}, []files.Write{}
	check(t, s.Read(func(w files.Write) error {
		switch at := keys[string(w.Key)]; {
		case w.Err != nil:
			problems = append(problems, files.Problem{File: "a value", Err: w.Err})
		case w.Kind == files.DeleteRange:
			ranges = append(ranges, files.Write{Key: bytes.Clone(w.Key), Value: bytes.Clone(w.Value), Sequence: w.Sequence})
		case w.Sequence >= at.sequence:
			keys[string(w.Key)] = latest{string(w.Value), w.Sequence, w.Kind != files.Set}
		}
		return nil
	}, func(p files.Problem, _ *files.Gap) { problems = append(problems, p) }))
	got = map[string]string{}
	for key, at := range keys {
		for _, r := range ranges {
			at.gone = at.gone || r.Sequence > at.sequence && key >= string(r.Key) && key < string(r.Value)
		}
		if !at.gone {
			got[key] = at.value
		}
	}
	return got, append(problems, s.Problems...)
}

// TestReadsWhatPebbleReads: tables, values that are kept apart, and the log come to what
// Pebble has; without the manifest, too.
func TestReadsWhatPebbleReads(t *testing.T) {
	fs, want := written(t)
	got, problems := content(t, fs)
	if !maps.Equal(got, want) || len(problems) > 0 {
		t.Errorf("read %d keys, want %d; %v", len(got), len(want), problems)
	}
	list, err := files.List(fs, "d")
	check(t, err)
	if len(list.Tables) == 0 || len(list.Values) == 0 || len(list.Logs) == 0 || !list.FormatMarker || list.ManifestMarker == "" {
		t.Fatalf("%+v", list)
	}
	for _, name := range list.Names {
		if _, ok := files.ParseManifestName(name); ok {
			check(t, fs.Remove(fs.PathJoin("d", name)))
		}
	}
	got, problems = content(t, fs)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("without a manifest %s is %.20q, want %.20q", key, got[key], value)
		}
	}
	if len(problems) == 0 {
		t.Error("nobody is told that the manifest is missing")
	}
}

// TestEveryByteCounts: whatever byte of a table or of values is another, either somebody is
// told or nothing is read differently. (Of a log, what is not known to be durable may be torn.)
func TestEveryByteCounts(t *testing.T) {
	fs, want := written(t)
	list, err := files.List(fs, "d")
	check(t, err)
	names := []string{}
	for _, n := range list.Tables {
		names = append(names, files.TableName(n))
	}
	for _, n := range list.Values {
		names = append(names, files.ValuesName(n))
	}
	found := 0
	for _, name := range names {
		path := fs.PathJoin("d", name)
		size := int(length(t, fs, path))
		for at := 0; at < size; at += 1 + size/300 {
			change(t, fs, path, int64(at))
			got, problems := content(t, fs)
			if len(problems) > 0 {
				found++
			} else if !maps.Equal(got, want) {
				t.Errorf("byte %d of %s is another, and nobody is told", at, name)
			}
			change(t, fs, path, int64(at))
		}
	}
	if got, problems := content(t, fs); !maps.Equal(got, want) || len(problems) > 0 {
		t.Errorf("put right again: %v", problems)
	}
	if found < 300 {
		t.Errorf("only %d changes were found", found)
	}
}

// TestMend: a flipped bit in what says where a table's records are is found, and put right
// for whoever reads it through that.
func TestMend(t *testing.T) {
	fs, _ := written(t)
	list, err := files.List(fs, "d")
	check(t, err)
	path := fs.PathJoin("d", files.TableName(list.Tables[0]))
	whole, err := files.DamagedBlocks(fs, path)
	if err != nil || len(whole) > 0 {
		t.Fatal(whole, err)
	}
	at := length(t, fs, path) - 30 // in the footer
	p := make([]byte, 1)
	edit(t, fs, path, at, func(b []byte) { p[0] = b[0]; b[0] ^= 4 })
	if _, err := files.DamagedBlocks(fs, path); !errors.Is(err, files.ErrUnreadable) {
		t.Fatalf("a damaged end: %v", err)
	}
	flips, err := files.Mend(fs, path, false, 0, 0)
	if err != nil || len(flips) != 1 || flips[0] != (files.Flip{Offset: at, Value: p[0]}) {
		t.Fatalf("%v, %v", flips, err)
	}
	if damaged, err := files.DamagedBlocks(files.Flipped(fs, flips), path); err != nil || len(damaged) > 0 {
		t.Errorf("mended: %v, %v", damaged, err)
	}
	edit(t, fs, path, at, func(b []byte) { b[0] ^= 3 })
	if flips, err := files.Mend(fs, path, false, 0, 0); err == nil {
		t.Errorf("three bits were put right by %v", flips)
	}
}

func length(t *testing.T, fs vfs.FS, path string) int64 {
	t.Helper()
	info, err := fs.Stat(path)
	check(t, err)
	return info.Size()
}

// change flips a bit of the byte at an offset.
func change(t *testing.T, fs vfs.FS, path string, at int64) {
	t.Helper()
	edit(t, fs, path, at, func(p []byte) { p[0] ^= 16 })
}

func edit(t *testing.T, fs vfs.FS, path string, at int64, f func(p []byte)) {
	t.Helper()
	file, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	check(t, err)
	p := make([]byte, 1)
	_, err = file.ReadAt(p, at)
	check(t, err)
	f(p)
	_, err = file.WriteAt(p, at)
	check(t, err)
	check(t, file.Close())
}
