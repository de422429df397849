// Package streaming makes what serves delivery streams: their owner, what delivers from
// them, and the operations of Firehose.
package streaming

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/firehose"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/bucket"
	"godwit.dev/godwit/internal/outlet/files"
	"godwit.dev/godwit/internal/outlet/web"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/deliverystreams"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Streaming has the parts. Make one with New before the kernel is loaded, and Start it.
type Streaming struct {
	*deliverystreams.Module

	options Options
	close   []func()
}

// Options are what it is made of beside a kernel.
type Options struct {
	Config config.Config
	Clock  clock.Clock
	Logger *slog.Logger
	// Trust is whose certificates endpoints may have; nil: as the system does.
	Trust *tls.Config
	// Own are the ports that the server listens at.
	Own publicnet.Ports
	// Connections bound the connections at once; nil: nothing does.
	Connections *limit.Slots
	// Dial makes connections; nil: over the network, to allowed addresses.
	Dial limit.Dial
	// Metrics takes what happens; nil: nobody counts.
	Metrics *monitor.Streams
	// Log takes what streams log of failed deliveries, each as its role may.
	Log func(s arn.ARN, role string, group arn.ARN, stream string, at time.Time, line []byte)
	// Begin calls what begins to deliver: now, or when that is let.
	Begin func(start func())
	// Fault is the outage of a stream that was asked for, if any.
	Fault func(a arn.ARN) error
	// Owned reports that the process owns the state: after that no batch is begun.
	Owned func() bool
	// Assumable refuses a role that Firehose may not assume; nil: nobody asks.
	Assumable func(s arn.ARN, role string) error
}

// New adds the owner of delivery streams to a kernel.
func New(k *kernel.Kernel, sealing *seal.Keys, c config.Config) *Streaming {
	return &Streaming{Module: deliverystreams.New(k, sealing, deliverystreams.Options{MaxStreams: c.FirehoseMaxStreams, MaxBytes: c.FirehoseMaxBuffer})}
}

// Start begins to deliver.
func (s *Streaming) Start(o Options) error {
	s.options = o
	dial := o.Dial
	if dial == nil {
		dial = outgoing.Dialer(publicnet.Guard{AllowPrivate: o.Config.AllowPrivateEndpoints, Own: o.Own}.Control).DialContext
	}
	dial = o.Connections.Dial(dial)
	buckets, err := s.buckets(dial)
	if err != nil {
		return err
	}
	transport := outgoing.New(&http.Transport{DialContext: dial, TLSClientConfig: o.Trust.Clone(), DisableCompression: true, IdleConnTimeout: 4 * time.Second, ForceAttemptHTTP2: true})
	s.close = append(s.close, transport.CloseIdleConnections)
	out := outlet.New(outlet.Options{
		Streams: whileOwned{s.Module, o.Owned}, Buckets: buckets, Endpoints: &web.Endpoints{Transport: transport}, Clock: o.Clock, Logger: o.Logger, Observe: s.attempted,
	})
	o.Begin(func() { s.Module.Start(out.Deliver, o.Fault) })
	return nil
}

// whileOwned are the delivery streams of a state that another process may take over.
type whileOwned struct {
	outlet.Streams
	owned func() bool
}

// Next implements outlet.Streams. A batch of a state that is another's by now is not kept, so that
// its records would be delivered under another name, too.
func (w whileOwned) Next(t deliverystream.Instance) (*deliverystream.Stream, *deliverystream.Batch, error) {
	s, b, err := w.Streams.Next(t)
	if !w.owned() {
		return nil, nil, nil
	}
	return s, b, err
}

// Close ends connections, once nothing is delivered any more.
func (s *Streaming) Close() {
	for _, f := range s.close {
		f()
	}
}

func (s *Streaming) noBuckets() bool {
	return s.options.Config.FirehoseS3Endpoint == "" && s.options.Config.FirehoseFiles() == ""
}

func (s *Streaming) buckets(dial limit.Dial) (outlet.Buckets, error) {
	c := s.options.Config
	if s.noBuckets() {
		return nil, nil //nolint:nilnil // as outlet.Options has it
	}
	if dir := c.FirehoseFiles(); dir != "" {
		d, err := files.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("the directory of delivery streams' objects cannot be opened: %w", err)
		}
		s.close = append(s.close, func() { _ = d.Close() })
		return d, nil
	}
	endpoint, err := config.ParseS3Endpoint(c.FirehoseS3Endpoint)
	if err != nil {
		return nil, fmt.Errorf("--firehose-s3-endpoint: %w", err)
	}
	o := bucket.Options{Endpoint: endpoint, Region: c.FirehoseS3Region, PathStyle: !c.FirehoseS3HostStyle, Dial: dial, Transport: &http.Transport{TLSClientConfig: s.options.Trust.Clone()}}
	if o.Region == "" {
		o.Region = c.Region
	}
	if c.FirehoseS3Credentials != "" {
		if o.AccessKey, o.Secret, err = bucket.ReadCredentials(c.FirehoseS3Credentials, c.Production); err != nil {
			return nil, fmt.Errorf("--firehose-s3-credentials: %w", err)
		}
	}
	server, err := bucket.New(o)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, server.Close)
	return server, nil
}

// Operations are those of Firehose.
func (s *Streaming) Operations() []api.Operation {
	return firehose.New(firehose.Options{
		Store: s.Module, NoBuckets: s.noBuckets(), PlainEndpoints: !s.options.Config.Production, Assumable: s.options.Assumable, Clock: s.options.Clock, Observe: s.requested,
	}).Operations()
}

// Put takes the records that topics put for their subscriptions, which count as those of
// clients do.
func (s *Streaming) Put(ctx context.Context, a arn.ARN, records []deliverystream.Record) (ids []string, err error) {
	at := s.options.Clock.Now()
	ids, err = s.Module.Put(ctx, a, records)
	var size int64
	for i := range records {
		size += int64(len(records[i].Data))
	}
	if r := firehose.Putting(a, "PutRecord", len(records), size, err); r.Records > 0 || r.Throttled > 0 {
		r.At, r.Took = at, s.options.Clock.Now().Sub(at)
		s.requested(&r)
	}
	return ids, err
}

// requested makes metrics of a request.
func (s *Streaming) requested(r *firehose.Request) {
	m := s.options.Metrics
	if m == nil {
		return
	}
	data := []metrics.Datum{count(r.Name+".Requests", 1), {Name: r.Name + ".Latency", Unit: "Milliseconds", Value: float64(r.Took) / float64(time.Millisecond)}}
	switch {
	case r.Throttled > 0:
		data = append(data, count("ThrottledRecords", int64(r.Throttled)))
	case r.Records > 0:
		data = append(data, bytes(r.Name+".Bytes", r.Bytes), bytes("IncomingBytes", r.Bytes), count("IncomingRecords", int64(r.Records)), count("IncomingPutRequests", 1))
	}
	if r.Name == "PutRecordBatch" {
		data = append(data, count("PutRecordBatch.Records", int64(r.Records)))
	}
	m.Record(r.Stream, r.At, data...)
}

func count(name string, n int64) metrics.Datum {
	return metrics.Datum{Name: name, Unit: "Count", Value: float64(n)}
}

func bytes(name string, n int64) metrics.Datum {
	return metrics.Datum{Name: name, Unit: "Bytes", Value: float64(n)}
}

// prefixes are the beginnings of metrics by what is attempted.
var prefixes = [...]string{outlet.ToS3: "DeliveryToS3", outlet.ToHTTP: "DeliveryToHttpEndpoint", outlet.ToHTTPBackup: "BackupToS3"}

// attempted makes metrics of an attempt, and an entry of the stream's log of a failure.
func (s *Streaming) attempted(e *outlet.Event) {
	if e.Failed != nil {
		s.log(e)
	}
	m := s.options.Metrics
	if m == nil {
		return
	}
	p := prefixes[e.Kind]
	success := int64(1)
	if e.Failed != nil {
		success = 0
	}
	data := []metrics.Datum{count(p+".Success", success)}
	if e.Kind == outlet.ToHTTP { // retries are counted, too
		data = append(data, count(p+".ProcessedRecords", e.Records), bytes(p+".ProcessedBytes", e.Bytes))
	}
	if e.Failed == nil {
		age := max(e.At.UnixMilli()-e.Oldest, 0) / int64(time.Second/time.Millisecond)
		data = append(data, count(p+".Records", e.Records), bytes(p+".Bytes", e.Bytes), metrics.Datum{Name: p + ".DataFreshness", Unit: "Seconds", Value: float64(age)})
		if e.Kind == outlet.ToS3 {
			data = append(data, count(p+".ObjectCount", 1))
		}
	}
	m.Record(e.Stream.ARN(), e.At, data...)
}

// log tells a stream's log group of a failure, if it has one.
func (s *Streaming) log(e *outlet.Event) {
	to := loggingOf(e)
	if to == nil || to.Enabled == nil || !*to.Enabled || s.options.Log == nil {
		return
	}
	text, err := json.Marshal(map[string]any{
		"deliveryStreamARN": e.Stream.ARN().String(), "destination": destinationOf(e), "deliveryStreamVersionId": e.Stream.Version,
		"message": e.Failed.Message, "errorCode": e.Failed.Code,
	})
	if err == nil {
		s.options.Log(e.Stream.ARN(), roleOf(e), arn.LogGroup(e.Stream.Region, e.Stream.Account, *to.LogGroupName), *to.LogStreamName, e.At, text)
	}
}

func loggingOf(e *outlet.Event) *deliverystream.Logging {
	if e.Kind == outlet.ToHTTP {
		return e.Stream.HTTP.CloudWatchLoggingOptions
	}
	return e.Stream.Objects().CloudWatchLoggingOptions
}

// roleOf is whose permissions a delivery is made with.
func roleOf(e *outlet.Event) string {
	if e.Kind == outlet.ToHTTP && e.Stream.HTTP.RoleARN != nil {
		return *e.Stream.HTTP.RoleARN
	}
	return *e.Stream.Objects().RoleARN
}

func destinationOf(e *outlet.Event) string {
	if e.Kind == outlet.ToHTTP {
		return *e.Stream.HTTP.EndpointConfiguration.Url
	}
	return *e.Stream.Objects().BucketARN
}

// PolicyTags are the tags of a stream; none of one that is not there.
func (s *Streaming) PolicyTags(a arn.ARN) map[string]string {
	found, err := s.Find(a)
	if err != nil {
		return nil
	}
	return found.Tags
}
