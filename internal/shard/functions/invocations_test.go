package functions_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/topic"
)

// told is a consumer that notes its notifications.
type told struct{ ready chan string }

func (c told) Ready(of arn.ARN) { c.ready <- of.Resource }

// permit lets SNS, by the name of its service, invoke a function for a topic.
func permit(t *testing.T, e *shard.Engine, service, name, qualifier, source string) {
	t.Helper()
	err := e.PermitFunction(t.Context(), function.Permit{
		Function: shardtest.FunctionARN(name), Qualifier: qualifier, Revision: "p",
		Permission: function.Permission{
			Sid: "s", Effect: "Allow", Principal: json.RawMessage(`{"Service":"` + service + `"}`), Action: "lambda:InvokeFunction",
			Resource:  shardtest.FunctionARN(name).Qualify(qualifier).String(),
			Condition: json.RawMessage(`{"ArnLike":{"AWS:SourceArn":"` + source + `"}}`),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A delivery moves into the queue of a function in one step, or in two where the
// shards do not share commits; the function's policy and its being there decide.
func TestTransferEvent(t *testing.T) {
	for _, twoStep := range []bool{false, true} {
		ctx, fs := t.Context(), vfs.NewMem()
		clk := clock.NewVirtual(shardtest.Start)
		st := shardtest.OpenStore(t, fs)
		o := shard.Options{
			Journal: shardtest.JournalOf(t, st, nil), Clock: clk, TwoStep: twoStep,
			Sign: func(body []byte, u *message.Unsigned) error {
				copy(body[u.Offset:], "signed")
				return nil
			},
		}
		e := shardtest.Open(t, o)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", []byte("zip")), []byte("zip"))
		must(err)
		_, err = clk.Advance(ctx, 0)
		must(err)
		news := shardtest.TopicARN("news")
		must(e.CreateTopic(ctx, topic.CreateTopic{ARN: news}))
		f := shardtest.FunctionARN("f")
		sub, err := e.Subscribe(ctx, topic.Subscribe{
			Topic: news, Owner: shardtest.Account, Protocol: "lambda", Endpoint: f.String(), ID: "6d6b8f6e-0000-4000-8000-000000000001",
		})
		must(err)
		if sub.Pending {
			t.Error("a function of the account has to confirm")
		}
		_, err = e.Publish(ctx, news, shard.Publication{ID: message.ID{1}, Body: []byte("hello")})
		must(err)
		taken, _, err := e.Take(sub.ARN, 10)
		must(err)
		if len(taken) != 1 {
			t.Fatalf("%d deliveries", len(taken))
		}
		transfer := func() error {
			ev := function.Event{ID: message.ID{2}, Payload: []byte(`{"s":"room.."}`)}
			return e.TransferEvent(ctx, taken[0], backlog.Attempt{At: shardtest.Start, Outcome: "success"}, f, ev, &message.Unsigned{Offset: 6, Digest: []byte{1}})
		}
		if err := transfer(); fault.KindOf(err) != fault.AccessDenied {
			t.Errorf("without a permission: %v", err)
		}
		service := map[bool]string{false: "sns.amazonaws.com", true: "sns.us-east-1.amazonaws.com"}[twoStep]
		permit(t, e, service, "f", "", shardtest.TopicARN("other").String())
		if err := transfer(); fault.KindOf(err) != fault.AccessDenied {
			t.Errorf("with that of another topic: %v", err)
		}
		must(e.ForbidFunction(ctx, function.Forbid{Function: f, Sid: "s"}))
		permit(t, e, service, "f", "", news.String())
		must(e.SetFault(f, "throttled"))
		if err := transfer(); fault.KindOf(err) != fault.Throttled {
			t.Errorf("throttled: %v", err)
		}
		must(e.SetFault(f, "none"))
		must(transfer())
		if got, err := e.Deliveries(ctx, sub.ARN, 10); err != nil || len(got) != 1 || got[0].State != backlog.DeliveryDelivered {
			t.Errorf("deliveries %+v, %v", got, err)
		}
		e.Close()
		st.Close()
		st = shardtest.OpenStore(t, fs)
		o.Journal = shardtest.JournalOf(t, st, nil)
		e = shardtest.Open(t, o)
		events, more, err := e.TakeEvents(f, 10)
		must(err)
		if len(events) != 1 || more {
			t.Fatalf("%d events, more: %v", len(events), more)
		}
		if ev := events[0]; ev.ID != (message.ID{2}) || !bytes.Equal(ev.Payload, []byte(`{"s":"signed"}`)) || !ev.Accepted.Equal(shardtest.Start) {
			t.Errorf("event %+v", ev)
		}
		ev := events[0]
		ev.Progress.Failures = 1
		e.RetryEvent(ev, shardtest.Start.Add(time.Minute))
		if got, _, err := e.TakeEvents(f, 10); err != nil || len(got) != 0 {
			t.Errorf("taken before it is due: %v, %v", got, err)
		}
		_, err = clk.Advance(ctx, time.Minute)
		must(err)
		events, _, err = e.TakeEvents(f, 10)
		must(err)
		if len(events) != 1 || events[0].Progress.Failures != 1 {
			t.Fatalf("events %+v", events)
		}
		// A new life of the function has nothing of the old one's.
		must(e.DeleteFunction(ctx, f, ""))
		e.EventDone(events[0])
		if err := transfer(); err != nil {
			t.Errorf("the delivery is gone: %v", err)
		}
		_, err = e.Publish(ctx, news, shard.Publication{ID: message.ID{3}, Body: []byte("hello")})
		must(err)
		taken, _, err = e.Take(sub.ARN, 10)
		must(err)
		if err := transfer(); fault.KindOf(err) != fault.ResourceNotFound {
			t.Errorf("to a function that is gone: %v", err)
		}
		e.Close()
		st.Close()
	}
}

// What is in the queue of a function is told to the consumer of functions, also
// to one that comes later.
func TestConsumersByService(t *testing.T) {
	ctx := t.Context()
	store := shardtest.NewStore(t)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, store, nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer store.Close()
	defer e.Close()
	if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", []byte("zip")), []byte("zip")); err != nil {
		t.Fatal(err)
	}
	e.SetConsumer("sns", told{make(chan string)}) // blocks for ever if it is notified
	e.Topics.ShardOf(shardtest.FunctionARN("f")).Tick()
	if err := e.InvokeAsync(ctx, shardtest.FunctionARN("f"), function.Event{Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	c := told{make(chan string, 1)}
	e.SetConsumer("lambda", c)
	if got := <-c.ready; got != "function:f" {
		t.Errorf("told of %s", got)
	}
}

// TestUnsignableEvent: an event that cannot be signed ends neither the process nor
// what is to become of the others.
func TestUnsignableEvent(t *testing.T) {
	ctx := t.Context()
	store := shardtest.NewStore(t)
	broken := errors.New("broken")
	o := shard.Options{
		Journal: shardtest.JournalOf(t, store, nil), Clock: clock.NewVirtual(shardtest.Start), Fatal: func(err error) { t.Errorf("fatal: %v", err) },
		Sign: func([]byte, *message.Unsigned) error { return broken },
	}
	e := shardtest.Open(t, o)
	defer store.Close()
	defer func() { e.Close() }()
	f := shardtest.FunctionARN("f")
	if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", []byte("zip")), []byte("zip")); err != nil {
		t.Fatal(err)
	}
	sh := e.Functions.ShardOf(f)
	sh.Tick()
	for i := range 3 {
		m := functions.EventMessage(function.Event{ID: message.ID{byte(i)}, Payload: []byte("1")})
		if i == 1 {
			m.Unsigned = &message.Unsigned{}
		}
		sh.View(func() {
			found, _ := sh.Functions.Function(f)
			sh.AcceptEvent(found, sh.Now(), m, "")
			sh.Append(journal.Eager)
		})
	}
	events, _, err := e.TakeEvents(f, 10)
	if !errors.Is(err, broken) || len(events) != 2 || events[1].ID != (message.ID{2}) {
		t.Fatalf("took %d events: %v", len(events), err)
	}
	for _, ev := range events {
		e.EventDone(ev)
	}
	e.Close()
	o.Sign = func([]byte, *message.Unsigned) error { return nil }
	e = shardtest.Open(t, o)
	if events, _, err := e.TakeEvents(f, 10); err != nil || len(events) != 1 || events[0].ID != (message.ID{1}) {
		t.Errorf("after a restart: %d events: %v", len(events), err)
	}
}

// What is asked of a function's events leaves no change behind that is in nobody's
// commit, and changes no catalog.
func TestCountingEventsIsACommand(t *testing.T) {
	ctx, clk := t.Context(), clock.NewVirtual(shardtest.Start)
	st := shardtest.NewStore(t)
	defer st.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clk})
	defer e.Close()
	f := shardtest.FunctionARN("f")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", []byte("zip")), []byte("zip"))
	must(err)
	sh := e.Functions.ShardOf(f)
	for what, ask := range map[string]func() (functions.EventsInfo, error){
		"Events":       func() (functions.EventsInfo, error) { return e.Events(ctx, f) },
		"SampleEvents": func() (functions.EventsInfo, error) { return e.SampleEvents(f) },
	} {
		must(e.InvokeAsync(ctx, f, function.Event{ID: message.ID{1}, Payload: []byte("1")}))
		events, _, err := e.TakeEvents(f, 1)
		must(err)
		e.RetryEvent(events[0], clk.Now().Add(500*time.Millisecond))
		_, err = clk.Advance(ctx, 5*time.Second) // the second in which it came due is over
		must(err)
		generation := sh.Generation.Load()
		info, err := ask()
		must(err)
		if info.Due != 1 {
			t.Errorf("%s: %+v", what, info)
		}
		if !sh.Unchanged() || sh.Generation.Load() != generation {
			t.Errorf("%s leaves %d changes behind, and the catalog %d generations on", what, sh.Batch.Len(), sh.Generation.Load()-generation)
		}
		events, _, err = e.TakeEvents(f, 1)
		must(err)
		e.EventDone(events[0])
	}
}
