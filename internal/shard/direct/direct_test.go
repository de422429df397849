package direct_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/test/soak"
)

// TestDirectPublishesSurviveCrashes: what is published to an endpoint and to no topic is
// there after a crash if it was acknowledged, with its endpoint, and so is a pause.
func TestDirectPublishesSurviveCrashes(t *testing.T) {
	name := arn.Direct(shardtest.Region, shardtest.Account, "sms")
	other := arn.Direct("eu-west-1", shardtest.Account, "sms")
	publish := func(to arn.ARN, id int) func(e *shard.Engine) {
		return func(e *shard.Engine) {
			m := &message.Message{ID: shardtest.MessageID(id), Body: []byte("hello")}
			if err := e.Direct.PublishDirect(t.Context(), to, fmt.Sprint("+", id), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	state := func(e *shard.Engine) string {
		var all []any
		for _, a := range []arn.ARN{name, other} {
			infos, err := e.Deliveries(t.Context(), a, 100)
			if err != nil {
				all = append(all, "none")
				continue
			}
			for _, i := range infos {
				if i.State != backlog.DeliveryPending { // what has ended is kept in memory only
					continue
				}
				d, err := e.Peek(t.Context(), a, i.ID)
				check(err)
				all = append(all, d.Message.ID, d.Subscription.Endpoint, d.Attempt)
			}
			b, err := e.Backlog(t.Context(), a)
			check(err)
			all = append(all, b.Due, b.Waiting, b.Subscription.PausedAt)
		}
		text, err := json.Marshal(all)
		check(err)
		return string(text)
	}
	shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *shard.Engine {
		e := shardtest.Open(t, shard.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start)})
		t.Cleanup(func() { _ = e.Close() })
		return e
	}, state,
		publish(name, 1), publish(name, 2), publish(other, 3),
		func(e *shard.Engine) { check(e.Pause(t.Context(), name)) },
		publish(name, 4),
		func(e *shard.Engine) { check(e.Resume(t.Context(), name)) },
		func(e *shard.Engine) { // an attempt fails
			taken, _, err := e.Take(other, 1)
			check(err)
			d := taken[0]
			d.Cause = backlog.Cause{Reason: "x", Attempt: 1} // so that the retry is durable on return
			e.Retry(d, backlog.Attempt{At: shardtest.Start, Outcome: "server-error"}, shardtest.Start.Add(1<<40))
		},
		publish(other, 5),
	)
}
