package accounts

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
)

// Each account has limits of its own, which count from the moment in which they change.
func TestLimits(t *testing.T) {
	now := time.Unix(1e9, 0)
	limits := Limits{}
	a := New(func() Limits { return limits }, func() time.Time { return now })
	want := func(what string, err error, rule *fault.Rule) {
		t.Helper()
		if rule == nil && err != nil || rule != nil && !errors.Is(err, rule) {
			t.Errorf("%s: %v", what, err)
		}
	}
	x := a.Of("x")
	for range 3 {
		want("a queue without a limit", x.AddQueue(), nil)
		want("a topic without a limit", x.AddTopic(), nil)
	}
	want("storage without a limit", a.CheckStorage("x", 1<<40), nil)
	want("bytes without a limit", a.Send("x", 1<<30), nil)

	limits = Limits{Requests: 1, Bytes: 10, Queues: 3, Topics: 3, Storage: 100}
	want("a queue too many", x.AddQueue(), ErrQueues)
	want("a topic too many", x.AddTopic(), ErrTopics)
	x.DropQueue()
	x.DropTopic()
	want("a queue", x.AddQueue(), nil)
	want("a topic", x.AddTopic(), nil)
	want("another account's queue", a.Of("y").AddQueue(), nil)
	a.Of("z").LoadQueue()

	want("all storage", a.CheckStorage("x", 100), nil)
	want("too much storage", a.CheckStorage("x", 101), ErrStorage)
	x.AddBytes(60)
	want("too much more", a.CheckStorage("x", 41), ErrStorage)
	x.AddBytes(-20)
	want("more", a.CheckStorage("x", 60), nil)
	want("another's", a.CheckStorage("y", 100), nil)

	want("a request", a.Request("x"), nil)
	want("a second", a.Request("x"), ErrRequests)
	want("bytes", a.Send("x", 10), nil)
	want("more bytes", a.Send("x", 1), ErrBytes)
	now = now.Add(time.Second)
	want("bytes in the next second", a.Send("x", 10), nil)

	if got := a.Usage(); !reflect.DeepEqual(got, []Usage{{"x", 3, 3, 40}, {"y", 1, 0, 0}, {"z", 1, 0, 0}}) {
		t.Errorf("%+v", got)
	}
	if got := a.Refused(); !reflect.DeepEqual(got, map[string]int64{"requests": 1, "bytes": 1, "queues": 1, "topics": 1, "storage": 2}) {
		t.Errorf("%v", got)
	}
}

// As many come through together as there is room for.
func TestTogether(t *testing.T) {
	a := New(func() Limits { return Limits{Queues: 50} }, clock.System.Now)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				_ = a.Of("x").AddQueue()
			}
		})
	}
	wg.Wait()
	if got := a.Usage()[0].Queues; got != 50 {
		t.Errorf("there are %d queues of 50", got)
	}
}
