package queue

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// BenchmarkCycle is the way of most messages: ten are accepted, received together and
// deleted, each with its handle, while a thousand others wait that memory knows: what
// would be read, from no Reader, fails it.
func BenchmarkCycle(b *testing.B) {
	for _, test := range []struct {
		name   string
		kind   Kind
		groups int
	}{
		{"standard", Kind{}, 0},
		{"fair", Kind{}, 1000},
		{"fifo", Kind{FIFO: true}, 1000},
		{"backlog", Kind{Backlog: true}, 0},
	} {
		b.Run(test.name, func(b *testing.B) {
			defer func(n int) { windowSize = n }(windowSize)
			windowSize = 4096
			q := New(layout.NewKeys(1, 1), Config{Visibility: time.Minute, Retention: time.Hour}, test.kind)
			var batch mutation.Batch
			m := message.Message{Sent: 1, Body: make([]byte, 256)}
			record := m.AppendRecord(nil)
			now, n := int64(1_000_000), 0
			lanes := []layout.Lane{layout.MainLane}
			for i := range test.groups {
				lanes = append(lanes[:i], layout.GroupLane(fmt.Sprint(i)))
			}
			accept := func() {
				n++
				if _, err := q.Do(nil, &batch, now, Accept{Arrival{Record: record, Sent: now, Lane: lanes[n%len(lanes)]}}); err != nil {
					b.Fatal(err)
				}
			}
			for range 1000 {
				accept()
			}
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				now++
				for range 10 {
					accept()
				}
				for got := 0; got < 10; {
					r, err := q.Do(nil, &batch, now, Receive{Max: 10 - got, Visibility: 60_000, Epoch: 1})
					if err != nil || len(r.Leases) == 0 {
						b.Fatal(r, err)
					}
					for _, l := range r.Leases {
						h := Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch}
						if _, err := q.Do(nil, &batch, now, Delete{h}); err != nil {
							b.Fatal(err)
						}
					}
					got += len(r.Leases)
				}
			}
		})
	}
}

// BenchmarkReturned is the way of messages that come back: ten are received and given
// back one after the other, of 400 that have come back before.
func BenchmarkReturned(b *testing.B) {
	q := New(layout.NewKeys(1, 1), Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
	var batch mutation.Batch
	m := message.Message{Sent: 1, Body: make([]byte, 256)}
	record := m.AppendRecord(nil)
	now := int64(1_000_000)
	do := func(c Command) Result {
		r, err := q.Do(nil, &batch, now, c)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	for range 400 {
		do(Accept{Arrival{Record: record, Sent: now, Due: now + 1}})
	}
	now += 2
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		now++
		for _, l := range do(Receive{Max: 10, Visibility: 60_000, Epoch: 1}).Leases {
			do(ChangeVisibility{Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch}, 0})
		}
	}
}
