package logs

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// What is past its retention is neither shown nor kept, also if the retention
// comes late or the store was closed meanwhile.
func TestRetention(t *testing.T) {
	st := memory.New()
	l, c := open(t, st, nil)
	with(t, l, "s", "t")
	day := 24 * time.Hour
	for i := range 10 {
		put(t, l, "s", Event{at(time.Duration(i-12) * day), fmt.Sprint(i)})
		put(t, l, "t", Event{at(time.Duration(i-12) * day), fmt.Sprint("t", i)})
	}
	check(t, l.Retain(group, 7))
	same(t, "shown at once", []string{"5", "6", "7", "8", "9"}, texts(events(t, l, EventsQuery{Stream: "s"}).Events))
	if _, err := c.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	same(t, "events kept", 8, kept(t, l, tagEvent)) // one more day has gone by
	same(t, "index kept", 8, kept(t, l, tagIndex))
	same(t, "buckets kept", 4, kept(t, l, tagBucket))
	same(t, "marks kept", 4, kept(t, l, tagOldest))
	r, err := c.Advance(t.Context(), 30*day)
	check(t, err)
	if r.Ran == 0 || r.Ran > 10 || !r.Next.IsZero() {
		t.Errorf("%d timers ran, the next is due %s", r.Ran, r.Next)
	}
	same(t, "kept", [5]int{}, [5]int{kept(t, l, tagEvent), kept(t, l, tagIndex), kept(t, l, tagBucket), kept(t, l, tagOldest), kept(t, l, tagDue)})
	same(t, "bytes", int64(0), l.disk.Load())

	_, err = l.Put(group, "s", []Event{{c.Now().UnixMilli(), "late"}})
	check(t, err)
	check(t, l.Retain(group, 1))
	check(t, l.Retain(group, 0))
	_, err = c.Advance(t.Context(), 5*day)
	check(t, err)
	same(t, "without a retention nothing goes", 1, kept(t, l, tagEvent))
	check(t, l.Retain(group, 30))
	check(t, l.kernel.Close())
	later := clock.NewVirtual(c.Now().Add(40 * day))
	l, err = load(settings{Options: kernel.Options{Journal: journalOf(t, st), Clock: later}})
	check(t, err)
	_, err = later.Advance(t.Context(), 0)
	check(t, err)
	same(t, "gone after the start", 0, kept(t, l, tagEvent))
	check(t, l.kernel.Close())
}

// What expires later does not hold up what expires first.
func TestRetentionOfTwoGroups(t *testing.T) {
	l, c := open(t, memory.New(), nil)
	with(t, l, "s")
	other := arn.LogGroup("us-east-1", "000000000000", "other")
	check(t, l.CreateGroup(NewGroup{ARN: other}))
	check(t, l.CreateStream(other, "s"))
	for g, days := range map[arn.ARN]int{group: 1, other: 7} {
		check(t, l.Retain(g, days))
	}
	for _, g := range []arn.ARN{group, other} {
		_, err := l.Put(g, "s", []Event{{at(0), "x"}})
		check(t, err)
	}
	for days, want := range []int{2, 1, 1, 1, 1, 1, 1, 0} {
		same(t, fmt.Sprintf("after %d days", days), want, kept(t, l, tagEvent))
		_, err := c.Advance(t.Context(), 25*time.Hour)
		check(t, err)
	}
}

// An event that is older than all others is the next to expire, and an answer that
// continues shows what is within the bounds of its own query, and of the retention.
func TestRetentionOfOlderEvents(t *testing.T) {
	l, c := open(t, memory.New(), nil)
	with(t, l, "s")
	day := 24 * time.Hour
	check(t, l.Retain(group, 7))
	put(t, l, "s", Event{at(0), "new"})
	put(t, l, "s", Event{at(-6 * day), "old"}, Event{at(-6*day + time.Second), "older than new"})
	_, token, err := l.Filter(FilterQuery{Group: group, Limit: 1})
	check(t, err)
	filter := func(q FilterQuery) (all []string) {
		t.Helper()
		q.Group, q.Token, q.Limit = group, token, 10
		found, _, err := l.Filter(q)
		check(t, err)
		return texts(found)
	}
	same(t, "the rest", []string{"older than new", "new"}, filter(FilterQuery{}))
	same(t, "from a later time on", []string{"new"}, filter(FilterQuery{From: new(at(-day))}))
	_, err = c.Advance(t.Context(), day+2*time.Hour)
	check(t, err)
	same(t, "within the retention", []string{"new"}, filter(FilterQuery{}))
	same(t, "events kept", 1, kept(t, l, tagEvent))
	other := arn.LogGroup("us-east-1", "000000000000", "other")
	check(t, l.CreateGroup(NewGroup{ARN: other}))
	if _, _, err := l.Filter(FilterQuery{Group: other, Token: token, Limit: 1}); fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("another group's token: %v", err)
	}
}

// However much expires at once, it goes in bounded commits.
func TestExpiryIsBounded(t *testing.T) {
	st := &syncing{Store: memory.New()}
	l, c := open(t, st, nil)
	with(t, l, "s")
	const hours = 2*expireBuckets + 10
	var all []Event
	for h := range hours {
		all = append(all, Event{at(-time.Duration(hours-h) * time.Hour), "x"})
	}
	check(t, putOwn(l, "s", all))
	check(t, l.Retain(group, 1))
	l.shard.Stream.Sync()
	st.largest.Store(0)
	_, err := c.Advance(t.Context(), 0)
	check(t, err)
	same(t, "events kept", 24, kept(t, l, tagEvent))
	same(t, "marks kept", 24, kept(t, l, tagOldest))
	if largest := st.largest.Load(); largest > 40*expireBuckets {
		t.Errorf("a commit of %d bytes", largest)
	}
}

// Where an earlier version kept the time of its last commit, time continues behind it.
func TestTimeOfEarlierVersions(t *testing.T) {
	st := memory.New()
	var b mutation.Batch
	b.Set(key(tagClock), numbers(uint64(at(time.Hour))))
	check(t, st.Apply(store.Sync, &b))
	l, _ := open(t, st, nil)
	same(t, "the latest time", began.Add(time.Hour), l.kernel.Latest())
}
