// Package subscription has subscription filters of log groups, and the form in which their events are
// handed over.
package subscription

import (
	"encoding/binary"

	"godwit.dev/godwit/internal/monitor/logs/pattern"
)

// Filter hands the events of a group that match a pattern over to a destination. Source: "Real-time
// processing of log data with subscriptions" in the CloudWatch Logs user guide.
type Filter struct {
	ID           uint64 // never used again; of a filter that replaces another, the other's
	Name         string
	Pattern      string
	Destination  string // the ARN of a function or a delivery stream
	Role         string `json:",omitempty"` // the ARN of the role that may put into the stream
	Distribution string `json:",omitempty"` // as it was given
	Created      int64  // epoch milliseconds
}

// Check refuses a filter whose pattern cannot be parsed. The text of an error is for its author.
func (f *Filter) Check() error {
	_, err := pattern.Parse(f.Pattern)
	return err
}

// Bounds of what a filter reads to hand over at a time, beyond which it reads no further put.
const (
	PageEvents = 10_000
	PageBytes  = 4 << 20
)

// Put names the events of a put, which have successive sequences and are in the order of their times.
type Put struct {
	Stream   uint64
	Ingested uint64   // epoch milliseconds
	Times    []uint64 // epoch milliseconds
}

const header = 8 + 8

// Encode is the durable form.
func (p *Put) Encode() []byte {
	v := make([]byte, header, header+binary.MaxVarintLen64+2*len(p.Times))
	binary.BigEndian.PutUint64(v, p.Stream)
	binary.BigEndian.PutUint64(v[8:], p.Ingested)
	before := uint64(0)
	for _, at := range p.Times {
		v = binary.AppendUvarint(v, at-before)
		before = at
	}
	return v
}

// DecodePut decodes the durable form.
func DecodePut(v []byte) (p Put, ok bool) {
	if len(v) <= header {
		return p, false
	}
	p.Stream, p.Ingested = binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:])
	at := uint64(0)
	for v = v[header:]; len(v) > 0; {
		more, n := binary.Uvarint(v)
		if n <= 0 {
			return p, false
		}
		at, v = at+more, v[n:]
		p.Times = append(p.Times, at)
	}
	return p, true
}

// Stream are events of a log stream, by arrival.
type Stream struct {
	ID     uint64
	Name   string
	Events []Event
}
