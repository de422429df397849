package shard

import (
	"bytes"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/store"
)

// QueuesInClear are the ARNs of the queues that store messages in clear, as they have neither a
// key nor the store's encryption: the first limit of them, and how many there are. Unreadable
// records are skipped.
func QueuesInClear(j *journal.Journal, limit int) (arns []string, all int, err error) {
	for shard := range uint16(kernel.Shards) {
		err := store.Each(j.Reader(), keyspace.Prefix(keyspace.Shard(shard, keyspace.Queues)), func(key, value []byte) error {
			// There may be very many queues, and hardly any has the attribute.
			if !bytes.Contains(value, []byte(attribute.SqsManagedSseEnabled)) {
				return nil
			}
			record, err := queues.DecodeQueueRecord(value)
			if err != nil {
				return nil
			}
			config, err := attribute.Config(record.Attributes)
			if err != nil || config.Managed || config.Key != "" {
				return nil
			}
			if all++; len(arns) < limit {
				arns = append(arns, arnOf(key))
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return arns, all, nil
}

func arnOf(key []byte) string {
	k, err := keyspace.Parse(key)
	if err != nil {
		return ""
	}
	account, region, name := k.Named()
	return arn.Queue(region, account, name).String()
}
