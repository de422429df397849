package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// told is a server's alarms, and the engine that they tell.
type told struct {
	*shard.Engine
	alarms *alarms.Engine
}

// AdmitFunction implements services: every function lets alarms invoke it.
func (told) AdmitFunction(context.Context, arn.ARN, string, string, string) error { return nil }

func openTold(t *testing.T, j *journal.Journal, twoStep bool) told {
	t.Helper()
	ids := 0
	newID := func() message.ID { ids++; return shardtest.MessageID(ids) }
	render := func(n *message.Message) (*message.Message, error) {
		m := &message.Message{ID: newID(), Sender: n.Sender, Body: n.Body}
		m.Seal()
		return m, nil
	}
	c := clock.NewVirtual(shardtest.Start)
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	x := &actions{newID: newID, held: func() bool { return false }}
	w := told{alarms: alarms.New(k, alarms.Options{Executor: x, Wake: func() {}, WakeShort: func() {}})}
	w.Engine = shardtest.Open(t, shard.Options{Kernel: k, Clock: c, NewID: newID, Render: render, TwoStep: twoStep})
	x.services = w
	if err := w.alarms.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// Whom an alarm tells hears of each state exactly once, whatever is between the state's commit and the next one when the
// process dies: what is told, the item in the history and the end of the action are one commit.
func TestAlarmsTellOnce(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	id := alarms.ID{Account: shardtest.Account, Region: shardtest.Region, Name: "a"}
	set := func(s alarm.State) func(w told) {
		return func(w told) {
			check(w.alarms.SetState(t.Context(), id, alarm.Status{State: s, Reason: "r"}))
		}
	}
	news, fn := shardtest.TopicARN("news"), shardtest.FunctionARN("f")
	sub := arn.ARN{}
	for _, twoStep := range []bool{false, true} {
		t.Run(fmt.Sprintf("twoStep=%t", twoStep), func(t *testing.T) {
			open := func(j *journal.Journal) told { return openTold(t, j, twoStep) }
			state := func(w told) string {
				items, _, err := w.alarms.History(alarms.HistoryQuery{Scope: metrics.Scope{Account: id.Account, Region: id.Region}, Type: alarm.Action, Limit: 100})
				check(err)
				var acted []string
				for _, i := range items {
					acted = append(acted, i.Summary)
				}
				g, _ := w.QueueGauges(t.Context(), shardtest.QueueARN("q"))
				b, _ := w.Backlog(t.Context(), sub)
				ev, _ := w.Events(t.Context(), fn)
				text, err := json.Marshal([]any{acted, g.Visible, b.Due + b.Waiting, ev})
				check(err)
				return string(text)
			}
			shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), open, state,
				func(w told) { check(w.CreateQueue(t.Context(), queues.QueueSpec{ARN: shardtest.QueueARN("q")})) },
				func(w told) { check(w.CreateTopic(t.Context(), topic.CreateTopic{ARN: news})) },
				func(w told) { sub = shardtest.Subscribe(t, w.Engine, "news", "q", shardtest.SubscriptionID(1)) },
				func(w told) {
					_, err := w.CreateFunction(t.Context(), shardtest.CreateFunction("f", nil), nil)
					check(err)
				},
				func(w told) {
					check(w.alarms.Put(id, alarm.Config{AlarmActions: []string{news.String()}, OKActions: []string{news.String(), fn.String()}}, nil))
				},
				set(alarm.Alarming), set(alarm.OK), set(alarm.Alarming),
				func(w told) { check(w.DeleteTopic(t.Context(), news)) }, // the publish is refused
				set(alarm.OK),
			)
		})
	}
}
