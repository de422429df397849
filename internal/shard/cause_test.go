package shard

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/transfer"
)

// TestCauseSurvivesACrash: why a delivery has failed, and how many attempts that
// took, is durable when Retry returns, whether or not an attempt was made.
func TestCauseSurvivesACrash(t *testing.T) {
	refused := backlog.Attempt{At: start, Outcome: "client-error", Status: 410, Detail: "HTTP 410 Gone"}
	for name, a := range map[string]backlog.Attempt{"after an attempt": refused, "without one": {}} {
		t.Run(name, func(t *testing.T) {
			fs, c := vfs.NewCrashableMem(), clock.NewVirtual(start)
			s := openStore(t, fs)
			defer s.Close()
			e, cmd := hookEngine(t, Options{Journal: journalOf(t, s, nil), Clock: c})
			defer e.Close()
			d := takeAll(t, e, cmd.Subscription)[0]
			d.Cause = backlog.Cause{Reason: "client-side error: HTTP 410 Gone", Attempt: d.Attempt}
			want := d.Cause
			e.Retry(d, a, start.Add(transfer.RedriveWait))

			disk := fs.CrashClone(vfs.CrashCloneCfg{})
			again := openStore(t, disk)
			defer again.Close()
			e2 := openEngine(t, Options{Journal: journalOf(t, again, nil), Clock: c})
			defer e2.Close()
			if early := takeAll(t, e2, cmd.Subscription); len(early) != 0 {
				t.Fatalf("%d deliveries are due at once", len(early))
			}
			if _, err := c.Advance(t.Context(), transfer.RedriveWait); err != nil {
				t.Fatal(err)
			}
			// A process that ends with the lease, and a consumer that gives it back,
			// change nothing.
			for range 3 {
				all := takeAll(t, e2, cmd.Subscription)
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

// TestHistoryRecords: a record without a cause is that of the version before, byte
// for byte; damage costs what is behind it.
func TestHistoryRecords(t *testing.T) {
	one := []backlog.Attempt{{At: time.UnixMilli(5).UTC(), Outcome: "server-error", Status: 503, Detail: "no", Latency: time.Millisecond}}
	plain := backlog.History{Total: 1, First: one, Signature: []byte("s")}
	if got, want := plain.Encode(), "\x02\x01s\x01\x0a\x0cserver-error\xf7\x03\x02no\xe8\x07"; string(got) != want {
		t.Errorf("encoded as %q, want %q", got, want)
	}
	caused := backlog.History{Total: 1, First: one, Cause: backlog.Cause{Reason: "gone", Attempt: 1}}
	for _, h := range []backlog.History{{}, plain, caused} {
		record := h.Encode()
		got, err := backlog.DecodeHistory(record)
		if d := cmp.Diff(h, got, cmp.AllowUnexported(backlog.History{})); d != "" || err != nil {
			t.Errorf("-written +read: %s%v", d, err)
		}
		for n := range record {
			if got, err := backlog.DecodeHistory(record[:n]); err == nil && n > 0 && len(got.First) == len(h.First) && h.Total > 0 {
				t.Errorf("%d of %d bytes are read as whole", n, len(record))
			}
		}
	}
	if _, err := backlog.DecodeHistory([]byte{4, 0, 0}); err == nil {
		t.Error("a record of a later version is read")
	}
}
