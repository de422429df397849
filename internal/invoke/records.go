package invoke

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
)

// level is the level of a log line in the JSON format. Source: the Lambda developer guide,
// "Log-level filtering".
type level int8

const (
	levelTrace level = iota
	levelDebug
	levelInfo
	levelWarn
	levelError
	levelFatal
)

// levels are the names of levels, Python's among them.
var levels = map[string]level{
	"TRACE": levelTrace, "DEBUG": levelDebug, "INFO": levelInfo, "WARN": levelWarn, "WARNING": levelWarn,
	"ERROR": levelError, "CRITICAL": levelFatal, "FATAL": levelFatal,
}

// levelOr reads the name of a level, in any case.
func levelOr(name string, other level) level {
	if l, ok := levels[strings.ToUpper(name)]; ok {
		return l
	}
	return other
}

// filter has the minimum levels of a log in the JSON format.
type filter struct{ application, system level }

// newFilter makes the filter of a function; nil: its log is text, and all is stored.
func newFilter(l function.Logging) *filter {
	if l.Format != function.JSONLogs {
		return nil
	}
	return &filter{levelOr(l.ApplicationLevel, levelInfo), levelOr(l.SystemLevel, levelInfo)}
}

// stamped has the members with a line's level and time, by the names of runtimes and their
// libraries.
type stamped struct {
	Level      json.RawMessage `json:"level"`
	LogLevel   json.RawMessage `json:"log_level"`
	Timestamp  json.RawMessage `json:"timestamp"`
	AtTime     json.RawMessage `json:"@timestamp"`
	Time       json.RawMessage `json:"time"`
	ShortStamp json.RawMessage `json:"ts"`
}

// line is the stored form of a printed line; nil: it is dropped. Its level and time are those
// of a JSON object with both; otherwise the level is INFO, and an object without a time gets
// one.
func (f *filter) line(line []byte, now time.Time) []byte {
	var parsed stamped
	object := bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) && json.Unmarshal(line, &parsed) == nil
	of, timed := levelInfo, false
	if object {
		for _, at := range []json.RawMessage{parsed.Timestamp, parsed.AtTime, parsed.Time, parsed.ShortStamp} {
			_, err := time.Parse(time.RFC3339Nano, text(at))
			timed = timed || err == nil
		}
		if timed {
			of = levelOr(text(parsed.Level), levelOr(text(parsed.LogLevel), levelInfo))
		}
	}
	switch {
	case of < f.application:
		return nil
	case !object || timed || parsed.Timestamp != nil:
		return line
	}
	members := line[bytes.IndexByte(line, '{')+1:]
	stamp := append([]byte(`{"timestamp":"`), now.UTC().Format(clock.ISO8601)...)
	stamp = append(stamp, '"')
	if bytes.TrimLeft(members, " \t\r\n")[0] != '}' {
		stamp = append(stamp, ',')
	}
	return append(stamp, members...)
}

// text is a member's, if it is a string.
func text(member json.RawMessage) (s string) {
	_ = json.Unmarshal(member, &s) // what is no string is no name and no time
	return s
}

// record is a platform line in the JSON format. Source: the Lambda developer guide, "Lambda
// Telemetry API Event schema reference".
type record struct {
	Time   string `json:"time"`
	Type   string `json:"type"`
	Record any    `json:"record"`
}

type startRecord struct {
	RequestID   string `json:"requestId"`
	FunctionARN string `json:"functionArn"`
	Version     string `json:"version"`
}

// doneRecord is of platform.runtimeDone and of platform.report.
type doneRecord struct {
	RequestID string        `json:"requestId"`
	Metrics   recordMetrics `json:"metrics"`
	Status    string        `json:"status"`
	ErrorType string        `json:"errorType,omitempty"`
}

// recordMetrics are in milliseconds, MB and bytes.
type recordMetrics struct {
	Duration float64 `json:"durationMs"`
	Produced *int    `json:"producedBytes,omitempty"` // of runtimeDone
	Billed   *int64  `json:"billedDurationMs,omitempty"`
	Memory   *int    `json:"memorySizeMB,omitempty"`
	Used     *int    `json:"maxMemoryUsedMB,omitempty"`
	Init     float64 `json:"initDurationMs,omitempty"`
}

// record writes a line of the platform, if its level is kept.
func (s *stream) record(of level, kind string, content any) {
	if of < s.filter.system {
		return
	}
	line, _ := json.Marshal(record{s.clock.Now().UTC().Format(clock.ISO8601), kind, content}) // strings and numbers always marshal
	s.put(append(line, '\n'))
}

// startRecord reports that an invocation begins.
func (s *stream) startRecord(in *Invocation) {
	s.record(levelInfo, "platform.start", startRecord{in.RequestID, in.Target.ARN().String(), in.Target.Version})
}

// endRecords write the result of an invocation.
func (s *stream) endRecords(in *Invocation, r *Result, billed time.Duration) {
	done := doneRecord{RequestID: in.RequestID, Metrics: recordMetrics{Duration: milliseconds(r.Duration), Produced: new(len(r.Payload))}, Status: "success"}
	doneLevel, reportLevel := levelDebug, levelInfo
	if f := r.Failure; f != nil {
		doneLevel, reportLevel = levelWarn, levelWarn
		done.Status, done.ErrorType = f.Status, f.Type
		if f.Status == "" {
			done.Status = StatusError
		}
	}
	s.record(doneLevel, "platform.runtimeDone", done)
	done.Metrics = recordMetrics{
		Duration: done.Metrics.Duration, Billed: new(billed.Milliseconds()), Memory: &in.Target.MemoryMB, Used: &r.MemoryMB, Init: milliseconds(r.Init),
	}
	s.record(reportLevel, "platform.report", done)
}

// milliseconds of a duration, to the microsecond.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
