package process_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/internal/invoke/process/network"
	"godwit.dev/godwit/test/built"
)

// goHandler is test/handler in a zip, built once.
var goHandler = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "handler")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := built.Program(dir, "../../..", "test/handler")
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return zipOf(map[string]string{"bootstrap": string(program)}), nil
})

// zipOf makes a zip of executable files.
func zipOf(files map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Store}
		h.SetMode(0o755)
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// bare is set for a test without capabilities, to what finds its processes.
const bare = "GODWIT_TEST_BARE"

// lab runs functions for a test.
type lab struct {
	t      testing.TB
	pool   *invoke.Pool
	runner *process.Runner
	dir    string
	memory int // of functions, in MB; 0: 128
	layers []function.Layer

	mu    sync.Mutex
	zips  map[[sha256.Size]byte][]byte
	lines []string
	n     int
}

// each runs a test with namespaces, if there are any, and without.
func each(t *testing.T, test func(t *testing.T, l *lab)) {
	t.Run("isolated", func(t *testing.T) { test(t, newLab(t, false)) })
	t.Run("plain", func(t *testing.T) { test(t, newLab(t, true)) })
}

func newLab(t *testing.T, plain bool) *lab {
	return newLabWith(t, process.Options{Plain: plain})
}

// runTime bounds what should be quick: a start, and an invocation. It is the machine's
// time, which may have much else to do.
const runTime = time.Minute

func newLabWith(t testing.TB, o process.Options) *lab {
	l := &lab{t: t, zips: map[[sha256.Size]byte][]byte{}, dir: t.TempDir()}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	o.Directory, o.Logger = filepath.Join(l.dir, "functions"), cmp.Or(o.Logger, logger)
	o.Endpoint, o.InitTime = "http://127.0.0.1:4566", cmp.Or(o.InitTime, runTime)
	o.Code = func(_ context.Context, t function.Target) ([]byte, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.zips[t.Code.SHA256], nil
	}
	o.Layer = func(_ context.Context, f function.Layer) ([]byte, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.zips[[sha256.Size]byte(f.SHA256)], nil
	}
	if o.Network == nil {
		o.Network = newNetwork(t, network.Options{Mode: network.Private})
	}
	runner, err := process.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(bare) == "" && !o.Plain && runner.Refusal() != nil {
		t.Skip(runner.Refusal())
	}
	l.runner = runner
	l.pool = invoke.New(invoke.Options{Process: runner, Log: l, Logger: logger, Clock: clock.System})
	t.Cleanup(func() {
		if err := l.pool.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		left, _ := filepath.Glob(filepath.Join(l.dir, "functions/run/*"))
		if len(left) > 0 {
			t.Errorf("directories are left: %v", left)
		}
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// newNetwork makes a network whose API nobody serves.
func newNetwork(t testing.TB, o network.Options) *network.Network {
	t.Helper()
	o.Port, o.Logger = 4566, slog.New(slog.NewTextHandler(t.Output(), nil))
	n, err := network.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// Rights lets every function write its log.
func (l *lab) Rights(*function.Target, arn.ARN, string) authorize.LogRights {
	return authorize.AllLogRights
}

// Put takes a line of a function's log.
func (l *lab) Put(group arn.ARN, stream string, _ time.Time, line []byte, _ authorize.LogRights) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	if name, _ := group.LogGroupName(); name != "/aws/lambda/f" || !strings.Contains(stream, "/[$LATEST]") {
		l.t.Errorf("a line in %s %s", group, stream)
	}
}

// log is what was logged since it was last called.
func (l *lab) log() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "")
	l.lines = nil
	return text
}

// function makes a function of a zip.
func (l *lab) function(zip []byte, runtime, handler string, environment ...string) function.Target {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	t := function.Target{
		Function: arn.Function("us-east-1", "123456789012", "f"), Name: "f", Version: function.Latest, Build: fmt.Sprint(l.n),
		Runtime: runtime, Handler: handler, MemoryMB: cmp.Or(l.memory, 128), EphemeralMB: 512, Timeout: runTime,
		Environment: map[string]string{}, Logging: function.Logging{Format: function.TextLogs},
		Code: function.Code{SHA256: sha256.Sum256(zip), Size: int64(len(zip))}, Layers: l.layers,
	}
	for i := 0; i < len(environment); i += 2 {
		t.Environment[environment[i]] = environment[i+1]
	}
	l.zips[t.Code.SHA256] = zip
	return t
}

// bootstrap makes a function of test/handler.
func (l *lab) bootstrap(environment ...string) function.Target {
	l.t.Helper()
	zip, err := goHandler()
	if err != nil {
		l.t.Fatal(err)
	}
	return l.function(zip, "provided.al2023", "main", environment...)
}

const requestID = "c0ffee00-0000-4000-8000-000000000001"

func (l *lab) invoke(t testing.TB, target function.Target, payload string) invoke.Outcome {
	t.Helper()
	out, err := l.pool.Invoke(t.Context(), invoke.Invocation{Target: target, RequestID: requestID, Payload: []byte(payload), Tail: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// want invokes a function and compares what it answers.
func (l *lab) want(t *testing.T, target function.Target, payload, functionError, answer string) {
	t.Helper()
	out := l.invoke(t, target, payload)
	if out.FunctionError != functionError || string(out.Payload) != answer {
		t.Errorf("%s: %q %.300s\nwant %q %s\n%s", payload, out.FunctionError, out.Payload, functionError, answer, out.LogTail)
	}
}
