// Package outlet delivers what delivery streams hold, batch by batch: as an object in a
// bucket, or as a request to an HTTP endpoint with a bucket behind it.
//
// A batch goes on from where it stands in the store. A failure is tried again, with longer
// and longer pauses: for an HTTP endpoint as long as its stream says, and then the records
// go to its bucket; for a bucket without end. What a crash interrupts is done again, under
// the same name.
package outlet

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/stream"
)

// Streams is what an outlet needs of the owner of delivery streams, *streams.Module.
type Streams interface {
	Next(a arn.ARN) (*stream.Stream, *stream.Batch, error)
	Read(s *stream.Stream, b *stream.Batch, f func(arrival int64, records []stream.Record) error) (unreadable int, err error)
	Save(s *stream.Stream, b *stream.Batch) error
	Done(s *stream.Stream, b *stream.Batch) error
	AccessKey(s *stream.Stream) (string, error)
	Stopping() <-chan struct{}
}

// Buckets is where objects go.
type Buckets interface {
	// Put makes an object of what write writes: whole, durable on return, in place of one
	// that had the name; or not at all. Errors: *Error, and write's.
	Put(ctx context.Context, name Name, write func(w io.Writer) error) error
}

// Name is what an object is called.
type Name struct {
	Bucket, Key string
	ID          string // of the batch, a UUID
	GZIP        bool
}

// Endpoints is where requests go.
type Endpoints interface {
	// Post makes one attempt, which is over when ctx ends. Errors: *Error.
	Post(ctx context.Context, r *Post) error
}

// Post is a request to an HTTP endpoint.
type Post struct {
	URL, AccessKey, ID, Source string
	GZIP                       bool
	Attributes                 []stream.Attribute
	Time                       int64 // epoch milliseconds
	Size                       int64 // of all records, in bytes
	// Records gives them, one after the other.
	Records func(f func(data []byte)) error
}

// Error is why a delivery failed, as a stream's log tells it.
type Error struct{ Code, Message string }

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Kind is what an Event tells.
type Kind uint8

// The kinds.
const (
	ToS3         Kind = iota // a batch was, or could not be, put into a bucket
	ToHTTP                   // or posted
	ToHTTPBackup             // or put into the bucket behind an endpoint
)

// Event is an attempt at a batch.
type Event struct {
	Kind    Kind
	Stream  *stream.Stream
	At      time.Time
	Records int64
	Bytes   int64
	Oldest  int64  // when the first record came, epoch milliseconds
	Failed  *Error // nil: a success
}

// Options are what an Outlet is made of.
type Options struct {
	Streams   Streams
	Buckets   Buckets // nil: there is nowhere to put objects
	Endpoints Endpoints
	Clock     clock.Clock
	Logger    *slog.Logger
	Observe   func(*Event) // may be nil
}

// Outlet delivers batches. Make one with New; Deliver is what the owner of the streams calls.
type Outlet struct {
	Options
	room chan struct{} // a place for each room of memory that is taken
	turn sync.Mutex    // held while places are taken
}

// How much memory deliveries take at once, about: rooms of so many bytes.
const (
	rooms    = 32
	roomSize = 16 << 20
)

// New makes an Outlet.
func New(o Options) *Outlet {
	if o.Observe == nil {
		o.Observe = func(*Event) {}
	}
	return &Outlet{Options: o, room: make(chan struct{}, rooms)}
}

// Deliver delivers what a stream has due, until there is nothing any more.
func (o *Outlet) Deliver(a arn.ARN) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-o.Streams.Stopping():
			cancel()
		case <-stopped:
		}
	}()
	for ctx.Err() == nil {
		s, b, err := o.Streams.Next(a)
		if err != nil {
			o.Logger.Error("a delivery stream cannot be read", "stream", a.String(), "error", err)
			return
		}
		if s == nil {
			return
		}
		o.one(ctx, s, b)
	}
}

// one makes an attempt at a batch, and keeps what came of it.
func (o *Outlet) one(ctx context.Context, s *stream.Stream, b *stream.Batch) {
	need := o.need(s, b)
	if !o.take(ctx, need) {
		return
	}
	next := *b
	err := o.attempt(ctx, s, &next)
	o.give(need)
	if ctx.Err() != nil && err != nil {
		return // nothing was decided: a restart goes on with the batch
	}
	if err == nil {
		err = o.Streams.Done(s, &next)
	} else {
		next.Attempts++
		next.Next = o.Clock.Now().Add(stream.Pause(next.Attempts)).UnixMilli()
		err = o.Streams.Save(s, &next)
	}
	if err != nil {
		o.Logger.Error("what came of a delivery cannot be kept", "stream", s.ARN().String(), "error", err)
	}
}

// attempt goes on with a batch as far as it goes; nil: it is delivered, or in its backup.
func (o *Outlet) attempt(ctx context.Context, s *stream.Stream, b *stream.Batch) error {
	if s.HTTP == nil {
		return o.object(ctx, s, b, ToS3, "", nil)
	}
	if !b.Delivered && b.Failed == nil {
		failed := o.post(ctx, s, b)
		if failed != nil && ctx.Err() != nil {
			return failed
		}
		now := o.Clock.Now()
		o.Observe(&Event{Kind: ToHTTP, Stream: s, At: now, Records: b.Records, Bytes: b.Bytes, Oldest: b.Oldest, Failed: failed})
		switch {
		case failed == nil:
			b.Delivered = true
		case now.Sub(time.UnixMilli(b.Begun)) < time.Duration(*s.HTTP.RetryOptions.DurationInSeconds)*time.Second:
			o.failed(s, failed)
			return failed
		default:
			o.failed(s, failed)
			b.Failed = &stream.Failure{Code: failed.Code, Message: failed.Message, At: now.UnixMilli()}
			b.Attempts++
		}
	}
	if b.Failed != nil {
		if err := o.object(ctx, s, b, ToHTTPBackup, stream.HTTPFailed, b.Failed); err != nil {
			return err
		}
	}
	if *s.HTTP.S3BackupMode == stream.AllData {
		return o.object(ctx, s, b, ToHTTPBackup, "", nil)
	}
	return nil
}

// object puts a batch into the stream's bucket.
func (o *Outlet) object(ctx context.Context, s *stream.Stream, b *stream.Batch, kind Kind, failedType string, why *stream.Failure) error {
	to := s.Objects()
	zone, err := Zone(to)
	if err != nil {
		zone = time.UTC // it was there when the stream was made
	}
	name := stream.Object{
		Stream: s, Version: b.Version, Oldest: time.UnixMilli(b.Oldest).In(zone), ID: b.ID, Failed: failedType,
		GZIP: to.CompressionFormat != nil && *to.CompressionFormat == stream.GZIP,
	}
	failed := o.put(ctx, Name{Bucket: bucketOf(to), Key: name.Key(), ID: b.ID, GZIP: name.GZIP}, func(w io.Writer) error {
		if why != nil {
			return o.writeFailed(w, s, b, why)
		}
		return o.write(w, s, b, to.Delimiter())
	})
	if failed != nil && ctx.Err() != nil {
		return failed
	}
	o.Observe(&Event{Kind: kind, Stream: s, At: o.Clock.Now(), Records: b.Records, Bytes: b.Bytes, Oldest: b.Oldest, Failed: failed})
	if failed == nil {
		return nil
	}
	o.failed(s, failed)
	return failed
}

func bucketOf(to *stream.ExtendedS3) string {
	a := *to.BucketARN
	return a[strings.LastIndexByte(a, ':')+1:]
}

func (o *Outlet) put(ctx context.Context, name Name, write func(w io.Writer) error) *Error {
	if o.Buckets == nil {
		return &Error{"S3.NoEndpoint", "There is nowhere to put objects: neither an endpoint of S3 nor a directory is set."}
	}
	err := o.Buckets.Put(ctx, name, func(w io.Writer) error {
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
	return &Error{code, err.Error()}
}

// write writes the records of a batch as they stand in an object.
func (o *Outlet) write(w io.Writer, s *stream.Stream, b *stream.Batch, delimiter string) error {
	var room []byte
	return o.read(s, b, func(_ int64, records []stream.Record) error {
		room = room[:0]
		for i := range records {
			room = records[i].AppendTo(room, delimiter)
		}
		_, err := w.Write(room)
		return err
	})
}

// read gives the records of a batch. What cannot be read any more is told, and left out.
func (o *Outlet) read(s *stream.Stream, b *stream.Batch, f func(arrival int64, records []stream.Record) error) error {
	unreadable, err := o.Streams.Read(s, b, f)
	if unreadable > 0 {
		o.Logger.Error("records of a delivery stream are damaged and left out", "stream", s.ARN().String(), "chunks", unreadable)
	}
	return err
}

// post makes one attempt at an HTTP endpoint.
func (o *Outlet) post(ctx context.Context, s *stream.Stream, b *stream.Batch) *Error {
	key, err := o.Streams.AccessKey(s)
	if err != nil {
		return asError(err, "HttpEndpoint.InternalError")
	}
	r := &Post{
		URL: *s.HTTP.EndpointConfiguration.Url, AccessKey: key, ID: b.ID, Source: s.ARN().String(),
		Time: o.Clock.Now().UnixMilli(), Size: b.Bytes,
		Records: func(f func(data []byte)) error {
			return o.read(s, b, func(_ int64, records []stream.Record) error {
				for i := range records {
					f(records[i].Data)
				}
				return nil
			})
		},
	}
	if c := s.HTTP.RequestConfiguration; c != nil {
		r.GZIP = c.ContentEncoding != nil && *c.ContentEncoding == stream.GZIP
		r.Attributes = c.CommonAttributes
	}
	return asError(o.Endpoints.Post(ctx, r), "HttpEndpoint.InternalError")
}

// failed tells operators of a failure.
func (o *Outlet) failed(s *stream.Stream, why *Error) {
	o.Logger.Warn("a delivery stream could not deliver, which is tried again or goes to its backup", "stream", s.ARN().String(), "code", why.Code)
}

// need is how many rooms of memory an attempt takes.
func (o *Outlet) need(s *stream.Stream, b *stream.Batch) int {
	if s.HTTP == nil {
		return 1 // objects are written as they are read
	}
	const copies = 3 // in base64, and compressed
	return int(min(1+copies*b.Bytes/roomSize, rooms))
}

// take takes rooms; false: ctx has ended.
func (o *Outlet) take(ctx context.Context, n int) bool {
	o.turn.Lock()
	defer o.turn.Unlock()
	for taken := range n {
		select {
		case o.room <- struct{}{}:
		case <-ctx.Done():
			o.give(taken)
			return false
		}
	}
	return true
}

func (o *Outlet) give(n int) {
	for range n {
		<-o.room
	}
}
