// Package console_test looks at the console in a real browser, at the built server. It is a
// module of its own, so that Godwit does not depend on what drives the browser.
//
// It runs with GODWIT_PROGRAMS=1 only (make test-all), where Chromium is installed; what is
// skipped is named at the end. With GODWIT_SCREENSHOTS=1 it makes the pictures of
// docs/console.md again.
package console_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// testTimeout bounds every wait for something that should be quick.
const testTimeout = 2 * time.Minute

// The access key of the root user, where a server verifies who calls.
const (
	rootKey    = "AKIAROOTROOTROOTROOT"
	rootSecret = "root/secret+of+the+account/000000000000"
)

var (
	binary  string
	browser context.Context // nil: there is none
	missing string          // why there is no browser
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	http.DefaultClient.Timeout = 10 * time.Minute // what is never answered fails its own test
	if os.Getenv("GODWIT_PROGRAMS") == "" {
		missing = "needs installed programs: make test-all, or GODWIT_PROGRAMS=1"
		return m.Run()
	}
	found := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			found = path
			break
		}
	}
	if found == "" {
		missing = "chromium is not installed"
		code := m.Run()
		fmt.Println("SKIPPED the console in a browser: " + missing)
		return code
	}
	dir, err := os.MkdirTemp("", "godwit-console-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary = os.Getenv("GODWIT_BINARY"); binary == "" {
		binary = filepath.Join(dir, "godwit")
		cmd := exec.Command("go", "build", "-o", binary, "./cmd/godwit")
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.Flag("lang", "en-US"))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocated)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "chromium does not start:", err)
		return 1
	}
	return m.Run()
}

// server is a server under test.
type server struct {
	t        *testing.T
	url      string
	enforced bool // it verifies who calls: the root user does
	pid      int
}

// start runs a server until the test ends.
func start(t *testing.T, flags ...string) *server {
	t.Helper()
	if missing != "" {
		t.Skip(missing)
	}
	address := freeAddress(t)
	if at := slices.Index(flags, "--listen"); at >= 0 {
		address = flags[at+1]
	}
	var output bytes.Buffer
	cmd := exec.Command(binary, append([]string{"dev", "--listen", address, "--data", t.TempDir(), "--store", "memory", "--log-level", "warn"}, flags...)...)
	cmd.Env = append(os.Environ(), "GODWIT_ROOT_ACCESS_KEY_ID="+rootKey, "GODWIT_ROOT_SECRET_ACCESS_KEY="+rootSecret)
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its output
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if it has ended
		<-ended
		if t.Failed() {
			t.Logf("the server logged:\n%s", output.String())
		}
	})
	s := &server{t: t, url: "http://" + address, pid: cmd.Process.Pid}
	eventually(t, "the server is ready", func() bool {
		resp, err := http.Get(s.url + "/_godwit/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return s
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	limit := time.NewTimer(testTimeout)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("not within %v: %s", testTimeout, what)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// file keeps a text in a file that only its owner may read.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// post asks the server for something, and returns what it says.
func (s *server) post(path, kind, target, body string) string {
	s.t.Helper()
	service := "sns"
	switch {
	case strings.HasPrefix(target, "Granite"):
		service = "monitoring"
	case strings.HasPrefix(target, "AmazonSQS."):
		service = "sqs"
	case strings.HasPrefix(target, "Logs_"):
		service = "logs"
	}
	return s.request(path, kind, target, body, service)
}

// request asks the server for something, as a client of a service does.
func (s *server) request(path, kind, target, body, service string) string {
	s.t.Helper()
	if s.enforced {
		if strings.HasPrefix(path, "/_godwit/") {
			service = "godwit"
		}
		return s.asRoot(service, path, kind, target, body)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	return s.do(r)
}

// get reads what the server says at a path.
func (s *server) get(path string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(r)
}

func (s *server) do(r *http.Request) string {
	s.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		s.t.Fatalf("%s %s: %d %s %v", r.Method, r.URL.Path, resp.StatusCode, text, err)
	}
	return string(text)
}

// sns carries out an action of SNS, by names and values, and returns the ARN that it answers
// with.
func (s *server) sns(action string, pairs ...string) string {
	s.t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2010-03-31"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	said := s.post("/", "application/x-www-form-urlencoded", "", form.Encode())
	if found := regexp.MustCompile(`<(?:Topic|Subscription)Arn>([^<]+)<`).FindStringSubmatch(said); found != nil {
		return found[1]
	}
	return ""
}

// sqs carries out an action of SQS.
func (s *server) sqs(action, body string) string {
	s.t.Helper()
	return s.post("/", "application/x-amz-json-1.0", "AmazonSQS."+action, body)
}

// own asks the server's own API.
func (s *server) own(path, body string) string {
	s.t.Helper()
	return s.post(path, "application/json", "", body)
}

// hook is somebody's web hook, which confirms its subscription, and works or does not.
type hook struct {
	*http.Server
	url string

	mu     sync.Mutex
	status int
	says   string
	got    int // deliveries that it took
}

func startHook(t *testing.T, says string) *hook {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{url: "http://" + l.Addr().String() + "/hook", status: http.StatusServiceUnavailable, says: says}
	h.Server = &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		h.Close()
		<-done
	})
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	if r.Header.Get("X-Amz-Sns-Message-Type") == "SubscriptionConfirmation" {
		link := regexp.MustCompile(`"SubscribeURL"\s*:\s*"([^"]+)"`).FindSubmatch(text)
		if link != nil {
			at := strings.ReplaceAll(string(link[1]), `\u0026`, "&")
			go func() {
				if resp, err := http.Get(at); err == nil {
					resp.Body.Close()
				}
			}()
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status == http.StatusOK {
		h.got++
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(h.status)
	_, _ = io.WriteString(w, h.says)
}
