package jobs

import (
	"encoding/json"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
)

// Purpose is the purpose that texts of jobs are sealed for.
const Purpose = "texts of operators' jobs"

const version = 1

// record is the persisted form of a job.
type record struct {
	Job

	Sealed []byte `json:"sealed,omitempty"` // texts, sealed with the record's key
}

// texts are the texts of a job that may repeat a message. They are sealed as messages are.
type texts struct {
	Search string `json:"search,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Error  string `json:"error,omitempty"`
}

func key(id string) []byte { return append([]byte{keyspace.JobSpace, keyspace.JobRecords}, id...) }

// encode encodes a job's record. Without a sealer its texts are in clear.
func encode(j *Job, sealer *seal.Sealer) []byte {
	r := record{Job: *j}
	if hidden := (texts{j.Where.Search, j.Where.Cause, j.Error}); sealer != nil && hidden != (texts{}) {
		sealed, err := sealer.Seal(marshal(hidden), key(j.ID))
		if err != nil {
			panic(err) // sealing fails only with an invalid key
		}
		r.Where.Search, r.Where.Cause, r.Error, r.Sealed = "", "", "", sealed
	}
	return keyspace.EncodeJSON(version, &r)
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of records can always be encoded
	}
	return text
}

// open reads a job's record. It fails if the texts cannot be opened: without its condition a
// job would concern all things of the resource.
func open(k, value []byte, sealer *seal.Sealer) (Job, error) {
	r, err := decode(value)
	if err != nil || r.Sealed == nil {
		return r.Job, err
	}
	if sealer == nil {
		return r.Job, seal.ErrSealed
	}
	text, err := sealer.Open(r.Sealed, k)
	if err != nil {
		return r.Job, err
	}
	var hidden texts
	err = json.Unmarshal(text, &hidden)
	r.Where.Search, r.Where.Cause, r.Error = hidden.Search, hidden.Cause, hidden.Error
	return r.Job, err
}

func decode(value []byte) (r record, err error) {
	return r, keyspace.DecodeJSON(version, value, &r)
}

// CheckRecord reports whether the value of a record can be read, except for sealed values.
func CheckRecord(value []byte) error {
	_, err := decode(value)
	return err
}
