package async

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/topic"
)

var (
	start = time.Date(2024, 2, 29, 13, 0, 0, 0, time.UTC)
	fn    = arn.Function("us-east-1", "000000000000", "f")
	dlq   = arn.Queue("us-east-1", "000000000000", "dlq")
	dest  = arn.Queue("us-east-1", "000000000000", "dest")
)

// world is an engine with a consumer, and functions that do as run says.
type world struct {
	t          *testing.T
	fs         *vfs.MemFS
	clock      *clock.Virtual
	store      store.Store
	journal    *journal.Journal
	engine     *shard.Engine
	dispatcher *Dispatcher
	options    Options

	mu     sync.Mutex
	run    func(in invoke.Invocation) (invoke.Outcome, error)
	runs   []run
	events map[invoke.EventKind][]float64
	ids    byte
}

// run is one run of a function.
type run struct {
	Function, Version, ID, Payload string
	At                             time.Duration // since start
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, fs: vfs.NewCrashableMem(), clock: clock.NewVirtual(start), events: map[invoke.EventKind][]float64{}}
	w.run = func(invoke.Invocation) (invoke.Outcome, error) { return invoke.Outcome{Payload: []byte(`"done"`)}, nil }
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	w.store, err = pebble.Open("data", pebble.Options{FS: w.fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	w.must(err)
	w.journal = journal.Open(journal.Options{Store: w.store})
	w.engine, err = shard.Open(shard.Options{
		Journal: w.journal, Clock: w.clock, Logger: slog.New(slog.DiscardHandler), FunctionLimits: shard.FunctionLimits{Executions: 1000},
		Accepted: func(arn.ARN, string, time.Time) { w.event(invoke.Event{Kind: invoke.AsyncEventsReceived, Value: 1}) },
	})
	w.must(err)
	o := w.options
	o.Engine, o.Clock, o.Invoker, o.Events = w.engine, w.clock, w, w.event
	o.NewID = func() message.ID { return message.ID(uuid.New()) }
	w.dispatcher = New(o)
	w.engine.SetConsumer("lambda", w.dispatcher)
}

func (w *world) close() {
	w.must(w.dispatcher.Stop(context.Background()))
	w.must(w.engine.Close())
	w.journal.Close()
	w.must(w.store.Close())
}

// restart ends the server in order and starts it again.
func (w *world) restart() {
	w.close()
	w.open()
}

// crash continues from what was on disk when it is called.
func (w *world) crash(fs *vfs.MemFS) {
	w.close()
	w.fs = fs
	w.open()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) event(e invoke.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[e.Kind] = append(w.events[e.Kind], e.Value)
}

func (w *world) count(kind invoke.EventKind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events[kind])
}

// Invoke implements Invoker.
func (w *world) Invoke(_ context.Context, in invoke.Invocation) (invoke.Outcome, error) {
	w.mu.Lock()
	w.runs = append(w.runs, run{
		Function: in.Target.ARN().Resource, Version: in.Target.Version, ID: in.RequestID, Payload: string(in.Payload), At: w.clock.Now().Sub(start),
	})
	f := w.run
	w.mu.Unlock()
	return f(in)
}

func (w *world) does(f func(in invoke.Invocation) (invoke.Outcome, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run = f
}

// at are the moments of all runs so far.
func (w *world) at() (all []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		all = append(all, r.At)
	}
	return all
}

func (w *world) create(name arn.ARN, deadLetter arn.ARN) {
	w.t.Helper()
	_, err := w.engine.CreateFunction(w.t.Context(), function.Create{
		ARN: name, Code: function.Code{URL: "http://127.0.0.1:1"}, Revision: "1", ReadyRevision: "2",
		Config: function.Config{Package: "Image", TimeoutS: 3, MemoryMB: 128, DeadLetter: deadLetter},
	}, nil)
	w.must(err)
	w.advance(0)
}

func (w *world) queue(names ...arn.ARN) {
	w.t.Helper()
	for _, name := range names {
		w.must(w.engine.CreateQueue(w.t.Context(), shard.QueueSpec{ARN: name}))
	}
}

// invoke makes an asynchronous invocation and waits for what follows at once.
func (w *world) invoke(qualifier, payload string) (id string) {
	w.t.Helper()
	w.ids++
	ev := function.Event{ID: [16]byte{w.ids, 6: 0x40, 8: 0x80}, Qualifier: qualifier, Payload: []byte(payload)}
	w.must(w.engine.InvokeAsync(w.t.Context(), fn, ev))
	w.advance(0)
	return uuid.UUID(ev.ID).String()
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	_, err := w.clock.Advance(w.t.Context(), d)
	w.must(err)
}

func (w *world) configure(c function.EventInvokeChange) {
	w.t.Helper()
	_, err := w.engine.SetEventInvoke(w.t.Context(), function.SetEventInvoke{Function: fn, Change: c})
	w.must(err)
}

// received takes all that a queue has.
func (w *world) received(q arn.ARN) (all []*message.Message) {
	w.t.Helper()
	for {
		got, err := w.engine.Receive(w.t.Context(), shard.ReceiveRequest{Queue: q, Max: 10, Visibility: time.Hour})
		w.must(err)
		if len(got) == 0 {
			return all
		}
		for _, m := range got {
			all = append(all, m.Message)
		}
	}
}

// left is how many events wait or are under way.
func (w *world) left() int64 {
	w.t.Helper()
	info, err := w.engine.Events(w.t.Context(), fn)
	w.must(err)
	return info.Due + info.Waiting + info.InFlight
}

func (w *world) check(what string, got, want any) {
	w.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("%s: -want +got:\n%s", what, d)
	}
}

func failing(in invoke.Invocation) (invoke.Outcome, error) {
	return invoke.Outcome{FunctionError: "Unhandled", Payload: []byte(`{"errorMessage":"no","errorType":"E"}`)}, nil
}

func throttled(invoke.Invocation) (invoke.Outcome, error) {
	return invoke.Outcome{}, fault.New(fault.Throttled, "Rate Exceeded.")
}

func attributes(m *message.Message) map[string]string {
	all := map[string]string{}
	for _, a := range m.Attributes {
		all[a.Name] = a.Type + " " + string(a.Value)
	}
	return all
}

func seconds(all ...int) (d []time.Duration) {
	for _, s := range all {
		d = append(d, time.Duration(s)*time.Second)
	}
	return d
}

func TestSuccessRunsOnce(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	id := w.invoke("", `{"n":1}`)
	w.advance(7 * time.Hour)
	w.check("runs", w.runs, []run{{Function: "function:f", Version: "$LATEST", ID: id, Payload: `{"n":1}`}})
	w.check("left", w.left(), int64(0))
	w.check("events", w.events, map[invoke.EventKind][]float64{invoke.AsyncEventsReceived: {1}, invoke.AsyncEventAge: {0}})
}

// TestFailuresAreRetriedTwice: after one and two minutes with the same id, over
// restarts, with the code of the time; then the dead-letter queue and the
// destination are notified.
func TestFailuresAreRetriedTwice(t *testing.T) {
	w := newWorld(t)
	w.create(fn, dlq)
	w.queue(dlq, dest)
	w.configure(function.EventInvokeChange{Destinations: true, OnFailure: new(dest.String())})
	w.does(failing)
	id := w.invoke("", `{"n":1}`)
	w.restart()
	w.advance(59 * time.Second)
	w.check("before the first retry", w.at(), seconds(0))
	w.advance(time.Second)
	w.restart()
	w.advance(119 * time.Second)
	w.check("before the second retry", w.at(), seconds(0, 60))
	if got := w.received(dlq); len(got) != 0 {
		t.Errorf("%d dead letters before the last retry", len(got))
	}
	w.advance(time.Second)
	w.check("runs", w.at(), seconds(0, 60, 180))
	for _, r := range w.runs {
		w.check("id and payload", r.ID+r.Payload, id+`{"n":1}`)
	}
	w.check("left", w.left(), int64(0))
	dead := w.received(dlq)
	if len(dead) != 1 {
		t.Fatalf("%d dead letters", len(dead))
	}
	w.check("dead letter", string(dead[0].Body), `{"n":1}`)
	w.check("attributes", attributes(dead[0]), map[string]string{
		"RequestID": "String " + id, "ErrorCode": "Number 200", "ErrorMessage": "String no",
	})
	told := w.received(dest)
	if len(told) != 1 {
		t.Fatalf("%d records", len(told))
	}
	w.check("record", string(told[0].Body), `{"version":"1.0","timestamp":"2024-02-29T13:03:00.000Z",`+
		`"requestContext":{"requestId":"`+id+`","functionArn":"`+fn.String()+`:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":3},`+
		`"requestPayload":{"n":1},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},`+
		`"responsePayload":{"errorMessage":"no","errorType":"E"}}`)
	w.advance(24 * time.Hour)
	w.check("runs in all", len(w.at()), 3)
	w.check("dropped", w.count(invoke.AsyncEventsDropped), 1)
}

func TestSettingsOfRetries(t *testing.T) {
	for _, tt := range []struct {
		name      string
		change    function.EventInvokeChange
		want      []time.Duration
		condition function.Condition
	}{
		{"none", function.EventInvokeChange{Retries: new(0)}, seconds(0), function.RetriesExhausted},
		{"one", function.EventInvokeChange{Retries: new(1)}, seconds(0, 60), function.RetriesExhausted},
		{"an age that allows the first", function.EventInvokeChange{MaxAgeS: new(60)}, seconds(0, 60), function.EventAgeExceeded},
		{"an age that allows the second", function.EventInvokeChange{MaxAgeS: new(180)}, seconds(0, 60, 180), function.RetriesExhausted},
		{"one second less", function.EventInvokeChange{MaxAgeS: new(179)}, seconds(0, 60), function.EventAgeExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.create(fn, arn.ARN{})
			w.queue(dest)
			tt.change.Destinations, tt.change.OnFailure = true, new(dest.String())
			w.configure(tt.change)
			w.does(failing)
			w.invoke("", `1`)
			w.advance(6 * time.Hour)
			w.check("runs", w.at(), tt.want)
			w.check("condition", w.record(dest).RequestContext.Condition, tt.condition)
			w.check("count", w.record(dest).RequestContext.ApproximateInvokeCount, len(tt.want))
		})
	}
}

// record is the only record in a queue, which stays there.
func (w *world) record(q arn.ARN) (r record) {
	w.t.Helper()
	got, err := w.engine.Receive(w.t.Context(), shard.ReceiveRequest{Queue: q, Max: 10, Visibility: 0})
	w.must(err)
	if len(got) != 1 {
		w.t.Fatalf("%d records", len(got))
	}
	w.must(json.Unmarshal(got[0].Body, &r))
	return r
}

// TestThrottlesAreRetriedUntilTheAge: from one second, doubling, to five minutes,
// for six hours; none of it counts as a retry.
func TestThrottlesAreRetriedUntilTheAge(t *testing.T) {
	for name, refuse := range map[string]func(invoke.Invocation) (invoke.Outcome, error){
		"429": throttled,
		"500": func(invoke.Invocation) (invoke.Outcome, error) {
			return invoke.Outcome{}, fault.New(fault.Internal, "no sandbox")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(fn, dlq)
			w.queue(dlq, dest)
			w.configure(function.EventInvokeChange{Destinations: true, OnFailure: new(dest.String())})
			w.does(refuse)
			id := w.invoke("", `1`)
			w.advance(7 * time.Hour)
			var want []time.Duration
			wait := time.Second
			for at := time.Duration(0); at <= 6*time.Hour; at += wait / 2 {
				want = append(want, at)
				if len(want) > 1 {
					wait = min(2*wait, 10*time.Minute)
				} else {
					wait = 2 * time.Second
				}
			}
			w.check("attempts", w.at(), want)
			r := w.record(dest)
			w.check("condition", r.RequestContext.Condition, function.EventAgeExceeded)
			if r.ResponseContext != nil || r.ResponsePayload != nil {
				t.Errorf("a response of what never ran: %+v", r)
			}
			dead := w.received(dlq)
			if len(dead) != 1 {
				t.Fatalf("%d dead letters", len(dead))
			}
			says := map[string]string{"429": "String Rate Exceeded.", "500": "String no sandbox"}[name]
			w.check("attributes", attributes(dead[0]), map[string]string{
				"RequestID": "String " + id, "ErrorCode": "Number " + name, "ErrorMessage": says,
			})
		})
	}
}

func TestThrottlesDoNotUseUpRetries(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	w.does(throttled)
	w.invoke("", `1`)
	w.advance(3 * time.Second)
	w.does(failing)
	w.advance(time.Hour)
	w.check("attempts", w.at(), seconds(0, 1, 3, 7, 67, 187))
}

func TestZeroReservedConcurrencyMakesNoAttempt(t *testing.T) {
	w := newWorld(t)
	w.create(fn, dlq)
	w.queue(dlq, dest)
	w.configure(function.EventInvokeChange{Destinations: true, OnFailure: new(dest.String())})
	w.must(w.engine.ReserveExecutions(t.Context(), fn, new(0)))
	id := w.invoke("", `{"n":1}`)
	w.check("runs", len(w.at()), 0)
	w.check("record", string(w.received(dest)[0].Body), `{"version":"1.0","timestamp":"2024-02-29T13:00:00.000Z",`+
		`"requestContext":{"requestId":"`+id+`","functionArn":"`+fn.String()+`:$LATEST","condition":"ZeroReservedConcurrency","approximateInvokeCount":0},`+
		`"requestPayload":{"n":1}}`)
	w.check("dead letters", len(w.received(dlq)), 1)
	w.check("left", w.left(), int64(0))
}

// TestDestinations: queues, topics and functions get the record of a success.
func TestDestinations(t *testing.T) {
	other := arn.Function("us-east-1", "000000000000", "other")
	news := arn.Topic("us-east-1", "000000000000", "news")
	for _, d := range []arn.ARN{dest, news, other} {
		t.Run(d.Service, func(t *testing.T) {
			w := newWorld(t)
			w.create(fn, dlq)
			w.create(other, arn.ARN{})
			w.queue(dest, dlq)
			w.must(w.engine.CreateTopic(t.Context(), topic.CreateTopic{ARN: news}))
			_, err := w.engine.Subscribe(t.Context(), topic.Subscribe{
				Topic: news, Owner: "000000000000", Protocol: "sqs", Endpoint: dest.String(), Attributes: map[string]string{}, ID: uuid.NewString(),
			})
			w.must(err)
			w.configure(function.EventInvokeChange{Destinations: true, OnSuccess: new(d.String())})
			id := w.invoke("", `{"n":1}`)
			want := `{"version":"1.0","timestamp":"2024-02-29T13:00:00.000Z",` +
				`"requestContext":{"requestId":"` + id + `","functionArn":"` + fn.String() + `:$LATEST","condition":"Success","approximateInvokeCount":1},` +
				`"requestPayload":{"n":1},"responseContext":{"statusCode":200,"executedVersion":"$LATEST"},"responsePayload":"done"}`
			var got string
			switch d.Service {
			case "sqs":
				got = string(w.received(dest)[0].Body)
			case "sns":
				got = w.inBacklog(news)
			case "lambda":
				w.check("runs", len(w.runs), 2)
				w.check("of", w.runs[1].Function, "function:other")
				got = w.runs[1].Payload
			}
			w.check("record", got, want)
			w.check("left", w.left(), int64(0))
			w.check("dead letters", len(w.received(dlq)), 0)
			w.check("failures", w.count(invoke.DestinationDeliveryFailures)+w.count(invoke.AsyncEventsDropped), 0)
		})
	}
}

// inBacklog is the only message that a topic owes its subscription.
func (w *world) inBacklog(t arn.ARN) string {
	w.t.Helper()
	subs, _, err := w.engine.ListSubscriptionsByTopic(w.t.Context(), t, "", 10)
	w.must(err)
	taken, _, err := w.engine.Take(subs[0].ARN, 10)
	w.must(err)
	if len(taken) != 1 {
		w.t.Fatalf("%d messages were published", len(taken))
	}
	return string(taken[0].Message.Body)
}

// TestHandOverWaits: what cannot be handed over now is tried again, without
// running the function again, also by another process.
func TestHandOverWaits(t *testing.T) {
	w := newWorld(t)
	w.create(fn, dlq)
	w.queue(dlq, dest)
	w.configure(function.EventInvokeChange{Destinations: true, OnSuccess: new(dest.String())})
	w.must(w.engine.SetFault(dest, "unavailable"))
	w.invoke("", `1`)
	w.advance(50 * time.Second)
	w.check("left", w.left(), int64(1))
	w.restart() // which forgets the fault
	w.advance(9 * time.Second)
	w.check("records", len(w.received(dest)), 0)
	w.advance(time.Second)
	w.check("records", len(w.received(dest)), 1)
	w.check("runs", len(w.at()), 1)
	w.check("left", w.left(), int64(0))
}

// TestHandOverIsLost: a receiver that is gone is counted, and holds nothing up.
func TestHandOverIsLost(t *testing.T) {
	w := newWorld(t)
	w.create(fn, dlq)
	w.configure(function.EventInvokeChange{Destinations: true, Retries: new(0), OnFailure: new(dest.String())})
	w.does(failing)
	w.invoke("", `1`)
	w.check("left", w.left(), int64(0))
	w.check("lost", []int{w.count(invoke.DeadLetterErrors), w.count(invoke.DestinationDeliveryFailures), w.count(invoke.AsyncEventsDropped)}, []int{1, 1, 1})
}

// TestHandOverThatTheRoleMayNot: what the function's role may not send is not sent, and
// holds nothing up.
func TestHandOverThatTheRoleMayNot(t *testing.T) {
	w := newWorld(t)
	var asked []arn.ARN
	w.close()
	w.options.Acting = func(_ context.Context, target *function.Target, to arn.ARN, action string) (*caller.Caller, error) {
		w.check("whose role", target.Function, fn)
		w.check("what for", action, "sqs:SendMessage")
		asked = append(asked, to)
		return nil, fault.New(fault.AccessDenied, "no")
	}
	w.open()
	w.create(fn, dlq)
	w.queue(dlq, dest)
	w.configure(function.EventInvokeChange{Destinations: true, Retries: new(0), OnFailure: new(dest.String())})
	w.does(failing)
	w.invoke("", `1`)
	w.check("asked", asked, []arn.ARN{dlq, dest})
	w.check("left", w.left(), int64(0))
	w.check("sent", []int{len(w.received(dlq)), len(w.received(dest))}, []int{0, 0})
	w.check("lost", []int{w.count(invoke.DeadLetterErrors), w.count(invoke.DestinationDeliveryFailures)}, []int{1, 1})
}

// TestStopDuringAHandOver: what a receiver seems to refuse as the server stops is handed over by
// the next one.
func TestStopDuringAHandOver(t *testing.T) {
	w := newWorld(t)
	asked := make(chan struct{})
	w.close()
	w.options.Acting = func(ctx context.Context, _ *function.Target, _ arn.ARN, _ string) (*caller.Caller, error) {
		close(asked)
		<-ctx.Done()
		return nil, fault.New(fault.AccessDenied, "the queue's policy was not read")
	}
	w.open()
	w.create(fn, dlq)
	w.queue(dlq)
	w.configure(function.EventInvokeChange{Retries: new(0)})
	w.does(failing)
	w.must(w.engine.InvokeAsync(t.Context(), fn, function.Event{ID: [16]byte{1}, Payload: []byte("1")}))
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.dispatcher.Stop(ctx); err == nil {
		t.Error("cut off, and not said")
	}
	w.options.Acting = nil
	w.restart()
	w.advance(0)
	w.check("runs", len(w.at()), 1)
	w.check("sent", len(w.received(dlq)), 1)
	w.check("lost", w.count(invoke.DeadLetterErrors), 0)
}

// TestLargeRecords: a failure is reported without the payloads if these are too
// large, of a success not at all.
func TestLargeRecords(t *testing.T) {
	for _, success := range []bool{true, false} {
		w := newWorld(t)
		w.create(fn, arn.ARN{})
		w.queue(dest)
		w.configure(function.EventInvokeChange{
			Destinations: true, Retries: new(0), OnFailure: new(dest.String()), OnSuccess: new(dest.String()),
		})
		large := `"` + strings.Repeat("x", 600<<10) + `"`
		w.does(func(invoke.Invocation) (invoke.Outcome, error) {
			out := invoke.Outcome{Payload: []byte(large)}
			if !success {
				out.FunctionError = "Unhandled"
			}
			return out, nil
		})
		w.invoke("", large)
		got := w.received(dest)
		if success {
			w.check("records", len(got), 0)
			w.check("failures", w.count(invoke.DestinationDeliveryFailures), 1)
			continue
		}
		var r record
		w.must(json.Unmarshal(got[0].Body, &r))
		if r.RequestPayload != nil || r.ResponsePayload != nil || r.RequestContext.Condition != function.RetriesExhausted {
			t.Errorf("told %d bytes: %+v", len(got[0].Body), r.RequestContext)
		}
		w.check("failures", w.count(invoke.DestinationDeliveryFailures), 0)
	}
}

// TestCrashes: a process that ends while a function runs, or behind its success,
// runs it again; one that ends behind the retry's commit continues with that.
func TestCrashes(t *testing.T) {
	t.Run("accepted", func(t *testing.T) {
		w := newWorld(t)
		w.create(fn, arn.ARN{})
		w.must(w.engine.Close())
		w.must(w.dispatcher.Stop(t.Context()))
		w.must(w.store.Close())
		w.open()
		w.must(w.dispatcher.Stop(t.Context())) // nobody runs anything
		w.must(w.engine.InvokeAsync(t.Context(), fn, function.Event{ID: [16]byte{1}, Payload: []byte("1")}))
		w.crash(w.fs.CrashClone(vfs.CrashCloneCfg{}))
		w.advance(0)
		w.check("runs", len(w.at()), 1)
	})
	t.Run("success", func(t *testing.T) {
		w := newWorld(t)
		w.create(fn, arn.ARN{})
		w.queue(dest)
		w.configure(function.EventInvokeChange{Destinations: true, OnSuccess: new(dest.String())})
		var disk *vfs.MemFS
		w.does(func(invoke.Invocation) (invoke.Outcome, error) {
			disk = w.fs.CrashClone(vfs.CrashCloneCfg{})
			return invoke.Outcome{Payload: []byte("1")}, nil
		})
		w.invoke("", `1`)
		w.crash(disk)
		w.advance(0)
		w.check("runs", len(w.at()), 2)
		w.check("records", len(w.received(dest)), 1)
		w.check("left", w.left(), int64(0))
	})
	t.Run("told", func(t *testing.T) {
		w := newWorld(t)
		w.create(fn, arn.ARN{})
		w.queue(dest)
		w.configure(function.EventInvokeChange{Destinations: true, OnSuccess: new(dest.String())})
		w.invoke("", `1`)
		w.check("records", len(w.received(dest)), 1)
		w.crash(w.fs.CrashClone(vfs.CrashCloneCfg{})) // behind what the receive has waited for
		w.advance(time.Hour)
		w.check("runs", len(w.at()), 1)
		w.check("left", w.left(), int64(0))
	})
}

// TestReservedConcurrencyBoundsAttempts: no more run at once, and all run.
func TestReservedConcurrencyBoundsAttempts(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	w.must(w.engine.ReserveExecutions(t.Context(), fn, new(3)))
	var now, most int
	const n = 50
	gate, arrived := make(chan struct{}), make(chan struct{}, n)
	w.does(func(invoke.Invocation) (invoke.Outcome, error) {
		w.mu.Lock()
		now++
		most = max(most, now)
		w.mu.Unlock()
		arrived <- struct{}{}
		<-gate
		w.mu.Lock()
		now--
		w.mu.Unlock()
		return invoke.Outcome{Payload: []byte("1")}, nil
	})
	for i := range n {
		w.must(w.engine.InvokeAsync(t.Context(), fn, function.Event{ID: [16]byte{byte(i)}, Payload: []byte("1")}))
	}
	go func() {
		for range 3 {
			<-arrived
		}
		for range n {
			gate <- struct{}{}
		}
	}()
	w.advance(0)
	w.check("runs", len(w.at()), n)
	w.check("at once", most, 3)
	w.check("left", w.left(), int64(0))
}

// TestThrottledFunctionIsLeftAlone: a backlog of a function that is throttled is
// not tried as a whole, again and again.
func TestThrottledFunctionIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.options.FunctionLimit = 4
	w.restart()
	w.create(fn, arn.ARN{})
	w.does(throttled)
	for i := range 200 {
		w.must(w.engine.InvokeAsync(t.Context(), fn, function.Event{ID: [16]byte{byte(i)}, Payload: []byte("1")}))
	}
	w.advance(9 * time.Second)
	if n := len(w.at()); n < 10 || n > 50 {
		t.Errorf("%d attempts in 10 s, at 4 each", n)
	}
	w.does(func(invoke.Invocation) (invoke.Outcome, error) { return invoke.Outcome{Payload: []byte("1")}, nil })
	w.advance(10 * time.Minute)
	w.check("left", w.left(), int64(0))
}

// TestDeletedFunction: its events go with it, and nothing is in the way of the
// next start.
func TestDeletedFunction(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	w.does(failing)
	w.invoke("", `1`)
	w.must(w.engine.DeleteFunction(t.Context(), fn, ""))
	w.advance(time.Hour)
	w.restart()
	w.create(fn, arn.ARN{})
	w.check("left", w.left(), int64(0))
	w.check("runs", len(w.at()), 1)
	if err := w.engine.InvokeAsync(t.Context(), fn, function.Event{Qualifier: "7"}); fault.KindOf(err) != fault.ResourceNotFound {
		t.Errorf("an event for a version that is not there: %v", err)
	}
}

// TestQualifiers: a version runs as itself, with settings and a name of its own.
func TestQualifiers(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	w.queue(dest)
	_, err := w.engine.PublishVersion(t.Context(), function.Publish{ARN: fn, Revision: "3", Latest: "4"})
	w.must(err)
	w.advance(0)
	_, err = w.engine.SetEventInvoke(t.Context(), function.SetEventInvoke{
		Function: fn, Qualifier: "1", Change: function.EventInvokeChange{Retries: new(0), Destinations: true, OnFailure: new(dest.String())},
	})
	w.must(err)
	w.does(failing)
	w.invoke("1", `1`)
	w.invoke("", `2`)
	w.advance(time.Hour)
	w.check("runs", w.at(), seconds(0, 0, 60, 180))
	w.check("versions", []string{w.runs[0].Function, w.runs[0].Version, w.runs[1].Version}, []string{"function:f:1", "1", "$LATEST"})
	r := w.record(dest)
	w.check("named", r.RequestContext.FunctionARN+" "+r.ResponseContext.ExecutedVersion, fn.String()+":1 1")
}

// TestStopGivesBack: attempts that are cut off are made again by the next
// process.
func TestStopGivesBack(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	begun := make(chan struct{})
	c := w.dispatcher
	end := make(chan struct{})
	defer close(end)
	w.does(func(invoke.Invocation) (invoke.Outcome, error) {
		close(begun)
		<-end // a function continues
		return invoke.Outcome{}, nil
	})
	w.must(w.engine.InvokeAsync(t.Context(), fn, function.Event{ID: [16]byte{1}, Payload: []byte("1")}))
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Stop(ctx); err == nil {
		t.Error("cut off, and not said")
	}
	w.does(func(invoke.Invocation) (invoke.Outcome, error) { return invoke.Outcome{Payload: []byte("1")}, nil })
	w.restart()
	w.advance(0)
	w.check("runs", len(w.at()), 2)
	w.check("left", w.left(), int64(0))
}

// lateEngine does not find a function for an attempt before ctx ends.
type lateEngine struct {
	Engine
	leased *atomic.Bool
	asked  chan struct{}
}

func (e lateEngine) Function(ctx context.Context, name arn.ARN, qualifier string) (function.Target, error) {
	if !e.leased.Swap(true) { // asked for the bound of attempts
		return e.Engine.Function(ctx, name, qualifier)
	}
	e.asked <- struct{}{}
	<-ctx.Done()
	return function.Target{}, ctx.Err()
}

// TestStopBeforeAnAttempt: one that is cut off before it began does not count.
func TestStopBeforeAnAttempt(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	w.must(w.dispatcher.Stop(t.Context()))
	late := lateEngine{w.engine, new(atomic.Bool), make(chan struct{})}
	w.dispatcher = New(Options{Engine: late, Clock: w.clock, Invoker: w})
	w.engine.SetConsumer("lambda", w.dispatcher)
	w.must(w.engine.InvokeAsync(t.Context(), fn, function.Event{ID: [16]byte{1}, Payload: []byte("1")}))
	<-late.asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.dispatcher.Stop(ctx); err == nil {
		t.Error("cut off, and not said")
	}
	w.restart()
	w.advance(0)
	w.check("runs", len(w.at()), 1)
}

// TestNothingStaysForIdleFunctions: no backlog, no timer, no hold.
func TestNothingStaysForIdleFunctions(t *testing.T) {
	w := newWorld(t)
	w.create(fn, arn.ARN{})
	w.does(throttled)
	w.invoke("", `1`)
	w.advance(2 * time.Second)
	w.does(failing)
	w.advance(time.Hour)
	if !w.dispatcher.Idle() {
		t.Error("functions are remembered")
	}
}

// TestSameHistory: the same advances give the same attempts, whatever the order
// of goroutines.
func TestSameHistory(t *testing.T) {
	history := func() []time.Duration {
		w := newWorld(t)
		w.create(fn, arn.ARN{})
		n := 0
		w.does(func(in invoke.Invocation) (invoke.Outcome, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if n++; n%3 == 0 {
				return throttled(in)
			}
			return failing(in)
		})
		for range 5 {
			w.invoke("", `1`)
			w.advance(7 * time.Second)
		}
		w.advance(time.Hour)
		at := w.at()
		slices.Sort(at)
		return at
	}
	first := history()
	for range 3 {
		if d := cmp.Diff(first, history()); d != "" {
			t.Fatalf("-first +again:\n%s", d)
		}
	}
}
