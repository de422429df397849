package keyspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	// ErrUnknown reports a key of no kind.
	ErrUnknown = errors.New("keyspace: a key of no kind")
	// ErrKey reports a key that is not of the kind that its place is for: it is damaged.
	ErrKey = errors.New("keyspace: an unreadable key")
)

// Key is a key that has been taken apart.
type Key struct {
	ID      ID
	encoded []byte
	parts   [maxParts][]byte // as Kind.Key has them
}

const maxParts = 8

// Kind is what the table says of the key's record.
func (k *Key) Kind() *Kind { return &Table[k.ID] }

// Encoded is the key as it stands in the store.
func (k *Key) Encoded() []byte { return k.encoded }

// Module is that of the record's kind.
func (k *Key) Module() Module { return Table[k.ID].Module }

// Number is the part with a name and of at most eight bytes; ok is false if the kind
// has none.
func (k *Key) Number(name string) (n uint64, ok bool) {
	for i, p := range Table[k.ID].Key {
		if p.Name == name && p.Size > 0 && p.Size <= 8 {
			var b [8]byte
			copy(b[8-p.Size:], k.parts[i])
			return binary.BigEndian.Uint64(b[:]), true
		}
	}
	return 0, false
}

// Bytes is the part with a name and of a fixed size; nil if the kind has none.
func (k *Key) Bytes(name string) []byte {
	for i, p := range Table[k.ID].Key {
		if p.Name == name && p.Size > 0 {
			return k.parts[i]
		}
	}
	return nil
}

// Text is the part with a name that is a text; ok is false if the kind has none.
func (k *Key) Text(name string) (text string, ok bool) {
	for i, p := range Table[k.ID].Key {
		if p.Name == name && p.Name != "" && p.Size == 0 {
			return string(k.parts[i]), true
		}
	}
	return "", false
}

// Named are the parts of a key that is of a named resource; empty: the kind has none.
func (k *Key) Named() (account, region, name string) {
	account, _ = k.Text(PartAccount)
	region, _ = k.Text(PartRegion)
	name, _ = k.Text(PartName)
	return account, region, name
}

// Shard is the shard that the record is of; ok is false for what is of none.
func (k *Key) Shard() (shard uint16, ok bool) {
	n, ok := k.Number(PartShard)
	return uint16(n), ok
}

// former are the forms that keys of some kinds had in earlier versions, with the same parts
// behind other fixed bytes. Each stays until its module moves it, as a start does.
var former = [...]struct {
	kind ID
	key  []Part
}{
	{KindSigningKey, sharded(tag(Replays), id(PartSigningKey, 16))},
}

// Parse takes a key apart, also one in a form of an earlier version. It fails with ErrUnknown for
// a key that is of no kind. The Key aliases the bytes.
func Parse(p []byte) (Key, error) {
	for id := range Table {
		if k := (Key{ID: ID(id), encoded: p}); k.take(Table[id].Key, p) {
			return k, nil
		}
	}
	for _, f := range former {
		if k := (Key{ID: f.kind, encoded: p}); k.take(f.key, p) {
			return k, nil
		}
	}
	return Key{}, fmt.Errorf("%w: %q", ErrUnknown, p)
}

// ParseAs takes apart a key that must be of a kind. It fails with ErrKey for any other.
// The Key aliases the bytes.
func ParseAs(kind ID, p []byte) (Key, error) {
	if k := (Key{ID: kind, encoded: p}); k.take(Table[kind].Key, p) {
		return k, nil
	}
	return Key{}, fmt.Errorf("%w: %s: %q", ErrKey, Table[kind].Name, p)
}

func (k *Key) take(form []Part, p []byte) bool {
	for i, part := range form {
		n, skip := part.Size, 0
		switch {
		case part.Name == "":
			if len(p) == 0 || p[0] != part.End {
				return false
			}
			n = 1
		case part.Size > 0:
			if len(p) < n {
				return false
			}
		case part.Ends:
			if n = bytes.IndexByte(p, part.End); n < 0 {
				return false
			}
			skip = 1
		default:
			n = len(p)
		}
		k.parts[i], p = p[:n:n], p[n+skip:]
	}
	return len(p) == 0 && (form[0].Name != PartShard || k.parts[0][0] == ShardSpace)
}

// StreamOf is the stream of the journal that writes the keys which begin with a key's
// first bytes; ok is false for what begins no key.
func StreamOf(key []byte) (stream uint16, ok bool) {
	switch {
	case len(key) >= 3 && key[0] == ShardSpace:
		stream = binary.BigEndian.Uint16(key)
	case len(key) >= 3 && key[0] == CodeSpace:
		stream = binary.BigEndian.Uint16(key[1:])
	case len(key) >= 2 && streams[key[0]] != 0:
		stream = streams[key[0]]
	default:
		return 0, false
	}
	return stream, stream < Streams
}
