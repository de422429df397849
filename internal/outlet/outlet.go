// Package outlet delivers the records of delivery streams, batch by batch: as an object in a
// bucket, or as a request to an HTTP endpoint with a backup bucket.
//
// The progress of a batch is in the store. A failed attempt is retried with backoff: at an HTTP
// endpoint for as long as the stream says, after which the records go to the backup bucket; at
// a bucket without end. What a crash interrupts is repeated, under the same name.
package outlet

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliverystream"
)

// Streams is the module of delivery streams: *streams.Module.
type Streams interface {
	Next(t deliverystream.Instance) (*deliverystream.Stream, *deliverystream.Batch, error)
	Read(s *deliverystream.Stream, b *deliverystream.Batch, f func(arrival int64, records []deliverystream.Record) error) (unreadable int, err error)
	Save(s *deliverystream.Stream, b *deliverystream.Batch) error
	Done(s *deliverystream.Stream, b *deliverystream.Batch) error
	AccessKey(s *deliverystream.Stream) (string, error)
	Running() context.Context // ends when deliveries are to
}

// Buckets writes objects.
type Buckets interface {
	// Put makes an object of the output of write, replacing one of that name. It is whole and
	// durable on return, or not made at all. Errors: *Error, and write's.
	Put(ctx context.Context, name Name, write func(w io.Writer) error) error
}

// Name is the name of an object.
type Name struct {
	Bucket, Key string
	ID          string // of the batch, a UUID
	GZIP        bool
}

// Endpoints makes requests to HTTP endpoints.
type Endpoints interface {
	// Post makes one attempt, which is over when ctx ends. Errors: *Error.
	Post(ctx context.Context, r *Post) error
}

// Post is a request to an HTTP endpoint.
type Post struct {
	URL, AccessKey, ID, Source string
	GZIP                       bool
	Attributes                 []deliverystream.Attribute
	Time                       int64 // epoch milliseconds
	Size                       int64 // of all records, in bytes
	// Records iterates over the records.
	Records func(f func(data []byte)) error
}

// Error is why a delivery failed, as in the stream's log.
type Error struct {
	Code, Message string
	Permanent     bool // it is not retried
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Kind is the kind of an Event.
type Kind uint8

// The kinds.
const (
	ToS3         Kind = iota // a batch was put into a bucket, or failed to be
	ToHTTP                   // a batch was posted to an endpoint, or failed to be
	ToHTTPBackup             // a batch was put into the backup bucket of an endpoint, or failed to be
)

// Event is an attempt at a batch.
type Event struct {
	Kind    Kind
	Stream  *deliverystream.Stream
	At      time.Time
	Records int64
	Bytes   int64
	Oldest  int64  // when the first record was put, epoch milliseconds
	Failed  *Error // nil: it succeeded
}

// Options configure an Outlet.
type Options struct {
	Streams   Streams
	Buckets   Buckets // nil: there is nowhere to put objects
	Endpoints Endpoints
	Clock     clock.Clock
	Logger    *slog.Logger
	Observe   func(*Event) // may be nil
}

// Outlet delivers batches. Make one with New; the module of streams calls Deliver.
type Outlet struct {
	Options
	objects, posts *semaphore.Weighted // estimated bytes of memory of the deliveries under way
}

// budget bounds the memory of deliveries to buckets, and separately of those to HTTP endpoints,
// in bytes: endpoints that hang do not delay deliveries to buckets.
const budget = 256 << 20

// New makes an Outlet.
func New(o Options) *Outlet {
	if o.Observe == nil {
		o.Observe = func(*Event) {}
	}
	return &Outlet{Options: o, objects: semaphore.NewWeighted(budget), posts: semaphore.NewWeighted(budget)}
}

// Deliver delivers the batches of a delivery stream, until none is due.
func (o *Outlet) Deliver(t deliverystream.Instance) {
	ctx := o.Streams.Running()
	var nothing string // the last batch that had no records: its stream was deleted, unless Next gives it again
	for ctx.Err() == nil {
		s, b, err := o.Streams.Next(t)
		if err != nil {
			o.Logger.Error("a delivery stream cannot be read, which is tried again", "stream", t.Stream.String(), "error", err)
			return
		}
		if s == nil {
			return
		}
		if o.one(ctx, s, b, b.ID == nothing) {
			nothing = b.ID
		}
	}
}

// one makes an attempt at a batch, and persists its result. gone: the batch has no records, as
// its stream was deleted, and there is no result. again: the same was true of the attempt
// before, but the stream still exists.
func (o *Outlet) one(ctx context.Context, s *deliverystream.Stream, b *deliverystream.Batch, again bool) (gone bool) {
	next := *b
	d := &delivery{Outlet: o, stream: s, batch: &next, there: again}
	err := d.attempt(ctx)
	if err != nil && (ctx.Err() != nil || d.gone) {
		return d.gone // otherwise a restart continues with the batch
	}
	if err == nil || d.lost {
		err = o.Streams.Done(s, &next)
	} else {
		next.Attempts++
		next.Next = o.Clock.Now().Add(deliverystream.Pause(next.Attempts)).UnixMilli()
		err = o.Streams.Save(s, &next)
	}
	if err != nil {
		o.Logger.Error("what came of a delivery cannot be kept", "stream", s.ARN().String(), "error", err)
	}
	return false
}

// delivery is an attempt at a batch.
type delivery struct {
	*Outlet

	stream *deliverystream.Stream
	batch  *deliverystream.Batch
	there  bool // the stream was not deleted meanwhile
	gone   bool // the stream was deleted meanwhile
	lost   bool // no record of the batch can be read
}

// attempt continues the delivery of the batch; nil: it is delivered, or in the backup bucket.
func (d *delivery) attempt(ctx context.Context) error {
	s, b := d.stream, d.batch
	if s.HTTP == nil {
		b.Posted = nil
		return d.object(ctx, ToS3, "", nil)
	}
	if !b.Delivered && b.Failed == nil {
		failed := d.post(ctx)
		if failed != nil && (ctx.Err() != nil || d.gone || d.lost) {
			return failed
		}
		now := d.Clock.Now()
		d.observe(ToHTTP, failed)
		switch {
		case failed == nil:
			b.Delivered = true
		case !failed.Permanent && now.Sub(time.UnixMilli(b.Posted.First)) < time.Duration(*s.HTTP.RetryOptions.DurationInSeconds)*time.Second:
			return failed
		default:
			b.Failed = &deliverystream.Failure{Code: failed.Code, Message: failed.Message, At: now.UnixMilli()}
			b.Attempts++
		}
	}
	if b.Failed != nil {
		if err := d.object(ctx, ToHTTPBackup, deliverystream.HTTPFailed, b.Failed); err != nil {
			return err
		}
	}
	if *s.HTTP.S3BackupMode == deliverystream.AllData {
		return d.object(ctx, ToHTTPBackup, "", nil)
	}
	return nil
}

// observe reports the result of a part of the attempt.
func (d *delivery) observe(kind Kind, failed *Error) {
	b := d.batch
	d.Observe(&Event{Kind: kind, Stream: d.stream, At: d.Clock.Now(), Records: b.Records, Bytes: b.Bytes, Oldest: b.Oldest, Failed: failed})
	if failed != nil {
		d.Logger.Warn("a delivery stream could not deliver, which is tried again or goes to its backup", "stream", d.stream.ARN().String(), "code", failed.Code)
	}
}

// object puts the batch into the stream's bucket.
func (d *delivery) object(ctx context.Context, kind Kind, failedType string, why *deliverystream.Failure) error {
	to, b := d.stream.Objects(), d.batch
	zone, err := Zone(to)
	if err != nil {
		zone = time.UTC // it existed when the stream was made
	}
	name := deliverystream.Object{
		Stream: d.stream, Version: b.Version, Oldest: time.UnixMilli(b.Oldest).In(zone), ID: b.ID, Failed: failedType,
		GZIP: to.CompressionFormat != nil && *to.CompressionFormat == deliverystream.GZIP,
	}
	failed := d.put(ctx, Name{Bucket: bucketOf(to), Key: name.Key(), ID: b.ID, GZIP: name.GZIP}, func(w io.Writer) error {
		if why != nil {
			return d.writeFailed(w, why)
		}
		return d.write(w, to.Delimiter())
	})
	if failed != nil && (ctx.Err() != nil || d.gone || d.lost) {
		return failed
	}
	d.observe(kind, failed)
	if failed == nil {
		return nil
	}
	return failed
}

func bucketOf(to *deliverystream.ExtendedS3) string {
	a := *to.BucketARN
	return a[strings.LastIndexByte(a, ':')+1:]
}

func (d *delivery) put(ctx context.Context, name Name, write func(w io.Writer) error) *Error {
	if d.Buckets == nil {
		return &Error{Code: "S3.NoEndpoint", Message: "There is nowhere to put objects: neither an endpoint of S3 nor a directory is set."}
	}
	const part, copies = 16 << 20, 2 // larger objects are uploaded in parts
	defer d.take(ctx, d.objects, copies*min(d.batch.Bytes, part))()
	err := d.Buckets.Put(ctx, name, func(w io.Writer) error {
		if !name.GZIP {
			return write(w)
		}
		z := gzip.NewWriter(w)
		if err := write(z); err != nil {
			return err
		}
		return z.Close()
	})
	return asError(err, "S3.InternalError")
}

func asError(err error, code string) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: code, Message: err.Error()}
}

// write writes the records of the batch in the form of an object.
func (d *delivery) write(w io.Writer, delimiter string) error {
	var buffer []byte
	return d.read(func(_ int64, records []deliverystream.Record) error {
		buffer = buffer[:0]
		for i := range records {
			buffer = records[i].AppendTo(buffer, delimiter)
		}
		_, err := w.Write(buffer)
		return err
	})
}

// errNothing reports a batch without records; the delivery has the reason.
var errNothing = errors.New("outlet: there are no records")

// read iterates over the records of the batch. Unreadable ones are logged, and left out.
func (d *delivery) read(f func(arrival int64, records []deliverystream.Record) error) error {
	some := false
	unreadable, err := d.Streams.Read(d.stream, d.batch, func(arrival int64, records []deliverystream.Record) error {
		some = true
		return f(arrival, records)
	})
	if unreadable > 0 {
		d.Logger.Error("records of a delivery stream are damaged and left out", "stream", d.stream.ARN().String(), "chunks", unreadable)
	}
	if err == nil && !some {
		if d.gone = unreadable == 0 && !d.there; !d.gone {
			d.lost = true
			d.Logger.Error("a batch of a delivery stream has no records, and is given up", "stream", d.stream.ARN().String())
		}
		err = errNothing
	}
	return err
}

// post makes one attempt at an HTTP endpoint.
func (d *delivery) post(ctx context.Context) *Error {
	s, b := d.stream, d.batch
	const half, each = 2, 16 // what base64 adds, and the rest of the request for each record
	defer d.take(ctx, d.posts, b.Bytes+b.Bytes/half+b.Records*each)()
	b.Posting(*s.HTTP.EndpointConfiguration.Url, d.Clock.Now())
	key, err := d.Streams.AccessKey(s)
	if err != nil {
		return asError(err, "HttpEndpoint.InternalError")
	}
	r := &Post{
		URL: *s.HTTP.EndpointConfiguration.Url, AccessKey: key, ID: b.ID, Source: s.ARN().String(),
		Time: d.Clock.Now().UnixMilli(), Size: b.Bytes,
		Records: func(f func(data []byte)) error {
			return d.read(func(_ int64, records []deliverystream.Record) error {
				for i := range records {
					f(records[i].Data)
				}
				return nil
			})
		},
	}
	if c := s.HTTP.RequestConfiguration; c != nil {
		r.GZIP = c.ContentEncoding != nil && *c.ContentEncoding == deliverystream.GZIP
		r.Attributes = c.CommonAttributes
	}
	return asError(d.Endpoints.Post(ctx, r), "HttpEndpoint.InternalError")
}

// take reserves bytes of memory, and waits until they are available, or ctx has ended; give
// releases them.
func (o *Outlet) take(ctx context.Context, of *semaphore.Weighted, bytes int64) (give func()) {
	const least = 256 << 10 // buffers, and one chunk
	need := min(bytes+least, budget)
	if of.Acquire(ctx, need) != nil {
		return func() {} // the caller sees that ctx has ended
	}
	return func() { of.Release(need) }
}
