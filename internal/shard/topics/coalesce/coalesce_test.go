package coalesce

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"godwit.dev/godwit/internal/arn"
)

func topicARN(name string) arn.ARN { return arn.Topic("us-east-1", "000000000000", name) }

// TestBounded: no command is for more than fits into about one commit, and
// one for a topic of which nothing is known is for one publisher.
func TestBounded(t *testing.T) {
	bounds := Bounds{Publications: 64, Deliveries: 512, Bytes: 1 << 20}
	for _, c := range []struct {
		name  string
		reach int
		bytes int // of a call
		want  int
	}{
		{"publications", 1, 10, bounds.Publications},
		{"deliveries", bounds.Deliveries / 5, 10, 5},
		{"bytes", 1, bounds.Bytes/4 + 1, 3},
		{"reach unknown", -1, 10, 1},
		{"too many subscriptions", bounds.Deliveries, 10, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &Coalescer[int]{Bounds: bounds, busy: true}
			for range bounds.Publications + 1 {
				l.waiting = append(l.waiting, &Call[int]{Topic: topicARN("t"), Publications: 1, Bytes: c.bytes, lead: make(chan []*Call[int], 1)})
			}
			next, waiting := l.waiting[0], l.waiting
			if c.reach < 0 {
				l.leave(topicARN("other"), 1)
			} else {
				l.leave(topicARN("t"), c.reach)
			}
			if n := len(<-next.lead); n != c.want || l.Waiting() != bounds.Publications+1-n {
				t.Errorf("%d in the command, %d left", n, l.Waiting())
			}
			if waiting[0] != nil || waiting[len(waiting)-1] != nil && c.want > 1 {
				t.Error("it keeps who has left it")
			}
		})
	}
}

// TestFewTopicsAreKnown: the reach of topics takes bounded memory.
func TestFewTopicsAreKnown(t *testing.T) {
	l := &Coalescer[int]{}
	for i := range 3 * maxReachKnown {
		l.leave(topicARN(fmt.Sprint(i)), i)
		if got := l.reach[topicARN(fmt.Sprint(i))]; got == nil || *got != i {
			t.Fatalf("the reach of topic %d is %v", i, got)
		}
	}
	if len(l.reach) > maxReachKnown {
		t.Errorf("%d topics are known", len(l.reach))
	}
}

// TestKeepsNoRequest: a topic's name is a piece of a request, all of which it would keep
// in memory.
func TestKeepsNoRequest(t *testing.T) {
	l := &Coalescer[int]{}
	for i := range 3 {
		request := strings.Repeat("a", 10) + fmt.Sprint(i)
		l.leave(topicARN(request[:10]), i)
		for name, reach := range l.reach {
			if unsafe.StringData(name.Resource) == unsafe.StringData(request) {
				t.Errorf("it keeps request %d", i)
			}
			if *reach != i {
				t.Errorf("the reach is %d, want %d", *reach, i)
			}
		}
	}
}
