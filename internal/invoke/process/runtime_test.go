package process_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/test/programs"
)

// events are what was logged since it was last asked for, one by one.
func (l *lab) events() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.lines
	l.lines = nil
	return events
}

// An exception, and whatever else is reported as one thing, is one event with its
// newlines, in its place among what is printed. What is only printed is an event a line.
func TestEventsOfSeveralLines(t *testing.T) {
	l := newLab(t, false)
	event := func(all []string, begin, end string) {
		t.Helper()
		if !slices.ContainsFunc(all, func(e string) bool {
			return strings.Contains(e, begin) && strings.Count(e, "\n") > 1 && strings.HasSuffix(e, end) && !strings.ContainsAny(e, "\r\x1e\x1f")
		}) {
			t.Errorf("no event of several lines with %q that ends with %q in %q", begin, end, all)
		}
	}
	python := l.managed(t, "python3.11", "app.handler", map[string]string{"app.py": `
import logging
def handler(event, context):
    print("one\ntwo")
    try:
        raise KeyError("inner")
    except KeyError:
        logging.exception("caught")
    if event: raise ValueError("bad\nworse" + "x" * 300000 if event > 1 else "bad\nworse")
`})
	python(`1`, "Unhandled", `{"errorMessage":"bad\nworse","errorType":"ValueError"}`)
	all := l.events()
	event(all, "\tcaught\nTraceback (most recent call last):\n", "KeyError: 'inner'\n")
	event(all, "[ERROR] ValueError: bad\nworse\nTraceback (most recent call last):\n  File \"/var/task/app.py\", line 9, in handler\n", "\n")
	if i := slices.Index(all, "one\n"); i < 0 || all[i+1] != "two\n" || !strings.HasPrefix(all[i+2], "[ERROR]\t") {
		t.Errorf("what is printed is not an event a line: %q", all)
	}
	l.invoke(t, l.function(zipOf(map[string]string{"app.py": `
def handler(event, context):
    raise ValueError("x" * 300000 + "\nend")
`}), "python3.11", "app.handler"), `1`)
	if long := strings.Join(l.events(), ""); strings.ContainsAny(long, "\x1e\x1f") || !strings.Contains(long, "x\nend\nTraceback") {
		t.Error("what is longer than an event is not as it was")
	}
	node := l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `
exports.handler = async () => { process.stdout.write("one\ntwo\n"); console.error(new TypeError("bad")); };`})
	node(`1`, "", `null`)
	all = l.events()
	event(all, "\tERROR\tTypeError: bad\n    at ", "\n")
	if !slices.Contains(all, "one\n") || !slices.Contains(all, "two\n") {
		t.Errorf("what is printed is not an event a line: %q", all)
	}
}

// A failure is told with its beginning, however much text it has, whatever it is called and whatever it is.
// The process goes on.
func TestFailuresOfAnySize(t *testing.T) {
	const most = 500_000
	for name, run := range map[string]struct {
		runtime, handler, file, text string
		want                         map[string]string
	}{
		"node": {"nodejs20.x", "index.handler", "index.js", `
let before = false;
exports.handler = async (kind) => {
	if (kind === "ok") return before;
	before = true;
	const long = "x".repeat(20e6);
	switch (kind) {
	case "message": throw new Error(long);
	case "escaped": throw new Error("\u0001".repeat(20e6));
	case "property": throw Object.assign(new Error("m"), { code: "C", long, list: Array(5e6).fill(1), all: Array(100).fill({ long }) });
	case "text": throw long;
	case "name": throw Object.assign(new Error("m"), { name: "Fehler\n\u9519" });
	case "long name": throw Object.assign(new Error("m"), { name: long });
	case "stack": throw Object.assign(new Error("m"), { stack: 1 });
	case "number": throw Object.assign(new Error("m"), { message: 10n });
	case "no text": throw Object.assign(new Error("m"), { message: { long } });
	case "object": throw { a: 1 };
	case "nothing": throw Object.create(null);
	}
};`, map[string]string{
			"message":   `{"errorMessage":"` + strings.Repeat("x", most) + `","errorType":"Error"}`,
			"escaped":   `{"errorMessage":"` + strings.Repeat(`\u0001`, most) + `","errorType":"Error"}`,
			"property":  `{"errorMessage":"m","errorType":"Error"}`,
			"text":      `{"errorMessage":"` + strings.Repeat("x", most) + `","errorType":"string"}`,
			"name":      `{"errorMessage":"m","errorType":"Fehler\n错"}`,
			"long name": `{"errorMessage":"m","errorType":"` + strings.Repeat("x", 1024) + `"}`,
			"stack":     `{"errorMessage":"callback called with Error argument, but there was a problem while retrieving one or more of its message, name, and stack","errorType":"handled"}`,
			"number":    `{"errorMessage":"callback called with Error argument, but there was a problem while retrieving one or more of its message, name, and stack","errorType":"handled"}`,
			"no text":   `{"errorMessage":"callback called with Error argument, but there was a problem while retrieving one or more of its message, name, and stack","errorType":"handled"}`,
			"object":    `{"errorMessage":"[object Object]","errorType":"object"}`,
			"nothing":   `{"errorMessage":"callback called with Error argument, but there was a problem while retrieving one or more of its message, name, and stack","errorType":"handled"}`,
		}},
		"python": {"python3.12", "app.handler", "app.py", `
before = []
def handler(kind, context):
    if kind == "ok":
        return bool(before)
    before.append(kind)
    if kind == "message":
        raise ValueError("x" * 20_000_000)
    if kind == "escaped":
        raise ValueError("\U0001F600" * 20_000_000)
    if kind == "name":
        raise type("Fehler\n\u9519", (Exception,), {})("m")
    if kind == "long name":
        raise type("x" * 2_000_000, (Exception,), {})("m")
    if kind == "surrogate":
        raise ValueError("\udc80")
    if kind == "deep":
        import sys
        sys.setrecursionlimit(70_000)
        def f(n):
            if n == 0:
                raise ValueError("m")
            g(n - 1)
        def g(n):
            f(n)
        f(30_000)
    if kind == "no text":
        class Mute(Exception):
            def __str__(self):
                raise ValueError()
        raise Mute()
`, map[string]string{
			"message":   `{"errorMessage":"` + strings.Repeat("x", most) + `","errorType":"ValueError"}`,
			"escaped":   `{"errorMessage":"` + strings.Repeat("😀", most) + `","errorType":"ValueError"}`,
			"name":      `{"errorMessage":"m","errorType":"Fehler\n错"}`,
			"long name": `{"errorMessage":"m","errorType":"` + strings.Repeat("x", 1024) + `"}`,
			"surrogate": `{"errorMessage":"�","errorType":"ValueError"}`,
			"deep":      `{"errorMessage":"m","errorType":"ValueError"}`,
			"no text":   `{"errorMessage":"the message of the error cannot be had: it raised ValueError","errorType":"Mute"}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, false)
			l.memory = 1024 // where the collector of the runtime is late, several failures are there at once
			call := l.managed(t, run.runtime, run.handler, map[string]string{run.file: run.text})
			for kind, want := range run.want {
				l.events()
				call(`"`+kind+`"`, "Unhandled", want)
				size := 0
				for _, e := range l.events() {
					size += len(e)
				}
				if size > 7*most {
					t.Errorf("%s: the log has %d bytes of it", kind, size)
				}
				call(`"ok"`, "", `true`) // the process has run another one
			}
		})
	}
}

// Only those whose scripts are ours speak in frames.
func TestFramesOfOthers(t *testing.T) {
	l := newLab(t, false)
	l.invoke(t, l.bootstrap(), `{"print":"\u001e\u001fa\u001fb\n"}`)
	if all := l.events(); !slices.Contains(all, "\x1e\x1fa\x1fb\n") {
		t.Errorf("events %q", all)
	}
}

// The tail of an invocation whose environment did not start reports why; that of the next
// one, which starts another, only its own.
func TestCauseOfAFailedStart(t *testing.T) {
	l := newLab(t, false)
	programs.Allow(t)
	if err := process.Installed(t.Context(), "python3.11"); err != nil {
		programs.Skip(t, err.Error())
	}
	f := l.function(zipOf(map[string]string{"app.py": "print('starting')\nimport nothing_of_the_kind\n"}), "python3.11", "app.handler")
	for range 2 {
		out := l.invoke(t, f, `1`)
		if got := string(out.LogTail); strings.Count(got, "starting\n") != 1 || strings.Count(got, "No module named 'nothing_of_the_kind'") != 1 ||
			!strings.Contains(got, "START RequestId: ") {
			t.Errorf("the tail is %q", got)
		}
	}
	// What is printed by a start that works is not in the tail.
	out := l.invoke(t, l.function(zipOf(map[string]string{"app.py": "print('starting')\ndef handler(e, c): print('running')\n"}), "python3.11", "app.handler"), `1`)
	if got := string(out.LogTail); strings.Contains(got, "starting") || !strings.Contains(got, "running\n") {
		t.Errorf("the tail is %q", got)
	}
}

// A function finds the environment that AWS gives, and itself among the users.
func TestEnvironmentOfPython(t *testing.T) {
	l := newLab(t, false)
	programs.Allow(t)
	if err := process.Installed(t.Context(), "python3.11"); err != nil {
		programs.Skip(t, err.Error())
	}
	f := l.function(zipOf(map[string]string{"app.py": `
import getpass, os, resource, stat
def handler(event, context):
    def of(path):
        s = os.stat(path)
        return "%s %d" % (stat.filemode(s.st_mode), s.st_uid)
    return {"env": dict(os.environ), "cwd": os.getcwd(), "user": getpass.getuser(), "task": of("/var/task"), "opt": of("/opt"), "tmp": of("/tmp"),
        "entrypoint": of("/lambda-entrypoint.sh"), "processes": resource.getrlimit(resource.RLIMIT_NPROC)[0],
        "locked": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}
`}), "python3.11", "app.handler")
	out := l.invoke(t, f, `1`)
	var got struct {
		Env                                   map[string]string
		Cwd, User, Task, Opt, Tmp, Entrypoint string
		Processes, Locked, Files              int
	}
	if err := json.Unmarshal(out.Payload, &got); err != nil {
		t.Fatalf("%s: %v", out.Payload, err)
	}
	for name, want := range map[string]string{
		"PWD": "/var/task", "SHLVL": "0", "PYTHONPATH": "/var/runtime",
		"LD_LIBRARY_PATH":          "/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib",
		"AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR", "_AWS_XRAY_DAEMON_PORT": "2000", "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001",
	} {
		if got.Env[name] != want {
			t.Errorf("%s is %q, want %q", name, got.Env[name], want)
		}
	}
	for name, form := range map[string]string{
		"PATH": `^/var/lang/bin:`, "AWS_XRAY_DAEMON_ADDRESS": `^[0-9.]+:2000$`, "_AWS_XRAY_DAEMON_ADDRESS": `^[0-9.]+$`,
	} {
		if !regexp.MustCompile(form).MatchString(got.Env[name]) {
			t.Errorf("%s is %q", name, got.Env[name])
		}
	}
	for _, name := range []string{"AWS_LAMBDA_LOG_FORMAT", "AWS_LAMBDA_LOG_LEVEL", "GOMAXPROCS"} {
		if value, ok := got.Env[name]; ok {
			t.Errorf("%s is %q", name, value)
		}
	}
	secrets := []string{got.Env["AWS_ACCESS_KEY_ID"], got.Env["AWS_SECRET_ACCESS_KEY"], got.Env["AWS_SESSION_TOKEN"]}
	if slices.Sort(secrets); secrets[0] == "" || len(slices.Compact(secrets)) != 3 {
		t.Errorf("credentials %v", secrets)
	}
	if os.Geteuid() == 0 && got.User != "sbx_user1051" {
		t.Errorf("it is called %q", got.User)
	}
	if got.Cwd != "/var/task" || got.Task != "drwxr-xr-x 0" || got.Opt != "drwxr-xr-x 0" || got.Tmp != "drwxrwxrwt 0" || got.Entrypoint != "-rwxr-xr-x 0" {
		t.Errorf("files: %+v", got)
	}
	if got.Processes > 742 || got.Locked > 65536 || got.Files > 1024 {
		t.Errorf("limits: %+v", got)
	}
}

// Functions import what a directory has for all of them, after their own.
func TestLibraries(t *testing.T) {
	libraries := t.TempDir()
	if err := os.Chmod(libraries, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nodejs/node_modules/@aws-sdk/client-sqs/package.json": `{"name":"@aws-sdk/client-sqs","main":"index.js"}`,
		"nodejs/node_modules/@aws-sdk/client-sqs/index.js":     `exports.from = require("smithy").from;`,
		"nodejs/node_modules/smithy/index.js":                  `exports.from = "libraries";`,
		"python/boto3/__init__.py":                             `source = "libraries"`,
	} {
		path := filepath.Join(libraries, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, plain := range []bool{false, true} {
		l := newLabWith(t, process.Options{Plain: plain, Libraries: libraries})
		l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.mjs": `
import { from } from "@aws-sdk/client-sqs";
export const handler = async () => from;`})(`1`, "", `"libraries"`)
		l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `
const { from } = require("@aws-sdk/client-sqs");
exports.handler = async () => from;`})(`1`, "", `"libraries"`)
		l.managed(t, "nodejs20.x", "index.handler", map[string]string{
			"index.js": `exports.handler = async () => require("smithy").from;`, "node_modules/smithy/index.js": `exports.from = "its own";`,
		})(`1`, "", `"its own"`)
		l.managed(t, "python3.11", "app.handler", map[string]string{"app.py": "import boto3\ndef handler(e, c): return boto3.source"})(`1`, "", `"libraries"`)
		l.managed(t, "python3.11", "app.handler", map[string]string{
			"app.py": "import boto3\ndef handler(e, c): return boto3.source", "boto3.py": `source = "its own"`,
		})(`1`, "", `"its own"`)
	}
	o := process.Options{Directory: t.TempDir(), Libraries: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	if _, err := process.New(o); err == nil || !strings.Contains(err.Error(), "nodejs/node_modules") {
		t.Errorf("a directory without libraries: %v", err)
	}
}

// A warning names a runtime that another version runs, once.
func TestOtherVersionsWarn(t *testing.T) {
	var log strings.Builder
	l := newLabWith(t, process.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l.managed(t, "nodejs99.x", "index.handler", map[string]string{"index.js": `exports.handler = async () => 1;`})(`1`, "", `1`)
	l.managed(t, "nodejs99.x", "index.handler", map[string]string{"index.js": `exports.handler = async () => 2;`})(`1`, "", `2`)
	if got := log.String(); strings.Count(got, "runtime=nodejs99.x") != 1 || !strings.Contains(got, "level=WARN") {
		t.Errorf("the log has %s", got)
	}
}
