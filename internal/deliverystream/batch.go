package deliverystream

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
)

// Batch is a range of a stream's chunks that is delivered together. It is durable before the
// first attempt, so that further attempts have the same name, and replace what is left of
// earlier ones.
type Batch struct {
	// ID is a UUID. It is in the names of objects, and in requests.
	ID string
	// From and To are the first and the last chunk.
	From, To uint64
	Oldest   int64 // when the first record was put, epoch milliseconds
	Records  int64
	Bytes    int64
	Version  int // of the stream at that time
	// Begun is when the first attempt was made, and Attempts is how many have failed, wherever to.
	Begun    int64
	Attempts int
	// Posted is what has been tried at the endpoint; nil: nothing, or by a version that did not say.
	Posted *Posted `json:",omitempty"`
	// Next is when the next attempt is due, epoch milliseconds; 0: now.
	Next int64 `json:",omitempty"`
	// Delivered says that the endpoint has it, and only the backup is left.
	Delivered bool `json:",omitempty"`
	// Failed says why it goes to the backup: the code and the text of the last error.
	// Once it is set no further attempt is made at the endpoint.
	Failed *Failure `json:",omitempty"`
}

// Posted counts the requests to an HTTP endpoint.
type Posted struct {
	URL   string
	First int64 // when the first was made, epoch milliseconds
	Count int
}

// Posting counts a request that is made now. Those to another endpoint do not count any more.
func (b *Batch) Posting(url string, now time.Time) {
	p := Posted{URL: url, First: now.UnixMilli()}
	if b.Posted != nil && b.Posted.URL == url {
		p = *b.Posted
	}
	p.Count++
	b.Posted = &p // copies of the batch have the one of before
}

// Instance names a delivery stream from its creation to its deletion: one that is created
// later under the same name is another instance. One worker at a time delivers its batches.
type Instance struct {
	Stream arn.ARN
	Number uint64
}

// Failure is why a delivery failed.
type Failure struct {
	Code, Message string
	At            int64 // when the last attempt ended, epoch milliseconds
}

// Encode is the record of a batch.
func (b *Batch) Encode() []byte { return keyspace.EncodeJSON(recordVersion, b) }

// DecodeBatch decodes the record of a batch.
func DecodeBatch(record []byte) (*Batch, error) {
	b := &Batch{}
	if err := keyspace.DecodeJSON(recordVersion, record, b); err != nil {
		return nil, err
	}
	if b.ID == "" || b.From > b.To {
		return nil, ErrRecord
	}
	return b, nil
}

// Pause is the backoff after a number of failures: 1 s, doubling up to 2 minutes.
func Pause(failures int) time.Duration {
	const most = 2 * time.Minute
	if failures > 7 {
		return most
	}
	return min(time.Second<<max(failures-1, 0), most)
}
