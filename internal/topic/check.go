package topic

import (
	"encoding/binary"
	"fmt"
)

// CheckRecord reports whether a topic's or a subscription's record can be read. It
// fails with ErrRecord.
func CheckRecord(key, value []byte) error {
	if len(key) < 2 {
		return fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	return New(binary.BigEndian.Uint16(key), Limits{}).Load(key, value)
}
