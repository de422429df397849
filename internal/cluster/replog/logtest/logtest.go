// Package logtest defines what a replicated log owes: Run is the suite that every log
// passes.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/replog"
)

// within bounds how long a test waits for anything.
const within = 3 * time.Minute

// Run runs the suite. open makes an empty log, separate from any other.
func Run(t *testing.T, open func(t *testing.T) replog.Log) {
	for name, f := range map[string]func(context.Context, *testing.T, replog.Log){
		"Empty":      testEmpty,
		"Order":      testOrder,
		"Follow":     testFollow,
		"Concurrent": testConcurrent,
		"Trim":       testTrim,
		"Large":      testLarge,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			f(ctx, t, open(t))
		})
	}
}

// refusedTime is between an append that was refused and the next try.
const refusedTime = 20 * time.Millisecond

// Append appends, and waits for the outcome. What is refused, as all is by a log that is
// only just being made, is surely not in it, and is tried again.
func Append(l replog.Log, data []byte) (position uint64, err error) {
	for began := clock.System.Now(); ; {
		position, err = AppendOnce(l, data)
		if !errors.Is(err, replog.ErrRefused) || clock.System.Now().Sub(began) > within {
			return position, err
		}
		over, _ := clock.After(clock.System, refusedTime)
		<-over
	}
}

// AppendOnce is Append without trying again.
func AppendOnce(l replog.Log, data []byte) (position uint64, err error) {
	done := make(chan struct{})
	l.Append(data, func(p uint64, e error) {
		position, err = p, e
		close(done)
	})
	<-done
	return position, err
}

func appended(t *testing.T, l replog.Log, text string, want uint64) {
	t.Helper()
	if p, err := Append(l, []byte(text)); err != nil || p != want {
		t.Fatalf("%q was appended at %d, %v; want %d", text, p, err, want)
	}
}

func extent(ctx context.Context, l replog.Log) (e replog.Extent, err error) {
	err = available(ctx, func() (err error) { e, err = l.Extent(ctx); return err })
	return e, err
}

func ends(ctx context.Context, t *testing.T, l replog.Log, wantFirst, wantLast uint64) {
	t.Helper()
	if e, err := extent(ctx, l); err != nil || e.First != wantFirst || e.Last != wantLast {
		t.Errorf("the log is from %d to %d, %v; want %d to %d", e.First, e.Last, err, wantFirst, wantLast)
	}
}

func reads(ctx context.Context, t *testing.T, r replog.Reader, position uint64, want string) {
	t.Helper()
	if p, data, err := r.Next(ctx); err != nil || p != position || string(data) != want {
		t.Fatalf("read %.40q at %d, %v; want %.40q at %d", data, p, err, want, position)
	}
}

func reader(ctx context.Context, t *testing.T, l replog.Log, from uint64) replog.Reader {
	t.Helper()
	r := &patient{log: l, next: from}
	if err := r.open(ctx); err != nil {
		t.Fatalf("Read from %d: %v", from, err)
	}
	t.Cleanup(r.Close)
	return r
}

// available calls f until it fails otherwise than because the log cannot be reached: on a
// machine that has much else to do it may be so for a while, and says so.
func available(ctx context.Context, f func() error) error {
	for {
		if err := f(); !errors.Is(err, replog.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
}

// patient is a reader that is opened again where the log could not be reached, as nodes do.
type patient struct {
	replog.Reader
	log  replog.Log
	next uint64
}

func (p *patient) open(ctx context.Context) error {
	return available(ctx, func() (err error) {
		p.Reader, err = p.log.Read(ctx, p.next)
		return err
	})
}

func (p *patient) Next(ctx context.Context) (position uint64, data []byte, err error) {
	for {
		position, data, err = p.Reader.Next(ctx)
		if err == nil {
			p.next = position + 1
		}
		if !errors.Is(err, replog.ErrUnavailable) || ctx.Err() != nil {
			return position, data, err
		}
		p.Close()
		if err := p.open(ctx); err != nil {
			return 0, nil, err
		}
	}
}

func testEmpty(ctx context.Context, t *testing.T, l replog.Log) {
	ends(ctx, t, l, 1, 0)
	if err := (&patient{log: l, next: 2}).open(ctx); !errors.Is(err, replog.ErrLost) {
		t.Errorf("Read behind the end: %v", err)
	}
	r := reader(ctx, t, l, 1)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := r.Next(over); err == nil {
		t.Error("read something of an empty log")
	}
}

func testOrder(ctx context.Context, t *testing.T, l replog.Log) {
	for i := range 10 {
		appended(t, l, fmt.Sprint("record ", i), uint64(i+1))
	}
	ends(ctx, t, l, 1, 10)
	for _, from := range []uint64{1, 4, 10} {
		r := reader(ctx, t, l, from)
		for p := from; p <= 10; p++ {
			reads(ctx, t, r, p, fmt.Sprint("record ", p-1))
		}
	}
	if err := (&patient{log: l, next: 12}).open(ctx); !errors.Is(err, replog.ErrLost) {
		t.Errorf("Read behind the end: %v", err)
	}
}

func testFollow(ctx context.Context, t *testing.T, l replog.Log) {
	a, b := reader(ctx, t, l, 1), reader(ctx, t, l, 1)
	for i := range 5 {
		text := fmt.Sprint("record ", i)
		appended(t, l, text, uint64(i+1))
		reads(ctx, t, a, uint64(i+1), text)
		reads(ctx, t, b, uint64(i+1), text)
	}
	late := reader(ctx, t, l, 6)
	appended(t, l, "last", 6)
	reads(ctx, t, late, 6, "last")
	reads(ctx, t, a, 6, "last")
}

func testConcurrent(ctx context.Context, t *testing.T, l replog.Log) {
	const writers, each = 4, 25
	appended(t, l, "first", 1) // it takes what follows
	var at sync.Map            // text by position
	at.Store(uint64(1), "first")
	var all sync.WaitGroup
	for w := range writers {
		for i := range each {
			text := fmt.Sprintf("writer %d, record %d", w, i)
			all.Add(1)
			l.Append([]byte(text), func(p uint64, err error) {
				defer all.Done()
				if _, taken := at.LoadOrStore(p, text); err != nil || taken {
					t.Errorf("%s is at %d: taken %v, %v", text, p, taken, err)
				}
			})
		}
	}
	r := reader(ctx, t, l, 1)
	all.Wait()
	for p := uint64(1); p <= 1+writers*each; p++ {
		want, ok := at.Load(p)
		if !ok {
			t.Fatalf("nothing was appended at %d", p)
		}
		reads(ctx, t, r, p, want.(string))
	}
}

func testTrim(ctx context.Context, t *testing.T, l replog.Log) {
	for i := range 10 {
		appended(t, l, fmt.Sprint("record ", i), uint64(i+1))
	}
	for _, below := range []uint64{4, 4, 2} { // what is gone already is no error
		if err := available(ctx, func() error { return l.Trim(ctx, below) }); err != nil {
			t.Fatal(err)
		}
	}
	ends(ctx, t, l, 4, 10)
	if err := (&patient{log: l, next: 3}).open(ctx); !errors.Is(err, replog.ErrTrimmed) {
		t.Errorf("Read of what was trimmed: %v", err)
	}
	reads(ctx, t, reader(ctx, t, l, 4), 4, "record 3")
	size := func() uint64 {
		t.Helper()
		e, err := extent(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		return e.Bytes
	}
	if before := size(); before < 7*uint64(len("record 0")) {
		t.Errorf("seven records take %d bytes", before)
	}
	if err := available(ctx, func() error { return l.Trim(ctx, 11) }); err != nil {
		t.Fatal(err)
	}
	ends(ctx, t, l, 11, 10)
	if left := size(); left != 0 {
		t.Errorf("no records take %d bytes", left)
	}
	appended(t, l, "further", 11)
	reads(ctx, t, reader(ctx, t, l, 11), 11, "further")
}

// taken waits until the log ends at a position or behind it.
func taken(ctx context.Context, l replog.Log, position uint64) (last uint64, err error) {
	for {
		e, err := extent(ctx, l)
		if err != nil || e.Last >= position {
			return e.Last, err
		}
		if err := clock.Wait(ctx, clock.System, refusedTime); err != nil {
			return e.Last, fmt.Errorf("%w, and it has not", replog.ErrUnknown)
		}
	}
}

func testLarge(ctx context.Context, t *testing.T, l replog.Log) {
	var all [][]byte
	for _, size := range []int{0, 1, 1 << 20, 8 << 20} {
		data := bytes.Repeat([]byte{byte(size >> 20)}, size)
		all = append(all, data)
		p, err := Append(l, slices.Clone(data))
		if errors.Is(err, replog.ErrUnknown) { // on a machine that has much else to do it takes longer than the answer is waited for
			p, err = taken(ctx, l, uint64(len(all)))
		}
		if err != nil || p != uint64(len(all)) {
			t.Fatalf("%d bytes: at %d, %v", size, p, err)
		}
	}
	r := reader(ctx, t, l, 1)
	for i, want := range all {
		if p, data, err := r.Next(ctx); err != nil || p != uint64(i+1) || !bytes.Equal(data, want) {
			t.Fatalf("read %d bytes at %d, %v; want %d", len(data), p, err, len(want))
		}
	}
}
