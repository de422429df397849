package shard_test

import (
	"errors"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// A start reports a key that cannot be read as damage, as it does with a record.
func TestUnreadableKeys(t *testing.T) {
	for name, tag := range map[string]string{
		"counters":                 string(keyspace.Counters),
		"queue":                    string(keyspace.Queues),
		"mark of a transfer":       string(keyspace.Transfers),
		"move task":                string(keyspace.MoveTasks),
		"publication":              string(keyspace.Fanouts),
		"sequence of a FIFO topic": string(keyspace.TopicSequences),
		"application":              string([]byte{keyspace.Platforms, keyspace.PlatformApplications}),
	} {
		for _, rest := range []string{"", "short", "a\x00", "longer than any number that a key may hold"} {
			s := memory.New()
			var b mutation.Batch
			b.Set(append([]byte{0, 3}, tag+rest...), []byte("12345678"))
			if err := s.Apply(true, &b); err != nil {
				t.Fatal(err)
			}
			j := journal.Open(journal.Options{Store: s})
			_, err := shard.Open(shard.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start)})
			if !errors.Is(err, keyspace.ErrKey) {
				t.Errorf("%s: %q: %v", name, rest, err)
			}
			j.Close()
		}
	}
}
