// Package firehose holds the operations of Firehose.
package firehose

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/stream"
)

// Store is what the handlers need of the owner of delivery streams, which is
// *streams.Module. Refusals are of package fault.
type Store interface {
	Create(s *stream.Stream, key string) error
	Find(a arn.ARN) (*stream.Stream, error)
	Change(a arn.ARN, key *string, command func(s *stream.Stream, now time.Time) error) error
	Delete(a arn.ARN) error
	List(account, region, after string, limit int) (names []string, more bool)
	Put(ctx context.Context, a arn.ARN, records []stream.Record) (ids []string, err error)
}

// Options are what a Service is made of.
type Options struct {
	Store Store
	// NoBuckets says that objects can go nowhere, so that streams to buckets are refused.
	NoBuckets bool
	// PlainEndpoints lets HTTP endpoints be without TLS.
	PlainEndpoints bool
	// Assumable refuses a role that Firehose may not assume for a stream; nil: nobody asks.
	Assumable func(s arn.ARN, role string) error
	Clock     clock.Clock
	// Observe is called for requests on streams that are there; may be nil.
	Observe func(r *Request)
}

// Request is what was asked of a stream.
type Request struct {
	Stream arn.ARN
	// Name is that of the operation, as metrics have it.
	Name    string
	At      time.Time
	Took    time.Duration
	Records int // that were taken
	Bytes   int64
	// Throttled is how many records the stream refused for now.
	Throttled int
}

// Service answers the operations of Firehose.
type Service struct{ Options }

// New makes a Service.
func New(o Options) *Service {
	if o.Observe == nil {
		o.Observe = func(*Request) {}
	}
	return &Service{o}
}

// done reports a request that is over.
func (s *Service) done(call *api.Call, r Request) {
	r.At, r.Took = call.Time, s.Clock.Now().Sub(call.Time)
	s.Observe(&r)
}

// maxBody bounds a request that puts records: 4 MiB in base64, and what is around them.
const maxBody = 8 << 20

// Operations declares the operations.
func (s *Service) Operations() []api.Operation {
	return api.Guarded(access, []api.Operation{
		api.Op("CreateDeliveryStream", s.createDeliveryStream),
		api.Op("DescribeDeliveryStream", s.describeDeliveryStream),
		api.Op("ListDeliveryStreams", s.listDeliveryStreams),
		api.Op("DeleteDeliveryStream", s.deleteDeliveryStream),
		api.Op("UpdateDestination", s.updateDestination),
		api.Op("TagDeliveryStream", s.tagDeliveryStream),
		api.Op("UntagDeliveryStream", s.untagDeliveryStream),
		api.Op("ListTagsForDeliveryStream", s.listTagsForDeliveryStream),
		api.Op("StartDeliveryStreamEncryption", s.startDeliveryStreamEncryption),
		api.Op("StopDeliveryStreamEncryption", s.stopDeliveryStreamEncryption),
		api.Op("PutRecord", s.putRecord).Limit(maxBody),
		api.Op("PutRecordBatch", s.putRecordBatch).Limit(maxBody),
	})
}

// named is the stream of the caller's account and region that a request names.
func named(call *api.Call, name string) (arn.ARN, error) {
	if err := checkName("deliveryStreamName", name); err != nil {
		return arn.ARN{}, err
	}
	return stream.Name(call.Region, call.Account, name), nil
}

func invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}
