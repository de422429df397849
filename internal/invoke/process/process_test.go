package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/process"
)

func failure(kind, text string) string {
	return fmt.Sprintf(`{"errorType":%q,"errorMessage":"RequestId: %s Error: %s"}`, kind, requestID, text)
}

func TestAnswers(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		f := l.bootstrap()
		l.want(t, f, `{"a":[1,2]}`, "", `{"a":[1,2]}`)
		l.want(t, f, ``, "", `{}`)
		l.want(t, f, `[1]`, "", `[1]`)
		l.want(t, f, `{"fail":"no"}`, "Unhandled", `{"errorMessage":"no","errorType":"errorString"}`)
		l.want(t, f, `{"exit":127}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited with error: exit status 127"))
		l.want(t, f, `{"exit":0}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited without providing a reason"))
		l.want(t, f, `{"kill":true}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited with error: signal: killed"))
		l.want(t, f, `{"raw":"not {JSON"}`, "", `not {JSON`)
		l.want(t, f, `{"raw":""}`, "", `{"raw":""}`)
		l.want(t, f, `{"size":6291556}`, "", `"`+strings.Repeat("y", 6291554)+`"`)
		l.want(t, f, `{"size":6291557}`, "Unhandled",
			`{"errorType":"Function.ResponseSizeTooLarge","errorMessage":"Response payload size exceeded maximum allowed payload size (6291556 bytes)."}`)
		l.want(t, f, `{"b":2}`, "", `{"b":2}`)
		large := `"` + strings.Repeat("z", 6_000_000) + `"`
		l.want(t, f, large, "", large)
		out := l.invoke(t, f, `{"panic":"at the disco"}`)
		if out.FunctionError != "Unhandled" || !strings.HasPrefix(string(out.Payload), `{"errorMessage":"at the disco","errorType":"string","stackTrace":[{`) {
			t.Errorf("panic: %s", out.Payload)
		}
	})
}

func TestStartsThatFail(t *testing.T) {
	l := newLab(t, false)
	l.want(t, l.bootstrap("START", "exit0"), `{}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited without providing a reason"))
	l.want(t, l.bootstrap("START", "exit"), `{}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited with error: exit status 7"))
	if log := l.log(); !strings.Contains(log, "cannot start\n") {
		t.Errorf("what it printed is lost: %s", log)
	}
	l.want(t, l.bootstrap("START", "error"), `{}`, "Unhandled", `{"errorMessage":"no database","errorType":"StartError"}`)
	l.want(t, l.function(zipOf(map[string]string{"other": ""}), "provided.al2", "x"), `{}`, "Unhandled",
		failure("Runtime.InvalidEntrypoint", "Couldn't find valid bootstrap(s): [/var/task/bootstrap /opt/bootstrap]"))
	l.want(t, l.function(zipOf(map[string]string{"bootstrap": "no program"}), "provided.al2", "x"), `{}`, "Unhandled",
		failure("Runtime.InvalidEntrypoint", "fork/exec /var/task/bootstrap: exec format error"))
	_, err := l.pool.Invoke(t.Context(), invoke.Invocation{Target: l.function(nil, "cobol85", "x")})
	if !errors.Is(err, process.ErrRuntime) || !strings.Contains(err.Error(), "cobol85") {
		t.Errorf("a runtime that is not there: %v", err)
	}
	_, err = l.pool.Invoke(t.Context(), invoke.Invocation{Target: l.function([]byte("no zip"), "provided.al2", "x")})
	if fault.KindOf(err) != fault.InvalidZipFile {
		t.Errorf("code that is no zip: %v", err)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel() // it waits more than it works, as some below do
	each(t, func(t *testing.T, l *lab) {
		f := l.bootstrap()
		f.Timeout = 5 * time.Second // enough for what it does before it sleeps
		mark := markOf(t)
		l.want(t, f, `{"write":"kept","sleep":"1h","leak":"`+mark+`"}`, "Unhandled", failure("Sandbox.Timedout", "Task timed out after 5.00 seconds"))
		if log := l.log(); !strings.Contains(log, " "+requestID+" Task timed out after 5.00 seconds\n\nEND RequestId: "+requestID+"\n") ||
			!strings.Contains(log, "\tDuration: 5000.00 ms\t") || !strings.HasSuffix(log, "\tStatus: timeout\t\n") {
			t.Errorf("log: %s", log)
		}
		if processes(t, mark) > 0 {
			t.Error("what it started is left")
		}
		// Another process follows, with the same /tmp.
		f.Timeout = runTime
		l.want(t, f, `{"read":true}`, "", `"kept"`)
	})
}

func TestStartsThatHang(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		l := newLabWith(t, process.Options{Plain: plain, InitTime: time.Second})
		f := l.bootstrap("START", "hang")
		f.Timeout = time.Second
		// What is given to the start; and then again, within the function's time.
		l.want(t, f, `{}`, "Unhandled", failure("Sandbox.Timedout", "Task timed out after 1.00 seconds"))
	}
}

// markOf is a time for sleep(1) by which a test finds what it started.
func markOf(t *testing.T) string { return fmt.Sprintf("3155760%d.%d", os.Getpid(), len(t.Name())) }

// processes counts the processes with a text in their command lines.
func processes(t *testing.T, text string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if strings.Contains(string(line), text) {
			n++
		}
	}
	return n
}

var reportLine = regexp.MustCompile(`^REPORT RequestId: ` + requestID + `\tDuration: \d+\.\d\d ms\tBilled Duration: \d+ ms\tMemory Size: 128 MB\tMax Memory Used: [1-9]\d* MB\t(Init Duration: \d+\.\d\d ms\t)?\n$`)

func TestLog(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		f := l.bootstrap()
		out := l.invoke(t, f, `{"print":"one\ntwo\n\nno end"}`)
		lines := append([]string(nil), l.lines...)
		if got := l.log(); got != string(out.LogTail) {
			t.Errorf("tail %q, log %q", out.LogTail, got)
		}
		want := []string{"START RequestId: " + requestID + " Version: $LATEST\n", "one\n", "two\n", "\n", "no end", "END RequestId: " + requestID + "\n"}
		if !slices.Equal(lines[:len(lines)-1], want) {
			t.Errorf("lines %q", lines)
		}
		if m := reportLine.FindStringSubmatch(lines[len(lines)-1]); m == nil || m[1] == "" {
			t.Errorf("report of a cold start %q", lines[len(lines)-1])
		}
		out = l.invoke(t, f, `{"lines":5000}`)
		lines = append([]string(nil), l.lines...)
		l.log()
		if m := reportLine.FindStringSubmatch(lines[len(lines)-1]); m == nil || m[1] != "" {
			t.Errorf("report of a warm start %q", lines[len(lines)-1])
		}
		if len(lines) != 5003 || len(out.LogTail) != 4096 || !strings.HasSuffix(strings.Join(lines, ""), string(out.LogTail)) {
			t.Errorf("%d lines, tail of %d", len(lines), len(out.LogTail))
		}
		for i, line := range lines[1:5001] {
			if !strings.HasPrefix(line, fmt.Sprintf("%06d", i)) {
				t.Fatalf("line %d is %.20q", i, line)
			}
		}
		// A line without an end is cut at 256 KiB.
		l.invoke(t, f, `{"print":"`+strings.Repeat("p", 600<<10)+`"}`)
		lines = append([]string(nil), l.lines...)
		l.log()
		if len(lines) != 6 || len(lines[1]) != 256<<10 || len(lines[2]) != 256<<10 || len(lines[3]) != 88<<10 {
			t.Errorf("%d lines", len(lines))
		}
		l.invoke(t, f, `{"exit":3}`)
		if log := l.log(); !strings.Contains(log, "Runtime exited with error: exit status 3\nRuntime.ExitError\nEND ") ||
			!strings.HasSuffix(log, "\tStatus: error\tError Type: Runtime.ExitError\t\n") {
			t.Errorf("log of an exit: %q", log)
		}
	})
}

func TestContext(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		f := l.bootstrap("MINE", "yes", "AWS_ACCESS_KEY_ID", "own")
		f.Qualifier = "live"
		out, err := l.pool.Invoke(t.Context(), invoke.Invocation{
			Target: f, RequestID: requestID, Payload: []byte(`{"context":true}`),
			ClientContext: []byte(`{"custom":{"k":"v"}}`), Trace: "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
		})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			RequestID, ARN, Trace string
			Left                  float64
			Client                struct{ Custom map[string]string }
			UID                   int
		}
		if err := json.Unmarshal(out.Payload, &got); err != nil {
			t.Fatal(err)
		}
		if got.RequestID != requestID || got.ARN != "arn:aws:lambda:us-east-1:123456789012:function:f:live" || got.Client.Custom["k"] != "v" ||
			got.Trace != "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1" || got.Left <= 0 || got.Left > runTime.Seconds() {
			t.Errorf("%+v", got)
		}
		if os.Geteuid() == 0 && strings.Contains(t.Name(), "isolated") && got.UID < 1000 {
			t.Errorf("it runs as user %d", got.UID)
		}
		f.Qualifier = ""
		var env []string
		if err := json.Unmarshal(l.invoke(t, f, `{"env":true}`).Payload, &env); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"AWS_ACCESS_KEY_ID=123456789012", "AWS_DEFAULT_REGION=us-east-1", "AWS_ENDPOINT_URL=http://127.0.0.1:4566", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128",
			"AWS_LAMBDA_FUNCTION_NAME=f", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
			"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/f", "AWS_LAMBDA_LOG_STREAM_NAME=", "AWS_LAMBDA_RUNTIME_API=127.",
			"AWS_REGION=us-east-1", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=", "AWS_XRAY_CONTEXT_MISSING=LOG_ERROR", "AWS_XRAY_DAEMON_ADDRESS=",
			"GOMAXPROCS=1", "LAMBDA_RUNTIME_DIR=", "LAMBDA_TASK_ROOT=", "LANG=en_US.UTF-8", "LD_LIBRARY_PATH=/var/lang/lib:", "MINE=yes",
			"PATH=/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin", "PWD=", "SHLVL=0", "TZ=:UTC", "_AWS_XRAY_DAEMON_ADDRESS=",
			"_AWS_XRAY_DAEMON_PORT=2000", "_HANDLER=main", "_X_AMZN_TRACE_ID=Root=1-",
		}
		slices.Sort(env)
		env = slices.DeleteFunc(env, func(s string) bool { return strings.HasPrefix(s, "TMPDIR=") })
		if !slices.EqualFunc(want, env, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("environment:\n%s", strings.Join(env, "\n"))
		}
	})
}

func TestRuntimeAPI(t *testing.T) {
	l := newLab(t, false)
	f := l.bootstrap()
	l.want(t, f, `{"twice":true}`, "", `"first"`)
	eventually(t, func() bool { return strings.Contains(l.log(), "answered twice\n") })
	l.want(t, f, `{"read":true}`, "", `"202 403 400"`)
	raw := l.bootstrap("START", "raw")
	l.want(t, raw, `{"plain":1}`, "", `{"plain":1}`)
	l.want(t, raw, `""`, "", `""`)
	own := l.bootstrap("GOMAXPROCS", "7")
	if out := l.invoke(t, own, `{"env":true}`); !strings.Contains(string(out.Payload), `"GOMAXPROCS=7"`) {
		t.Errorf("what the configuration sets does not count: %s", out.Payload)
	}
}

// A process that registers an extension hears of its end.
func TestExtension(t *testing.T) {
	l := newLab(t, false)
	f := l.bootstrap("SIGTERM", "1")
	l.want(t, f, `1`, "", `1`)
	if err := l.pool.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log := l.log(); !strings.HasSuffix(log, "told to end\n") {
		t.Errorf("log: %s", log)
	}
}

// What a function leaves behind may print without an end: the answer does not wait
// for that.
func TestOutputWithoutAnEnd(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		f := l.bootstrap()
		l.want(t, f, `{"flood":true}`, "", `{"flood":true}`)
		l.want(t, f, `{"again":1}`, "", `{"again":1}`)
		l.want(t, f, `{"exit":1}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited with error: exit status 1"))
	})
}

func TestLeakedProcessesEndWithTheirFunction(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		mark := markOf(t)
		l.want(t, l.bootstrap(), `{"leak":"`+mark+`"}`, "", `{"leak":"`+mark+`"}`)
		eventually(t, func() bool { return processes(t, mark) > 0 })
		if err := l.pool.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := processes(t, mark); n > 0 {
			t.Errorf("%d processes are left", n)
		}
	})
}

// eventually waits for what a process does in its own time.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for range runTime / 5e6 {
		if done() {
			return
		}
		pause := make(chan struct{})
		clock.System.AfterFunc(5*time.Millisecond, func() { close(pause) })
		<-pause
	}
	t.Fatal("it does not happen")
}
