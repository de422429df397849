package layer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
)

// A layer and a version of it have one record each:
//
//	shard 'L' 'l' account/region/name                → version, JSON of numberRecord
//	shard 'L' 'w' account/region/name 0x00 number    → version, JSON of versionRecord
//
// shard is 2 bytes and number 8, big-endian. The first stays when all versions are deleted, as no number is
// given twice; it is read when a version is published, and kept in no memory.
const (
	space      = keyspace.Functions
	numberTag  = keyspace.LayerNumbers
	versionTag = keyspace.LayerVersions
	version    = 1
)

// ErrRecord reports a record that this version did not write.
var ErrRecord = errors.New("layer: unreadable record")

type numberRecord struct {
	Last uint64 `json:"last"`
}

type versionRecord struct {
	Description   string                `json:"description,omitempty"`
	License       string                `json:"license,omitempty"`
	Runtimes      []string              `json:"runtimes,omitempty"`
	Architectures []string              `json:"architectures,omitempty"`
	Created       int64                 `json:"created"` // Unix milliseconds
	Upload        uint64                `json:"upload"`
	SHA256        []byte                `json:"sha256"`
	Size          int64                 `json:"size"`
	Unzipped      int64                 `json:"unzipped"`
	Deleted       bool                  `json:"deleted,omitempty"`
	Permissions   []function.Permission `json:"permissions,omitempty"`
	Revision      string                `json:"revision,omitempty"`
	Token         string                `json:"token,omitempty"`
}

// Prefix is the key prefix of a shard's versions of layers.
func Prefix(shard uint16) []byte { return tagged(shard, versionTag) }

// NumberPrefix is the key prefix of the highest numbers of the layers of an account in a region, in a shard.
func NumberPrefix(shard uint16, account, region string) []byte {
	return append(tagged(shard, numberTag), account+"/"+region+"/"...)
}

// NumberKey is the key of the highest number of a layer's versions.
func (s *State) NumberKey(layer arn.ARN) []byte {
	return append(tagged(s.shard, numberTag), named(layer)...)
}

// DecodeNumber is the highest number of a layer's versions, by its record. Errors: ErrRecord.
func DecodeNumber(value []byte) (last uint64, err error) {
	var r numberRecord
	if err := keyspace.DecodeJSON(version, value, &r); err != nil {
		return 0, fmt.Errorf("%w: of a layer: %w", ErrRecord, err)
	}
	return r.Last, nil
}

// Load loads the record of a version. After an error the state is unusable.
func (s *State) Load(key, value []byte) error {
	layer, number, err := parse(key)
	if err == nil && binary.BigEndian.Uint16(key) != s.shard {
		err = errors.New("of another shard")
	}
	var v *Version
	if err == nil {
		v, err = decode(number, value)
	}
	if err != nil {
		return fmt.Errorf("%w: key %q: %w", ErrRecord, key, err)
	}
	s.add(layer, v)
	return nil
}

// CheckRecord reports whether a record is readable. Errors: ErrRecord.
func CheckRecord(key, value []byte) error {
	if len(key) > 3 && key[3] == numberTag {
		_, err := DecodeNumber(value)
		return err
	}
	if len(key) < 4 {
		return ErrRecord
	}
	return New(binary.BigEndian.Uint16(key)).Load(key, value)
}

func decode(number uint64, value []byte) (*Version, error) {
	var r versionRecord
	if err := keyspace.DecodeJSON(version, value, &r); err != nil {
		return nil, err
	}
	v := &Version{
		Number: number, Description: r.Description, License: r.License, Runtimes: r.Runtimes, Architectures: r.Architectures,
		Created: time.UnixMilli(r.Created).UTC(), Code: function.Code{Upload: r.Upload, Size: r.Size, Unzipped: r.Unzipped}, Deleted: r.Deleted,
		permissions: r.Permissions, revision: r.Revision, Token: r.Token,
	}
	if copy(v.Code.SHA256[:], r.SHA256) != len(v.Code.SHA256) {
		return nil, errors.New("a digest that is too short")
	}
	return v, nil
}

func (s *State) put(b *mutation.Batch, layer arn.ARN, v *Version) {
	b.Set(s.key(layer, v.Number), encode(versionRecord{
		Description: v.Description, License: v.License, Runtimes: v.Runtimes, Architectures: v.Architectures, Created: v.Created.UnixMilli(),
		Upload: v.Code.Upload, SHA256: v.Code.SHA256[:], Size: v.Code.Size, Unzipped: v.Code.Unzipped, Deleted: v.Deleted,
		Permissions: v.permissions, Revision: v.revision, Token: v.Token,
	}))
}

func encode(record any) []byte { return keyspace.EncodeJSON(version, record) }

func tagged(shard uint16, tag byte) []byte {
	return append(binary.BigEndian.AppendUint16(make([]byte, 0, 64), shard), space, tag)
}

func named(layer arn.ARN) string {
	return layer.Account + "/" + layer.Region + "/" + layer.LayerName()
}

func (s *State) key(layer arn.ARN, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(append(tagged(s.shard, versionTag), named(layer)...), 0), number)
}

func parse(key []byte) (layer arn.ARN, number uint64, err error) {
	if len(key) < 4 || key[2] != space || key[3] != versionTag {
		return layer, 0, errors.New("of an unknown kind")
	}
	name, rest, _ := bytes.Cut(key[4:], []byte{0})
	parts := strings.Split(string(name), "/")
	if len(parts) != 3 || parts[2] == "" || len(rest) != 8 {
		return layer, 0, errors.New("without a name or a number")
	}
	return arn.Layer(parts[1], parts[0], parts[2]), binary.BigEndian.Uint64(rest), nil
}
