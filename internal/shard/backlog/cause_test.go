package backlog_test

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/transfer"
)

// TestCauseSurvivesACrash: why a delivery has failed, and how many attempts that
// took, is durable when Retry returns, whether or not an attempt was made.
func TestCauseSurvivesACrash(t *testing.T) {
	refused := backlog.Attempt{At: shardtest.Start, Outcome: "client-error", Status: 410, Detail: "HTTP 410 Gone"}
	for name, a := range map[string]backlog.Attempt{"after an attempt": refused, "without one": {}} {
		t.Run(name, func(t *testing.T) {
			fs, c := vfs.NewCrashableMem(), clock.NewVirtual(shardtest.Start)
			s := shardtest.OpenStore(t, fs)
			defer s.Close()
			e, cmd := shardtest.WebHook(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
			defer e.Close()
			d := shardtest.TakeAll(t, e, cmd.Subscription)[0]
			d.Cause = backlog.Cause{Reason: "client-side error: HTTP 410 Gone", Attempt: d.Attempt}
			want := d.Cause
			e.Retry(d, a, shardtest.Start.Add(transfer.HandOverWait))

			disk := fs.CrashClone(vfs.CrashCloneCfg{})
			again := shardtest.OpenStore(t, disk)
			defer again.Close()
			e2 := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, again, nil), Clock: c})
			defer e2.Close()
			if early := shardtest.TakeAll(t, e2, cmd.Subscription); len(early) != 0 {
				t.Fatalf("%d deliveries are due at once", len(early))
			}
			if _, err := c.Advance(t.Context(), transfer.HandOverWait); err != nil {
				t.Fatal(err)
			}
			// A process that ends with the lease, and a consumer that gives it back,
			// change nothing.
			for range 3 {
				all := shardtest.TakeAll(t, e2, cmd.Subscription)
				if len(all) != 1 || all[0].Cause != want || all[0].Attempt != want.Attempt {
					t.Fatalf("took %+v", all)
				}
				e2.Release(all[0])
			}
			infos, err := e2.Deliveries(context.Background(), cmd.Subscription, 10)
			if err != nil || len(infos) != 1 || infos[0].Reason != want.Reason || infos[0].State != backlog.DeliveryPending {
				t.Errorf("shown as %+v: %v", infos, err)
			}
		})
	}
}
