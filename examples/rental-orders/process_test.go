package rental_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/test/built"
)

// patience bounds every wait for something that should be quick.
const patience = 2 * time.Minute

func init() { http.DefaultClient.Timeout = 5 * time.Minute } // a clock that is moved does all that is due

// build gives the server and one of the example's programs.
func build(t *testing.T, program string) (godwit, path string) {
	t.Helper()
	godwit, err := built.Server(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err = built.Program(t.TempDir(), "../..", "examples/rental-orders/"+program)
	if err != nil {
		t.Fatal(err)
	}
	return godwit, path
}

// addresses are those that were given to tests: none is given twice.
var addresses sync.Map

// freeAddress finds a port that nobody listens on, below those that the kernel
// gives to outgoing connections: it must still be free after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if _, given := addresses.LoadOrStore(address, true); given {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// process is a program under test.
type process struct {
	cmd    *exec.Cmd
	output bytes.Buffer // read only after wait
	ended  chan struct{}
}

// launch starts a program and waits until url answers 200. The program is
// killed when the test owner ends, which may be a parent of t.
func launch(t, owner *testing.T, url, binary string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is seen in its output
	}()
	owner.Cleanup(func() {
		p.kill()
		if owner.Failed() {
			owner.Logf("%s said:\n%s", filepath.Base(binary), p.output.String())
		}
	})
	eventually(t, filepath.Base(binary)+" answers", func() (bool, error) {
		select {
		case <-p.ended:
			t.Fatalf("%s ended", filepath.Base(binary))
		default:
		}
		resp, err := http.Get(url)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
	return p
}

// kill is kill -9: the program gets no chance to write anything.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(os.Kill) // fails only if it has ended
	<-p.ended
}

// eventually probes until a probe says true, and fails the test after
// patience with the last thing that the probe said.
func eventually(t *testing.T, what string, probe func() (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := probe()
		if done && err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v in vain: %s (last error: %v)", patience, what, err)
		}
	}
}

// getJSON reads what url answers into v.
func getJSON(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, resp.Status, body)
	}
	return json.Unmarshal(body, v)
}
