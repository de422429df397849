package recent_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/operator/recent"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic/filter"
)

var began = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

func event(n int, topic, body string) *topics.Published {
	name := arn.Topic("us-east-1", "000000000000", topic)
	id := message.ID{byte(n >> 8), byte(n)}
	return &topics.Published{Topic: name, ID: id, At: began.Add(time.Duration(n) * time.Second), Size: len(body), What: &publication.Record{Topic: name, P: publication.Publication{ID: id, Body: []byte(body)}}}
}

func told(all []recent.Publish) (bodies string) {
	for i := range all {
		bodies += string(all[i].Record.P.Body) + " "
	}
	return strings.TrimSpace(bodies)
}

// TestOf: publishes are reported by topic, the latest first, and only those since a moment; what
// was told stays as it is while others take their places.
func TestOf(t *testing.T) {
	p := recent.New()
	for i := range 3 {
		p.Add(event(i, "a", fmt.Sprint("a", i)))
		p.Add(event(i, "b", fmt.Sprint("b", i)))
	}
	a := arn.Topic("us-east-1", "000000000000", "a")
	all := p.Of(a, time.Time{})
	if got := told(all); got != "a2 a1 a0" {
		t.Error(got)
	}
	if got := told(p.Of(a, began.Add(time.Second))); got != "a2 a1" {
		t.Errorf("since a second: %s", got)
	}
	for i := range recent.PerTopic {
		p.Add(event(100+i, "a", "xx"))
	}
	if got := told(all); got != "a2 a1 a0" {
		t.Errorf("what was told becomes %s", got)
	}
	if n := len(p.Of(a, time.Time{})); n != recent.PerTopic {
		t.Errorf("%d are kept", n)
	}
	p.Add(&topics.Published{Topic: a}) // to no topic
	if n := len(p.Of(a, time.Time{})); n != recent.PerTopic {
		t.Errorf("%d are kept", n)
	}
}

// TestManyInASecond: of more publishes in a second than a thousand one in ten is kept, and the
// next second begins anew.
func TestManyInASecond(t *testing.T) {
	p := recent.New()
	add := func(from, to int, second time.Duration) {
		for n := from; n <= to; n++ {
			e := event(0, "a", fmt.Sprint(n))
			e.At = began.Add(second * time.Second)
			p.Add(e)
		}
	}
	a := arn.Topic("us-east-1", "000000000000", "a")
	add(1, 1000, 0)
	if got := told(p.Of(a, time.Time{})[:3]); got != "1000 999 998" {
		t.Errorf("of a thousand: %s", got)
	}
	add(1001, 1039, 0)
	if got := told(p.Of(a, time.Time{})[:5]); got != "1030 1020 1010 1000 999" {
		t.Errorf("of more: %s", got)
	}
	add(1, 2, 1)
	if got := told(p.Of(a, time.Time{})[:3]); got != "2 1 1030" {
		t.Errorf("of the next second: %s", got)
	}
}

// TestLater: a publish to many subscriptions is completed when all have been looked at.
func TestLater(t *testing.T) {
	p := recent.New()
	first := event(1, "a", "x")
	first.FanOutPending = true
	p.Add(first)
	p.Add(event(2, "a", "y"))
	a := first.Topic
	if one := p.Of(a, time.Time{})[1]; !one.Spreading {
		t.Error("it is whole before all have been looked at")
	}
	later := &topics.Published{Topic: a, ID: first.ID, Later: true}
	later.FilteredOut[filter.AttributesMismatch], later.FilteredOut[filter.BodyMismatch] = 3, 4
	p.Add(later)
	if one := p.Of(a, time.Time{})[1]; one.Spreading || one.FilteredOut != 7 {
		t.Errorf("%+v", one)
	}
}

// TestBounds: many topics with large messages stay within the bound of all, and those that
// were published to last are kept.
func TestBounds(t *testing.T) {
	p, large := recent.New(), strings.Repeat("x", 200_000)
	const topics = 60
	for i := range topics {
		for n := range 10 {
			p.Add(event(n, fmt.Sprint(i), large))
		}
	}
	bytes := 0
	for i := range topics {
		for _, one := range p.Of(arn.Topic("us-east-1", "000000000000", fmt.Sprint(i)), time.Time{}) {
			bytes += len(one.Record.P.Body)
		}
	}
	if bytes > 32<<20 || bytes < 16<<20 {
		t.Errorf("%d bytes are kept", bytes)
	}
	if len(p.Of(arn.Topic("us-east-1", "000000000000", fmt.Sprint(topics-1)), time.Time{})) == 0 {
		t.Error("nothing of the last topic is kept")
	}
}

// TestSmallBounds: of small messages no more is kept either, with what each takes beside its body.
func TestSmallBounds(t *testing.T) {
	p, before := recent.New(), heap()
	const topics = 2_500
	for i := range topics {
		e := event(0, fmt.Sprint(i), "x")
		for range recent.PerTopic {
			p.Add(e)
		}
	}
	if took := heap() - before; took > 36<<20 || took < 16<<20 {
		t.Errorf("%d bytes are kept", took)
	}
	if len(p.Of(arn.Topic("us-east-1", "000000000000", fmt.Sprint(topics-1)), time.Time{})) != recent.PerTopic {
		t.Error("not all of the last topic is kept")
	}
}

// heap is the memory in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func BenchmarkAdd(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p, e := recent.New(), event(1, "a", strings.Repeat("x", size))
			b.ReportAllocs()
			for b.Loop() {
				p.Add(e)
			}
		})
	}
}
