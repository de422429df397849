package logs

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/logs/pattern"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/test/soak"
)

var (
	began = time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	group = arn.LogGroup("us-east-1", "000000000000", "/app")
)

// open makes logs over a store, on a virtual clock.
func open(t testing.TB, st store.Store, change func(*settings)) (*Logs, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(began)
	s := settings{Options: kernel.Options{Journal: journalOf(t, st), Clock: c}}
	if change != nil {
		change(&s)
	}
	l, err := load(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.kernel.Close() })
	return l, c
}

// settings are what a test's kernel and its logs are made of.
type settings struct {
	kernel.Options
	maxBytes int64
	record   func(data ...metrics.Datapoint) error
}

func load(s settings) (*Logs, error) {
	s.Logger = slog.New(slog.DiscardHandler)
	k := kernel.New(s.Options)
	l := New(k, Options{MaxBytes: s.maxBytes, Record: s.record})
	return l, k.Load()
}

// journalOf opens a journal on a store for as long as the test runs.
func journalOf(t interface{ Cleanup(func()) }, st store.Store) *journal.Journal {
	j := journal.Open(journal.Options{Store: st})
	t.Cleanup(j.Close)
	return j
}

// with makes a group with streams.
func with(t testing.TB, l *Logs, streams ...string) {
	t.Helper()
	check(t, l.CreateGroup(NewGroup{ARN: group}))
	for _, s := range streams {
		check(t, l.CreateStream(group, s))
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at is a moment so long behind began, in epoch milliseconds.
func at(d time.Duration) int64 { return began.Add(d).UnixMilli() }

func put(t testing.TB, l *Logs, stream string, events ...Event) Rejected {
	t.Helper()
	r, err := l.Put(group, stream, events)
	check(t, err)
	return r
}

func texts(found []Found) (all []string) {
	for _, f := range found {
		all = append(all, f.Message)
	}
	return all
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func events(t testing.TB, l *Logs, q EventsQuery) EventsPage {
	t.Helper()
	q.Group = group
	if q.Limit == 0 {
		q.Limit = MaxEvents
	}
	p, err := l.Events(q)
	check(t, err)
	return p
}

// The tokens lead through a stream in both directions, and come back where there
// is nothing more.
func TestTokens(t *testing.T) {
	l, _ := open(t, memory.New(), nil)
	with(t, l, "s", "other")
	put(t, l, "other", Event{at(0), "x"})
	empty := events(t, l, EventsQuery{Stream: "s"})
	for i := range 10 {
		put(t, l, "s", Event{at(time.Duration(i) * time.Second), fmt.Sprint(i)})
	}
	put(t, l, "other", Event{at(0), "y"})

	same(t, "what came behind an empty page", 10, len(events(t, l, EventsQuery{Stream: "s", Token: empty.Forward}).Events))

	p := events(t, l, EventsQuery{Stream: "s", Limit: 4})
	same(t, "the latest", []string{"6", "7", "8", "9"}, texts(p.Events))
	q := events(t, l, EventsQuery{Stream: "s", Limit: 4, Token: p.Backward})
	same(t, "before", []string{"2", "3", "4", "5"}, texts(q.Events))
	r := events(t, l, EventsQuery{Stream: "s", Limit: 4, Token: q.Backward})
	same(t, "the beginning", []string{"0", "1"}, texts(r.Events))
	s := events(t, l, EventsQuery{Stream: "s", Limit: 4, Token: r.Backward})
	same(t, "nothing before", []string(nil), texts(s.Events))
	same(t, "the same token", r.Backward, s.Backward)
	same(t, "and forward again", []string{"0", "1", "2", "3"}, texts(events(t, l, EventsQuery{Stream: "s", Limit: 4, Token: s.Forward}).Events))

	f := events(t, l, EventsQuery{Stream: "s", Limit: 10, FromHead: true})
	g := events(t, l, EventsQuery{Stream: "s", Limit: 10, Token: f.Forward})
	same(t, "nothing behind", []string(nil), texts(g.Events))
	same(t, "the same token", f.Forward, g.Forward)
	same(t, "back from the end", []string{"9"}, texts(events(t, l, EventsQuery{Stream: "s", Limit: 1, Token: g.Backward}).Events))
	put(t, l, "s", Event{at(time.Minute), "new"})
	same(t, "what came meanwhile", []string{"new"}, texts(events(t, l, EventsQuery{Stream: "s", Token: g.Forward}).Events))

	for _, head := range []bool{true, false} { // a start in nanoseconds
		far := events(t, l, EventsQuery{Stream: "s", From: new(at(0) * 1e6), FromHead: head})
		again := events(t, l, EventsQuery{Stream: "s", From: new(at(0) * 1e6), Token: far.Forward})
		same(t, "nothing so late", [2]any{0, far.Forward}, [2]any{len(again.Events), again.Forward})
	}

	for _, bad := range []string{"x", f.Forward[1:], "n" + f.Forward[1:], f.Forward + "0", "f/" + strings.Repeat("x", 56)} {
		if _, err := l.Events(EventsQuery{Group: group, Stream: "s", Limit: 1, Token: bad}); fault.KindOf(err) != fault.InvalidParameter {
			t.Errorf("token %s: %v", bad, err)
		}
	}
	if _, err := l.Events(EventsQuery{Group: group, Stream: "other", Limit: 1, Token: f.Forward}); fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("another stream's token: %v", err)
	}
}

// An event of the model.
type modelled struct {
	Event
	stream string
	n      int // the order of arrival
}

// Random puts, reads and filters give what a list in memory gives, also after the
// store was opened again.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		st := memory.New()
		c := clock.NewVirtual(began)
		begin := func() *Logs {
			l, err := load(settings{Options: kernel.Options{Journal: journalOf(rt, st), Clock: c}})
			if err != nil {
				rt.Fatal(err)
			}
			return l
		}
		l := begin()
		defer func() { _ = l.kernel.Close() }()
		ok := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		ok(l.CreateGroup(NewGroup{ARN: group}))
		streams := []string{"a", "b", "ba", "c"}
		for _, s := range streams {
			ok(l.CreateStream(group, s))
		}
		var all []modelled
		arrived := 0
		for range rapid.IntRange(1, soak.Size(15, 30)).Draw(rt, "steps") {
			s := rapid.SampledFrom(streams).Draw(rt, "stream")
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				_ = l.kernel.Close()
				l = begin()
			case 1:
				if len(streams) == 1 {
					continue
				}
				ok(l.DeleteStream(group, s))
				streams = slices.DeleteFunc(slices.Clone(streams), func(x string) bool { return x == s })
				all = slices.DeleteFunc(all, func(m modelled) bool { return m.stream == s })
			default:
				var batch []Event
				start := rapid.Int64Range(0, 200).Draw(rt, "from") * int64(time.Hour/time.Millisecond)
				for i := range rapid.IntRange(1, 400).Draw(rt, "events") {
					e := Event{at(-10*24*time.Hour) + start + int64(i/3), fmt.Sprint("m", arrived)}
					batch = append(batch, e)
					all = append(all, modelled{e, s, arrived})
					arrived++
				}
				if _, err := l.Put(group, s, batch); err != nil {
					rt.Fatal(err)
				}
			}
		}
		sorted := slices.Clone(all)
		slices.SortFunc(sorted, func(a, b modelled) int {
			if a.Time != b.Time {
				return int(a.Time - b.Time)
			}
			return a.n - b.n
		})
		pick := func(want func(modelled) bool) (texts []string) {
			for _, m := range sorted {
				if want(m) {
					texts = append(texts, m.Message)
				}
			}
			return texts
		}
		limit := rapid.SampledFrom([]int{7, 255, 256, 257, 10_000}).Draw(rt, "limit")
		from := at(-10*24*time.Hour) + rapid.Int64Range(0, 200).Draw(rt, "start")*hour
		to := from + rapid.Int64Range(0, 200).Draw(rt, "length")*hour
		for _, s := range streams {
			for _, head := range []bool{true, false} {
				var got []string
				q := EventsQuery{Group: group, Stream: s, FromHead: head, Limit: limit, From: &from, To: &to}
				for {
					p, err := l.Events(q)
					ok(err)
					if head {
						got = append(got, texts(p.Events)...)
					} else {
						got = append(texts(p.Events), got...)
					}
					next := p.Backward
					if head {
						next = p.Forward
					}
					if next == q.Token {
						break
					}
					q.Token = next
				}
				want := pick(func(m modelled) bool { return m.stream == s && m.Time >= from && m.Time < to })
				if !slices.Equal(got, want) {
					rt.Fatalf("stream %s, head %v: %d events %.300q, want %d %.300q", s, head, len(got), got, len(want), want)
				}
			}
		}
		odd, err := pattern.Parse("1")
		ok(err)
		for name, q := range map[string]FilterQuery{
			"all": {}, "two": {Streams: streams[:min(2, len(streams))]}, "prefix": {Prefix: "b"}, "pattern": {Pattern: odd},
		} {
			var got []string
			q.Group, q.Limit, q.From, q.To = group, limit, &from, &to
			for {
				found, next, err := l.Filter(q)
				ok(err)
				got = append(got, texts(found)...)
				if next == "" {
					break
				}
				q.Token = next
			}
			want := pick(func(m modelled) bool {
				return m.Time >= from && m.Time <= to && (q.Streams == nil || slices.Contains(q.Streams, m.stream)) &&
					strings.HasPrefix(m.stream, q.Prefix) && (q.Pattern == nil || strings.Contains(m.Message, "1"))
			})
			if !slices.Equal(got, want) {
				rt.Fatalf("filter %s: %d events %.300q, want %d %.300q", name, len(got), got, len(want), want)
			}
		}
		var size int64
		for _, m := range all {
			size += int64(len(m.Message) + eventOverhead)
		}
		l.kernel.AwaitIdle() // for the removed streams' events
		groups, _, err := l.Groups(GroupFilter{Region: group.Region, Account: group.Account}, Page{Limit: 10})
		ok(err)
		if len(groups) != 1 || groups[0].StoredBytes != size {
			rt.Fatalf("groups %+v, want %d bytes", groups, size)
		}
	})
}

func TestPutRejects(t *testing.T) {
	l, _ := open(t, memory.New(), nil)
	with(t, l, "s")
	day := 24 * time.Hour
	r := put(t, l, "s", Event{at(-15 * day), "old"}, Event{at(-time.Minute), "a"}, Event{at(2 * time.Hour), "b"}, Event{at(3 * time.Hour), "new"})
	same(t, "rejected", Rejected{TooOld: new(1), TooNew: new(3)}, r)
	same(t, "kept", []string{"a", "b"}, texts(events(t, l, EventsQuery{Stream: "s"}).Events))
	same(t, "the oldest and the newest", Rejected{}, put(t, l, "s", Event{at(-14 * day), "x"}))
	same(t, "the newest", Rejected{}, put(t, l, "s", Event{at(2 * time.Hour), "x"}))
	check(t, l.Retain(group, 7))
	r = put(t, l, "s", Event{at(-15 * day), "old"}, Event{at(-8 * day), "expired"}, Event{at(0), "c"})
	same(t, "rejected", Rejected{TooOld: new(1), Expired: new(2)}, r)
	if _, err := l.Put(group, "s", []Event{{at(-25 * time.Hour), "x"}, {at(0), "y"}}); fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("a span of 25 hours: %v", err)
	}
	same(t, "rejected", Rejected{TooOld: new(1)}, put(t, l, "s", Event{at(-15 * day), "old"}))
	if _, err := l.Put(group, "none", []Event{{at(0), "x"}}); !errors.Is(err, ErrNoStream) {
		t.Errorf("no stream: %v", err)
	}
	if _, err := l.Put(arn.LogGroup("r", "a", "n"), "s", []Event{{at(0), "x"}}); !errors.Is(err, ErrNoGroup) {
		t.Errorf("no group: %v", err)
	}
	l.kernel.Options.Full = func() bool { return true }
	if _, err := l.Put(group, "s", []Event{{at(0), "x"}}); fault.KindOf(err) != fault.InsufficientStorage {
		t.Errorf("a full disk: %v", err)
	}
	if err := l.CreateGroup(NewGroup{ARN: arn.LogGroup("us-east-1", "000000000000", "/more")}); fault.KindOf(err) != fault.InsufficientStorage {
		t.Errorf("a group on a full disk: %v", err)
	}
	if err := l.CreateStream(group, "more"); fault.KindOf(err) != fault.InsufficientStorage {
		t.Errorf("a stream on a full disk: %v", err)
	}
}

// kept counts the keys under a tag.
func kept(t testing.TB, l *Logs, tag byte) (n int) {
	t.Helper()
	check(t, l.each(key(tag), behind(key(tag)), func(_, _ []byte) error {
		n++
		return nil
	}))
	return n
}

// The oldest events of all groups go when there are too many.
func TestMaxBytes(t *testing.T) {
	for _, span := range []time.Duration{0, 10 * time.Hour, 100 * time.Hour} { // one bucket, a few, or many small ones
		l, _ := open(t, memory.New(), func(s *settings) { s.maxBytes = 200_000 })
		with(t, l, "s")
		other := arn.LogGroup("us-east-1", "000000000000", "other")
		check(t, l.CreateGroup(NewGroup{ARN: other}))
		check(t, l.CreateStream(other, "s"))
		for i := range 100 {
			var batch []Event
			for j := range 50 {
				batch = append(batch, Event{at(-120*time.Hour + span*time.Duration(i*50+j)/5000), fmt.Sprintf("%04d", i*50+j)})
			}
			to := group
			if i%2 == 1 {
				to = other
			}
			_, err := l.Put(to, "s", batch)
			check(t, err)
			l.kernel.AwaitIdle()
			n, full := l.disk.Load(), i > 40
			if least := int64(200_000 - 200_000/trimShare - 200_000/largeShare); n > 200_000 || full && n < least {
				t.Fatalf("%d bytes after %d batches", n, i+1)
			}
		}
		same(t, "index and events", kept(t, l, tagEvent), kept(t, l, tagIndex))
		if n := kept(t, l, tagEvent); n < 1000 || n > 2000 {
			t.Errorf("%d events are kept", n)
		}
		if span > 0 { // the latest are there, in both groups
			for _, g := range []arn.ARN{group, other} {
				p, err := l.Events(EventsQuery{Group: g, Stream: "s", Limit: 1})
				check(t, err)
				if len(p.Events) != 1 || p.Events[0].Message < "4900" {
					t.Errorf("the latest of %s: %v", g, texts(p.Events))
				}
			}
		}
	}
}

// Who writes as somebody makes no group and no stream without the right to.
func TestRightsOfTheSink(t *testing.T) {
	l, _ := open(t, memory.New(), nil)
	write := func(stream string, as authorize.LogRights, dropped int64) {
		t.Helper()
		before := l.Dropped()
		l.LogJSON(group, stream, began, 1, as)
		l.sink.flush()
		same(t, "dropped", dropped, l.Dropped()-before)
	}
	write("a", authorize.LogRights{Put: true, CreateStream: true}, 1)
	write("a", authorize.LogRights{Put: true, CreateGroup: true}, 1)
	write("a", authorize.LogRights{Put: true, CreateGroup: true, CreateStream: true}, 0)
	write("b", authorize.LogRights{Put: true}, 1)
	write("a", authorize.LogRights{Put: true}, 0)
	same(t, "written", []string{"1", "1"}, texts(events(t, l, EventsQuery{Stream: "a"}).Events))
}

// This server's own events come in without anybody waiting, and are dropped when
// there is no room.
func TestSink(t *testing.T) {
	st := memory.New()
	l, _ := open(t, st, nil)
	for i := range 3 {
		l.Log(group, "s", began.Add(time.Duration(-i)*time.Second), fmt.Append(nil, i))
	}
	l.LogJSON(group, "json", began, map[string]int{"a": 1}, authorize.AllLogRights)
	l.Log(group, "s", began, nil) // nothing
	same(t, "written before they are read", []string{"2", "1", "0"}, texts(events(t, l, EventsQuery{Stream: "s"}).Events))
	streams, _, err := l.Streams(group, StreamOrder{Prefix: "s"}, Page{Limit: 1})
	check(t, err)
	same(t, "the first and the last", []int64{at(-2 * time.Second), at(0)}, []int64{*streams[0].First, *streams[0].Last})
	same(t, "JSON", []string{`{"a":1}`}, texts(events(t, l, EventsQuery{Stream: "json"}).Events))
	big := make([]byte, 3<<20)
	for i := range big {
		big[i] = 'x'
	}
	for range 10 {
		l.Log(group, "big", began, big)
	}
	if n := l.Dropped(); n != 5 {
		t.Errorf("%d dropped", n)
	}
	page := events(t, l, EventsQuery{Stream: "big"})
	if len(page.Events) != 1 || len(page.Events[0].Message) != 1<<20-eventOverhead {
		t.Errorf("%d events in the first page", len(page.Events))
	}
	l.Log(group, "wide", began, append([]byte("x"), strings.Repeat("€", 1<<19)...))
	wide := events(t, l, EventsQuery{Stream: "wide"}).Events[0].Message
	if over := 1<<20 - eventOverhead - len(wide); over < 0 || over >= len("€") || strings.Trim(wide, "€") != "x" {
		t.Errorf("a line of wide characters is cut to %d bytes", len(wide))
	}
	dropped := l.Dropped()
	l.kernel.Options.Full = func() bool { return true }
	l.Log(group, "last", began, []byte("without room"))
	l.sink.flush()
	same(t, "dropped on a full disk", dropped+1, l.Dropped())
	l.kernel.Options.Full = nil
	l.Log(group, "last", began, []byte("at the end"))
	check(t, l.kernel.Close())
	l.Log(group, "last", began, []byte("too late"))
	l, _ = open(t, st, nil)
	same(t, "kept by Close", []string{"at the end"}, texts(events(t, l, EventsQuery{Stream: "last"}).Events))
}

func TestStreamsAndGroups(t *testing.T) {
	l, c := open(t, memory.New(), nil)
	with(t, l, "b", "a", "ab")
	put(t, l, "ab", Event{at(-time.Hour), "x"})
	put(t, l, "a", Event{at(-time.Minute), "x"})
	put(t, l, "ab", Event{at(-2 * time.Hour), "late"})
	list := func(o StreamOrder, limit int) (names []string) {
		p := Page{Limit: limit}
		for {
			found, next, err := l.Streams(group, o, p)
			check(t, err)
			for _, s := range found {
				names = append(names, s.Name)
			}
			if p.After = next; next == "" {
				return names
			}
		}
	}
	for limit := 1; limit <= 4; limit++ {
		same(t, "by name", []string{"a", "ab", "b"}, list(StreamOrder{}, limit))
		same(t, "by name, down", []string{"b", "ab", "a"}, list(StreamOrder{Descending: true}, limit))
		same(t, "by prefix", []string{"a", "ab"}, list(StreamOrder{Prefix: "a"}, limit))
		same(t, "by prefix, down", []string{"ab", "a"}, list(StreamOrder{Prefix: "a", Descending: true}, limit))
		same(t, "by time", []string{"b", "ab", "a"}, list(StreamOrder{ByLast: true}, limit))
		same(t, "by time, down", []string{"a", "ab", "b"}, list(StreamOrder{ByLast: true, Descending: true}, limit))
	}
	found, _, err := l.Streams(group, StreamOrder{Prefix: "ab"}, Page{Limit: 1})
	check(t, err)
	same(t, "a stream", Stream{"ab", at(0), new(at(-2 * time.Hour)), new(at(-time.Hour)), new(at(0))}, found[0])

	_ = c
	for _, name := range []string{"/z", "/app/x"} {
		check(t, l.CreateGroup(NewGroup{ARN: arn.LogGroup("us-east-1", "000000000000", name)}))
	}
	check(t, l.CreateGroup(NewGroup{ARN: arn.LogGroup("eu-west-1", "000000000000", "/app")}))
	names := func(prefix, part string, limit int) (names []string) {
		p := Page{Limit: limit}
		f := GroupFilter{Region: "us-east-1", Account: "000000000000", Prefix: prefix, Name: func(name string) bool { return strings.Contains(name, part) }}
		for {
			found, next, err := l.Groups(f, p)
			check(t, err)
			for _, g := range found {
				name, _ := g.ARN.LogGroupName()
				names = append(names, name)
			}
			if p.After = next; next == "" {
				return names
			}
		}
	}
	// A place behind or before the list, as nobody was told it.
	for _, tt := range []struct {
		o     StreamOrder
		after string
		want  int
	}{{StreamOrder{Prefix: "a"}, "b", 0}, {StreamOrder{Prefix: "b"}, "a", 1}, {StreamOrder{Prefix: "a", Descending: true}, "z", 2}, {StreamOrder{Prefix: "b", Descending: true}, "a", 0}} {
		found, _, err := l.Streams(group, tt.o, Page{After: tt.after, Limit: 9})
		check(t, err)
		same(t, fmt.Sprintf("%+v behind %s", tt.o, tt.after), tt.want, len(found))
	}
	for limit := 1; limit <= 4; limit++ {
		same(t, "all", []string{"/app", "/app/x", "/z"}, names("", "", limit))
		same(t, "prefix", []string{"/app", "/app/x"}, names("/app", "", limit))
		same(t, "part", []string{"/app/x"}, names("", "pp/", limit))
	}
	g, err := l.find(group)
	check(t, err)
	check(t, l.deleteStream(g.id, "b")) // which is not swept yet
	check(t, l.Retain(group, 7))
	check(t, l.DeleteGroup(group))
	if _, err := l.find(group); !errors.Is(err, ErrNoGroup) {
		t.Error(err)
	}
	for _, tag := range []byte{tagEvent, tagIndex, tagStream, tagName, tagOldest, tagLatest, tagBucket, tagDeleted, tagDue} {
		same(t, "left of the group under "+string(tag), 0, kept(t, l, tag))
	}
	same(t, "bytes", int64(0), l.DiskBytes())
	with(t, l, "a")
	same(t, "a new group is empty", 0, len(events(t, l, EventsQuery{Stream: "a"}).Events))
}

func TestProtection(t *testing.T) {
	l, _ := open(t, memory.New(), nil)
	check(t, l.CreateGroup(NewGroup{ARN: group, Protected: true}))
	check(t, l.CreateStream(group, "s"))
	for _, err := range []error{l.DeleteGroup(group), l.DeleteStream(group, "s")} {
		if fault.KindOf(err) != fault.ValidationFailed {
			t.Error(err)
		}
	}
	check(t, l.Protect(group, false))
	check(t, l.DeleteGroup(group))
}
