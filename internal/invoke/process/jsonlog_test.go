package process_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/test/programs"
)

// In the JSON format what a handler logs is objects with levels, in every language
// that we run the handler of.
func TestJSONLogs(t *testing.T) {
	type object = map[string]any
	for _, tt := range []struct {
		runtime, handler, file, text string
		want                         []any
	}{
		{"nodejs20.x", "index.handler", "index.js", `
exports.handler = async (event) => {
	console.debug("not at this level");
	console.log("seen", event);
	console.info({ a: { b: 1 } });
	console.warn("careful");
	console.error("with", new TypeError("bad"));
	console.error(new TypeError("alone"));
	console.warn(Object.assign(new Error("own"), { code: "E1", seen: { times: 2 } }));
	console.fatal("worst");
	const o = {}; o.o = o; console.log(o);
	throw new RangeError("end");
};`, []any{
			object{"level": "INFO", "message": "seen { x: 1 }"},
			object{"level": "INFO", "message": object{"a": object{"b": 1.0}}},
			object{"level": "WARN", "message": "careful"},
			object{"level": "ERROR", "message": "with TypeError: bad", "errorType": "TypeError", "errorMessage": "bad"},
			object{"level": "ERROR", "message": object{"errorType": "TypeError", "errorMessage": "alone"}},
			object{"level": "WARN", "message": object{"errorType": "Error", "errorMessage": "own", "code": "E1", "seen": object{"times": 2.0}}},
			object{"level": "FATAL", "message": "worst"},
			object{"level": "INFO", "message": "<ref *1> { o: [Circular *1] }"},
			object{"level": "ERROR", "message": object{"errorType": "RangeError", "errorMessage": "end"}},
		}},
		{"python3.12", "app.handler", "app.py", `
import logging
def handler(event, context):
    logging.debug("not at this level")
    logging.getLogger("mine").info("seen %s", event, extra={"a": {"b": 1}})
    print("plain")
    logging.warning("careful")
    try:
        raise KeyError("bad")
    except KeyError:
        logging.exception("with")
    raise ValueError("end")
`, []any{
			object{"level": "INFO", "message": "seen {'x': 1}", "logger": "mine", "a": object{"b": 1.0}},
			"plain\n",
			object{"level": "WARNING", "message": "careful", "logger": "root"},
			object{"level": "ERROR", "message": "with", "logger": "root", "errorType": "KeyError", "errorMessage": "'bad'"},
			object{"log_level": "ERROR", "errorType": "ValueError", "errorMessage": "end"},
		}},
	} {
		t.Run(tt.runtime, func(t *testing.T) {
			programs.Allow(t)
			if err := process.Installed(t.Context(), tt.runtime); err != nil {
				programs.Skip(t, err.Error())
			}
			l := newLab(t, false)
			f := l.function(zipOf(map[string]string{tt.file: tt.text}), tt.runtime, tt.handler)
			f.Logging = function.Logging{Format: function.JSONLogs, ApplicationLevel: "INFO", SystemLevel: "WARN"}
			l.invoke(t, f, `{"x":1}`)
			var got []any
			for line := range strings.Lines(l.log()) {
				var o object
				if json.Unmarshal([]byte(line), &o) != nil {
					got = append(got, line)
					continue
				}
				if o["type"] != nil {
					break // the platform's
				}
				stamp, _ := o["timestamp"].(string)
				if _, err := time.Parse("2006-01-02T15:04:05.000Z", stamp); err != nil || !strings.HasPrefix(stamp, "20") {
					t.Errorf("a line without a time: %s", line)
				}
				if o["requestId"] != requestID {
					t.Errorf("a line without the request: %s", line)
				}
				if text, ok := o["message"].(string); ok {
					o["message"], _, _ = strings.Cut(text, "\n") // where the stack begins
				}
				for _, of := range []any{o, o["message"]} {
					if of, ok := of.(object); ok {
						if of["errorType"] != nil && len(of["stackTrace"].([]any)) == 0 {
							t.Errorf("an error without a stack: %s", line)
						}
						maps.DeleteFunc(of, func(name string, _ any) bool {
							return name == "timestamp" || name == "requestId" || name == "stackTrace"
						})
					}
				}
				got = append(got, o)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// What a module of Node.js logs as it is loaded is of no request, and FATAL is of every level.
func TestLogsOfAStart(t *testing.T) {
	programs.Allow(t)
	if err := process.Installed(t.Context(), "nodejs20.x"); err != nil {
		programs.Skip(t, err.Error())
	}
	code := zipOf(map[string]string{"index.js": `console.error("unseen"); console.fatal("early"); exports.handler = async () => {};`})
	for want, logging := range map[string]function.Logging{
		`"level":"FATAL","message":"early"`: {Format: function.JSONLogs, ApplicationLevel: "FATAL", SystemLevel: "WARN"},
		"\tundefined\tFATAL\tearly":         {Format: function.TextLogs},
	} {
		l := newLab(t, false)
		f := l.function(code, "nodejs20.x", "index.handler")
		f.Logging = logging
		l.invoke(t, f, `{}`)
		if log := l.log(); !strings.Contains(log, want) || logging.Format == function.JSONLogs && strings.Contains(log, "unseen") {
			t.Errorf("the log is %s", log)
		}
	}
}

// The environment tells the format JSON and the level to the libraries that care.
func TestLogEnvironment(t *testing.T) {
	l := newLab(t, false)
	script := zipOf(map[string]string{"bootstrap": "#!/bin/sh\n" +
		`echo "{\"time\":\"2026-01-01T00:00:00Z\",\"level\":\"FATAL\",\"is\":\"${AWS_LAMBDA_LOG_FORMAT-none} ${AWS_LAMBDA_LOG_LEVEL-none}\"}"` + "\nexit 1\n"})
	for want, logging := range map[string]function.Logging{
		"none none":  {Format: function.TextLogs},
		"JSON ERROR": {Format: function.JSONLogs, ApplicationLevel: "ERROR", SystemLevel: "INFO"},
	} {
		f := l.function(script, "provided.al2023", "x")
		f.Logging = logging
		l.invoke(t, f, `{}`)
		if log := l.log(); !strings.HasPrefix(log, `{"time":"2026-01-01T00:00:00Z","level":"FATAL","is":"`+want+`"}`) {
			t.Errorf("the log is %s", log)
		}
	}
}
