package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that should be quick.
const patience = 2 * time.Minute

func init() { http.DefaultClient.Timeout = patience }

// build compiles a command of the module in dir into bin.
func build(t *testing.T, bin, dir, pkg, name string) string {
	t.Helper()
	binary := filepath.Join(bin, name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// server is a binary of Godwit: make has built one, and go test sees by its name whether
// a result in its cache is of the same. Without make, run the tests with -count=1.
func server(t *testing.T, bin string) string {
	t.Helper()
	if path := os.Getenv("GODWIT_BINARY"); path != "" {
		return path
	}
	return build(t, bin, "../..", "./cmd/godwit", "godwit")
}

// lookAtSources has go test see what payments is built of: a result in its cache is of
// the same.
func lookAtSources(t *testing.T) {
	t.Helper()
	sources, err := filepath.Glob("payments/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
}

// freeAddress finds a port that nobody listens on, below those that the kernel
// gives to outgoing connections: it must still be free after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// program is something that can be started again after it was killed.
type program struct {
	path  string
	args  []string
	env   []string
	ready string // URL that answers 200 when it is; "" for one that need not be waited for

	cmd    *exec.Cmd
	output bytes.Buffer // of all its lives; read only while it is dead
	ended  chan struct{}
}

// start runs the program, which is killed when the test ends.
func (p *program) start(t *testing.T) {
	t.Helper()
	first := p.cmd == nil
	p.cmd, p.ended = exec.Command(p.path, p.args...), make(chan struct{})
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // how it ended is seen in its state
	}(p.cmd, p.ended)
	if first {
		t.Cleanup(func() {
			p.kill()
			if text := p.output.Bytes(); t.Failed() {
				t.Logf("%s said at last:\n%s", filepath.Base(p.path), text[max(0, len(text)-4000):])
			}
		})
	}
	if p.ready == "" {
		return
	}
	eventually(t, filepath.Base(p.path)+" answers", func() error {
		select {
		case <-p.ended:
			t.Fatalf("%s ended: %s", filepath.Base(p.path), p.cmd.ProcessState)
		default:
		}
		resp, err := http.Get(p.ready)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

// kill is kill -9: the program gets no chance to write anything.
func (p *program) kill() {
	_ = p.cmd.Process.Signal(os.Kill) // fails only if it has ended
	<-p.ended
}

// stop asks the program to end, which it has to do well.
func (p *program) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		t.Fatalf("%s did not end within %v of SIGTERM", filepath.Base(p.path), patience)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s ended with status %d", filepath.Base(p.path), code)
	}
}

// eventually probes until a probe finds nothing to complain of, and fails the
// test after patience with its last complaint.
func eventually(t *testing.T, what string, probe func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := probe()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v in vain: %s; last: %v", patience, what, err)
		}
	}
}
