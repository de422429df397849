package logs

import (
	"encoding/json"
	"errors"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
)

// CheckRecord reports whether the value of one of this package's records can be read.
func CheckRecord(id keyspace.ID, value []byte) error {
	ok := true
	switch id {
	case keyspace.KindLogSequence, keyspace.KindLogClock:
		ok = len(value) == 8
	case keyspace.KindLogGroup:
		var g groupRecord
		if g, ok = decodeGroup(value); ok {
			ok = json.Unmarshal(g.details, new(details)) == nil
		}
	case keyspace.KindLogTotals:
		_, ok = decodeTotals(value)
	case keyspace.KindLogStream:
		_, ok = decodeStream(value)
	case keyspace.KindLogStreamName, keyspace.KindLogLatest:
		ok = len(value) > 0
	case keyspace.KindLogEvent:
		_, ok = decodeStored(value)
	case keyspace.KindLogPut:
		_, ok = subscription.DecodePut(value)
	case keyspace.KindLogCursor:
		ok = len(value) > 8
	case keyspace.KindLogBucket:
		ok = len(value) == bucketSize
	case keyspace.KindLogIndex, keyspace.KindLogOldest, keyspace.KindLogExpiry, keyspace.KindLogDeleted:
		ok = len(value) == 0
	default:
	}
	if !ok {
		return errors.New("logs: a record cannot be read")
	}
	return nil
}
