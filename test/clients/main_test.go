// Package clients_test runs clients that people use against the built server:
// libraries and command lines that nobody here has written. It is a module of
// its own, so that Godwit does not depend on them.
//
// What is not written in Go runs with GODWIT_PROGRAMS=1 only. A client that is not
// on this machine then and cannot be installed is skipped; the end of the output
// names it.
package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testTimeout bounds every wait for something that should be quick.
const testTimeout = 2 * time.Minute

// rootKey is the root user's access key where a server verifies who calls.
const (
	rootKey    = "AKIAROOTROOTROOTROOT"
	rootSecret = "root/secret+of+the+account/000000000000"
)

// serverURL is where the server under test answers, binary what it runs; scratch is a
// directory for what several tests use.
var (
	serverURL *url.URL
	binary    string
	scratch   string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "godwit-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	started, stop, err := startServer(filepath.Join(dir, "data"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	serverURL = started
	http.DefaultClient.Timeout = 5 * time.Minute // what is never answered fails its own test
	code := m.Run()
	logged := stop()
	if code != 0 {
		fmt.Printf("the server logged:\n%s", logged)
	}
	skips.print()
	return code
}

// build makes the server's binary, unless make has: go test sees by that one's name
// whether a result in its cache is of the same server.
func build(dir string) error {
	if binary = os.Getenv("GODWIT_BINARY"); binary != "" {
		return nil
	}
	binary = filepath.Join(dir, "godwit")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/godwit")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// startServer runs a server until stop is called, which returns what it has
// logged.
func startServer(data string, flags ...string) (at *url.URL, stop func() (logged string), err error) {
	address, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	at = &url.URL{Scheme: "http", Host: address}
	var output bytes.Buffer
	cmd := exec.Command(binary, append([]string{"--listen", address, "--data", data, "--log-level", "warn"}, flags...)...)
	cmd.Env = append(os.Environ(), "GODWIT_ROOT_ACCESS_KEY_ID="+rootKey, "GODWIT_ROOT_SECRET_ACCESS_KEY="+rootSecret)
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its output
	}()
	stop = func() string {
		_ = cmd.Process.Kill() // fails only if it has ended
		<-ended
		return output.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get(at.String() + "/_godwit/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return at, stop, nil
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			return nil, nil, fmt.Errorf("the server ended:\n%s", output.String())
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("the server is not ready after %v:\n%s", testTimeout, stop())
		}
	}
}

// given are the addresses that tests were given: none is given twice.
var given sync.Map

// freeAddress finds a port that nobody listens on, below those that the kernel
// gives to outgoing connections.
func freeAddress() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if _, twice := given.LoadOrStore(address, true); twice {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address, nil
		}
	}
	return "", fmt.Errorf("no free port")
}

// window is a way to the server on which one can see what goes by.
type window struct {
	url string

	mu   sync.Mutex
	seen map[string]int // requests by "service protocol", such as "sqs json"
}

// openWindow opens one for a client.
func openWindow(t *testing.T) *window {
	t.Helper()
	w := &window{seen: map[string]int{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(serverURL)
		r.Out.Host = r.In.Host // queue URLs lead back here
	}}
	proxy.ErrorHandler = func(rw http.ResponseWriter, _ *http.Request, _ error) {
		rw.WriteHeader(http.StatusBadGateway) // mostly to clients that have given up a long poll
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + l.Addr().String()
	srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.note(r)
		proxy.ServeHTTP(rw, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return w
}

func (w *window) note(r *http.Request) {
	service, protocol := "?", "query"
	// Credential=KEY/DATE/REGION/SERVICE/aws4_request
	if scope := strings.Split(r.Header.Get("Authorization"), "/"); len(scope) > 3 {
		service = scope[3]
	}
	if r.Header.Get("X-Amz-Target") != "" {
		protocol = "json"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[service+" "+protocol]++
}

// wantSpoken checks that the client spoke these protocols, and no other.
func (w *window) wantSpoken(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range want {
		if w.seen[p] == 0 {
			t.Errorf("no request was %s; seen: %v", p, w.seen)
		}
	}
	if len(w.seen) != len(want) {
		t.Errorf("requests were %v, want %v", w.seen, want)
	}
}

// skipList is what could not be run.
type skipList struct {
	mu    sync.Mutex
	lines []string
}

var skips skipList

// installed skips the test unless programs that do not come with Go may be used:
// make test-all says so.
func installed(t *testing.T) {
	t.Helper()
	if os.Getenv("GODWIT_PROGRAMS") == "" {
		t.Skip("needs installed programs: make test-all, or GODWIT_PROGRAMS=1")
	}
}

// skip gives a client up.
func (s *skipList) skip(t *testing.T, client, why string) {
	t.Helper()
	s.note(client, why)
	t.Skipf("%s: %s", client, why)
}

// note is skip for a part of a test.
func (s *skipList) note(client, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, client+": "+why)
}

func (s *skipList) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		fmt.Println("SKIPPED", line)
	}
}

// environment is this process's, with what an AWS client needs, and without
// what this machine may have set up for real ones.
func environment(dir, endpoint string) []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AWS_") {
			env = append(env, e)
		}
	}
	return append(env,
		"AWS_ENDPOINT_URL="+endpoint, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_PAGER=", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE="+filepath.Join(dir, "no-config"), "AWS_SHARED_CREDENTIALS_FILE="+filepath.Join(dir, "no-credentials"),
	)
}
