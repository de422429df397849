package inspect

import (
	"testing"

	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// A message whose lease has ended is visible and has been received, whether its queue has swept
// the lease or not.
func TestEndedLease(t *testing.T) {
	record := shardtest.NewMessage(1, "a").AppendRecord(nil)
	for due, want := range map[int64]Message{
		9:  {State: Visible},
		10: {State: Visible},
		11: {State: InFlight, Available: 11},
	} {
		sc := &scan{t: &target{now: 10}, q: Query{Limit: 1}, found: &Found{}}
		leases := map[uint64]lease{7: {due: due, of: queue.Lease{Receives: 2, First: 3}}}
		if err := sc.takeOne(candidate{Place{Sequence: 7}, record}, leases); err != nil {
			t.Fatal(err)
		}
		got := sc.found.Messages[0]
		if got.State != want.State || got.Available != want.Available || got.Receives != 2 || got.First != 3 {
			t.Errorf("due at %d: %s until %d, %d receives since %d", due, got.State, got.Available, got.Receives, got.First)
		}
	}
}
