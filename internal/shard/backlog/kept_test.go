package backlog_test

import (
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestSignatureIsKeptWithTheAttempts: a restart hands it out again, and the
// record of an earlier version is read.
func TestSignatureIsKeptWithTheAttempts(t *testing.T) {
	s, c := memory.New(), clock.NewVirtual(shardtest.Start)
	e, cmd := shardtest.WebHook(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	take := func() *backlog.Delivery {
		t.Helper()
		ds, _, err := e.Take(cmd.Subscription, 1)
		if err != nil || len(ds) != 1 {
			t.Fatalf("took %d: %v", len(ds), err)
		}
		return ds[0]
	}
	for _, want := range []string{"", "signed", "signed"} {
		d := take()
		if string(d.Kept) != want || d.History.Total != d.Attempt-1 {
			t.Errorf("attempt %d has %q and %d attempts behind it", d.Attempt, d.Kept, d.History.Total)
		}
		d.Kept = []byte("signed")
		e.Retry(d, backlog.Attempt{At: shardtest.Start, Outcome: "server-error"}, shardtest.Start)
		e.Close()
		e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	}
	e.Close()

	h := backlog.History{Total: 1, First: []backlog.Attempt{{At: shardtest.Start, Outcome: "success"}}}
	record := h.Encode()
	first := append([]byte{1}, record[2:]...) // which had no signature, not even its length
	if got, err := backlog.DecodeHistory(first); err != nil || got.Total != 1 || len(got.First) != 1 || got.Kept != nil {
		t.Errorf("the first version is read as %+v", got)
	}
}
