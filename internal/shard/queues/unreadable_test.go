package queues_test

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
)

// TestUnreadableRecords: a record that is damaged keeps nobody from the other
// messages of its queue. It is quarantined until the next start, and goes when its
// retention is over.
func TestUnreadableRecords(t *testing.T) {
	for damage, damaged := range map[string]func([]byte) []byte{
		"no record": func([]byte) []byte { return []byte("garbage") },
		"cut short": func(record []byte) []byte { return record[:20] },
		"no key to sign it with": func(record []byte) []byte {
			m, err := message.DecodeRecord(record)
			if err != nil {
				t.Fatal(err)
			}
			m.Unsigned = &message.Unsigned{}
			return m.AppendRecord(nil)
		},
	} {
		for _, kind := range []string{"standard", "fair", "moved", "fifo"} {
			for _, restart := range []bool{false, true} {
				name := damage + ", " + kind
				if restart {
					name += ", after a restart"
				}
				t.Run(name, func(t *testing.T) { testUnreadable(t, kind, restart, damaged) })
			}
		}
	}
}

func testUnreadable(t *testing.T, kind string, restart bool, damaged func([]byte) []byte) {
	a := &ages{T: t, clock: clock.NewVirtual(shardtest.Start), store: shardtest.NewStore(t)}
	var log bytes.Buffer
	noKey := func([]byte, *message.Unsigned) error { return errors.New("no such key") }
	open := func() {
		a.engine = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, a.store, nil), Clock: a.clock, Logger: slog.New(slog.NewTextHandler(&log, nil)), Sign: noKey})
	}
	open()
	defer func() { a.engine.Close(); a.store.Close() }()
	reopen := func() {
		a.engine.Close()
		log.Reset()
		open()
	}
	q := "q"
	switch kind {
	case "fifo":
		q = "q.fifo"
		a.create(q, map[string]string{"FifoQueue": "true", "MessageRetentionPeriod": "600"})
	default:
		a.create(q, map[string]string{"MessageRetentionPeriod": "600"})
	}
	var groups [3]string
	if kind == "fifo" || kind == "fair" {
		groups = [...]string{"a", "b", "c"}
	}
	from := q
	if kind == "moved" {
		from = "from"
		a.create(from, redrive(shardtest.QueueARN(q), 1))
	}
	for _, group := range groups {
		a.send(from, group, 1)
	}
	if kind == "moved" {
		for range 2 {
			a.receive(from, 10, 0)
		}
	}
	a.engine.Journal.Flush()
	var key, second []byte
	for k, record := range storetest.Dump(t, a.store) {
		if k[2] == 'D' && k[11] == 'm' && bytes.HasSuffix(record, []byte("2")) {
			key, second = bytes.Clone(k), bytes.Clone(record)
		}
	}
	set := func(record []byte) {
		t.Helper()
		var b mutation.Batch
		b.Set(key, record)
		a.must(a.store.Apply(store.Sync, &b))
	}
	set(damaged(second))
	if restart {
		reopen()
	}
	a.pass(time.Second)
	aged := func() {
		t.Helper()
		if g, err := a.engine.SampleQueue(shardtest.QueueARN(q)); err != nil || g.OldestAge == 0 {
			t.Errorf("%v old, %v", g.OldestAge, err)
		}
	}
	aged()
	bodies := func(got []queues.Received) (bodies []string) {
		for _, m := range got {
			bodies = append(bodies, string(m.Body))
		}
		slices.Sort(bodies)
		return bodies
	}
	expect := func(limit int, want ...string) []queues.Received {
		t.Helper()
		got := a.receive(q, limit, time.Minute)
		if !slices.Equal(bodies(got), want) {
			t.Errorf("received %q, want %q", bodies(got), want)
		}
		return got
	}
	first := expect(1, "1")
	expect(1, "3") // and not nothing, in the place of what cannot be read
	expect(10)
	if n := strings.Count(log.String(), "quarantined"); n != 1 || strings.Contains(log.String(), "garbage") {
		t.Errorf("it is told %d times:\n%s", n, &log)
	}
	errs, err := a.engine.DeleteMessages(t.Context(), shardtest.QueueARN(q), []string{first[0].ReceiptHandle})
	a.must(cmp.Or(append(errs, err)...))
	aged() // of the third
	a.pass(2 * time.Minute)
	expect(10, "3")

	reopen()
	a.pass(time.Second) // nobody takes it for one whose retention is over
	set(second)
	reopen()
	expect(10, "2")
	a.pass(2 * time.Minute)
	set(damaged(second))
	expect(10, "3")
	a.pass(time.Hour)
	a.engine.Journal.Flush()
	for _, kind := range []byte("mltdengrh") {
		if n := shardtest.CountKeys(t, a.store, 'D', kind); n > 0 {
			t.Errorf("%d records of kind %q are left of nothing", n, kind)
		}
	}
}

// TestManyUnreadableRecords: however many records in a row are damaged, a receive
// goes past a bounded number of them, and a sweep past all.
func TestManyUnreadableRecords(t *testing.T) {
	const many = 3*queue.SweepSize + 100
	a := &ages{T: t, clock: clock.NewVirtual(shardtest.Start), store: shardtest.NewStore(t)}
	var log bytes.Buffer
	a.engine = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, a.store, nil), Clock: a.clock, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer func() { a.engine.Close(); a.store.Close() }()
	a.create("q", map[string]string{"MessageRetentionPeriod": "600"})
	a.send("q", "", many)
	a.engine.Journal.Flush()
	var b mutation.Batch
	for k := range storetest.Dump(t, a.store) {
		if k[2] == 'D' && k[11] == 'm' {
			b.Set(k, []byte("garbage"))
		}
	}
	a.must(a.store.Apply(store.Sync, &b))
	a.pass(time.Second)
	a.send("q", "", 1)
	if got := a.receive("q", 1, time.Minute); len(got) != 0 {
		t.Errorf("received %v", got)
	}
	if n := strings.Count(log.String(), "quarantined"); n != queues.ReceiveRounds {
		t.Errorf("%d are set aside by one receive", n)
	}
	a.pass(2 * time.Hour)
	a.engine.Journal.Flush()
	if n := shardtest.CountKeys(t, a.store, 'D', 'm'); n > 0 {
		t.Errorf("%d records are left", n)
	}
}
