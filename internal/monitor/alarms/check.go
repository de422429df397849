package alarms

import (
	"errors"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/keyspace"
)

// CheckRecord reports whether the value of one of this package's records can be read.
func CheckRecord(id keyspace.ID, value []byte) error {
	ok := true
	switch id {
	case keyspace.KindAlarm:
		_, err := decodeAlarm(value)
		return err
	case keyspace.KindAlarmItem:
		return decode(value, new(alarm.Item))
	case keyspace.KindAlarmAction:
		return decode(value, new(pending))
	case keyspace.KindAlarmIndex:
		ok = len(value) == 0
	case keyspace.KindAlarmSequence:
		ok = len(value) == 4
	default:
	}
	if !ok {
		return errors.New("alarms: a record cannot be read")
	}
	return nil
}
