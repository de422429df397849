package monitor

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store/memory"
)

func size(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// asked answers as the test says, and may do something before.
type asked struct {
	before func()
	gauges shard.QueueGauges
	err    error
	gone   bool
}

func (a *asked) SampleQueue(arn.ARN) (shard.QueueGauges, error) {
	if a.before != nil {
		a.before()
	}
	return a.gauges, a.err
}

func (a *asked) HasTopicOrApplication(arn.ARN) bool {
	if a.before != nil {
		a.before()
	}
	return !a.gone
}

var missing = fault.New(fault.QueueDoesNotExist, "")

// adder adds events to a queue, with its slot, at the clock's time.
func adder(q *Queues, queue arn.ARN, c clock.Clock) func(kind shard.QueueEventKind) {
	slot := &shard.Slot{}
	return func(kind shard.QueueEventKind) {
		q.Add(shard.QueueEvent{Queue: queue, Slot: slot, Kind: kind, At: c.Now().UnixMilli(), Messages: 1, Bytes: 1})
	}
}

// A queue has one set of counters, by its slot and by its name; after it was deleted,
// or found to be gone, another one.
func TestSlots(t *testing.T) {
	c := clock.NewVirtual(start)
	q := NewQueues(points(t, c, nil), nil, func() {})
	queue := arn.Queue("us-east-1", "000000000000", "q")
	first, second := adder(q, queue, c), adder(q, queue, c) // as before and after a purge
	check := func(sent int64) {
		t.Helper()
		if got := q.Of(queue).Sent; got != sent {
			t.Errorf("%d were sent, want %d", got, sent)
		}
		c := q.totals[queue]
		if _, active := q.active[c]; len(q.active) != len(q.totals) || active != (c != nil) || c != nil && c.Left.Load() {
			t.Errorf("active are %v, there are %v", q.active, q.totals)
		}
	}
	first(shard.MessagesSent)
	second(shard.MessagesSent)
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesSent, Messages: 1})
	first(shard.MessagesSent)
	check(4)
	old := q.totals[queue]
	first(shard.QueueDeleted)
	check(0)
	second(shard.MessagesSent)
	first(shard.MessagesSent) // of a queue of the same name that is there by now
	q.activate(old)           // as do an event and Tick that were late
	q.deactivate(old, true)
	check(2)
	if _, err := q.Tick(&asked{err: missing, before: func() { first(shard.MessagesReceived) }}, c.Now()); err != nil {
		t.Fatal(err)
	}
	check(2)
	if _, err := q.Tick(&asked{err: missing}, c.Now()); err != nil {
		t.Fatal(err)
	}
	check(0)
	second(shard.MessagesSent)
	first(shard.MessagesSent)
	check(2)
}

// A queue that is deleted leaves nothing behind, be it active or idle, are there
// metrics or not, and comes an event late or not.
func TestDeletedQueuesAreForgotten(t *testing.T) {
	for _, measured := range []bool{true, false} {
		for _, idle := range []bool{true, false} {
			c := clock.NewVirtual(start)
			var k *metrics.Store
			if measured {
				k = points(t, c, nil)
			}
			woken := 0
			q := NewQueues(k, nil, func() { woken++ })
			queue := arn.Queue("us-east-1", "000000000000", "q")
			add, answer := adder(q, queue, c), &asked{}
			tick := func() (more bool) {
				t.Helper()
				if _, err := c.Advance(t.Context(), time.Minute); err != nil {
					t.Fatal(err)
				}
				more, err := q.Tick(answer, c.Now().Truncate(time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				return more
			}
			add(shard.MessagesSent)
			if idle {
				for tick() {
				}
			}
			if got := q.Of(queue); got != (Totals{Sent: 1, SentBytes: 1}) {
				t.Errorf("%+v", got)
			}
			add(shard.QueueDeleted)
			answer.err = missing
			if len(q.totals) != 0 || len(q.active) != 0 {
				t.Errorf("measured %v, idle %v: a deleted queue is kept", measured, idle)
			}
			woken = 0
			add(shard.MessagesReceived)
			if woken == 0 {
				t.Error("nobody looks for the queue of a late event")
			}
			tick()
			if len(q.totals) != 0 || len(q.active) != 0 {
				t.Errorf("measured %v, idle %v: after a late event a deleted queue is kept", measured, idle)
			}
		}
	}
}

// While a queue's owner does not answer, the queue stays active.
func TestUnavailableQueuesStayActive(t *testing.T) {
	c := clock.NewVirtual(start)
	k := points(t, c, nil)
	q := NewQueues(k, nil, func() {})
	queue := arn.Queue("us-east-1", "000000000000", "q")
	adder(q, queue, c)(shard.MessagesSent)
	answer := &asked{err: fault.New(fault.Unavailable, "")}
	for range 3 {
		if _, err := c.Advance(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		more, err := q.Tick(answer, c.Now().Truncate(time.Minute))
		if !more || err != nil {
			t.Fatalf("%v, %v", more, err)
		}
		answer.err, answer.gauges.Visible = nil, 1
	}
	if got := show(t, k, c, "AWS/SQS")["ApproximateNumberOfMessagesVisible q"]; got != "1 1 Count" {
		t.Error(got)
	}
}

// What happens while the end of a minute finds a queue idle, or gone, makes it
// active again, whichever comes first.
func TestEventsMakeActive(t *testing.T) {
	for _, result := range []error{missing, nil} {
		c := clock.NewVirtual(start)
		q := NewQueues(points(t, c, nil), nil, func() {})
		queue := arn.Queue("us-east-1", "000000000000", "q")
		add := adder(q, queue, c)
		add(shard.MessagesSent)
		for range 100 {
			if _, err := c.Advance(t.Context(), (activeMinutes+1)*time.Minute); err != nil {
				t.Fatal(err)
			}
			var together sync.WaitGroup
			answer := &asked{err: result}
			if result == nil { // it is idle until the last moment
				together.Go(func() { add(shard.MessagesReceived) })
			} else { // it has just been made again
				answer.before = func() { add(shard.MessagesReceived) }
			}
			if _, err := q.Tick(answer, c.Now().Truncate(time.Minute)); err != nil {
				t.Fatal(err)
			}
			together.Wait()
			if _, active := q.active[q.totals[queue]]; !active {
				t.Fatal("a queue that is used is not active")
			}
		}
	}
}

// Topics live alike, and one that is deleted reports nothing more.
func TestTopicsBecomeIdle(t *testing.T) {
	c := clock.NewVirtual(start)
	k := points(t, c, nil)
	topics := NewTopics(k, func() {})
	name := arn.Topic("us-east-1", "000000000000", "t")
	publish := func() {
		topics.Record(name, c.Now(), metrics.Datum{Name: "NumberOfMessagesPublished", Unit: count, Value: 1})
	}
	answer := &asked{}
	tick := func(after time.Duration) (more bool) {
		t.Helper()
		if _, err := c.Advance(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		return topics.Tick(answer, c.Now().Truncate(time.Minute))
	}
	publish()
	tick(time.Minute)
	if more := tick(time.Minute); !more {
		t.Error("a topic is idle after a minute")
	}
	want := map[string]string{"NumberOfMessagesPublished t": "1 0 Count", "NumberOfNotificationsDelivered t": "0 0 Count", "NumberOfNotificationsFailed t": "0 0 Count"}
	if d := cmp.Diff(want, show(t, k, c, "AWS/SNS")); d != "" {
		t.Error(d)
	}
	answer.gone = true
	if more := tick(time.Minute); more || size(&topics.active) != 0 {
		t.Error("a topic that is gone is active")
	}
	if d := cmp.Diff(want, show(t, k, c, "AWS/SNS")); d != "" {
		t.Errorf("a topic that is gone has metrics: %s", d)
	}
	answer.before = publish
	publish()
	if tick(time.Minute); size(&topics.active) != 1 {
		t.Error("a topic that has just been made again is not active")
	}
	answer = &asked{}
	for range 100 {
		var together sync.WaitGroup
		together.Go(publish)
		tick((activeMinutes + 1) * time.Minute)
		together.Wait()
		publish()
		if size(&topics.active) != 1 {
			t.Fatal("a topic that is used is not active")
		}
	}
	if more := tick((activeMinutes + 1) * time.Minute); more || size(&topics.active) != 0 {
		t.Error("a topic is active for ever")
	}
}

// Functions, versions and aliases are forgotten some minutes after their last
// invocation.
func TestFunctionsAreForgotten(t *testing.T) {
	c := clock.NewVirtual(start)
	m, _ := newTicker(t, c)
	k := points(t, c, m.Wake)
	f := NewFunctions(k, m.Wake)
	m.Start(f, TickFunc(func(time.Time) (bool, error) { return k.Flush() }))
	record := func(name string) {
		f.Record(&Datum{Function: arn.Function("us-east-1", "000000000000", name), Qualifier: "live", Version: "3", Metric: "Throttles", At: c.Now(), Value: 1})
	}
	record("f")
	for range 20 {
		if _, err := c.Advance(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		record("g")
	}
	if n := size(&f.all); n != 4 { // in all, and three of g
		t.Errorf("%d are kept", n)
	}
	if result, err := c.Advance(t.Context(), 24*time.Hour); err != nil || result.Ran > 15 || size(&f.all) != 0 {
		t.Errorf("%d timers ran, %d are kept, %v", result.Ran, size(&f.all), err)
	}
	record("g")
	if got := show(t, k, c, "AWS/Lambda")["Throttles 3 g g:live"]; !strings.HasSuffix(got, "1 Count") {
		t.Error(got)
	}
}

// So are accounts that send text messages, and delivery streams.
func TestTextsAndStreamsAreForgotten(t *testing.T) {
	c := clock.NewVirtual(start)
	m, _ := newTicker(t, c)
	k := points(t, c, m.Wake)
	texts, streams := NewTexts(k, m.Wake), NewStreams(k, m.Wake)
	m.Start(texts, streams, TickFunc(func(time.Time) (bool, error) { return k.Flush() }))
	texts.Record("000000000000", "us-east-1", true, c.Now(), metrics.Datum{Name: "SMSSuccessRate", Value: 1})
	streams.Record(arn.ARN{Service: "firehose", Region: "us-east-1", Account: "000000000000", Resource: "deliverystream/s"}, c.Now(), metrics.Datum{Name: "IncomingRecords", Unit: count, Value: 1})
	if size(&texts.all) != 1 || size(&streams.all) != 1 {
		t.Error("nothing is kept")
	}
	if result, err := c.Advance(t.Context(), 24*time.Hour); err != nil || result.Ran > 20 || size(&texts.all)+size(&streams.all) != 0 {
		t.Errorf("%d timers ran, %d and %d are kept, %v", result.Ran, size(&texts.all), size(&streams.all), err)
	}
	if got := show(t, k, c, "AWS/SNS"); len(got) == 0 {
		t.Error("no metric of text messages")
	}
}

// A name that is kept is no piece of a request, all of which it would keep.
func TestNamesAreOwned(t *testing.T) {
	request := "us-east-1 000000000000 name function:f " + strings.Repeat("x", 1000)
	name := arn.ARN{Service: "sqs", Region: request[:9], Account: request[10:22], Resource: request[23:27]}
	c := clock.NewVirtual(start)
	k := points(t, c, nil)
	q, topics, f := NewQueues(k, nil, func() {}), NewTopics(k, func() {}), NewFunctions(k, func() {})
	adder(q, name, c)(shard.MessagesSent)
	topics.Record(name, c.Now(), metrics.Datum{Name: "m", Unit: count, Value: 1})
	name.Resource = request[28:38]
	f.Record(&Datum{Function: name, Qualifier: "", Version: request[23:27], Metric: "Throttles", At: c.Now(), Value: 1})
	first, last := uintptr(unsafe.Pointer(unsafe.StringData(request))), uintptr(len(request))
	check := func(what string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); text != "" && at >= first && at < first+last {
				t.Errorf("%s keeps a request for %q", what, text)
			}
		}
	}
	for a, c := range q.totals {
		check("queues", a.Region, a.Account, a.Resource, c.name.Resource)
	}
	topics.active.Range(func(key, _ any) bool {
		a := key.(arn.ARN)
		check("topics", a.Region, a.Account, a.Resource)
		return true
	})
	f.all.Range(func(key, _ any) bool {
		a := key.(about)
		check("functions", a.Region, a.Account, a.name, a.resource, a.executed)
		return true
	})
}

// What happens often allocates nothing.
func TestNoAllocation(t *testing.T) {
	c := clock.NewVirtual(start)
	k := points(t, c, nil)
	q, topics := NewQueues(k, nil, func() {}), NewTopics(k, func() {})
	add, other := adder(q, queueNames[0], c), adder(q, queueNames[1], c)
	for what, f := range map[string]func(){
		"a send":    func() { add(shard.MessagesSent) },
		"a receive": func() { other(shard.MessagesReceived) },
		"an event without its slot": func() {
			q.Add(shard.QueueEvent{Queue: queueNames[0], Kind: shard.MessagesMovedIn, At: c.Now().UnixMilli(), Messages: 1})
		},
		"a publish": func() {
			topics.Record(topicNames[0], c.Now(), metrics.Datum{Name: "NumberOfMessagesPublished", Unit: count, Value: 1})
		},
	} {
		f()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
}

// A restart does not interrupt the metrics of queues and topics that were active,
// empty ones too, and does not bring back what had been idle for long.
func TestResume(t *testing.T) {
	c, st := clock.NewVirtual(start), memory.New()
	topic, queue := arn.Topic("eu-west-1", "111111111111", "t"), arn.Queue("us-east-1", "000000000000", "q")
	var m *Ticker
	var stop func() error
	var q *Queues
	var topics *Topics
	var k *metrics.Store
	restart := func(holding ...arn.ARN) *metrics.Store {
		t.Helper()
		if m != nil {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			k.Sync()
		}
		m, stop = newTicker(t, c)
		k = reopen(t, st, c, m.Wake)
		q, topics = NewQueues(k, nil, m.Wake), NewTopics(k, m.Wake)
		if err := errors.Join(q.Resume(holding, c.Now()), topics.Resume(c.Now())); err != nil {
			t.Fatal(err)
		}
		m.Start(
			TickFunc(func(at time.Time) (bool, error) { return q.Tick(&asked{}, at) }),
			TickFunc(func(at time.Time) (bool, error) { return topics.Tick(&asked{}, at), nil }),
			TickFunc(func(time.Time) (bool, error) { return k.Flush() }),
		)
		return k
	}
	wait := func(d time.Duration) clock.Result {
		t.Helper()
		result, err := c.Advance(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	restart()
	adder(q, queue, c)(shard.MessagesSent)
	topics.Record(topic, c.Now(), metrics.Datum{Name: "NumberOfMessagesPublished", Unit: count, Value: 1})
	wait(2 * time.Minute)
	restart()
	wait(2 * time.Minute)
	if got := show(t, k, c, "AWS/SQS")["ApproximateNumberOfMessagesVisible q"]; got != "0 0 0 0 Count" {
		t.Errorf("the queue: %s", got)
	}
	points, err := k.Read(metrics.Metric{
		Scope: metrics.Scope{Account: topic.Account, Region: topic.Region}, Namespace: "AWS/SNS", Name: "NumberOfMessagesPublished",
		Dimensions: metrics.Dimensions(metrics.Dimension{Name: "TopicName", Value: "t"}),
	}, count, start.Unix()/60*60, c.Now().Unix(), 60)
	if err != nil || len(points) != 4 {
		t.Errorf("the topic: %+v, %v", points, err)
	}
	if result := wait(20 * time.Hour); !result.Next.IsZero() {
		t.Errorf("they are active for ever: %+v", result)
	}
	restart()
	if result := wait(time.Hour); result.Ran != 0 {
		t.Errorf("what is idle is active after a restart: %+v", result)
	}
	restart(queue)
	if result := wait(time.Minute); result.Ran != 1 {
		t.Errorf("what holds messages is not active after a restart: %+v", result)
	}
}
