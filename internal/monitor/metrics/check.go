package metrics

import (
	"errors"

	"godwit.dev/godwit/internal/keyspace"
)

// CheckRecord reports whether the value of one of this package's records can be read.
func CheckRecord(id keyspace.ID, value []byte) error {
	ok := true
	switch id {
	case keyspace.KindMetricPoint, keyspace.KindMetricSecond:
		_, err := decodeSet(value)
		return err
	case keyspace.KindMetricOpen, keyspace.KindMetricClosed:
		if len(value) < 4 {
			return errSample
		}
		_, err := DecodeSample(string(value[4:]))
		return err
	case keyspace.KindMetricSeries, keyspace.KindMetricFloor:
		ok = len(value) == 4
	case keyspace.KindMetricLatest:
		_, _, ok = decodeLatest(value)
	default:
	}
	if !ok {
		return errors.New("metrics: a record cannot be read")
	}
	return nil
}
