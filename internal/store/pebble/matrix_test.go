package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/soak"
)

// damages are what can happen to a file.
var damages = map[string]func(t *testing.T, fs vfs.FS, path string, r *rand.Rand){
	"flip": func(t *testing.T, fs vfs.FS, path string, r *rand.Rand) {
		if size := sized(t, fs, path); size > 0 {
			flip(t, fs, path, r.Int64N(size), uint(r.IntN(8)))
		}
	},
	"cut": func(t *testing.T, fs vfs.FS, path string, r *rand.Rand) {
		if size := sized(t, fs, path); size > 0 {
			cut(t, fs, path, r.Int64N(size))
		}
	},
	"remove": func(t *testing.T, fs vfs.FS, path string, _ *rand.Rand) {
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
	},
}

// cut has a file end early.
func cut(t *testing.T, fs vfs.FS, path string, size int64) {
	t.Helper()
	in, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, size)
	if _, err := in.ReadAt(p, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	out, err := fs.Create(path+"-cut", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(p); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(in.Close(), out.Sync(), out.Close(), fs.Rename(path+"-cut", path)); err != nil {
		t.Fatal(err)
	}
}

// TestDamageMatrix: whatever happens to any one file, the store opens or refuses
// with a cause and a way out; and of what was acknowledged it lacks nothing that
// is not told.
func TestDamageMatrix(t *testing.T) {
	soak.Campaign(t, soak.Size(40, 150), func(t *testing.T, seed uint64) { testDamage(t, soak.Rand(seed, 0), fmt.Sprintf("seed %d", seed)) })
}

func testDamage(t *testing.T, r *rand.Rand, what string) {
	fs := vfs.NewCrashableMem()
	o := options(t, fs)
	acknowledged := map[string]int{}
	s := open(t, "data", o)
	for n := range 100 + r.IntN(400) {
		if n > 0 && r.IntN(150) == 0 {
			closed(t, s)
			s = open(t, "data", o)
		}
		b := new(mutation.Batch)
		key := damagedKey(r.IntN(300))
		if _, ok := acknowledged[string(key)]; ok && r.IntN(3) == 0 {
			b.Delete(key)
			delete(acknowledged, string(key))
		} else {
			b.Set(key, valueOf(key, n))
			acknowledged[string(key)] = n
		}
		if err := s.Apply(store.Sync, b); err != nil {
			t.Fatal(err)
		}
	}
	clean := r.IntN(2) == 0
	if clean {
		closed(t, s)
	}
	disk := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
	if !clean {
		s.Reclaim() // and a mark of all that there is
		closed(t, s)
		if r.IntN(2) == 0 {
			disk = fs.CrashClone(vfs.CrashCloneCfg{})
			clean = true
		}
	}
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	name := names[r.IntN(len(names))]
	kinds := []string{"flip", "cut", "remove"}
	kind := kinds[r.IntN(len(kinds))]
	what = fmt.Sprintf("%s: %s of %s, stopped: %v", what, kind, name, clean)
	path := disk.PathJoin("data", name)
	if info, err := disk.Stat(path); err != nil || info.IsDir() {
		return
	}
	damages[kind](t, disk, path, r)
	var log output.Buffer
	o.FS, o.Logger = disk, slog.New(slog.NewTextHandler(&log, nil))
	o.Fatal = func(err error) { t.Errorf("%s: fatal: %v", what, err) }
	s, err = pebble.Open("data", o)
	if err != nil {
		text := err.Error()
		if !strings.Contains(text, "godwit salvage") && !strings.Contains(text, "another directory") {
			t.Errorf("%s: refused without a way out: %v", what, err)
		}
		if !errors.Is(err, pebble.ErrLoss) {
			return
		}
		if !strings.Contains(text, "--accept-data-loss") {
			t.Errorf("%s: %v", what, err)
		}
		o.AcceptLoss = true
		if s, err = pebble.Open("data", o); err != nil {
			t.Errorf("%s: refused although the loss was accepted: %v", what, err)
			return
		}
		closed(t, s)
		o.AcceptLoss = false
		if s, err = pebble.Open("data", o); err != nil {
			t.Errorf("%s: refused again after the loss was accepted: %v", what, err)
			return
		}
		closed(t, s)
		return
	}
	// What was acknowledged since the last mark looks like what was not.
	torn := strings.HasSuffix(name, ".log") && !clean
	missing := 0
	for key, n := range acknowledged {
		v, ok, err := s.Get(nil, []byte(key))
		switch {
		case err != nil:
			t.Errorf("%s: Get: %v", what, err)
		case !ok || len(v) == 0:
			missing++
		case !bytes.Equal(v, valueOf([]byte(key), n)):
			if s.Damage() == nil && !torn {
				t.Errorf("%s: %q has a value of before", what, key)
			}
		}
	}
	damage := s.Damage()
	if missing > 0 && damage == nil && !torn {
		t.Errorf("%s: %d of %d records are gone without a word:\n%s", what, missing, len(acknowledged), &log)
	}
	if missing > 0 && damage != nil && !strings.Contains(log.String(), name) {
		t.Errorf("%s: the log does not name the file:\n%s", what, &log)
	}
	for i := range 200 { // and it can be written to
		b := new(mutation.Batch)
		b.Set(damagedKey(i), valueOf(damagedKey(i), 1))
		if err := s.Apply(store.Sync, b); err != nil {
			t.Fatalf("%s: Apply: %v", what, err)
		}
	}
	closed(t, s)
}

func valueOf(key []byte, n int) []byte {
	v := make([]byte, 20+n%1500)
	r := rand.New(rand.NewPCG(uint64(n), 5))
	for i := range v {
		v[i] = byte(r.Uint32())
	}
	return append(v, key...)
}
