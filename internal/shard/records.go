package shard

import (
	"bytes"
	"fmt"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/direct"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/deduplog"
	"godwit.dev/godwit/internal/shard/queues/receipt"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/topics/confirmations"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/shard/transfer"
)

// CheckRecord reports whether the value of one of this package's own records can be read; true
// for other packages' records.
func CheckRecord(id keyspace.ID, value []byte) error {
	switch id {
	case keyspace.KindQueue:
		record, err := queues.DecodeQueueRecord(value)
		if err == nil {
			_, err = attribute.Config(record.Attributes)
		}
		return err
	case keyspace.KindMoveTask:
		_, err := transfer.DecodeMove(value)
		return err
	case keyspace.KindFanout, keyspace.KindArchive:
		_, err := publication.Decode(bytes.Clone(value))
		return err
	case keyspace.KindDelivered:
		_, err := topics.DecodeIncarnations(value)
		return err
	case keyspace.KindConfirmation:
		return confirmations.CheckRecord(value)
	case keyspace.KindDirect:
		return direct.CheckRecord(value)
	case keyspace.KindHistory:
		if _, err := backlog.DecodeHistory(value); err == nil {
			return nil
		}
		_, err := function.DecodeProgress(value)
		return err
	case keyspace.KindDuplicate:
		if !deduplog.CheckRecord(value) {
			return fmt.Errorf("%d bytes", len(value))
		}
	case keyspace.KindDuplicateBatch:
		if !deduplog.CheckBatch(value) {
			return fmt.Errorf("%d bytes", len(value))
		}
	case keyspace.KindReplay:
		return sized(value, topics.ArchivePlaceSize)
	case keyspace.KindHandleKey:
		if !receipt.CheckKey(value) {
			return errRecord(value)
		}
	case keyspace.KindTransfer:
		if len(value) == 0 { // the main lane, as earlier versions have written it
			return nil
		}
		return sized(value, 8)
	case keyspace.KindTopicSequence, keyspace.KindDeletedTopics:
		return sized(value, 8)
	case keyspace.KindKey, keyspace.KindKeyAlias, keyspace.KindKeyGrant, keyspace.KindSealing, keyspace.KindStored:
		return keys.CheckRecord(id, value)
	case keyspace.KindCode:
		if len(value) == 0 || len(value) > functions.CodeChunk {
			return errRecord(value)
		}
	default:
	}
	return nil
}

func errRecord(value []byte) error {
	return fmt.Errorf("shard: a record of %d bytes cannot be read", len(value))
}

func sized(value []byte, size int) error {
	if len(value) != size {
		return errRecord(value)
	}
	return nil
}
