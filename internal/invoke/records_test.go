package invoke

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
)

// kept are the lines of a log.
type kept []string

func (k *kept) Rights(*function.Target, arn.ARN, string) authorize.LogRights {
	return authorize.AllLogRights
}

func (k *kept) Put(_ arn.ARN, _ string, _ time.Time, line []byte, _ authorize.LogRights) {
	*k = append(*k, string(line))
}

// jsonStream is a stream in the JSON format at a moment of 2026.
func jsonStream(application, system string) (*stream, *Invocation, *kept) {
	in := &Invocation{Target: target("f"), RequestID: "id"}
	in.Target.MemoryMB = 128
	in.Target.Logging = function.Logging{Format: function.JSONLogs, ApplicationLevel: application, SystemLevel: system}
	var log kept
	return newStream(&log, clock.NewVirtual(time.Date(2026, 10, 8, 7, 30, 29, 470_000_000, time.UTC)), &in.Target), in, &log
}

// The records of the platform, by their levels.
func TestRecords(t *testing.T) {
	const (
		begin   = `{"time":"2026-10-08T07:30:29.470Z","type":"platform.`
		start   = begin + `start","record":{"requestId":"id","functionArn":"arn:aws:lambda:us-east-1:123456789012:function:f","version":"$LATEST"}}` + "\n"
		done    = begin + `runtimeDone","record":{"requestId":"id","metrics":{"durationMs":3.01,"producedBytes":2},"status":"success"}}` + "\n"
		report  = begin + `report","record":{"requestId":"id","metrics":{"durationMs":3.01,"billedDurationMs":114,"memorySizeMB":128,"maxMemoryUsedMB":36,"initDurationMs":110.1},"status":"success"}}` + "\n"
		late    = begin + `runtimeDone","record":{"requestId":"id","metrics":{"durationMs":3000,"producedBytes":0},"status":"timeout","errorType":"Sandbox.Timedout"}}` + "\n"
		lateEnd = begin + `report","record":{"requestId":"id","metrics":{"durationMs":3000,"billedDurationMs":3000,"memorySizeMB":128,"maxMemoryUsedMB":0},"status":"timeout","errorType":"Sandbox.Timedout"}}` + "\n"
		bad     = begin + `runtimeDone","record":{"requestId":"id","metrics":{"durationMs":0.001,"producedBytes":0},"status":"error","errorType":"TypeError"}}` + "\n"
		badEnd  = begin + `report","record":{"requestId":"id","metrics":{"durationMs":0.001,"billedDurationMs":1,"memorySizeMB":128,"maxMemoryUsedMB":0},"status":"error","errorType":"TypeError"}}` + "\n"
	)
	success := Result{Payload: []byte("{}"), Duration: 3010 * time.Microsecond, Init: 110100 * time.Microsecond, MemoryMB: 36}
	timeout := Result{Duration: 3 * time.Second, Failure: &Failure{Type: TypeTimedOut, Message: "late", Status: StatusTimeout}}
	failure := Result{Duration: time.Microsecond, Failure: &Failure{Type: "TypeError", Body: []byte("{}")}}
	for _, tt := range []struct {
		level string
		r     Result
		want  kept
	}{
		{"DEBUG", success, kept{start, done, report}},
		{"INFO", success, kept{start, report}},
		{"WARN", success, nil},
		{"DEBUG", timeout, kept{start, late, lateEnd}},
		{"INFO", timeout, kept{start, late, lateEnd}},
		{"WARN", timeout, kept{late, lateEnd}},
		{"WARN", failure, kept{bad, badEnd}},
	} {
		s, in, log := jsonStream("INFO", tt.level)
		in.Tail = true
		s.begin(in, true)
		tail := s.end(in, &tt.r, billed(&tt.r))
		if d := cmp.Diff(tt.want, *log); d != "" {
			t.Errorf("from %s on (-want +got):\n%s", tt.level, d)
		}
		if string(tail) != strings.Join(tt.want, "") {
			t.Errorf("the tail is %s", tail)
		}
	}
}

// What the function prints, by the levels that it tells.
func TestLevels(t *testing.T) {
	const now = `"timestamp":"2026-10-08T07:30:29.470Z"`
	for _, tt := range []struct{ line, want, least string }{ // least: the gravest level at which it is kept
		{"plain\n", "plain\n", "INFO"},
		{"{not JSON\n", "{not JSON\n", "INFO"},
		{`["level","FATAL"]`, `["level","FATAL"]`, "INFO"},
		{`{"timestamp":"2026-10-08T07:00:00Z","level":"debug"}`, `{"timestamp":"2026-10-08T07:00:00Z","level":"debug"}`, "DEBUG"},
		{`{"time":"2026-10-08T09:00:00.123456+02:00","level":"TRACE"}`, `{"time":"2026-10-08T09:00:00.123456+02:00","level":"TRACE"}`, "TRACE"},
		{`{"@timestamp":"2026-10-08T07:00:00Z","level":"warning"}`, `{"@timestamp":"2026-10-08T07:00:00Z","level":"warning"}`, "WARN"},
		{`{"ts":"2026-10-08T07:00:00Z","log_level":"ERROR"}`, `{"ts":"2026-10-08T07:00:00Z","log_level":"ERROR"}`, "ERROR"},
		{` {"timestamp":"2026-10-08T07:00:00Z","level":"CRITICAL"}`, ` {"timestamp":"2026-10-08T07:00:00Z","level":"CRITICAL"}`, "FATAL"},
		{`{"timestamp":"2026-10-08T07:00:00Z","level":30}`, `{"timestamp":"2026-10-08T07:00:00Z","level":30}`, "INFO"},
		{`{"timestamp":"2026-10-08T07:00:00Z","level":"loud"}`, `{"timestamp":"2026-10-08T07:00:00Z","level":"loud"}`, "INFO"},
		// Without a time the level does not count.
		{`{"level":"ERROR","a":1}` + "\n", `{` + now + `,"level":"ERROR","a":1}` + "\n", "INFO"},
		{`{"level":"DEBUG"}`, `{` + now + `,"level":"DEBUG"}`, "INFO"},
		{`{}`, `{` + now + `}`, "INFO"},
		{`{"timestamp":"today","level":"ERROR"}`, `{"timestamp":"today","level":"ERROR"}`, "INFO"},
		{`{"timestamp":1790000000,"level":"ERROR"}`, `{"timestamp":1790000000,"level":"ERROR"}`, "INFO"},
	} {
		for _, name := range []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"} {
			s, _, log := jsonStream(name, "WARN")
			s.Line([]byte(tt.line))
			want := kept{tt.want}
			if levels[name] > levels[tt.least] {
				want = nil
			}
			if d := cmp.Diff(want, *log); d != "" {
				t.Errorf("%s from %s on (-want +got):\n%s", tt.line, name, d)
			}
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, line := range []string{"", "x", "{", "{}", ` { "a" : [{}] } `, `{"timestamp":null}`, `{"level":"WARN","time":"2026-10-08T07:00:00Z"}`} {
		f.Add(line)
	}
	now := time.Date(2026, 10, 8, 7, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, line string) {
		all := filter{levelTrace, levelTrace}
		got := string(all.line([]byte(line), now))
		if got == line {
			return
		}
		var before, after map[string]any
		if json.Unmarshal([]byte(line), &before) != nil || json.Unmarshal([]byte(got), &after) != nil {
			t.Fatalf("%q became %q", line, got)
		}
		if before == nil {
			before = map[string]any{}
		}
		before["timestamp"] = "2026-10-08T07:00:00.000Z"
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%q became %q:\n%s", line, got, d)
		}
	})
}
