package outlet_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/stream"
)

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// owner has one batch of a stream, which is there until it is delivered. It implements
// outlet.Streams.
type owner struct {
	stream   *stream.Stream
	batch    *stream.Batch // nil: it is delivered
	arrivals map[int64][]string
	damaged  int
	next     error // of Next
	saved    []stream.Batch
	stopping chan struct{}
}

func (o *owner) Next(arn.ARN) (*stream.Stream, *stream.Batch, error) {
	if o.next != nil || o.batch == nil || len(o.saved) > 0 && o.saved[len(o.saved)-1].Next > 0 {
		return nil, nil, o.next // it is not due again
	}
	return o.stream, o.batch, nil
}

func (o *owner) Read(_ *stream.Stream, _ *stream.Batch, f func(arrival int64, records []stream.Record) error) (int, error) {
	for _, arrival := range slices.Sorted(func(yield func(int64) bool) {
		for at := range o.arrivals {
			if !yield(at) {
				return
			}
		}
	}) {
		var records []stream.Record
		for _, text := range o.arrivals[arrival] {
			records = append(records, stream.Record{Data: []byte(text)})
		}
		if err := f(arrival, records); err != nil {
			return 0, err
		}
	}
	return o.damaged, nil
}

func (o *owner) Save(_ *stream.Stream, b *stream.Batch) error {
	o.saved = append(o.saved, *b)
	return nil
}

func (o *owner) Done(*stream.Stream, *stream.Batch) error {
	o.batch = nil
	return nil
}

func (o *owner) AccessKey(*stream.Stream) (string, error) { return "key", nil }
func (o *owner) Stopping() <-chan struct{}                { return o.stopping }

// again has the batch be due again, as the latest attempt has left it.
func (o *owner) again() {
	o.batch = new(o.saved[len(o.saved)-1])
	o.saved = nil
}

// place is a bucket and an endpoint in memory.
type place struct {
	objects map[string]string
	posts   []string
	refuse  error // of objects
	fail    error // of posts
	hang    bool  // until the attempt is cut off
}

func (p *place) Put(ctx context.Context, name outlet.Name, write func(w io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if p.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if p.refuse == nil {
		p.objects[name.Bucket+"/"+name.Key] = b.String()
	}
	return p.refuse
}

func (p *place) Post(_ context.Context, r *outlet.Post) error {
	var data []string
	if err := r.Records(func(d []byte) { data = append(data, string(d)) }); err != nil {
		return err
	}
	p.posts = append(p.posts, fmt.Sprint(r.ID, " ", r.AccessKey, " ", r.GZIP, " ", data))
	return p.fail
}

// world is an outlet and what it delivers from and to.
type world struct {
	*owner
	*place
	clock  *clock.Virtual
	out    *outlet.Outlet
	events []string
	logs   bytes.Buffer
}

const id = "5f3b6c1e-0000-4000-8000-000000000000"

func newWorld(s *stream.Stream) *world {
	s.Name, s.Region, s.Account, s.Version = "hose", "us-east-1", "000000000000", 3
	w := &world{
		owner: &owner{
			stream: s, arrivals: map[int64][]string{1: {"a", "b"}, 2: {"c"}}, stopping: make(chan struct{}),
			batch: &stream.Batch{ID: id, Oldest: began.UnixMilli(), Begun: began.UnixMilli(), Records: 3, Bytes: 3, Version: 3},
		},
		place: &place{objects: map[string]string{}},
		clock: clock.NewVirtual(began),
	}
	w.out = outlet.New(outlet.Options{
		Streams: w.owner, Buckets: w.place, Endpoints: w.place, Clock: w.clock, Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
		Observe: func(e *outlet.Event) {
			failed := ""
			if e.Failed != nil {
				failed = e.Failed.Code
			}
			w.events = append(w.events, fmt.Sprint(e.Kind, " ", e.Records, " ", failed))
		},
	})
	return w
}

func (w *world) deliver() { w.out.Deliver(w.stream.ARN()) }

func toBucket() *stream.ExtendedS3 {
	return &stream.ExtendedS3{BucketARN: new("arn:aws:s3:::lake"), RoleARN: new("role"), Prefix: new("in/")}
}

func toEndpoint(mode string) *stream.HTTPEndpoint {
	return &stream.HTTPEndpoint{
		EndpointConfiguration: &stream.HTTPTarget{Url: new("http://e")}, RetryOptions: &stream.RetryOptions{DurationInSeconds: new(60)},
		S3BackupMode: &mode, S3Configuration: &stream.S3{BucketARN: new("arn:aws:s3:::backup"), RoleARN: new("role")},
	}
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A batch becomes one object, whose name says when its oldest record came.
func TestObject(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(to *stream.ExtendedS3)
		key    string
		text   string
	}{
		{"as records came", func(*stream.ExtendedS3) {}, "lake/in/2030/01/01/12/hose-3-2030-01-01-12-00-00-" + id, "abc"},
		{"in another time zone", func(to *stream.ExtendedS3) { to.CustomTimeZone = new("Asia/Tokyo") }, "lake/in/2030/01/01/21/hose-3-2030-01-01-21-00-00-" + id, "abc"},
		{"with a delimiter", func(to *stream.ExtendedS3) {
			to.ProcessingConfiguration = &stream.Processing{Enabled: new(true), Processors: []stream.Processor{{Type: new(stream.AppendDelimiter)}}}
		}, "lake/in/2030/01/01/12/hose-3-2030-01-01-12-00-00-" + id, "a\nb\nc\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &stream.Stream{S3: toBucket()}
			tt.change(s.S3)
			w := newWorld(s)
			w.deliver()
			if len(w.objects) != 1 || w.objects[tt.key] != tt.text || w.batch != nil {
				t.Errorf("%v; delivered: %t", w.objects, w.batch == nil)
			}
			equal(t, "events", w.events, []string{"0 3 "})
		})
	}
}

func TestCompressed(t *testing.T) {
	s := &stream.Stream{S3: toBucket()}
	s.S3.CompressionFormat = new(stream.GZIP)
	w := newWorld(s)
	w.deliver()
	packed := w.objects["lake/in/2030/01/01/12/hose-3-2030-01-01-12-00-00-"+id+".gz"]
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err, w.objects)
	}
	if text, err := io.ReadAll(r); string(text) != "abc" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// An object that is refused is tried again, with longer and longer pauses.
func TestBucketFails(t *testing.T) {
	w := newWorld(&stream.Stream{S3: toBucket()})
	w.refuse = &outlet.Error{Code: "S3.AccessDenied"}
	for n, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		w.deliver()
		last := w.saved[len(w.saved)-1]
		if last.Attempts != n+1 || last.Next != began.Add(pause).UnixMilli() || w.batch == nil {
			t.Errorf("attempt %d: %+v", n+1, last)
		}
		w.again()
		w.batch.Next = 0
	}
	w.refuse = errors.New("anything else")
	w.deliver()
	equal(t, "events", w.events, []string{"0 3 S3.AccessDenied", "0 3 S3.AccessDenied", "0 3 S3.AccessDenied", "0 3 S3.AccessDenied", "0 3 S3.InternalError"})
}

func TestNoBuckets(t *testing.T) {
	w := newWorld(&stream.Stream{S3: toBucket()})
	w.out.Buckets = nil
	w.deliver()
	equal(t, "events", w.events, []string{"0 3 S3.NoEndpoint"})
	if len(w.saved) != 1 {
		t.Error("the batch is not kept")
	}
}

func TestEndpoint(t *testing.T) {
	s := &stream.Stream{HTTP: toEndpoint("FailedDataOnly")}
	s.HTTP.RequestConfiguration = &stream.RequestConfiguration{ContentEncoding: new(stream.GZIP)}
	w := newWorld(s)
	w.deliver()
	equal(t, "posts", w.posts, []string{id + " key true [a b c]"})
	equal(t, "events", w.events, []string{"1 3 "})
	if w.batch != nil || len(w.objects) > 0 {
		t.Errorf("%v, %v", w.batch, w.objects)
	}
}

// What an endpoint has taken is also put into the bucket where all data are, and is not
// sent again while the bucket refuses.
func TestAllData(t *testing.T) {
	w := newWorld(&stream.Stream{HTTP: toEndpoint(stream.AllData)})
	w.refuse = &outlet.Error{Code: "S3.SlowDown"}
	w.deliver()
	w.again()
	w.batch.Next, w.refuse = 0, nil
	w.deliver()
	equal(t, "posts", w.posts, []string{id + " key false [a b c]"})
	equal(t, "events", w.events, []string{"1 3 ", "2 3 S3.SlowDown", "2 3 "})
	if w.objects["backup/2030/01/01/12/hose-3-2030-01-01-12-00-00-"+id] != "abc" || len(w.objects) != 1 || w.batch != nil {
		t.Errorf("%v", w.objects)
	}
}

// What an endpoint does not take for as long as its stream says goes to the backup, and
// never again to the endpoint.
func TestBackup(t *testing.T) {
	w := newWorld(&stream.Stream{HTTP: toEndpoint("FailedDataOnly")})
	w.fail = &outlet.Error{Code: "HttpEndpoint.Unwell", Message: "why"}
	w.deliver()
	if len(w.saved) != 1 || w.saved[0].Failed != nil || len(w.objects) > 0 {
		t.Fatalf("given up at once: %+v %v", w.saved, w.objects)
	}
	w.again()
	w.batch.Next = 0
	w.clock.SetAtLeast(began.Add(59999 * time.Millisecond))
	w.deliver()
	w.again()
	w.batch.Next = 0
	w.clock.SetAtLeast(began.Add(time.Minute))
	w.refuse = &outlet.Error{Code: "S3.SlowDown"}
	w.deliver()
	if w.saved[0].Failed == nil {
		t.Fatalf("not given up: %+v", w.saved)
	}
	w.again()
	w.batch.Next, w.fail, w.refuse = 0, nil, nil
	w.deliver()
	if len(w.posts) != 3 || w.batch != nil {
		t.Errorf("%d posts, %+v", len(w.posts), w.batch)
	}
	text := w.objects["backup/http-endpoint-failed/2030/01/01/12/hose-3-2030-01-01-12-00-00-"+id]
	want := ""
	for n, record := range []struct {
		text    string
		arrival int
	}{{"a", 1}, {"b", 1}, {"c", 2}} {
		want += fmt.Sprintf(`{"attemptsMade":%d,"arrivalTimestamp":%d,"errorCode":"HttpEndpoint.Unwell","errorMessage":"why","attemptEndingTimestamp":%d,"rawData":%q,"subsequenceNumber":0,"dataId":"%s.%d"}`+"\n",
			4, record.arrival, began.Add(time.Minute).UnixMilli(), base64.StdEncoding.EncodeToString([]byte(record.text)), id, n)
	}
	if text != want || len(w.objects) != 1 {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// Records that cannot be read any more are left out, and told.
func TestDamaged(t *testing.T) {
	w := newWorld(&stream.Stream{S3: toBucket()})
	w.damaged = 2
	w.deliver()
	if w.batch != nil || !strings.Contains(w.logs.String(), "chunks=2") {
		t.Errorf("%v %s", w.batch, &w.logs)
	}
}

func TestUnreadable(t *testing.T) {
	w := newWorld(&stream.Stream{S3: toBucket()})
	w.next = errors.New("damage")
	w.deliver()
	if len(w.objects) > 0 || !strings.Contains(w.logs.String(), "damage") {
		t.Errorf("%v %s", w.objects, &w.logs)
	}
}

// A server that stops cuts an attempt off, which then counts as none.
func TestStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(&stream.Stream{S3: toBucket()})
		w.hang = true
		over := make(chan struct{})
		go func() {
			w.deliver()
			close(over)
		}()
		synctest.Wait()
		select {
		case <-over:
			t.Fatal("it did not wait for the bucket")
		default:
		}
		close(w.stopping)
		<-over
		if w.batch == nil || len(w.saved) > 0 || len(w.events) > 0 {
			t.Errorf("%v %v %v", w.batch, w.saved, w.events)
		}
	})
}
