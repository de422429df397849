package outlet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/outlet"
)

// owner has a batch for each of its streams, as long as it was not delivered.
type owner struct {
	t       *testing.T
	running context.Context
	stop    context.CancelFunc

	mu         sync.Mutex
	streams    map[string]*deliverystream.Stream
	batches    map[string]*deliverystream.Batch // what is to be delivered
	records    map[string][]string              // by batches
	unreadable int
	vanishing  bool // streams are deleted once they are looked at
	saved      []deliverystream.Batch
	done       []string
}

func newOwner(t *testing.T) *owner {
	ctx, stop := context.WithCancel(t.Context())
	return &owner{t: t, running: ctx, stop: stop, streams: map[string]*deliverystream.Stream{}, batches: map[string]*deliverystream.Batch{}, records: map[string][]string{}}
}

// add adds a stream with a batch that claims to have so many bytes.
func (o *owner) add(s *deliverystream.Stream, bytes int64, records ...string) deliverystream.Instance {
	s.Account, s.Region, s.Number, s.Version = "000000000000", "us-east-1", 1, 1
	if s.S3 == nil {
		s.HTTP.S3Configuration = toBucket().Basic()
	}
	o.streams[s.Name], o.records["batch of "+s.Name] = s, records
	o.batches[s.Name] = &deliverystream.Batch{ID: "batch of " + s.Name, From: 1, To: 1, Records: int64(len(records)), Bytes: bytes, Version: 1, Begun: start.UnixMilli(), Oldest: start.UnixMilli()}
	return deliverystream.Instance{Stream: s.ARN(), Number: 1}
}

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // as synctest begins

func toBucket() *deliverystream.ExtendedS3 {
	return &deliverystream.ExtendedS3{RoleARN: new("role"), BucketARN: new("arn:aws:s3:::b")}
}

func toEndpoint(retry int) *deliverystream.HTTPEndpoint {
	return &deliverystream.HTTPEndpoint{
		EndpointConfiguration: &deliverystream.HTTPTarget{Url: new("https://example.com")}, RetryOptions: &deliverystream.RetryOptions{DurationInSeconds: &retry},
		S3BackupMode: new("FailedDataOnly"),
	}
}

func (o *owner) Next(t deliverystream.Instance) (*deliverystream.Stream, *deliverystream.Batch, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name, _ := deliverystream.NameOf(t.Stream)
	b := o.batches[name]
	if b == nil {
		return nil, nil, nil
	}
	if wait := time.UnixMilli(b.Next).Sub(clock.System.Now()); wait > 0 {
		over, _ := clock.After(clock.System, wait)
		o.mu.Unlock()
		<-over
		o.mu.Lock()
	}
	if o.vanishing {
		delete(o.batches, name)
	}
	return o.streams[name], b, nil
}

func (o *owner) Read(_ *deliverystream.Stream, b *deliverystream.Batch, f func(arrival int64, records []deliverystream.Record) error) (int, error) {
	o.mu.Lock()
	var records []deliverystream.Record
	for _, data := range o.records[b.ID] {
		records = append(records, deliverystream.Record{Data: []byte(data)})
	}
	unreadable := o.unreadable
	o.mu.Unlock()
	if records == nil {
		return unreadable, nil
	}
	return unreadable, f(b.Oldest, records)
}

func (o *owner) Save(s *deliverystream.Stream, b *deliverystream.Batch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.saved = append(o.saved, *b)
	o.batches[s.Name] = b
	return nil
}

func (o *owner) Done(s *deliverystream.Stream, _ *deliverystream.Batch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = append(o.done, s.Name)
	delete(o.batches, s.Name)
	return nil
}

func (o *owner) AccessKey(*deliverystream.Stream) (string, error) { return "", nil }
func (o *owner) Running() context.Context                         { return o.running }

// buckets keep objects by the beginning of their names: "b/" and the prefix.
type buckets struct {
	mu      sync.Mutex
	put     []string
	failing int // so many attempts fail
}

func (b *buckets) Put(_ context.Context, name outlet.Name, write func(w io.Writer) error) error {
	b.mu.Lock()
	fails := b.failing > 0
	b.failing--
	b.mu.Unlock()
	if fails {
		return &outlet.Error{Code: "away"}
	}
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	kind, _, _ := strings.Cut(name.Key, "/2000/")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put = append(b.put, kind+": "+text.String())
	return nil
}

// endpoints answer as they are told to.
type endpoints func(ctx context.Context, p *outlet.Post) error

func (e endpoints) Post(ctx context.Context, p *outlet.Post) error { return e(ctx, p) }

func newOutlet(o *owner, b *buckets, e endpoints) *outlet.Outlet {
	return outlet.New(outlet.Options{Streams: o, Buckets: b, Endpoints: e, Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
}

// Endpoints that hang hold up neither buckets nor each other, as long as what they are sent
// is small.
func TestHangingEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, b := newOwner(t), &buckets{}
		out := newOutlet(o, b, func(ctx context.Context, p *outlet.Post) error {
			if p.Source != o.streams["prompt"].ARN().String() {
				<-ctx.Done()
				return &outlet.Error{Code: "hung"}
			}
			return nil
		})
		var streams []deliverystream.Instance
		for i := range 200 {
			streams = append(streams, o.add(&deliverystream.Stream{Name: fmt.Sprint("hangs", i), HTTP: toEndpoint(0)}, 1000, "x"))
		}
		streams = append(streams, o.add(&deliverystream.Stream{Name: "prompt", HTTP: toEndpoint(0)}, 1000, "x"))
		for i := range 50 {
			streams = append(streams, o.add(&deliverystream.Stream{Name: fmt.Sprint("large", i), HTTP: toEndpoint(0)}, 64<<20, "x"))
		}
		streams = append(streams, o.add(&deliverystream.Stream{Name: "bucket", S3: toBucket()}, 128<<20, "x"))
		var delivering sync.WaitGroup
		for _, of := range streams {
			delivering.Go(func() { out.Deliver(of) })
			synctest.Wait()
		}
		if diff := cmp.Diff([]string{"prompt", "bucket"}, o.done); diff != "" {
			t.Errorf("delivered beside those that hang: %s", diff)
		}
		o.stop()
		delivering.Wait()
	})
}

// A stream that is deleted while it is delivered leaves nothing empty behind.
func TestDeletedMeanwhile(t *testing.T) {
	o, b := newOwner(t), &buckets{}
	one := o.add(&deliverystream.Stream{Name: "one", S3: toBucket()}, 1)
	other := o.add(&deliverystream.Stream{Name: "other", HTTP: toEndpoint(0)}, 1)
	out := newOutlet(o, b, func(_ context.Context, p *outlet.Post) error { return p.Records(func([]byte) {}) })
	o.vanishing = true
	for _, of := range []deliverystream.Instance{one, other} {
		out.Deliver(of)
	}
	if len(b.put)+len(o.saved)+len(o.done) > 0 {
		t.Errorf("objects %v, saved %v, done %v", b.put, o.saved, o.done)
	}
}

// What is damaged altogether is given up, and leaves nothing empty behind.
func TestDamaged(t *testing.T) {
	o, b := newOwner(t), &buckets{}
	o.unreadable = 1
	newOutlet(o, b, nil).Deliver(o.add(&deliverystream.Stream{Name: "one", S3: toBucket()}, 1))
	if diff := cmp.Diff([]string{"one"}, o.done); diff != "" || len(b.put) > 0 {
		t.Errorf("%s; objects %v", diff, b.put)
	}
}

// A batch whose records are missing, of a stream that is there, is given up: it would come
// again at once for ever.
func TestRecordsAreMissing(t *testing.T) {
	o, b := newOwner(t), &buckets{}
	one := o.add(&deliverystream.Stream{Name: "one", S3: toBucket()}, 1)
	other := o.add(&deliverystream.Stream{Name: "other", HTTP: toEndpoint(0)}, 1)
	out := newOutlet(o, b, func(_ context.Context, p *outlet.Post) error { return p.Records(func([]byte) {}) })
	for _, of := range []deliverystream.Instance{one, other} {
		out.Deliver(of)
	}
	if diff := cmp.Diff([]string{"one", "other"}, o.done); diff != "" || len(b.put) > 0 {
		t.Errorf("%s; objects %v", diff, b.put)
	}
}

// An endpoint is tried as long as its stream says, unless it says that no other attempt will
// do; then the records go to the bucket.
func TestGivingUp(t *testing.T) {
	for name, tt := range map[string]struct {
		err      *outlet.Error
		attempts int
	}{
		"refuses":   {&outlet.Error{Code: "c", Message: "m"}, 6}, // after 0, 1, 3, 7, 15, 31 seconds
		"too large": {&outlet.Error{Code: "c", Message: "m", Permanent: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, b := newOwner(t), &buckets{}
				attempts := 0
				out := newOutlet(o, b, func(context.Context, *outlet.Post) error {
					attempts++
					return tt.err
				})
				out.Deliver(o.add(&deliverystream.Stream{Name: "one", HTTP: toEndpoint(30)}, 1, "x"))
				if attempts != tt.attempts || len(b.put) != 1 || !strings.HasPrefix(b.put[0], `http-endpoint-failed: {"attemptsMade":`) || !strings.Contains(b.put[0], `"errorCode":"c","errorMessage":"m"`) {
					t.Errorf("%d attempts, then %v", attempts, b.put)
				}
			})
		})
	}
}

// What is tried at the backup, or was tried before there was an endpoint, is no attempt at it, and
// does not shorten its retries.
func TestRetriesOfTheEndpoint(t *testing.T) {
	for _, tt := range []struct {
		name    string
		failing int // attempts at the bucket
		change  func(b *deliverystream.Batch)
		posts   int
	}{
		{"at once", 0, func(*deliverystream.Batch) {}, 3},
		{"the backup is away", 5, func(*deliverystream.Batch) {}, 3},
		{"a stream that had a bucket", 0, func(b *deliverystream.Batch) { b.Begun, b.Attempts = start.Add(-time.Hour).UnixMilli(), 2 }, 2},
		{"another endpoint before", 0, func(b *deliverystream.Batch) {
			b.Posted = &deliverystream.Posted{URL: "https://before.example", First: start.Add(-time.Hour).UnixMilli(), Count: 7}
		}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, b, posts := newOwner(t), &buckets{failing: tt.failing}, 0
				of := o.add(&deliverystream.Stream{Name: "one", HTTP: toEndpoint(3)}, 1, "x")
				tt.change(o.batches["one"])
				newOutlet(o, b, func(context.Context, *outlet.Post) error { posts++; return &outlet.Error{Code: "c"} }).Deliver(of)
				if posts != tt.posts || len(b.put) != 1 || !strings.Contains(b.put[0], fmt.Sprintf(`"attemptsMade":%d,`, posts)) {
					t.Errorf("%d requests, want %d; %v", posts, tt.posts, b.put)
				}
			})
		})
	}
}

// Where there is nowhere to put objects they wait.
func TestNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		of := o.add(&deliverystream.Stream{Name: "one", S3: toBucket()}, 1, "x")
		var failed []error
		out := outlet.New(outlet.Options{
			Streams: o, Clock: clock.System, Logger: slog.New(slog.DiscardHandler), Observe: func(e *outlet.Event) {
				failed = append(failed, e.Failed)
				if len(failed) == 3 {
					o.stop()
					synctest.Wait()
				}
			},
		})
		out.Deliver(of)
		if e, ok := errors.AsType[*outlet.Error](failed[0]); !ok || e.Code != "S3.NoEndpoint" || len(o.done) > 0 || len(o.saved) < 2 {
			t.Errorf("%v, done %v", failed, o.done)
		}
	})
}
