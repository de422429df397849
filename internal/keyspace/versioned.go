package keyspace

import (
	"encoding/json"
	"errors"
)

var errVersion = errors.New("keyspace: a record has an unknown version; it was written by a newer godwit")

// EncodeJSON is the value of a record in JSON, behind a version. v has only types that JSON can
// encode.
func EncodeJSON(version byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append([]byte{version}, text...)
}

// DecodeJSON reads what EncodeJSON made of v. It fails for another version, and for invalid JSON.
func DecodeJSON(version byte, value []byte, v any) error {
	if len(value) == 0 || value[0] != version {
		return errVersion
	}
	return json.Unmarshal(value[1:], v)
}
