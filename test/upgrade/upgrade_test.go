package upgrade_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/test/built"
	"godwit.dev/godwit/test/upgrade"
)

// patience bounds every wait for a server.
const patience = 2 * time.Minute

func init() { http.DefaultClient.Timeout = 5 * time.Minute } // a clock that is moved does all that is due

// A server that opens the directory of an earlier version answers as that one did,
// and gives the same when all that waits is due.
func TestDirectoriesOfEarlierVersions(t *testing.T) {
	binary, err := built.Server(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("there are no directories: %v", err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(archive, ".tar.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			want := recorded(t, name+".json.gz")
			data := filepath.Join(t.TempDir(), "data")
			if err := upgrade.Unpack(archive, data); err != nil {
				t.Fatal(err)
			}
			s, stop := start(t, binary, data)
			compare(t, want.Asked, upgrade.Ask, s)
			stop() // and what this version has made of it
			s, _ = start(t, binary, data)
			compare(t, want.Asked, upgrade.Ask, s)
			compare(t, want.Used, upgrade.Use, s)
		})
	}
}

func recorded(t *testing.T, path string) (r upgrade.Recorded) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		t.Fatal(err)
	}
	for _, answers := range [][]upgrade.Answer{r.Asked, r.Used} {
		for i := range answers {
			answers[i].Body = withoutRemoved(answers[i].Body)
		}
	}
	return r
}

// compare asks, and compares answer by answer.
func compare(t *testing.T, want []upgrade.Answer, ask func(upgrade.Server) ([]upgrade.Answer, error), s upgrade.Server) {
	t.Helper()
	got, err := ask(s)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range got {
		if i >= len(want) || want[i].Call != a.Call {
			t.Fatalf("call %d is %s", i, a.Call)
		}
		a.Body = asThen(want[i].Body, a.Body)
		if diff := cmp.Diff(want[i], a); diff != "" {
			t.Errorf("%.300s (-then +now):\n%s", a.Call, diff)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d answers, want %d", len(got), len(want))
	}
}

// start starts a server on a directory, at a port of its own choice. stop ends it and waits for it.
func start(t *testing.T, binary, data string) (s upgrade.Server, stop func()) {
	t.Helper()
	cmd := exec.Command(binary, upgrade.Arguments("127.0.0.1:0", data)...)
	var log strings.Builder
	cmd.Stderr = &log
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, ready := make(chan error, 1), make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if _, at, ok := strings.Cut(lines.Text(), " is ready on "); ok {
				base, _, _ := strings.Cut(at, " ")
				ready <- base
			}
		}
		ended <- cmd.Wait() // after all that it says is read
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the server logged:\n%s", log.String())
		}
	})
	select {
	case s.Base = <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("the server ended: %v\n%s", err, log.String())
	case <-time.After(patience):
		t.Fatalf("the server is not ready within %v", patience)
	}
	return s, func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			ended <- err
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(patience):
			t.Fatalf("the server does not end within %v", patience)
		}
	}
}
