package function

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
)

// CheckRecord reports whether the record of a function, a version, an alias or a deleted function is
// readable, without its references. Errors: ErrRecord.
func CheckRecord(key, value []byte) error {
	bad := fmt.Errorf("%w: key %q", ErrRecord, key)
	k, err := keyspace.Parse(key)
	if err != nil || len(value) == 0 || value[0] != version {
		return bad
	}
	switch k.ID {
	case keyspace.KindFunction:
		return New(binary.BigEndian.Uint16(key)).Load(key, value)
	case keyspace.KindVersion:
		var r versionRecord
		if err = json.Unmarshal(value[1:], &r); err == nil {
			_, err = (&State{}).decode(arn.ARN{}, &r, 0)
		}
	case keyspace.KindDeletedFunction:
		_, err = DecodeDeleted(value)
	case keyspace.KindAlias:
		err = json.Unmarshal(value[1:], new(Alias))
	default:
		return bad
	}
	if err != nil {
		return fmt.Errorf("%w: %w", bad, err)
	}
	return nil
}
