package e2e_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	functions "godwit.dev/godwit/internal/invoke/process"

	"godwit.dev/godwit/test/output"
)

// process is a server under test.
type process struct {
	client
	addr   string
	cmd    *exec.Cmd
	stdout output.Buffer
	stderr output.Buffer
	ended  chan struct{} // closed when the process has
}

// addresses are those that were given to tests: none is given twice.
var addresses sync.Map

// freeAddress finds a port that nobody listens on, and that the kernel does not give
// to outgoing connections: it must still be free after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	first, last := 32_768, 60_999 // Linux's, unless it says otherwise
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &first, &last)
	}
	for range 10_000 {
		// Those below are test/cluster's.
		port := 15_000 + rand.IntN(50_000)
		if outgoing := first <= port && port <= last; outgoing && last-first < 50_000 { // else there is no other
			continue
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if _, given := addresses.LoadOrStore(addr, true); given {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// arguments are those that every server gets.
func arguments(addr, data string, more ...string) []string {
	return append([]string{"--listen", addr, "--data", data, "--log-level", "warn", isolation()}, more...)
}

// isolation is the setting for what functions can have on this machine.
var isolation = sync.OnceValue(func() string {
	if functions.Isolated() != nil {
		return functions.NoIsolation
	}
	return "--function-isolation=namespaces"
})

// start runs a server of its own for a test and waits until it is ready.
func start(t *testing.T, more ...string) *process {
	t.Helper()
	return startAt(t, freeAddress(t), filepath.Join(t.TempDir(), "data"), more...)
}

// startAt runs a server on given data, perhaps that of one that was killed.
func startAt(t *testing.T, addr, data string, more ...string) *process {
	t.Helper()
	p := launch(t, addr, exec.Command(binary, arguments(addr, data, more...)...))
	p.awaitReady(t)
	return p
}

// launch starts a process, which is killed when the test ends.
func launch(t *testing.T, addr string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{client: newClient(addr), addr: addr, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	cmd.WaitDelay = testTimeout // for its output, which a process that it has started may hold open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // how it ended is seen in its state
	}()
	t.Cleanup(func() {
		most := 4000
		if p.hung.Load() { // then it says what it is waiting for
			most = 200_000
			_ = cmd.Process.Signal(syscall.SIGQUIT)
			select {
			case <-p.ended:
			case <-time.After(testTimeout):
			}
		}
		p.kill()
		if text := p.stderr.String(); t.Failed() && text != "" {
			t.Logf("the server on %s logged:\n%s", addr, tail(text, most))
		}
	})
	return p
}

// tail is the end of a long text.
func tail(s string, most int) string {
	if len(s) > most {
		return "… " + s[len(s)-most:]
	}
	return s
}

func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for {
		if a, err := p.call(ctx, http.MethodGet, "/_godwit/ready", nil, nil); err == nil && a.status == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-p.ended:
			t.Fatalf("the server ended: %s\n%s", p.cmd.ProcessState, p.stderr.String())
		case <-ctx.Done():
			t.Fatalf("the server is not ready after %s\n%s", testTimeout, p.stderr.String())
		}
	}
}

// kill is kill -9: the server gets no chance to write anything.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(os.Kill) // fails only if it has ended
	<-p.ended
	p.http.CloseIdleConnections()
}

// terminate asks the server to stop, as a service manager does.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// exit waits for the end of the process and tells its status.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	timer := time.NewTimer(testTimeout)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		t.Fatalf("the server has not ended after %s", testTimeout)
	}
	return p.cmd.ProcessState.ExitCode()
}

// sink is an HTTP endpoint that a topic delivers to.
type sink struct {
	url string

	mu      sync.Mutex
	answer  func(body string) int // status for a notification; called with the lock held
	seen    map[string]int        // notifications by what was published, whatever was answered
	taken   map[string]int        // of these, those that were answered with 200
	confirm chan string           // tokens
}

// newSink listens until the test ends. answer may be nil: 200 always.
func newSink(t *testing.T, answer func(body string) int) *sink {
	t.Helper()
	s := &sink{answer: answer, seen: map[string]int{}, taken: map[string]int{}, confirm: make(chan string, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String() + "/hook"
	srv := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var n envelope
	if err == nil {
		n, err = openEnvelope(string(body))
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if n.Type != "Notification" {
		select {
		case s.confirm <- n.Token:
		default: // reported before
		}
		return
	}
	w.WriteHeader(s.take(n.Message))
}

func (s *sink) take(message string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[message]++
	status := http.StatusOK
	if s.answer != nil {
		status = s.answer(message)
	}
	if status == http.StatusOK {
		s.taken[message]++
	}
	return status
}

// count reports how often a message came, and how often it was taken.
func (s *sink) count(message string) (seen, taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[message], s.taken[message]
}

// subscribeSink subscribes the sink to a topic and confirms it.
func (p *process) subscribeSink(t *testing.T, topic string, s *sink, attributes ...string) (subscription string) {
	t.Helper()
	p.subscribe(t, topic, "http", s.url, attributes...)
	timer := time.NewTimer(testTimeout)
	defer timer.Stop()
	select {
	case token := <-s.confirm:
		var out struct {
			ARN string `xml:"ConfirmSubscriptionResult>SubscriptionArn"`
		}
		p.mustSNS(t, "ConfirmSubscription", params{"TopicArn": topic, "Token": token}, &out)
		return out.ARN
	case <-timer.C:
		t.Fatal("no SubscriptionConfirmation came")
		return ""
	}
}
