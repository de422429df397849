package clustered

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/wire"
)

// A request that this node comes to own while it waits is read by its handler alone.
func TestUnpaced(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	own := r.Body
	paced(httptest.NewRecorder(), r, wire.Pace{Window: time.Second, Rate: 1, Whole: time.Minute})
	if r.Body == own {
		t.Fatal("the body has no bound")
	}
	unpaced(r)
	if r.Body != own {
		t.Errorf("the body is a %T", r.Body)
	}
	unpaced(r)
	if r.Body != own {
		t.Errorf("without a bound, the body is a %T", r.Body)
	}
}

// trickling is a body whose parts take a time each.
type trickling struct {
	each  time.Duration
	size  int // of each part
	parts int
	eof   bool // with the last part
}

func (s *trickling) Read([]byte) (int, error) {
	if s.parts == 0 {
		return 0, io.EOF
	}
	later(s.each)
	if s.parts--; s.parts == 0 && s.eof {
		return s.size, io.EOF
	}
	return s.size, nil
}

func (s *trickling) Close() error { return nil }

// later returns after a time.
func later(d time.Duration) {
	over, _ := clock.After(clock.System, d)
	<-over
}

// A body whose parts keep coming, but too few for a window, is waited for until the window ends, and one
// that keeps the pace until the time for all of it is over, not counting the time between reads.
func TestPaceIsOfAllReads(t *testing.T) {
	for name, c := range map[string]struct {
		pace wire.Pace
		each time.Duration
		size int
		want []time.Duration // of the reads, until their deadlines, in seconds
	}{
		"too slow":    {wire.Pace{Window: 10 * time.Second, Rate: 1, Whole: time.Minute}, 3 * time.Second, 1, []time.Duration{10, 7, 4, 1}},
		"fast enough": {wire.Pace{Window: 5 * time.Second, Rate: 1, Whole: time.Minute}, 2 * time.Second, 3, []time.Duration{5, 3, 5, 3, 5}},
		"too long":    {wire.Pace{Window: 5 * time.Second, Rate: 1, Whole: 11 * time.Second}, 3 * time.Second, 5, []time.Duration{5, 5, 5, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []time.Duration
				b := &pacedBody{
					ReadCloser: &trickling{each: c.each, size: c.size, parts: len(c.want)}, pace: c.pace, whole: c.pace.Whole, window: c.pace.Window, left: -1,
					until: func(at time.Time) error {
						if !at.IsZero() {
							got = append(got, at.Sub(clock.System.Now())/time.Second)
						}
						return nil
					},
				}
				for range c.want {
					if _, err := b.Read(make([]byte, c.size)); err != nil {
						t.Fatal(err)
					}
					later(time.Hour)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("the reads have %v s, want %v", got, c.want)
				}
			})
		})
	}
}

// Once all of a body has come its connection has no deadline that a next request would meet.
func TestPaceEnds(t *testing.T) {
	for name, c := range map[string]struct {
		body   *trickling
		length int64
		reads  int
		bound  bool // when it is closed
	}{
		"all that was announced":  {&trickling{size: 1, parts: 2}, 2, 2, false},
		"less":                    {&trickling{size: 1, parts: 2}, 2, 1, true},
		"chunks":                  {&trickling{size: 1, parts: 2}, -1, 3, false},
		"chunks, ended by a part": {&trickling{size: 1, parts: 2, eof: true}, -1, 2, false},
		"chunks, not all":         {&trickling{size: 1, parts: 2}, -1, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last time.Time
				b := &pacedBody{
					ReadCloser: c.body, pace: wire.Pace{Window: time.Second}, whole: time.Minute, window: time.Second, left: c.length,
					until: func(at time.Time) error { last = at; return nil },
				}
				for range c.reads {
					if _, err := b.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
				}
				if !last.IsZero() {
					t.Errorf("after the last read there is a deadline in %v", last.Sub(clock.System.Now()))
				}
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				if last.IsZero() == c.bound {
					t.Errorf("closed, its deadline is %v", last)
				}
				before := last
				if _, _ = b.Read(make([]byte, 1)); last != before {
					t.Errorf("a read after that sets the deadline %v", last)
				}
			})
		})
	}
}
