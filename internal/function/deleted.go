package function

import (
	"encoding/binary"
	"fmt"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
)

// A deleted function that had numbered versions leaves the highest number behind, as no number of a version
// is ever given again to another one of the same name:
//
//	shard 'L' 'd' account/region/name → version, JSON of deletedRecord
//
// It is read when a function of that name is created, and kept in no memory.
const deletedTag = keyspace.FunctionsDeleted

type deletedRecord struct {
	Last uint64 `json:"last"`
}

// DeletedKey is the key of what a deleted function has left behind.
func (s *State) DeletedKey(name arn.ARN) []byte { return s.key(deletedTag, name) }

// DeletedPrefix is the key prefix of what the deleted functions of an account in a region, in a shard, have
// left behind.
func DeletedPrefix(shard uint16, account, region string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, shard), string([]byte{space, deletedTag})+account+"/"+region+"/"...)
}

// DecodeDeleted is the highest number of a deleted function's versions, by its record. Errors: ErrRecord.
func DecodeDeleted(value []byte) (last uint64, err error) {
	var r deletedRecord
	if err := keyspace.DecodeJSON(version, value, &r); err != nil {
		return 0, fmt.Errorf("%w: of a deleted function: %w", ErrRecord, err)
	}
	return r.Last, nil
}
