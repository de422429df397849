package recovery

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// TestSalvagedSequence: the sequences of a FIFO topic never go back, whatever of what says how far
// they have come is lost, and however often.
func TestSalvagedSequence(t *testing.T) {
	for _, lost := range [][]keyspace.ID{{keyspace.KindTopicSequence}, {keyspace.KindTopicSequence, keyspace.KindStreamState}} {
		k := &kept{T: t, fs: vfs.NewMem(), data: "data", clock: clock.NewVirtual(clock.System.Now())}
		if err := k.open(false); err != nil {
			t.Fatal(err)
		}
		a := arn.Topic("us-east-1", "000000000000", "order.fifo")
		if err := k.engine.CreateTopic(t.Context(), topic.CreateTopic{ARN: a, Attributes: map[string]string{"FifoTopic": "true"}}); err != nil {
			t.Fatal(err)
		}
		id, latest := 0, uint64(0)
		publish := func() {
			t.Helper()
			for range 3 {
				id++
				p := shard.Publication{Body: []byte("body"), Group: "g", Dedup: fmt.Sprint(id)}
				copy(p.ID[:], fmt.Sprintf("%016d", id))
				r, err := k.engine.Publish(t.Context(), a, p)
				if err != nil {
					t.Fatal(err)
				}
				if r[0].Sequence <= latest || r[0].Sequence > 1<<63-1 {
					t.Errorf("without %v, message %d has the sequence %d, after %d", lost, id, r[0].Sequence, latest)
				}
				latest = r[0].Sequence
			}
		}
		publish()
		for n := range 2 {
			b := new(mutation.Batch)
			err := store.Each(k.store, keyspace.Span{}, func(key, _ []byte) error {
				if of, err := keyspace.Parse(key); err == nil && slices.Contains(lost, of.ID) {
					b.Delete(bytes.Clone(key))
				}
				return nil
			})
			if err == nil {
				err = k.store.Apply(store.Sync, b)
			}
			if err != nil {
				t.Fatal(err)
			}
			k.close()
			to := fmt.Sprint("copy", n)
			if _, err := salvageIn(k.fs, k.data, to, slog.New(slog.DiscardHandler), new(bytes.Buffer), nil); err != nil {
				t.Fatal(err)
			}
			k.data = to
			if _, err := k.clock.Advance(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := k.open(false); err != nil {
				t.Fatal(err)
			}
			publish()
		}
		k.close()
	}
}
