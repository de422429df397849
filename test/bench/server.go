package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// role is what a server is to the comparison.
type role string

// The roles. The letters r and m stand in the tables.
const (
	subject  role = "godwit"
	earlier  role = earlierName // another binary of it
	durable  role = "r"         // reference: parses, and appends to a synced file
	inMemory role = "m"         // reference: a minimal queue without a file
	peer     role = "peer"
)

// spec is how to come to a server: start it, or find it running.
type spec struct {
	name string
	role role

	argv  []string // program and arguments before those that start adds
	pprof bool     // ask it to serve profiles

	host string // of a running server
	pid  int    // of a running server; 0: not known
}

// server is a running server.
type server struct {
	name      string
	role      role
	host      string // address and port
	pid       int    // 0: its CPU and memory can't be seen
	pprofHost string // empty: no profiles
	readyIn   time.Duration

	argv   []string
	cmd    *exec.Cmd
	dir    string
	output tail
	exited chan struct{} // closed when the process has ended
}

// alone runs a scenario on one server, the subject, if it takes part.
func (b *bench) alone(ctx context.Context, run func(s *server) error) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	servers, stop, err := startAll(ctx, specs[:1], b.dir)
	if err != nil {
		return err
	}
	defer stop()
	return run(servers[0])
}

// startAll starts one server of each spec, each with an empty data directory
// of its own below dir. Stop ends them and removes what they kept.
func startAll(ctx context.Context, specs []spec, dir string) (all []*server, stop func(), err error) {
	stop = func() {
		for _, s := range all {
			s.stop()
		}
	}
	for _, sp := range specs {
		s, err := sp.start(ctx, dir)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("start %s: %w", sp.name, err)
		}
		all = append(all, s)
	}
	return all, stop, nil
}

const (
	readyWithin = 3 * time.Minute // with much to read, on a busy machine
	stopWithin  = 15 * time.Second
)

func (sp spec) start(ctx context.Context, dir string) (*server, error) {
	if len(sp.argv) == 0 {
		s := &server{name: sp.name, role: sp.role, host: sp.host, pid: sp.pid}
		nc, err := net.DialTimeout("tcp", s.host, time.Second)
		if err != nil {
			return nil, err
		}
		return s, nc.Close()
	}
	data, err := os.MkdirTemp(dir, sp.name+"-")
	if err != nil {
		return nil, err
	}
	s := &server{name: sp.name, role: sp.role, dir: data}
	if s.host, err = freeAddress(); err != nil {
		return nil, err
	}
	s.argv = append(slices.Clip(sp.argv), "--listen", s.host, "--data", data)
	if sp.pprof {
		if s.pprofHost, err = freeAddress(); err != nil {
			return nil, err
		}
		s.argv = append(s.argv, "--pprof", s.pprofHost)
	}
	if err := s.launch(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// launch starts the process and waits until it serves.
func (s *server) launch(ctx context.Context) error {
	cmd, exited := exec.Command(s.argv[0], s.argv[1:]...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	detach(cmd)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.exited, s.pid = cmd, exited, cmd.Process.Pid
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	if err := s.awaitReady(ctx, began); err != nil {
		return fmt.Errorf("%w\n%s", err, s.output.String())
	}
	return nil
}

// restart ends a server that start has started, by force if killed, and starts
// it again on what it has kept. Its readyIn is then that of the second start.
func (s *server) restart(ctx context.Context, killed bool) error {
	s.end(killed)
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restart %s: %w", s.name, err)
	}
	return nil
}

// end ends the process, by force if killed or if it takes too long.
func (s *server) end(killed bool) {
	if !killed {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.exited:
			return
		case <-time.After(stopWithin):
		}
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// awaitReady polls until the server says that it takes requests.
func (s *server) awaitReady(ctx context.Context, began time.Time) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for time.Since(began) < readyWithin {
		answer, err := client.Get("http://" + s.host + "/_godwit/ready")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				s.readyIn = time.Since(began)
				return nil
			}
		}
		select {
		case <-s.exited:
			return errors.New("it ended before it was ready")
		default:
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("not ready within %s", readyWithin)
}

// stop ends a server that start has started, and removes what it kept.
func (s *server) stop() {
	if s.cmd != nil {
		s.end(false)
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// alive reports how a started server ended, nil while it runs.
func (s *server) alive() error {
	if s.cmd == nil {
		return nil
	}
	select {
	case <-s.exited:
		return fmt.Errorf("%s ended: %s\n%s", s.name, s.cmd.ProcessState, s.output.String())
	default:
		return nil
	}
}

// The kinds of profiles, as net/http/pprof names them, and what their files end with.
var profileKinds = map[string]string{"profile": ".pprof", "allocs": ".allocs.pprof"}

// profile fetches a profile of one kind and the given length into a file.
func (s *server) profile(ctx context.Context, kind string, length time.Duration, path string) error {
	seconds := max(1, int(length.Seconds()))
	address := "http://" + s.pprofHost + "/debug/pprof/" + kind + "?seconds=" + strconv.Itoa(seconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: length + requestTimeout}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", answer.Status)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(answer.Body, 64<<20))
	return errors.Join(err, file.Close())
}

// freeAddress finds a loopback port that nobody listens on, below those that Linux gives to
// connections: the nodes of a cluster listen behind it, too.
func freeAddress() (address string, err error) {
	for range 100 {
		var l net.Listener
		l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(15_000+rand.IntN(15_000))))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", err
}

// parsePeer reads URL or URL,PID. Only loopback addresses are loaded.
func parsePeer(s string) (spec, error) {
	address, number, hasPID := strings.Cut(s, ",")
	sp := spec{role: peer}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return spec{}, fmt.Errorf("peer %q: want http://HOST:PORT or http://HOST:PORT,PID", s)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return spec{}, fmt.Errorf("peer %q: not a loopback address", s)
	}
	sp.host, sp.name = u.Host, "peer :"+u.Port()
	if hasPID {
		if sp.pid, err = strconv.Atoi(number); err != nil || sp.pid <= 0 {
			return spec{}, fmt.Errorf("peer %q: bad process id", s)
		}
	}
	return sp, nil
}

// goBuild compiles a command of this module into dir.
func goBuild(ctx context.Context, dir, name, pkg string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailSize; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
