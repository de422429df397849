package queue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"godwit.dev/godwit/internal/queue/layout"
)

// FuzzDecodeState: what it reads is written as it was read.
func FuzzDecodeState(f *testing.F) {
	s := state{due: never, sent: 2, first: 3, received: 4, receives: 5, epoch: 6, lane: layout.MovedLane, flags: flagStay | flagHistory}
	f.Add(s.appendTo(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := decodeState(7, p)
		if err != nil {
			if !errors.Is(err, layout.ErrCorrupt) || len(p) == stateSize {
				t.Fatalf("%d bytes: %v", len(p), err)
			}
			return
		}
		if got := s.appendTo(nil); !bytes.Equal(got, p) || s.seq != 7 {
			t.Fatalf("read %x, wrote %x", p, got)
		}
	})
}

// FuzzDecodeCounters: what a machine is loaded with is what it writes, but for
// the leases, which it counts.
func FuzzDecodeCounters(f *testing.F) {
	f.Add(binary.BigEndian.AppendUint64(make([]byte, countersSize-8), math.MaxUint64))
	f.Add(binary.BigEndian.AppendUint64(make([]byte, countersSize+groupCountersSize-8), 5))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		m := New(layout.NewKeys(1, 1), Config{}, Kind{})
		if _, _, err := m.Load(p, 1); err != nil {
			if !errors.Is(err, layout.ErrCorrupt) || len(p) == countersSize {
				t.Fatalf("%d bytes: %v", len(p), err)
			}
			return
		}
		clear(p[4*8 : 5*8])
		if got := m.AppendCounters(nil); !bytes.Equal(got, p) {
			t.Fatalf("read %x, wrote %x", p, got)
		}
	})
}

// FuzzFill hands a machine what a damaged store might hold.
func FuzzFill(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), (&state{}).appendTo(nil))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) < 8 {
			return // no store gives one: it is not within a span
		}
		m := New(layout.NewKeys(1, 1), Config{}, Kind{FIFO: len(key)%2 == 0})
		errs := []error{m.FillDue(key, value), m.LoadLease(key, value), m.FillState(Need{Sequence: 1}, true, 1, value), m.FillHeld(key, value)}
		m.LoadBucket(key, value)
		if _, _, err := m.Load(value, 1); err != nil && !errors.Is(err, layout.ErrCorrupt) {
			t.Fatal(err)
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, layout.ErrCorrupt) {
				t.Fatal(err)
			}
		}
		layout.DecodeDue(value)
	})
}
