package platforms_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/platforms"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

var (
	shop    = arn.PlatformApplication(shardtest.Region, shardtest.Account, platform.FCM, "shop")
	secrets = map[string]string{platform.AttrCredential: "the-canary"}
)

func open(t *testing.T, j *journal.Journal, sealing *seal.Keys) *shard.Engine {
	ids := 0
	e := shardtest.Open(t, shard.Options{
		Journal: j, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler), Sealing: sealing,
		NewID: func() message.ID {
			ids++
			return shardtest.MessageID(ids)
		},
	})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// everything tells all applications and endpoints, and what waits.
func everything(t *testing.T) func(e *shard.Engine) string {
	return func(e *shard.Engine) string {
		ctx := context.Background()
		apps, _, err := e.ListApplications(ctx, shardtest.Region, shardtest.Account, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]any{"applications": apps}
		for _, a := range apps {
			endpoints, _, err := e.ListEndpoints(ctx, a.ARN, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			backlog, err := e.Backlog(ctx, a.ARN)
			if err != nil {
				t.Fatal(err)
			}
			// What was leased when a crash came is due again.
			all[a.ARN.String()] = []any{endpoints, backlog.Due + backlog.Waiting + backlog.InFlight, backlog.Subscription.PausedAt}
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// Whatever was acknowledged is there after a crash, and no command by half.
func TestCrash(t *testing.T) {
	ctx := context.Background()
	var names []arn.ARN
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	created := func(token string) func(e *shard.Engine) {
		return func(e *shard.Engine) {
			name, err := e.CreateEndpoint(ctx, shop, token, nil, nil)
			must(err)
			names = append(names, name)
		}
	}
	shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *shard.Engine { return open(t, j, nil) }, everything(t),
		func(e *shard.Engine) {
			must(e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("events")}))
		},
		func(e *shard.Engine) { must(e.CreateApplication(ctx, shop, secrets)) },
		created("one"),
		func(e *shard.Engine) {
			events := map[string]string{}
			for _, name := range []string{platform.EventCreated, platform.EventUpdated, platform.EventDeleted, platform.EventFailed} {
				events[name] = shardtest.TopicARN("events").String()
			}
			must(e.SetApplicationAttributes(ctx, shop, events))
		},
		created("two"),
		func(e *shard.Engine) {
			must(e.SetEndpointAttributes(ctx, names[0], map[string]string{"Token": "three", "Enabled": "false"}))
		},
		func(e *shard.Engine) { must(e.DisableEndpoint(ctx, names[1], "two")) },
		func(e *shard.Engine) {
			must(e.SetEndpointAttributes(ctx, names[1], map[string]string{"Enabled": "true"}))
		},
		func(e *shard.Engine) {
			must(e.PublishToEndpoint(ctx, names[1], shard.Publication{ID: shardtest.MessageID(1), Body: []byte("body")}))
		},
		func(e *shard.Engine) { must(e.Pause(ctx, shop)) },
		func(e *shard.Engine) { must(e.DeleteEndpoint(ctx, names[0])) },
		func(e *shard.Engine) { must(e.Resume(ctx, shop)) },
		func(e *shard.Engine) {
			taken, _, err := e.Take(shop, 10)
			must(err)
			for _, d := range taken {
				if d.Message.Notice.Kind == message.Notification {
					e.Drop(d, shard.Attempt{Outcome: "client-error"}, "client-side error: no")
				} else {
					e.Delivered(d, shard.Attempt{Outcome: "success"})
				}
			}
			if len(taken) != 6 {
				t.Fatalf("%d deliveries", len(taken))
			}
			must(e.SetApplicationAttributes(ctx, shop, map[string]string{platform.AttrBundle: "b"})) // that is durable, and so is what came before
		},
		func(e *shard.Engine) { must(e.DeleteApplication(ctx, shop)) },
	)
}

// A message waits with the endpoint that it is for, whoever may read the disk does not see
// whom it is for, and no credential; a restart continues with both.
func TestRestart(t *testing.T) {
	ctx := context.Background()
	keys, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	st := shardtest.OpenStore(t, fs)
	j := journal.Open(journal.Options{Store: st})
	e := open(t, j, keys)
	if err := e.CreateApplication(ctx, shop, secrets); err != nil {
		t.Fatal(err)
	}
	name, err := e.CreateEndpoint(ctx, shop, "token", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := shard.Publication{ID: shardtest.MessageID(1), Body: []byte("for all"), Bodies: map[string]string{platform.FCM: `{"data":{}}`}}
	if err := e.PublishToEndpoint(ctx, name, p); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for key, value := range storetest.Dump(t, st) {
		if bytes.Contains(value, []byte("canary")) {
			t.Errorf("%q has a credential", key)
		}
		k, err := keyspace.Parse(key)
		if err == nil && k.Module() == keyspace.ModulePlatforms {
			err = platforms.CheckRecord(k.ID, value)
		}
		if err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	j.Close()
	e = open(t, shardtest.JournalOf(t, st, nil), keys)
	taken, more, err := e.Take(shop, 10)
	if err != nil || more || len(taken) != 1 {
		t.Fatalf("%v, %v, %v", taken, more, err)
	}
	d := taken[0]
	if d.Subscription.Endpoint != name.String() || d.Subscription.Protocol != topic.Application || string(d.Message.Body) != `{"data":{}}` || !d.Message.Notice.Own || !d.Direct() {
		t.Errorf("%+v of %+v", d.Subscription, d.Message)
	}
	target, err := e.PushTarget(name)
	if err != nil || target.Credentials.Credential != "the-canary" || target.Token != "token" || !target.Enabled {
		t.Errorf("%+v, %v", target, err)
	}
	if text := fmt.Sprintf("%+v %#v %v", target, target, *target.Credentials); strings.Contains(text, "canary") {
		t.Error("the credential shows itself")
	}
}

// What waits for an application that is deleted goes with it, and its endpoints at a cost
// that does not depend on how many they are.
func TestDeletedApplication(t *testing.T) {
	ctx := context.Background()
	st := shardtest.NewStore(t)
	e := open(t, shardtest.JournalOf(t, st, nil), nil)
	if err := e.CreateApplication(ctx, shop, secrets); err != nil {
		t.Fatal(err)
	}
	var names []arn.ARN
	for i := range 20 {
		name, err := e.CreateEndpoint(ctx, shop, fmt.Sprint(i), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := e.PublishToEndpoint(ctx, names[3], shard.Publication{ID: shardtest.MessageID(1), Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	taken, _, err := e.Take(shop, 10)
	if err != nil || len(taken) != 1 || !e.Current(taken[0]) {
		t.Fatalf("%v, %v", taken, err)
	}
	if err := e.DeleteApplication(ctx, shop); err != nil {
		t.Fatal(err)
	}
	if e.Current(taken[0]) {
		t.Error("what was being delivered goes on")
	}
	e.Retry(taken[0], shard.Attempt{Outcome: "server-error"}, shardtest.Start.Add(time.Hour))
	for want, err := range map[error]error{
		platform.ErrNoTarget:      e.MayPublish(ctx, names[0]),
		platform.ErrNoApplication: e.SetApplicationAttributes(ctx, shop, secrets),
		platform.ErrNoEndpoint:    e.SetEndpointAttributes(ctx, names[0], map[string]string{"Enabled": "true"}),
	} {
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, space := range []byte{keyspace.Platforms, keyspace.Data, keyspace.Counters} {
		if n := shardtest.CountKeys(t, st, space, 0); n != 0 {
			t.Errorf("%d records of %q are left", n, space)
		}
	}
}
