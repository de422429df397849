package shard

import (
	"bytes"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
)

// QueuesInClear are the ARNs of the queues that store messages in clear, as they have neither a
// key nor the store's encryption: the first limit of them, and how many there are. Unreadable
// records are skipped.
func QueuesInClear(j *journal.Journal, limit int) (arns []string, all int, err error) {
	for shard := range uint16(kernel.Shards) {
		span := keyspace.Prefix(keyspace.Shard(shard, keyspace.Queues))
		it, err := j.Reader().Iter(span.Lower, span.Upper)
		if err != nil {
			return nil, 0, err
		}
		for it.Next() {
			// There may be very many queues, and hardly any has the attribute.
			if !bytes.Contains(it.Value(), []byte(attribute.SqsManagedSseEnabled)) {
				continue
			}
			record, err := queues.DecodeQueueRecord(it.Value())
			if err != nil {
				continue
			}
			config, err := attribute.Config(record.Attributes)
			if err != nil || config.Managed || config.Key != "" {
				continue
			}
			if all++; len(arns) < limit {
				arns = append(arns, arnOf(it.Key()))
			}
		}
		if err := it.Close(); err != nil {
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
	account, _ := k.Text(keyspace.PartAccount)
	region, _ := k.Text(keyspace.PartRegion)
	name, _ := k.Text(keyspace.PartName)
	return arn.Queue(region, account, name).String()
}
