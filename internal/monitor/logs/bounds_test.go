package logs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/logs/pattern"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// fillMany puts events of many streams into a group, one a
// minute in each.
func fillMany(t *testing.T, l *Logs, streams, minutes int) {
	t.Helper()
	names := make([]string, streams)
	for i := range names {
		names[i] = fmt.Sprintf("s%04d", i)
	}
	with(t, l, names...)
	for _, name := range names {
		var all []Event
		for m := range minutes {
			all = append(all, Event{at(time.Duration(m-minutes) * time.Minute), fmt.Sprintf("%s minute %d", name, m)})
		}
		put(t, l, name, all...)
	}
}

// A page of a stream looks at what it returns, and one or two keys for each hour
// that it passes, however much the group holds; so does a page of a few streams.
// A page of a group looks at no more than it may.
func TestReadsAreBounded(t *testing.T) {
	st := &storetest.Counting{Store: memory.New()}
	l, _ := open(t, st, nil)
	const streams, minutes = 200, 300
	fillMany(t, l, streams, minutes) // 60,000 events in 5 hours

	looks := func(what string, limit int, f func() int, want int) {
		t.Helper()
		st.Looks.Store(0)
		if n := f(); n != want {
			t.Errorf("%s: %d events, want %d", what, n, want)
		}
		if n := int(st.Looks.Load()); n > limit {
			t.Errorf("%s looks at %d keys", what, n)
		}
	}
	page := func(q EventsQuery) func() int {
		return func() int {
			q.Stream = "s0100"
			return len(events(t, l, q).Events)
		}
	}
	filter := func(q FilterQuery) func() int {
		return func() int {
			q.Group = group
			found, _, err := l.Filter(q)
			check(t, err)
			return len(found)
		}
	}
	looks("the latest of a stream", 60, page(EventsQuery{Limit: 10}), 10)
	looks("the first of a stream", 60, page(EventsQuery{Limit: 10, FromHead: true}), 10)
	looks("a stream as a whole", 3*minutes, page(EventsQuery{Limit: MaxEvents, FromHead: true}), minutes)
	looks("a stream as a whole, from the end", 3*minutes, page(EventsQuery{Limit: MaxEvents}), minutes)
	from, to := at(-2*time.Hour), at(-time.Hour)
	looks("an hour of a stream", 300, page(EventsQuery{Limit: MaxEvents, From: &from, To: &to}), 60)
	looks("two streams", 6*minutes, filter(FilterQuery{Streams: []string{"s0001", "s0100"}, Limit: MaxEvents}), 2*minutes)
	looks("streams of a prefix", 4*10*minutes, filter(FilterQuery{Prefix: "s001", Limit: MaxEvents}), 10*minutes)
	looks("a page of the group", 300, filter(FilterQuery{Limit: 10}), 10)
	none, err := pattern.Parse("nothing")
	check(t, err)
	looks("a pattern that matches nothing", maxScanned+1000, filter(FilterQuery{Pattern: none, Limit: 10}), 0)

	before := st.Looks.Load()
	put(t, l, "s0100", Event{at(0), "one more"})
	if n := st.Looks.Load() - before; n > 20 {
		t.Errorf("a put looks at %d keys", n)
	}
	before = st.Looks.Load()
	check(t, l.Retain(group, 1))
	if n := st.Looks.Load() - before; n > 20 {
		t.Errorf("a retention looks at %d keys", n)
	}
}

// putOwn writes events as the server does its own.
func putOwn(l *Logs, stream string, events []Event) error {
	_, err := l.shard.Run(journal.Lazy, func(*kernel.Tx) error {
		_, err := l.sink.put(group, stream, events, authorize.AllLogRights)
		return err
	})
	return err
}

// A stream that was quiet for years is found in few calls, each of a bounded part.
func TestQuietStream(t *testing.T) {
	st := &storetest.Counting{Store: memory.New()}
	l, _ := open(t, st, nil)
	with(t, l, "busy", "quiet")
	first := began.AddDate(-1, 0, 0)
	err := putOwn(l, "quiet", []Event{{first.UnixMilli(), "first"}})
	check(t, err)
	for h := range 5000 {
		err := putOwn(l, "busy", []Event{{first.Add(time.Duration(h) * time.Hour).UnixMilli(), "x"}})
		check(t, err)
	}
	err = putOwn(l, "quiet", []Event{{at(0), "last"}})
	check(t, err)
	for _, head := range []bool{true, false} {
		var all []string
		q := EventsQuery{Stream: "quiet", FromHead: head}
		for calls := 0; ; calls++ {
			if calls > 10 {
				t.Fatal("no end")
			}
			st.Looks.Store(0)
			p := events(t, l, q)
			if st.Looks.Load() > 2*maxHops+100 {
				t.Errorf("a call looks at %d keys", st.Looks.Load())
			}
			all = append(all, texts(p.Events)...)
			next := p.Backward
			if head {
				next = p.Forward
			}
			if next == q.Token {
				break
			}
			q.Token = next
		}
		if len(all) != 2 {
			t.Errorf("head %v: %q", head, all)
		}
	}

	// Its events go with it, past all the hours of the other.
	check(t, l.DeleteStream(group, "quiet"))
	l.kernel.AwaitIdle()
	same(t, "events left", 5000, kept(t, l, tagEvent))
	same(t, "index left", 5000, kept(t, l, tagIndex))
}

// A search reads a bounded number of bytes in one call.
func TestSearchedBytesAreBounded(t *testing.T) {
	l, _ := open(t, memory.New(), nil)
	with(t, l, "s")
	large := strings.Repeat("x", maxPage-eventOverhead)
	const calls = 2
	const stored = calls*maxScannedBytes/maxPage + 3
	for i := range stored {
		put(t, l, "s", Event{at(time.Duration(i) * time.Second), large})
	}
	none, err := pattern.Parse("nothing")
	check(t, err)
	slow, err := pattern.Parse("%y{1,250}%") // for which a byte counts as 26
	check(t, err)
	for _, q := range []FilterQuery{{Pattern: none}, {Pattern: none, Streams: []string{"s"}}, {Pattern: slow}} {
		q.Group, q.Limit = group, 1
		n, want := 0, calls+1
		if q.Pattern == slow {
			want = stored // one in a call
		}
		for more := true; more; n++ {
			found, next, err := l.Filter(q)
			check(t, err)
			same(t, "found", 0, len(found))
			q.Token, more = next, next != ""
		}
		same(t, "calls", want, n)
	}
}

// A list of groups looks at a bounded part in one call, and continues where it stood.
func TestGroupsAreBounded(t *testing.T) {
	st := &storetest.Counting{Store: memory.New()}
	l, _ := open(t, st, nil)
	const groups = 2*maxLooked + 10
	for i := range groups {
		g := NewGroup{ARN: arn.LogGroup("us-east-1", "000000000000", fmt.Sprintf("g%06d", i))}
		_, err := l.shard.Run(journal.Lazy, func(*kernel.Tx) error { return l.createGroup(g) })
		check(t, err)
	}
	var names []string
	p := Page{Limit: 50}
	f := GroupFilter{Region: "us-east-1", Account: "000000000000", Name: func(name string) bool { return name == "g000005" }}
	for calls := 1; ; calls++ {
		st.Looks.Store(0)
		found, next, err := l.Groups(f, p)
		check(t, err)
		if n := st.Looks.Load(); n > maxLooked+10 {
			t.Errorf("a call looks at %d keys", n)
		}
		for _, g := range found {
			names = append(names, g.ARN.String())
		}
		if p.After = next; next == "" {
			same(t, "calls", 3, calls)
			break
		}
	}
	same(t, "found", []string{"arn:aws:logs:us-east-1:000000000000:log-group:g000005"}, names)
}
