// Package values reads the values of all kinds of records. It stands above the
// packages that write them, for whoever looks through a whole store.
package values

import (
	"encoding/binary"
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/deliver/envelope/signing"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/deliverystreams"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/platforms"
	sealed "godwit.dev/godwit/internal/shard/signing"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/topic"
)

// Check takes a record's key apart and reports whether its value can be read, by the
// code that reads it in service. The key is valid also with an error of the value;
// it is keyspace.ErrUnknown if the record is of no kind.
func Check(key, value []byte) (keyspace.Key, error) {
	k, err := keyspace.Parse(key)
	if err != nil {
		return k, err
	}
	if err := check(&k, key, value); err != nil {
		return k, fmt.Errorf("%s %q: %w", k.Kind().Name, key, err)
	}
	return k, nil
}

func check(k *keyspace.Key, key, value []byte) (err error) {
	switch k.ID {
	case keyspace.KindCounters:
		_, err = layout.DecodeCounters(value)
	case keyspace.KindDue, keyspace.KindHeld, keyspace.KindLease:
		_, err = layout.DecodeState(key, value)
	case keyspace.KindReturnedGroup:
		_, _, err = layout.DecodeReturned(value)
	case keyspace.KindListedGroup:
		_, err = layout.DecodeListing(value)
	case keyspace.KindMessage:
		_, err = message.DecodeRecord(value)
	case keyspace.KindExpiry, keyspace.KindGroup, keyspace.KindDueSecond, keyspace.KindDueTime:
		if len(value) != 8 {
			err = layout.ErrCorrupt
		}
	case keyspace.KindTenant:
		if layout.DecodeWait(value).Messages <= 0 {
			err = layout.ErrCorrupt
		}
	case keyspace.KindTopic, keyspace.KindSubscription:
		err = topic.CheckRecord(key, value)
	case keyspace.KindFunction, keyspace.KindVersion, keyspace.KindAlias, keyspace.KindDeletedFunction:
		err = function.CheckRecord(key, value)
	case keyspace.KindLayer, keyspace.KindLayerVersion:
		err = layer.CheckRecord(key, value)
	case keyspace.KindMapping:
		err = mapping.New(binary.BigEndian.Uint16(key)).Load(key, value)
	case keyspace.KindStreamState:
		if _, _, ok := journal.DecodeState(value); !ok {
			err = errors.New("it cannot be read")
		}
	case keyspace.KindFence:
		_, err = record.DecodeFence(value)
	case keyspace.KindSigningKey:
		err = sealed.CheckRecord(value, signing.CheckRecord)
	default:
		switch k.Module() {
		case keyspace.ModuleMetrics:
			err = metrics.CheckRecord(k.ID, value)
		case keyspace.ModuleAlarms:
			err = alarms.CheckRecord(k.ID, value)
		case keyspace.ModuleIdentity:
			err = identity.CheckRecord(k.ID, value)
		case keyspace.ModulePlatforms:
			err = platforms.CheckRecord(k.ID, value)
		case keyspace.ModuleTexts:
			err = texts.CheckRecord(k.ID, value)
		case keyspace.ModuleJobs:
			err = jobs.CheckRecord(value)
		case keyspace.ModuleSources:
			err = sources.CheckRecord(value)
		case keyspace.ModuleStacks:
			err = stacks.CheckRecord(k.ID, value)
		case keyspace.ModuleLogs:
			err = logs.CheckRecord(k.ID, value)
		case keyspace.ModuleDeliveryStreams:
			err = deliverystreams.CheckRecord(k.ID, value)
		default:
			err = shard.CheckRecord(k.ID, value)
		}
	}
	return err
}
