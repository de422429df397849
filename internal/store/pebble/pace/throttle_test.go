package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
)

// TestThrottle: whoever flushes or compacts rests as long as it works, but where nothing waits for it,
// not in a short write, not while write buffers fill fast, and not while the store closes.
func TestThrottle(t *testing.T) {
	const work = stretch
	for name, c := range map[string]struct {
		category vfs.DiskWriteCategory
		between  time.Duration // flushes; 0: there is one
		each     time.Duration // work before a write
		closed   bool
		rested   time.Duration // in ten writes
	}{
		"a flush":                  {category: WritesFlush, between: calmFrom, each: work, rested: 10 * stretch},
		"a compaction":             {category: WritesCompaction, between: calmFrom, each: work, rested: 10 * stretch},
		"short writes":             {category: WritesFlush, between: calmFrom, each: work / 5, rested: 2 * stretch},
		"a log":                    {category: "pebble-wal", between: calmFrom, each: work},
		"the first flush":          {category: WritesFlush, each: work},
		"flushes fast in sequence": {category: WritesFlush, between: calmFrom - 1, each: work},
		"a store that closes":      {category: WritesFlush, between: calmFrom, each: work, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := NewThrottle(vfs.NewMem())
				fs.FlushBegan()
				if c.between > 0 {
					pass(t, c.between)
					fs.FlushBegan()
				}
				if c.closed {
					fs.Close()
				}
				f, err := fs.Create("a", c.category)
				if err != nil {
					t.Fatal(err)
				}
				began := clock.System.Now()
				for range 10 {
					pass(t, c.each)
					if _, err := f.Write([]byte("b")); err != nil {
						t.Fatal(err)
					}
				}
				if rested := clock.System.Now().Sub(began) - 10*c.each; rested != c.rested {
					t.Errorf("rested for %v, not for %v", rested, c.rested)
				}
				if s, err := f.Stat(); err != nil || s.Size() != 10 {
					t.Errorf("written: %v, %v", s, err)
				}
			})
		})
	}
}
