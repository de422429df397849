package pebble_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

func openBench(b *testing.B) *pebble.Store {
	b.Helper()
	s := open(b, filepath.Join(b.TempDir(), "data"), pebble.Options{})
	b.Cleanup(func() { closed(b, s) })
	return s
}

func BenchmarkOpenEmpty(b *testing.B) {
	root := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		s := open(b, filepath.Join(root, fmt.Sprint(n)), pebble.Options{})
		b.StopTimer()
		closed(b, s)
		b.StartTimer()
	}
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte("message "), n) }

// incompressible fills p with what no compression makes smaller.
func incompressible(p []byte) {
	x := uint64(88172645463325252)
	for i := range p {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x)
	}
}

// A read of ten records next to each other: just written, or in no cache.
func BenchmarkTen(b *testing.B) {
	for _, where := range []string{"new", "old"} {
		s, root := openBench(b), 0
		value := make([]byte, 300)
		incompressible(value)
		const records = 1_000_000
		for n := 0; n < records; n += 100 {
			batch := new(mutation.Batch)
			for i := range 100 {
				batch.Set(key(uint64(n+i)), value)
			}
			if err := s.Apply(store.NoSync, batch); err != nil {
				b.Fatal(err)
			}
		}
		next := func() (keys [][]byte) {
			from := uint64(records - 2000 + root%1900)
			if where == "old" {
				from = uint64(root) * 7919 % (records * 9 / 10)
			}
			root++
			for i := range uint64(10) {
				keys = append(keys, key(from+i))
			}
			return keys
		}
		b.Run(where+"/Get", func(b *testing.B) {
			for b.Loop() {
				for _, k := range next() {
					if _, ok, err := s.Get(nil, k); err != nil || !ok {
						b.Fatal(ok, err)
					}
				}
			}
		})
		b.Run(where+"/GetEach", func(b *testing.B) {
			for b.Loop() {
				n := 0
				if err := store.GetEach(s, next(), func(_ int, v []byte) error { n++; _ = bytes.Clone(v); return nil }); err != nil || n != 10 {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// A commit of one record of 1 KiB, from that many callers at once.
func BenchmarkApplySync(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 128} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := openBench(b)
			value := make([]byte, 1024)
			incompressible(value)
			var next atomic.Uint64
			b.SetBytes(1024)
			b.ReportAllocs()
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				batch := new(mutation.Batch)
				for p.Next() {
					batch.Reset()
					batch.Set(key(next.Add(1)), value)
					if err := s.Apply(store.Sync, batch); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// What a group commit does: many records in a few batches, then one sync.
func BenchmarkApplyThenSync(b *testing.B) {
	for _, records := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			s := openBench(b)
			value := make([]byte, 1024)
			incompressible(value)
			b.SetBytes(int64(records) * 1024)
			b.ReportAllocs()
			var batches [4]mutation.Batch
			n := uint64(0)
			for b.Loop() {
				for i := range batches {
					batches[i].Reset()
				}
				for i := range records {
					n++
					batches[i%len(batches)].Set(key(n), value)
				}
				if err := s.Apply(store.NoSync, &batches[0], &batches[1], &batches[2], &batches[3]); err != nil {
					b.Fatal(err)
				}
				if err := s.Sync(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(records), "ns/record")
		})
	}
}

func BenchmarkApplyNoSync(b *testing.B) {
	s := openBench(b)
	value := make([]byte, 1024)
	b.ReportAllocs()
	batch := new(mutation.Batch)
	n := uint64(0)
	for b.Loop() {
		n++
		batch.Reset()
		batch.Set(key(n), value)
		batch.SingleDelete(key(n - 1))
		if err := s.Apply(store.NoSync, batch); err != nil {
			b.Fatal(err)
		}
	}
}

const stored = 200_000 // records of 256 B, most of them in tables

func openStored(b *testing.B) *pebble.Store {
	b.Helper()
	s := openBench(b)
	value := make([]byte, 256)
	incompressible(value)
	batch := new(mutation.Batch)
	for n := range uint64(stored) {
		batch.Set(key(n), value)
		if batch.Len() == 1000 {
			if err := s.Apply(store.NoSync, batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	return s
}

func BenchmarkGet(b *testing.B) {
	s := openStored(b)
	get := func(b *testing.B, at func(n uint64) []byte, want bool) {
		b.ReportAllocs()
		var dst []byte
		n := uint64(0)
		for b.Loop() {
			n += 7919
			v, ok, err := s.Get(dst[:0], at(n%stored))
			if err != nil || ok != want {
				b.Fatal(ok, err)
			}
			dst = v
		}
	}
	b.Run("found", func(b *testing.B) { get(b, key, true) })
	b.Run("missing", func(b *testing.B) {
		get(b, func(n uint64) []byte { return append(key(n), 'x') }, false)
	})
}

func BenchmarkIter(b *testing.B) {
	s := openStored(b)
	for _, length := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("records=%d", length), func(b *testing.B) {
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				n = (n + 7919) % (stored - 1000)
				it, err := s.Iter(key(n), nil)
				if err != nil {
					b.Fatal(err)
				}
				for range length {
					if !it.Next() {
						b.Fatal("too few records")
					}
				}
				if err := it.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(length), "ns/record")
		})
	}
}

// resident is the process's memory now and at most so far, in bytes.
func resident(b *testing.B) (now, peak float64) {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("resident memory is read from /proc")
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			now = kib * 1024
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			peak = kib * 1024
		}
	}
	return now, peak
}

// A million records of 300 B are written, read in order and deleted, ten to
// a batch: memory must stay far below the 150 MB that a server with a million
// messages may have. Run it with -benchtime 1x and no other, since the peak
// is the process's.
func BenchmarkMillionMessages(b *testing.B) {
	const records, perBatch = 1_000_000, 10
	const mb = 1e6
	for b.Loop() {
		s := open(b, filepath.Join(b.TempDir(), "data"), pebble.Options{})
		value := make([]byte, 300)
		incompressible(value)
		batch := new(mutation.Batch)
		each := func(write func(n uint64)) {
			for n := range uint64(records) {
				write(n)
				if batch.Len() == perBatch {
					sync := store.NoSync
					if n%1000 == 0 {
						sync = store.Sync
					}
					if err := s.Apply(sync, batch); err != nil {
						b.Fatal(err)
					}
					batch.Reset()
				}
			}
		}
		report := func(what string) {
			debug.FreeOSMemory()
			now, peak := resident(b)
			b.ReportMetric(now/mb, "MB-"+what)
			b.ReportMetric(peak/mb, "MB-peak-"+what)
		}
		report("start")
		each(func(n uint64) { batch.Set(key(n), value) })
		report("written")
		it, err := s.Iter(nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		count := 0
		for it.Next() {
			count++
		}
		if err := it.Close(); err != nil || count != records {
			b.Fatal(count, err)
		}
		report("read")
		each(func(n uint64) { batch.SingleDelete(key(n)) })
		report("deleted")
		closed(b, s)
	}
}
