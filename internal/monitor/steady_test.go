package monitor

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// counted counts the bytes that are written to a store, and the reads.
type counted struct {
	store.Store
	bytes, gets int
}

func (c *counted) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	for _, b := range batches {
		c.bytes += b.Size()
	}
	return c.Store.Apply(sync, batches...)
}

func (c *counted) Get(dst, key []byte) ([]byte, bool, error) {
	c.gets++
	return c.Store.Get(dst, key)
}

// one measures a queue.
type one func(queue arn.ARN) (shard.QueueGauges, error)

func (f one) SampleQueue(queue arn.ARN) (shard.QueueGauges, error) { return f(queue) }

// Queues of which nothing changes are looked at every five minutes: nothing is written of
// them or read for them, however many there are. They are listed all the same, and have a
// value each minute.
func TestSteadyQueuesAreNotWritten(t *testing.T) {
	const queues = 4000
	c := clock.NewVirtual(start)
	st := &counted{Store: memory.New()}
	k := reopen(t, st, c, nil)
	q := NewQueues(k, nil, func() {})
	name := func(i int) arn.ARN { return arn.Queue("us-east-1", "000000000000", fmt.Sprintf("q%04d", i)) }
	sent := c.Now()
	for i := range queues {
		q.Add(shard.QueueEvent{Queue: name(i), Kind: shard.MessagesSent, At: c.Now().UnixMilli(), Messages: 1, Bytes: 10})
	}
	looks := 0
	holding := one(func(arn.ARN) (g shard.QueueGauges, err error) {
		if looks++; looks/queues%2 == 0 { // every other minute they take 9 s
			if _, err := c.Advance(t.Context(), 9*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		g.Visible, g.Quiet.Visible = 1, 1
		g.OldestAge = c.Now().Sub(sent)
		g.QuietOldestAge = g.OldestAge
		return g, nil
	})
	minute := func() {
		t.Helper()
		if _, err := c.Advance(t.Context(), c.Now().Truncate(time.Minute).Add(time.Minute).Sub(c.Now())); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Tick(holding, c.Now().Truncate(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Flush(); err != nil {
			t.Fatal(err)
		}
		k.Sync()
	}
	for range 12 { // until what was sent has left memory
		minute()
	}
	st.bytes, st.gets, looks = 0, 0, 0
	allocated := allocatedBytes()
	for range 10 {
		minute()
	}
	allocated = allocatedBytes() - allocated
	// What is written is the time, once a minute, in a batch of its own.
	if st.bytes > 10*128 || st.gets > 10 || looks != 10/checkEvery*queues {
		t.Errorf("10 quiet minutes of %d queues: %d bytes written, %d reads, %d looks", queues, st.bytes, st.gets, looks)
	}
	// What takes memory for each of many keeps the server from being at rest.
	if allocated >= 10*4*queues {
		t.Errorf("10 quiet minutes of %d queues allocate %d bytes", queues, allocated)
	}
	// Nor does what the store has released.
	for _, c := range q.totals {
		if c.resource.Load() != nil {
			t.Fatalf("%s keeps what was written of it in memory", c.name.Resource)
		}
	}
	// Two weeks later they are listed still.
	if _, err := c.Advance(t.Context(), 13*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	minute()
	listed := map[string]int{}
	filter := metrics.Filter{Scope: metrics.Scope{Account: "000000000000", Region: "us-east-1"}, Namespace: "AWS/SQS", Since: metrics.Minute(c.Now()) - 3*60}
	var next []byte
	for more := true; more; more = next != nil {
		var err error
		if next, err = k.List(filter, next, func(m metrics.Metric) bool { listed[m.Name]++; return true }); err != nil {
			t.Fatal(err)
		}
	}
	for _, metric := range []string{"NumberOfMessagesSent", "NumberOfEmptyReceives", "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"} {
		if listed[metric] != queues {
			t.Errorf("%s is listed of %d queues", metric, listed[metric])
		}
	}
	if listed["SentMessageSize"] != 0 {
		t.Error("what has had no value for two weeks is listed as recent")
	}
	from := c.Now().Truncate(time.Minute).Unix() - 3600
	for metric, want := range map[string]float64{"NumberOfMessagesSent": 0, "ApproximateNumberOfMessagesVisible": 60, "ApproximateAgeOfOldestMessage": 60*(c.Now().Sub(sent).Seconds()-60) - 60*59/2*60 + 30*60} {
		unit := count
		if metric == "ApproximateAgeOfOldestMessage" {
			unit = seconds
		}
		points, err := k.Read(metricOf(name(17), metric), unit, from, from+3600, 3600)
		if err != nil || len(points) != 1 || points[0].Set.Count != 60 {
			t.Fatalf("%s: %v, %v", metric, points, err)
		}
		if d := points[0].Set.Sum - want; d < -3600 || d > 3600 {
			t.Errorf("%s: %v, want %v", metric, points[0].Set.Sum, want)
		}
	}
}

// allocatedBytes is how much the process has ever allocated.
func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func metricOf(queue arn.ARN, name string) metrics.Metric {
	return metrics.Metric{
		Scope: metrics.Scope{Account: queue.Account, Region: queue.Region}, Namespace: "AWS/SQS", Name: name,
		Dimensions: metrics.Dimensions(metrics.Dimension{Name: "QueueName", Value: queue.Resource}),
	}
}

// Whatever happens to a queue, and however often the process ends in between, each
// minute reads as it was.
func TestEachMinuteReadsAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clock.NewVirtual(start)
		st := memory.New()
		queue := arn.Queue("us-east-1", "000000000000", rapid.SampledFrom([]string{"q", "q.fifo"}).Draw(t, "queue"))
		var now shard.QueueGauges
		exists := true
		gauger := one(func(arn.ARN) (shard.QueueGauges, error) {
			if !exists {
				return shard.QueueGauges{}, fault.New(fault.QueueDoesNotExist, "gone")
			}
			return now, nil
		})
		var k *metrics.Store
		var save func() error
		var q *Queues
		begin := func(holding ...arn.ARN) {
			var err error
			j := journal.Open(journal.Options{Store: st})
			t.Cleanup(j.Close)
			if k, save, err = openMetrics(j, c, nil); err != nil {
				t.Fatal(err)
			}
			q = NewQueues(k, nil, func() {})
			if err := q.Resume(holding, c.Now()); err != nil {
				t.Fatal(err)
			}
		}
		begin()
		type shown struct{ visible, flying, sent float64 }
		model := map[int64]shown{} // by minute; flying is -1 where it is not told
		sentNow := 0
		send := func(n int) {
			q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesSent, At: c.Now().UnixMilli(), Messages: n, Bytes: n})
			sentNow += n
		}
		send(1)
		minutes := func(n int) {
			for range n {
				minute := metrics.Minute(c.Now())
				if _, err := c.Advance(t.Context(), time.Minute); err != nil {
					t.Fatal(err)
				}
				if _, err := q.Tick(gauger, c.Now().Truncate(time.Minute)); err != nil {
					t.Fatal(err)
				}
				if _, err := k.Flush(); err != nil {
					t.Fatal(err)
				}
				k.Sync()
				if exists {
					w := shown{float64(now.Visible), float64(now.InFlight), float64(sentNow)}
					if now.InFlight == 0 {
						w.flying = -1
					}
					model[minute] = w
				}
				sentNow = 0
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"minutes": func(t *rapid.T) { minutes(rapid.SampledFrom([]int{1, 1, 2, 3, 14, 15, 16, 40}).Draw(t, "n")) },
			"change": func(t *rapid.T) {
				if exists {
					now = shard.QueueGauges{Counts: queueCounts(rapid.IntRange(0, 2).Draw(t, "visible"), rapid.IntRange(0, 1).Draw(t, "in flight"))}
					q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesChanged}) // which is no use of it
				}
			},
			"send": func(t *rapid.T) {
				if exists {
					send(rapid.IntRange(1, 3).Draw(t, "n"))
				}
			},
			"delete": func(t *rapid.T) {
				if !exists {
					exists, now = true, shard.QueueGauges{}
					send(1)
					return
				}
				minutes(1) // the minute of a deletion has what was recorded only
				exists = false
				q.Add(shard.QueueEvent{Queue: queue, Kind: shard.QueueDeleted})
			},
			"restart": func(t *rapid.T) {
				minutes(1) // a crash takes the minute
				if rapid.Bool().Draw(t, "clean") {
					if err := save(); err != nil {
						t.Fatal(err)
					}
				}
				begin(map[bool][]arn.ARN{true: {queue}, false: nil}[exists]...)
			},
		})
		minutes(1)
		period := rapid.SampledFrom([]int64{1, 5, 60}).Draw(t, "period") * 60
		from := start.Truncate(time.Hour).Unix()
		to := c.Now().Truncate(time.Hour).Add(time.Hour).Unix()
		for name, of := range map[string]func(shown) float64{
			"ApproximateNumberOfMessagesVisible":    func(w shown) float64 { return w.visible },
			"ApproximateNumberOfMessagesNotVisible": func(w shown) float64 { return w.flying },
			"NumberOfMessagesSent":                  func(w shown) float64 { return w.sent },
		} {
			want := map[int64]float64{}
			for minute, w := range model {
				if v := of(w); v >= 0 {
					want[from+(minute*60-from)/period*period] += v
				}
			}
			points, err := k.Read(metricOf(queue, name), count, from, to, period)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range points {
				if want[p.Start] != p.Set.Sum {
					t.Fatalf("%s at %s: %v, want %v", name, time.Unix(p.Start, 0).UTC(), p.Set.Sum, want[p.Start])
				}
				delete(want, p.Start)
			}
			if len(want) > 0 {
				t.Fatalf("%s: not told: %v", name, want)
			}
		}
	})
}

func queueCounts(visible, flying int) queue.Counts {
	return queue.Counts{Visible: int64(visible), InFlight: int64(flying)}
}
