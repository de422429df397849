// Package firehose holds the operations of Firehose.
package firehose

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
)

// Store has the delivery streams; *streams.Module implements it. Its errors are of package
// fault.
type Store interface {
	Create(s *deliverystream.Stream, key string) error
	Find(a arn.ARN) (*deliverystream.Stream, error)
	Change(a arn.ARN, key *string, command func(s *deliverystream.Stream, now time.Time) error) error
	Delete(a arn.ARN) error
	List(account, region, after string, limit int) (names []string, more bool)
	Put(ctx context.Context, a arn.ARN, records []deliverystream.Record) (ids []string, err error)
}

// Options are the dependencies and settings of a Service.
type Options struct {
	Store Store
	// NoBuckets refuses streams to buckets: there is no S3 server.
	NoBuckets bool
	// PlainEndpoints allows HTTP endpoints without TLS.
	PlainEndpoints bool
	// Assumable refuses a role that Firehose may not assume for a stream; nil: it is not
	// checked.
	Assumable func(s arn.ARN, role string) error
	Clock     clock.Clock
	// Observe is called for requests on streams that exist; may be nil.
	Observe func(r *Request)
}

// Request is a request on a stream.
type Request struct {
	Stream arn.ARN
	// Name is the operation's name in metrics.
	Name    string
	At      time.Time
	Took    time.Duration
	Records int // accepted records
	Bytes   int64
	// Throttled is the number of records that the stream refused for now.
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

// done reports a completed request to Observe.
func (s *Service) done(call *api.Call, r Request) {
	r.At, r.Took = call.Time, s.Clock.Now().Sub(call.Time)
	s.Observe(&r)
}

// maxBody bounds a request that puts records: 4 MiB in base64, and the other members.
const maxBody = 8 << 20

// Operations are the operations that are implemented.
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

// named is the stream of a request, in the caller's account and region.
func named(call *api.Call, name string) (arn.ARN, error) {
	if err := checkName("deliveryStreamName", name); err != nil {
		return arn.ARN{}, err
	}
	return deliverystream.Name(call.Region, call.Account, name), nil
}

func invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}
