package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/test/programs"
)

// managed makes a function of source files in a runtime of ours, or skips the
// test if this machine cannot run it.
func (l *lab) managed(t *testing.T, runtime, handler string, files map[string]string) func(payload, functionError, answer string) {
	t.Helper()
	programs.Allow(t)
	if err := process.Installed(t.Context(), runtime); err != nil {
		programs.Skip(t, err.Error())
	}
	f := l.function(zipOf(files), runtime, handler)
	return func(payload, functionError, answer string) {
		t.Helper()
		out := l.invoke(t, f, payload)
		got := string(out.Payload)
		if functionError != "" { // the stack is the machine's
			var fields map[string]any
			if err := json.Unmarshal(out.Payload, &fields); err != nil {
				t.Errorf("%s: %s", payload, got)
			}
			maps.DeleteFunc(fields, func(name string, _ any) bool { return name != "errorType" && name != "errorMessage" })
			short, _ := json.Marshal(fields)
			got = string(short)
		}
		if out.FunctionError != functionError || got != answer {
			t.Errorf("%s: %q %s\nwant %q %s\n%s", payload, out.FunctionError, out.Payload, functionError, answer, out.LogTail)
		}
	}
}

func TestNode(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		want := l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `
exports.handler = async (event, context) => {
	if (event.fail) throw new TypeError(event.fail);
	if (event.exit) process.exit(event.exit);
	if (event.nothing) return;
	if (event.circle) { const o = {}; o.o = o; return o; }
	if (event.context) return [context.functionName, context.functionVersion, context.memoryLimitInMB, context.awsRequestId,
		context.invokedFunctionArn, context.getRemainingTimeInMillis() > 1000, context.clientContext?.custom,
		process.env.AWS_EXECUTION_ENV, process.env._X_AMZN_TRACE_ID.length > 0];
	console.log("seen", event);
	return { seen: event, ü: "ü" };
};
exports.callback = (event, context, callback) => { setTimeout(() => callback(null, event + 1), 5); };`})
		want(`{"a":1}`, "", `{"seen":{"a":1},"ü":"ü"}`)
		if log := l.log(); !strings.Contains(log, "Z\t"+requestID+"\tINFO\tseen { a: 1 }\n") {
			t.Errorf("log: %s", log)
		}
		want(`{"nothing":1}`, "", `null`)
		want(`{"fail":"bad"}`, "Unhandled", `{"errorMessage":"bad","errorType":"TypeError"}`)
		want(`{"circle":true}`, "Unhandled", `{"errorMessage":"Unable to stringify response body as json","errorType":"Runtime.UnserializableResponse"}`)
		want(`{"context":1}`, "", `["f","$LATEST","128","`+requestID+`","arn:aws:lambda:us-east-1:123456789012:function:f",true,null,"AWS_Lambda_nodejs20.x",true]`)
		want(`{"exit":3}`, "Unhandled", `{"errorMessage":"RequestId: `+requestID+` Error: Runtime exited with error: exit status 3","errorType":"Runtime.ExitError"}`)
		want(`{}`, "", `{"seen":{},"ü":"ü"}`)
	})
}

// A failure is in the log as AWS writes it: with the error's code and properties, and its stack.
func TestNodeFailureLog(t *testing.T) {
	l := newLab(t, false)
	want := l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `
exports.handler = async (event) => {
	if (event.text) throw event.text;
	const err = new TypeError("bad", { cause: 1 });
	if (event.circle) err.self = err;
	throw Object.assign(err, { code: "E_BAD", retryable: true });
};`})
	for payload, begins := range map[string]string{
		`{}`:           `{"errorType":"TypeError","errorMessage":"bad","code":"E_BAD","retryable":true,"stack":["TypeError: bad","    at `,
		`{"circle":1}`: `{"errorType":"TypeError","errorMessage":"bad","trace":["TypeError: bad","    at `,
	} {
		want(payload, "Unhandled", `{"errorMessage":"bad","errorType":"TypeError"}`)
		if log := l.log(); !strings.Contains(log, "\tERROR\tInvoke Error \t"+begins) {
			t.Errorf("log: %s", log)
		}
	}
	want(`{"text":"no error"}`, "Unhandled", `{"errorMessage":"no error","errorType":"string"}`)
	if log := l.log(); !strings.Contains(log, "\tInvoke Error \t"+`{"errorType":"Error","errorMessage":"no error","stack":["Error: no error",`) {
		t.Errorf("log: %s", log)
	}
	l.managed(t, "nodejs20.x", "other.handler", map[string]string{"index.js": ``})(`1`, "Unhandled",
		`{"errorMessage":"Error: Cannot find module 'other'","errorType":"Runtime.ImportModuleError"}`)
	if log := l.log(); !strings.Contains(log, "\tUncaught Exception \t"+`{"errorType":"Runtime.ImportModuleError","errorMessage":"Error: Cannot find module 'other'","stack":["`) {
		t.Errorf("log: %s", log)
	}
}

func TestNodeHandlers(t *testing.T) {
	l := newLab(t, false)
	l.managed(t, "nodejs22.x", "src/app.callback", map[string]string{"src/app.js": `
exports.callback = (event, context, callback) => { setTimeout(() => callback(null, event + 1), 5); };`})(`1`, "", `2`)
	l.managed(t, "nodejs22.x", "index.handler", map[string]string{"index.mjs": `
import fs from "node:fs";
export const handler = async () => fs.existsSync("/");`})(`1`, "", `true`)
	l.managed(t, "nodejs22.x", "index.handler", map[string]string{"index.js": `export const handler = async (e) => e;`, "package.json": `{"type":"module"}`})(`5`, "", `5`)
	l.managed(t, "nodejs22.x", "index.handler", map[string]string{"index.js": `exports.handler = async () => "js";`, "index.mjs": `export const handler = async () => "mjs";`})(`1`, "", `"js"`)
	l.managed(t, "nodejs22.x", "index.handler", map[string]string{"index.cjs": `exports.handler = async () => "cjs";`, "index.mjs": `export const handler = async () => "mjs";`})(`1`, "", `"mjs"`)
	l.managed(t, "nodejs22.x", "app.handler", map[string]string{"app/index.js": `exports.handler = async () => "directory";`})(`1`, "", `"directory"`)
	l.managed(t, "nodejs22.x", "index.handler", map[string]string{"index.mjs": `import "absent"; export const handler = async () => 1;`})(`1`, "Unhandled",
		`{"errorMessage":"Cannot find package 'absent' imported from /var/task/index.mjs","errorType":"Error"}`)
	l.managed(t, "nodejs22.x", "index.handler", map[string]string{"index.js": `require("absent"); exports.handler = async () => 1;`})(`1`, "Unhandled",
		`{"errorMessage":"Error: Cannot find module 'absent'\nRequire stack:\n- /var/task/index.js\n- /var/task/package.json","errorType":"Runtime.ImportModuleError"}`)
	l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `exports.handler = () => "ignored";`})(`1`, "", `null`)
	l.managed(t, "nodejs20.x", "index.absent", map[string]string{"index.js": `exports.handler = () => 1;`})(`1`, "Unhandled",
		`{"errorMessage":"index.absent is undefined or not exported","errorType":"Runtime.HandlerNotFound"}`)
	l.managed(t, "nodejs20.x", "other.handler", map[string]string{"index.js": ``})(`1`, "Unhandled",
		`{"errorMessage":"Error: Cannot find module 'other'","errorType":"Runtime.ImportModuleError"}`)
	l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `throw new RangeError("early")`})(`1`, "Unhandled",
		`{"errorMessage":"early","errorType":"RangeError"}`)
	l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `
exports.handler = async () => { setTimeout(() => { throw new Error("later") }, 1); await new Promise((r) => setTimeout(r, 5000)); };`})(`1`, "Unhandled",
		`{"errorMessage":"later","errorType":"Error"}`)
}

// A handler of Node.js that lets go of its invocation, or gives its answer in several ways, is
// answered as with AWS's runtime interface client.
func TestNodeEnds(t *testing.T) {
	l := newLab(t, false)
	want := l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `
const busy = () => { const timer = setInterval(() => {}, 1000); setTimeout(() => clearInterval(timer), 60_000); };
const never = () => new Promise(() => {});
const kinds = {
	reject: async () => { Promise.reject(new RangeError("lost")); await new Promise((r) => setTimeout(r, 5000)); },
	"reject nothing": async () => { Promise.reject(Object.create(null)); await new Promise((r) => setTimeout(r, 5000)); },
	throw: async () => { setTimeout(() => { throw new RangeError("later") }); await new Promise((r) => setTimeout(r, 5000)); },
	succeed: (event, context) => { busy(); context.succeed("now"); context.succeed("again"); },
	fail: (event, context) => { busy(); context.fail("why"); },
	done: (event, context) => { busy(); context.done(null, "done"); },
	both: (event, context, callback) => { callback(null, "called"); return Promise.resolve("returned"); },
	twice: (event, context, callback) => { callback(null, 1); callback(null, 2); },
	"no wait": (event, context, callback) => { busy(); context.callbackWaitsForEmptyEventLoop = false; callback(null, "no wait"); },
	forget: () => {},
	never,
	sync: () => { throw new TypeError("at once") },
};
exports.handler = (event, context, callback) => kinds[event](event, context, callback);`})
	for range 2 { // the process is the same, or a new one
		for _, tt := range []struct{ kind, functionError, answer string }{
			{"reject", "Unhandled", `{"errorMessage":"RangeError: lost","errorType":"Runtime.UnhandledPromiseRejection"}`},
			{"reject nothing", "Unhandled", `{"errorMessage":"","errorType":"Runtime.UnhandledPromiseRejection"}`},
			{"throw", "Unhandled", `{"errorMessage":"later","errorType":"RangeError"}`},
			{"both", "", `"called"`},
			{"twice", "", `1`},
			{"forget", "", `null`},
			{"never", "", `null`},
			{"sync", "Unhandled", `{"errorMessage":"at once","errorType":"TypeError"}`},
			{"succeed", "", `"now"`},
			{"fail", "Unhandled", `{"errorMessage":"why","errorType":"string"}`},
			{"done", "", `"done"`},
			{"no wait", "", `"no wait"`},
		} {
			want(`"`+tt.kind+`"`, tt.functionError, tt.answer)
		}
	}
	want = l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `exports.handler = async () => new Promise(() => {});`})
	never := `{"errorMessage":"The Lambda runtime client detected an unexpected Node.js exit code. This is most commonly caused by a Promise that was never settled. ` +
		`For more information, see https://nodejs.org/docs/latest/api/process.html#exit-codes","errorType":"Runtime.NodeJsExit"}`
	want(`1`, "Unhandled", never)
	want(`1`, "Unhandled", never)
	l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.mjs": `
Promise.reject(new RangeError("early")); await new Promise((r) => setTimeout(r, 1000)); export const handler = async () => 1;`})(`1`, "Unhandled",
		`{"errorMessage":"RangeError: early","errorType":"Runtime.UnhandledPromiseRejection"}`)
}

// An error that nothing catches while a process of Node.js waits for its first invocation ends it at
// once: nobody is to be told.
func TestNodeEndsWhileIdle(t *testing.T) {
	programs.Allow(t)
	if err := process.Installed(t.Context(), "nodejs20.x"); err != nil {
		programs.Skip(t, err.Error())
	}
	told, begun := make(chan string, 8), make(chan *os.Process, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		told <- r.Method + " " + path.Base(r.URL.Path)
		select {
		case p := <-begun:
			_ = p.Signal(syscall.SIGUSR2) // it waits now
		case <-r.Context().Done():
		}
		<-r.Context().Done() // there is no invocation
	}))
	defer api.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.js"), []byte(`process.on("SIGUSR2", () => { throw new Error("later") }); exports.handler = async () => 1;`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "runtime/bootstrap.mjs")
	cmd.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "LAMBDA_TASK_ROOT="+dir, "_HANDLER=index.handler")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun <- cmd.Process
	_ = cmd.Wait() // how it ended is looked at below
	var all []string
	for range len(told) {
		all = append(all, <-told)
	}
	if code := cmd.ProcessState.ExitCode(); code != 129 || !slices.Equal(all, []string{"GET next"}) || !strings.Contains(out.String(), "later") {
		t.Errorf("it ended with %d, after %q:\n%s", code, all, &out)
	}
}

// What a handler of Node.js writes to a stream is gathered for the caller.
func TestNodeStreams(t *testing.T) {
	l := newLab(t, false)
	want := l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.mjs": `
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
const kinds = {
	parts: async (out) => { out.setContentType("text/plain"); out.write("a"); await new Promise((r) => setTimeout(r, 5)); out.write({ b: 1 }); out.end("c"); },
	piped: async (out) => { await pipeline(Readable.from(["x", "y"]), out); },
	later: async (out) => { setTimeout(() => out.end("late"), 20); },
	http: async (out) => { const http = awslambda.HttpResponseStream.from(out, { statusCode: 201 }); http.write("body"); http.end(); },
	fail: async (out) => { out.write("a"); throw new RangeError("bad"); },
	open: async (out) => { out.write("a"); },
	never: async (out) => { out.write("a"); await new Promise(() => {}); },
	sync: (out) => { out.end("a"); },
};
export const handler = awslambda.streamifyResponse((event, out, context) => context.awsRequestId && kinds[event](out));`})
	for range 2 {
		want(`"parts"`, "", `a{"b":1}c`)
		want(`"piped"`, "", `xy`)
		want(`"later"`, "", `late`)
		want(`"http"`, "", "{\"statusCode\":201}"+strings.Repeat("\x00", 8)+"body")
		want(`"fail"`, "Unhandled", `{"errorMessage":"bad","errorType":"RangeError"}`)
		want(`"open"`, "Unhandled", `{"errorMessage":"Response stream is not finished.","errorType":"string"}`)
		want(`"never"`, "Unhandled", `{"errorMessage":"Response stream is not finished.","errorType":"string"}`)
		want(`"sync"`, "Unhandled", `{"errorMessage":"Streaming does not support non-async handlers.","errorType":"string"}`)
	}
}

func TestPython(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		want := l.managed(t, "python3.12", "app.handler", map[string]string{"app.py": `
import json, logging, os, sys
def handler(event, context):
    if "fail" in event: raise ValueError(event["fail"])
    if "exit" in event: sys.exit(event["exit"])
    if "set" in event: return {1, 2}
    if "context" in event: return [context.function_name, context.aws_request_id, context.invoked_function_arn,
        context.get_remaining_time_in_millis() > 1000, context.client_context, os.environ["AWS_EXECUTION_ENV"]]
    print("seen", event)
    logging.getLogger().warning("careful")
    return {"seen": event, "ü": "ü"}
`})
		want(`{"a":1}`, "", `{"seen": {"a": 1}, "ü": "ü"}`)
		if log := l.log(); !strings.Contains(log, "seen {'a': 1}\n[WARNING]\t") || !strings.Contains(log, "Z\t"+requestID+"\tcareful\n") {
			t.Errorf("log: %s", log)
		}
		want(`{"fail":"bad"}`, "Unhandled", `{"errorMessage":"bad","errorType":"ValueError"}`)
		want(`{"set":1}`, "Unhandled", `{"errorMessage":"Unable to marshal response: Object of type set is not JSON serializable","errorType":"Runtime.MarshalError"}`)
		want(`{"context":1}`, "", `["f", "`+requestID+`", "arn:aws:lambda:us-east-1:123456789012:function:f", true, null, "AWS_Lambda_python3.12"]`)
		want(`{"exit":3}`, "Unhandled", `{"errorMessage":"RequestId: `+requestID+` Error: Runtime exited with error: exit status 3","errorType":"Runtime.ExitError"}`)
	})
}

// The context of a handler of Python has the attributes that AWS documents, given or not.
func TestPythonContext(t *testing.T) {
	programs.Allow(t)
	if err := process.Installed(t.Context(), "python3.12"); err != nil {
		programs.Skip(t, err.Error())
	}
	l := newLab(t, false)
	f := l.function(zipOf(map[string]string{"app.py": `
def handler(event, context):
    c = context.client_context
    return [context.identity.cognito_identity_id, context.identity.cognito_identity_pool_id, context.tenant_id,
        c and [c.client and [c.client.installation_id, c.client.app_title, c.client.app_package_name], c.custom, c.env]]
`}), "python3.12", "app.handler")
	for given, want := range map[string]string{
		``:                   `[null, null, null, null]`,
		`{"custom":{"k":1}}`: `[null, null, null, [null, {"k": 1}, null]]`,
		`{"client":{"app_title":"t","installation_id":"i"},"env":{"e":"f"}}`: `[null, null, null, [["i", "t", null], null, {"e": "f"}]]`,
	} {
		out, err := l.pool.Invoke(t.Context(), invoke.Invocation{Target: f, RequestID: requestID, Payload: []byte(`{}`), ClientContext: []byte(given)})
		if err != nil || out.FunctionError != "" || string(out.Payload) != want {
			t.Errorf("%s: %s %s, %v; want %s", given, out.FunctionError, out.Payload, err, want)
		}
	}
}

// A stack has the file and the source of each call, and no marks beneath, as on AWS.
func TestPythonStack(t *testing.T) {
	programs.Allow(t)
	if err := process.Installed(t.Context(), "python3.12"); err != nil {
		programs.Skip(t, err.Error())
	}
	l := newLab(t, false)
	f := l.function(zipOf(map[string]string{"app.py": "def handler(event, context):\n    return 1 + len(event['a'])\n"}), "python3.12", "app.handler")
	l.want(t, f, `{}`, "Unhandled", `{"errorMessage": "'a'", "errorType": "KeyError", "requestId": "`+requestID+
		`", "stackTrace": ["  File \"/var/task/app.py\", line 2, in handler\n    return 1 + len(event['a'])\n"]}`)
}

// What a handler logs is an event of its own behind output that has not ended its line, and so
// is the failure.
func TestLogBehindOpenLine(t *testing.T) {
	for _, tt := range []struct{ runtime, handler, file, text string }{
		{"nodejs20.x", "index.handler", "index.js", `
exports.handler = async (event) => { process.stdout.write("open"); console.error("two\nlines"); process.stdout.write("open"); console.error("one line"); process.stdout.write("open"); throw new RangeError("end"); };`},
		{"python3.12", "app.handler", "app.py", `
import logging, sys
def handler(event, context):
    for text in "two\nlines", "one line":
        sys.stdout.write("open"); logging.getLogger().error(text)
    sys.stdout.write("open")
    raise ValueError("end")`},
	} {
		for _, format := range []string{function.TextLogs, function.JSONLogs} {
			t.Run(tt.runtime+" "+format, func(t *testing.T) {
				programs.Allow(t)
				if err := process.Installed(t.Context(), tt.runtime); err != nil {
					programs.Skip(t, err.Error())
				}
				l := newLab(t, false)
				f := l.function(zipOf(map[string]string{tt.file: tt.text}), tt.runtime, tt.handler)
				f.Logging = function.Logging{Format: format, ApplicationLevel: "INFO", SystemLevel: "WARN"}
				l.invoke(t, f, `{}`)
				l.mu.Lock()
				lines := slices.Clone(l.lines)
				l.mu.Unlock()
				if text := strings.Join(lines, ""); strings.Contains(text, "\x1e") {
					t.Errorf("the log has marks: %q", text)
				}
				open := 0
				for i, line := range lines {
					if line == "open" && i+1 < len(lines) {
						open++
						if next := lines[i+1]; next[0] != '[' && next[0] != '{' && next[:2] != "20" {
							t.Errorf("%q comes behind the open line", next)
						}
					}
				}
				if open != 3 {
					t.Errorf("%d open lines are events: %q", open, lines)
				}
			})
		}
	}
}

func TestPythonHandlers(t *testing.T) {
	l := newLab(t, false)
	l.managed(t, "python3.11", "pkg/mod.f", map[string]string{"pkg/mod.py": "def f(e, c): return None", "pkg/__init__.py": ""})(`1`, "", `null`)
	l.managed(t, "python3.11", "app.absent", map[string]string{"app.py": ""})(`1`, "Unhandled",
		`{"errorMessage":"Handler 'absent' missing on module 'app'","errorType":"Runtime.HandlerNotFound"}`)
	l.managed(t, "python3.11", "other.f", map[string]string{"app.py": ""})(`1`, "Unhandled",
		`{"errorMessage":"Unable to import module 'other': No module named 'other'","errorType":"Runtime.ImportModuleError"}`)
	l.managed(t, "python3.11", "app.f", map[string]string{"app.py": "x ="})(`1`, "Unhandled",
		`{"errorMessage":"Syntax error in module 'app': invalid syntax (app.py, line 1)","errorType":"Runtime.UserCodeSyntaxError"}`)
	l.managed(t, "python3.11", "noDot", map[string]string{"app.py": ""})(`1`, "Unhandled",
		`{"errorMessage":"Bad handler 'noDot': not enough values to unpack (expected 2, got 1)","errorType":"Runtime.MalformedHandlerName"}`)
}

// Decimal numbers are numbers, and texts have their characters from 3.12 on, as with AWS.
func TestPythonAnswers(t *testing.T) {
	l := newLab(t, false)
	text := `
from decimal import Decimal
def f(e, c): return {"ü": [Decimal(n) for n in ("10", "3.14", "-1.0", "nan", "-nan", "12345678901234567890")]}`
	l.managed(t, "python3.11", "app.f", map[string]string{"app.py": text})(`1`, "", `{"\u00fc": [10, 3.14, -1.0, NaN, NaN, 12345678901234567890]}`)
	l.managed(t, "python3.12", "app.f", map[string]string{"app.py": text})(`1`, "", `{"ü": [10, 3.14, -1.0, NaN, NaN, 12345678901234567890]}`)
	l.managed(t, "python3.12", "app.f", map[string]string{"app.py": "def f(e, c): return b''"})(`1`, "Unhandled",
		`{"errorMessage":"Unable to marshal response: Object of type bytes is not JSON serializable","errorType":"Runtime.MarshalError"}`)
}
