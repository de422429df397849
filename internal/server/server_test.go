package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/shutdown"
)

// The thread that starts sandboxes never ends: its end would be theirs.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("godwit.dev/godwit/internal/invoke/process/sandbox.runForks"))
}

func testConfig() config.Config {
	return config.Config{
		Listen: "127.0.0.1:0", Data: "./godwit-data", Region: "us-east-1", Account: "000000000000",
		EndpointConcurrency: 1, DeliveryConcurrency: 1,
		Clock: config.SystemClock, Store: config.MemoryStore,
	}
}

func newTestServer(build Build) *Server {
	return New(testConfig(), slog.New(slog.DiscardHandler), build)
}

// diary is a Build whose parts note what becomes of them.
type diary struct {
	mu     sync.Mutex
	events []string
	// Where set, what building the second of the three parts does and returns.
	second func(context.Context) error
	wire   http.HandlerFunc
	checks []admin.Check
	deps   Deps
}

func (j *diary) note(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

func (j *diary) build(ctx context.Context, deps Deps) (Parts, error) {
	j.deps = deps
	for _, name := range []string{"store", "shards", "senders"} {
		if name == "shards" && j.second != nil {
			if err := j.second(ctx); err != nil {
				return Parts{}, err
			}
		}
		j.note("start " + name)
		deps.OnStop(name, func(context.Context) error { j.note("stop " + name); return nil })
	}
	wire := j.wire
	if wire == nil {
		wire = func(http.ResponseWriter, *http.Request) {}
	}
	return Parts{
		Wire:   wire,
		Admin:  map[string]http.Handler{"POST /_godwit/clock": admin.Clock(deps.Virtual, func() {})},
		Checks: j.checks,
	}, nil
}

// get fetches path without keeping the connection.
func get(t *testing.T, s *Server, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestStartsInOrderAndStopsInReverse(t *testing.T) {
	j := &diary{}
	s := newTestServer(j.build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"start store", "start shards", "start senders", "stop senders", "stop shards", "stop store"}
	if d := cmp.Diff(want, j.events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if err := s.Stop(t.Context()); err != nil || len(j.events) != len(want) {
		t.Errorf("second Stop: %v, events %v", err, j.events)
	}
	if err := s.Start(t.Context()); !errors.Is(err, ErrNotNew) {
		t.Errorf("Start after Stop: %v", err)
	}
}

func TestStartTwiceIsRefusedAndHarmless(t *testing.T) {
	s := newTestServer((&diary{}).build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); !errors.Is(err, ErrNotNew) {
		t.Errorf("second Start: %v", err)
	}
	if status, _ := get(t, s, "GET", "/_godwit/ready", ""); status != http.StatusOK {
		t.Errorf("after a refused Start: ready answers %d", status)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestStopBeforeStart(t *testing.T) {
	j := &diary{}
	s := newTestServer(j.build)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); !errors.Is(err, ErrNotNew) {
		t.Errorf("Start after Stop: %v", err)
	}
	if len(j.events) != 0 {
		t.Errorf("a stopped server started %v", j.events)
	}
}

func TestFailedStartIsUndone(t *testing.T) {
	broken := errors.New("shards are broken")
	j := &diary{second: func(context.Context) error { return broken }}
	s := newTestServer(j.build)
	if err := s.Start(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Start: %v", err)
	}
	if d := cmp.Diff([]string{"start store", "stop store"}, j.events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	// The port is free again.
	l, err := net.Listen("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestStopWhileStarting(t *testing.T) {
	reached := make(chan struct{})
	j := &diary{second: func(ctx context.Context) error {
		close(reached)
		<-ctx.Done()
		return nil // even a part that does not tell
	}}
	s := newTestServer(j.build)
	started := make(chan error)
	go func() { started <- s.Start(context.Background()) }()
	<-reached
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v", err)
	}
	if i := len(j.events); i != 6 || j.events[5] != "stop store" {
		t.Errorf("events %v", j.events)
	}
}

// Whatever the order of concurrent Starts and Stops: at most one Start
// succeeds, everything that started is stopped once, and nothing leaks.
func TestLifecycleStress(t *testing.T) {
	for range 50 {
		var running, starts atomic.Int64
		s := newTestServer(func(_ context.Context, deps Deps) (Parts, error) {
			running.Add(1)
			deps.OnStop("part", func(context.Context) error { running.Add(-1); return nil })
			return Parts{Wire: http.NotFoundHandler()}, nil
		})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if s.Start(context.Background()) == nil {
					starts.Add(1)
				}
			})
			wg.Go(func() {
				if err := s.Stop(context.Background()); err != nil {
					t.Errorf("Stop: %v", err)
				}
			})
		}
		wg.Wait()
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("last Stop: %v", err)
		}
		if starts.Load() > 1 || running.Load() != 0 {
			t.Fatalf("%d starts succeeded, %d parts are left running", starts.Load(), running.Load())
		}
	}
}

func TestPortInUseSaysWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	j := &diary{}
	cfg := testConfig()
	cfg.Listen = l.Addr().String()
	err = New(cfg, slog.New(slog.DiscardHandler), j.build).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), cfg.Listen+" is in use") || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("error %v", err)
	}
	if len(j.events) != 0 {
		t.Errorf("parts were touched: %v", j.events)
	}
}

func TestExplainListen(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "above 1023", syscall.EADDRNOTAVAIL: "no address of this machine", syscall.EMFILE: "cannot listen on",
	} {
		if err := explainListen("x:1", &net.OpError{Err: errno}); !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func TestBadConfigurationDoesNotStart(t *testing.T) {
	j := &diary{}
	cfg := testConfig()
	cfg.Account = "me"
	if err := New(cfg, slog.New(slog.DiscardHandler), j.build).Start(t.Context()); err == nil {
		t.Error("started")
	}
	if len(j.events) != 0 {
		t.Errorf("parts were touched: %v", j.events)
	}
}

func TestRouting(t *testing.T) {
	j := &diary{
		wire: func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "wire "+r.Method+" "+r.URL.Path) },
		checks: []admin.Check{{Name: "storage", Failing: func() error {
			return errors.New("out of space")
		}}},
	}
	s := newTestServer(j.build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"POST", "/", 200, "wire POST /"},
		{"POST", "/000000000000/q", 200, "wire POST /000000000000/q"},
		{"POST", "//x/../y", 200, "wire POST //x/../y"}, // no redirect
		{"GET", "/_godwit", 200, `"path":"/_godwit/health"`},
		{"GET", "/_godwit/", 200, `"path":"/_godwit/health"`},
		{"GET", "/_godwits", 200, "wire GET /_godwits"},
		{"GET", "/_godwit/ready", 200, `"ready":true`},
		{"GET", "/_godwit/health", 503, `"storage":"out of space"`},
		{"POST", "/_godwit/clock", 409, "--clock virtual"},
		{"GET", "/_godwit/nothing", 404, "there is no GET /_godwit/nothing"},
		{"GET", "/_godwit/v1/nothing", 404, `"there is no GET /_godwit/v1/nothing","code":"NotFound"`},
		{"POST", "/_godwit/health", 404, "there is no POST"},
	} {
		status, body := get(t, s, tt.method, tt.path, "")
		if status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%s %s: %d %q; want %d with %q", tt.method, tt.path, status, body, tt.status, tt.body)
		}
	}
	if status, _ := get(t, s, "POST", "/_godwit/clock", "{}", "Origin", "https://evil.example"); status != http.StatusForbidden {
		t.Errorf("a page of another origin may use the admin API: %d", status)
	}
	// Who types the address into a browser gets to the console; who asks AWS's API does not.
	browser := []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}
	for _, tt := range []struct {
		method, path string
		header       []string
		body         string
	}{
		{"GET", "/", browser, "there is no GET /_godwit/ui/"}, // of which this server has none
		{"GET", "/", nil, "wire GET /"},
		{"GET", "/", append([]string{"Authorization", "AWS4-HMAC-SHA256"}, browser...), "wire GET /"},
		{"GET", "/?Action=ListQueues", browser, "wire GET /"},
		{"GET", "/000000000000/q", browser, "wire GET /000000000000/q"},
		{"POST", "/", browser, "wire POST /"},
	} {
		if _, body := get(t, s, tt.method, tt.path, "", tt.header...); !strings.Contains(body, tt.body) {
			t.Errorf("%s %s with %q: %q; want %q", tt.method, tt.path, tt.header, body, tt.body)
		}
	}
}

func TestVirtualClockOverHTTP(t *testing.T) {
	j := &diary{}
	cfg := testConfig()
	cfg.Clock = config.VirtualClock
	s := New(cfg, slog.New(slog.DiscardHandler), j.build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	before, ran := j.deps.Clock.Now(), false
	j.deps.Clock.AfterFunc(time.Hour, func() { ran = true })
	status, body := get(t, s, "POST", "/_godwit/clock", `{"advance":"1d12h"}`)
	var answer struct {
		Now time.Time
		Ran int
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if status != 200 || !ran || answer.Ran != 1 || answer.Now.Sub(before) != 36*time.Hour {
		t.Errorf("%d %s; the timer ran: %v", status, body, ran)
	}
}

func TestStopDrainsRequests(t *testing.T) {
	inside, j := make(chan struct{}), &diary{}
	j.wire = func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-j.deps.Draining // a long poll
		j.note("answer")
		io.WriteString(w, "drained")
	}
	s := newTestServer(j.build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string)
	go func() {
		_, body := get(t, s, "POST", "/", "")
		answered <- body
	}()
	<-inside
	stopped := make(chan error)
	go func() { stopped <- s.Stop(context.Background()) }()
	if body := <-answered; body != "drained" {
		t.Errorf("the request under way got %q", body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
	// The parts outlive the requests that use them.
	want := []string{"start store", "start shards", "start senders", "answer", "stop senders", "stop shards", "stop store"}
	if d := cmp.Diff(want, j.events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	inside := make(chan struct{})
	j := &diary{wire: func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
	}}
	s := newTestServer(j.build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := make(chan struct{})
	go func() {
		defer close(client)
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String()+"/", nil)
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); !errors.Is(err, shutdown.ErrAbandoned) {
		t.Errorf("Stop: %v", err)
	}
	<-client
	if last := j.events[len(j.events)-1]; last != "stop store" {
		t.Errorf("the parts were not stopped: %v", j.events)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestRunEndsWithContextOrFailure(t *testing.T) {
	began := clock.System.Now()
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		out := writerFunc(func(p []byte) { cancel() }) // the banner says that it is up
		if err := Run(ctx, testConfig(), slog.New(slog.DiscardHandler), out, began); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Run("failure", func(t *testing.T) {
		j := &diary{}
		s := newTestServer(j.build)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("fsync failed")
		s.fail(broken)
		s.fail(errors.New("another"))
		if err := s.wait(t.Context()); !errors.Is(err, broken) {
			t.Errorf("wait: %v", err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestPprofIsAtItsOwnAddressOnly(t *testing.T) {
	cfg := testConfig()
	cfg.Pprof = "127.0.0.1:0"
	var logged bytes.Buffer
	s := New(cfg, slog.New(slog.NewJSONHandler(&logged, nil)), (&diary{wire: http.NotFound}).build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var line struct{ Listen string }
	if err := json.Unmarshal(logged.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + line.Listen + "/debug/pprof/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("profiles answer %d", resp.StatusCode)
	}
	if status, _ := get(t, s, "GET", "/debug/pprof/cmdline", ""); status != http.StatusNotFound {
		t.Errorf("the public address answers profiles: %d", status)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("Stop: %v", err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
