package mark_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/store/pebble/mark"
)

const (
	dir      = "store"
	slotSize = 4 << 10
)

func newFS(t testing.TB) *vfs.MemFS {
	t.Helper()
	f := vfs.NewCrashableMem()
	err := f.MkdirAll(dir, 0o755)
	for _, name := range []string{"/", dir} {
		d, openErr := f.OpenDir(name)
		if err = errors.Join(err, openErr); err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes marks by one process.
func write(t *testing.T, f vfs.FS, marks ...*mark.Mark) {
	t.Helper()
	w, err := mark.NewWriter(f, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range marks {
		if err := w.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func at(n int) *mark.Mark {
	return &mark.Mark{
		At: time.UnixMilli(int64(1000 + n)).UTC(), Clean: n%2 == 0, Format: 19, Sequence: uint64(n) << 40,
		Logs: []mark.File{{7, 1 << 40}, {9, int64(n)}}, Manifests: []mark.File{{1, 2}},
	}
}

func expect(t *testing.T, f vfs.FS, want *mark.Mark, wantSecond bool) {
	t.Helper()
	m, second, err := mark.Read(f, dir)
	if diff := cmp.Diff(want, m); diff != "" || second != wantSecond || err != nil {
		t.Errorf("second best: %t, %v (-want +got):\n%s", second, err, diff)
	}
}

// overwrite changes a part of the file.
func overwrite(t *testing.T, f vfs.FS, offset int64, p []byte) {
	t.Helper()
	file, err := f.OpenReadWrite(f.PathJoin(dir, mark.Name), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(p, offset)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// The latest mark is read, by whichever process it was written.
func TestLatest(t *testing.T) {
	f := newFS(t)
	if _, _, err := mark.Read(f, dir); !errors.Is(err, mark.ErrNone) {
		t.Errorf("before the first: %v", err)
	}
	write(t, f, at(1))
	expect(t, f, at(1), false)
	write(t, f, at(2), at(3))
	write(t, f, at(4))
	expect(t, f, at(4), false)
	write(t, f)
	expect(t, f, at(4), false)
	empty := &mark.Mark{At: time.UnixMilli(0).UTC()}
	write(t, f, empty)
	expect(t, f, empty, false)
}

// A mark is durable once Write returns, and a crash at any moment leaves it or the next.
func TestCrash(t *testing.T) {
	f := newFS(t)
	w, err := mark.NewWriter(f, dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if err := w.Write(at(n)); err != nil {
			t.Fatal(err)
		}
		expect(t, f.CrashClone(vfs.CrashCloneCfg{}), at(n), false)
	}
}

// While one slot is written the other one holds: damage of it leaves the mark before.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for slot := range int64(2) {
		latest, before := at(4), at(3)
		if slot == 1 { // the latest is in the other one
			latest, before = at(3), at(4)
		}
		for range 200 {
			f := newFS(t)
			write(t, f, at(1), at(2), at(3), at(4))
			if m, _, _ := mark.Read(f, dir); !cmp.Equal(m, at(4)) {
				t.Fatal(m)
			}
			flipped := make([]byte, 1)
			offset := slot*slotSize + int64(r.IntN(50)) // the part that a mark fills
			file, err := f.Open(f.PathJoin(dir, mark.Name))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.ReadAt(flipped, offset); err != nil {
				t.Fatal(err)
			}
			_ = file.Close()
			flipped[0] ^= 1 << r.IntN(8)
			overwrite(t, f, offset, flipped)
			m, second, err := mark.Read(f, dir)
			if err != nil || !second || !cmp.Equal(m, latest) && !cmp.Equal(m, before) {
				t.Fatalf("byte %d: %+v, %t, %v", offset, m, second, err)
			}
			write(t, f, at(5)) // it continues in any case
			if m, _, err := mark.Read(f, dir); err != nil || !cmp.Equal(m, at(5)) {
				t.Fatalf("byte %d: then %+v, %v", offset, m, err)
			}
		}
	}
	f := newFS(t)
	write(t, f, at(1), at(2))
	overwrite(t, f, 0, []byte("x"))
	overwrite(t, f, slotSize, []byte("x"))
	if _, _, err := mark.Read(f, dir); !errors.Is(err, mark.ErrDamaged) {
		t.Errorf("of both slots: %v", err)
	}
	write(t, f, at(3))
	expect(t, f, at(3), false)
}

// Of more files than there is room for the latest are kept.
func TestManyFiles(t *testing.T) {
	var all []mark.File
	for n := range uint64(1000) {
		all = append(all, mark.File{Number: 1<<60 + n, Durable: 1 << 60})
	}
	f := newFS(t)
	write(t, f, &mark.Mark{At: time.UnixMilli(1).UTC(), Logs: all, Manifests: all})
	m, _, err := mark.Read(f, dir)
	if err != nil || len(m.Logs) != 100 || !slices.Equal(m.Logs, all[900:]) || !slices.Equal(m.Manifests, all[900:]) {
		t.Errorf("%+v, %v", m, err)
	}
}

// FuzzRead reads any file, and a mark that is written over it.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("gdwtmark"))
	disk := newFS(f)
	if w, err := mark.NewWriter(disk, dir); err == nil && w.Write(at(1)) == nil && w.Close() == nil {
		if file, err := disk.Open(disk.PathJoin(dir, mark.Name)); err == nil {
			text, _ := io.ReadAll(file)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		disk := newFS(t)
		file, err := disk.Create(disk.PathJoin(dir, mark.Name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.Write(content)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		m, _, err := mark.Read(disk, dir)
		if (m == nil) == (err == nil) {
			t.Errorf("%v, %v", m, err)
		}
	})
}
