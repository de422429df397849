// Package deliverystream has the rules of delivery streams, as in Firehose: valid streams, the names of
// objects, and the stored form of records.
package deliverystream

import (
	"errors"
	"maps"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/keyspace"
)

// Bounds. Source: the quotas of Firehose, and its API reference.
const (
	MaxRecord  = 1000 << 10 // bytes of a record
	MaxRecords = 500        // of a batch
	MaxBatch   = 4 << 20    // bytes of a batch's records
	MaxTags    = 50
)

// DestinationID is the id of a stream's one destination.
const DestinationID = "destinationId-000000000001"

// The errors of commands.
var (
	ErrNoStream = fault.NewRule(fault.ResourceNotFound, "deliverystream: it does not exist")          // name, account
	ErrTaken    = fault.NewRule(fault.ResourceInUse, "deliverystream: the name is taken")             // name, account
	ErrMany     = fault.NewRule(fault.LimitExceeded, "deliverystream: there are as many as may be")   // how many
	ErrVersion  = fault.NewRule(fault.Conflict, "deliverystream: it has another version")             // the stream's, the caller's
	ErrTags     = fault.NewRule(fault.LimitExceeded, "deliverystream: it has as many tags as may be") // how many
	ErrNoSuch   = fault.NewRule(fault.InvalidParameter, "deliverystream: it has no such destination") // the id
	ErrFull     = fault.NewRule(fault.Throttled, "deliverystream: its buffer is full")
	ErrRecord   = errors.New("deliverystream: a record cannot be read")
)

// Stream is a delivery stream. A Stream that was returned is immutable: a command changes a
// Clone.
type Stream struct {
	Account, Region, Name string
	// Number distinguishes it from earlier streams of the same name.
	Number uint64
	// Version begins with 1 and grows with each change of the destination.
	Version          int
	Created, Updated time.Time
	Tags             map[string]string `json:",omitempty"`
	Throughput       int               `json:",omitempty"` // a hint, MiB a second; 0: none
	Encryption       Encryption

	// One of the two is the destination, with defaults filled in.
	S3   *ExtendedS3   `json:",omitempty"`
	HTTP *HTTPEndpoint `json:",omitempty"`
	// Extended says that the destination was requested as an extended S3 one.
	Extended bool `json:",omitempty"`
	// Sealed is the sealed access key of an HTTP endpoint; the shape has none.
	Sealed []byte `json:",omitempty"`
}

// Encryption is the server-side encryption that clients see: data on disk is sealed, whatever
// it says.
type Encryption struct {
	Enabled bool
	KeyType string `json:",omitempty"`
	KeyARN  string `json:",omitempty"`
	// Changed says that encryption was started or stopped at least once.
	Changed bool `json:",omitempty"`
}

// ARN is the stream's ARN.
func (s *Stream) ARN() arn.ARN { return Name(s.Region, s.Account, s.Name) }

// prefix is the prefix of the resource in a stream's ARN.
const prefix = "deliverystream/"

// Name is the ARN of a delivery stream.
func Name(region, account, name string) arn.ARN {
	return arn.ARN{Service: "firehose", Region: region, Account: account, Resource: prefix + name}
}

// NameOf is the name of the stream in an ARN; ok is false if it is another ARN.
func NameOf(a arn.ARN) (name string, ok bool) {
	if a.Service != "firehose" || len(a.Resource) <= len(prefix) || a.Resource[:len(prefix)] != prefix {
		return "", false
	}
	name = a.Resource[len(prefix):]
	return name, ValidName(name)
}

// ValidName reports whether a stream may have a name: 1 to 64 letters, digits, and _.-
func ValidName(name string) bool {
	const longest = 64
	if name == "" || len(name) > longest {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// Clone is a copy to be changed. Destinations are replaced as a whole.
func (s *Stream) Clone() *Stream {
	next := *s
	next.Tags = maps.Clone(s.Tags)
	return &next
}

// Hints are the maximum size of a buffer, in bytes, and its maximum time before a delivery.
func (s *Stream) Hints() (size int64, interval time.Duration) {
	h := s.hints()
	return int64(*h.SizeInMBs) << 20, time.Duration(*h.IntervalInSeconds) * time.Second
}

func (s *Stream) hints() *BufferingHints {
	if s.HTTP != nil {
		return s.HTTP.BufferingHints
	}
	return s.S3.BufferingHints
}

// Objects is the destination of objects: the destination itself, or the backup of an HTTP
// endpoint.
func (s *Stream) Objects() *ExtendedS3 {
	if s.HTTP != nil {
		return s.HTTP.S3Configuration.Extend()
	}
	return s.S3
}

// Roles are the roles that the stream acts in.
func (s *Stream) Roles() []string {
	roles := []string{*s.Objects().RoleARN}
	if s.HTTP != nil && s.HTTP.RoleARN != nil && *s.HTTP.RoleARN != roles[0] {
		roles = append(roles, *s.HTTP.RoleARN)
	}
	return roles
}

// Redirect takes over the destination of another version of the stream. version is the one that
// the caller has seen.
func (s *Stream) Redirect(version, destination string, change func(next *Stream) error, now time.Time) error {
	if current := strconv.Itoa(s.Version); version != current {
		return ErrVersion.With(current, version)
	}
	if destination != DestinationID {
		return ErrNoSuch.With(destination)
	}
	if err := change(s); err != nil {
		return err
	}
	s.Version++
	s.Updated = now
	return nil
}

// Tag adds tags, or replaces them.
func (s *Stream) Tag(tags map[string]string) error {
	if s.Tags == nil {
		s.Tags = map[string]string{}
	}
	maps.Copy(s.Tags, tags)
	if len(s.Tags) > MaxTags {
		return ErrTags.With(MaxTags)
	}
	return nil
}

// recordVersion is the first byte of a stream's record.
const recordVersion = 1

// Encode is the record of a stream.
func (s *Stream) Encode() []byte { return keyspace.EncodeJSON(recordVersion, s) }

// Decode reads the record of a stream.
func Decode(record []byte) (*Stream, error) {
	s := &Stream{}
	if err := keyspace.DecodeJSON(recordVersion, record, s); err != nil {
		return nil, err
	}
	if s.S3 == nil && s.HTTP == nil || s.Objects() == nil || s.Objects().RoleARN == nil || s.hints() == nil {
		return nil, ErrRecord
	}
	return s, nil
}
