package invoke

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/function"
)

// tailSize is how much of its log an invocation answers with, in bytes.
const tailSize = 4096

// stream is the log stream of an environment. It receives the function's output and the
// platform's lines.
type stream struct {
	log    Log // may be nil
	clock  clock.Clock
	target *function.Target
	group  arn.ARN
	name   string
	filter *filter // of the JSON format; nil: text

	mu      sync.Mutex
	rights  authorize.LogRights // of the function's role
	tailing bool                // lines are kept for a caller, or may be
	tail    []byte              // of the invocation; before one, of the start
}

func newStream(log Log, c clock.Clock, t *function.Target) *stream {
	var id [16]byte
	rand.Read(id[:])
	group := t.Logging.Group
	if group == "" {
		group = "/aws/lambda/" + t.Name
	}
	s := &stream{
		log: log, clock: c, target: t, tailing: true,
		group:  arn.LogGroup(t.Function.Region, t.Function.Account, group),
		name:   c.Now().Format("2006/01/02") + "/[" + t.Version + "]" + hex.EncodeToString(id[:]),
		filter: newFilter(t.Logging),
	}
	s.rights = s.ask()
	return s
}

// ask returns the rights of the function's role on the log stream.
func (s *stream) ask() (none authorize.LogRights) {
	if s.log == nil {
		return none
	}
	return s.log.Rights(s.target, s.group, s.name)
}

// Stream names the log group and the log stream.
func (s *stream) Stream() (group, name string) {
	group, _ = s.group.LogGroupName()
	return group, s.name
}

// Line takes a line that the function printed, and keeps it.
func (s *stream) Line(line []byte) {
	if s.filter != nil {
		if line = s.filter.line(line, s.clock.Now()); line == nil {
			return
		}
	}
	s.put(line)
}

// put takes a line, which it keeps.
func (s *stream) put(line []byte) {
	s.mu.Lock()
	if s.tailing {
		s.keep(line)
	}
	as := s.rights
	s.mu.Unlock()
	if as.Put {
		s.log.Put(s.group, s.name, s.clock.Now(), line, as)
	}
}

// keep appends to the tail and drops its beginning if it is too long.
func (s *stream) keep(line []byte) {
	s.tail = append(s.tail, line[max(0, len(line)-tailSize):]...)
	if len(s.tail) > 2*tailSize {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-tailSize:]...)
	}
}

// wanted reports whether the lines of an invocation are needed.
func (s *stream) wanted(in *Invocation) bool { return s.log != nil || in.Tail }

// starting begins a tail with the output of a start, which may have the cause of its failure.
func (s *stream) starting() {
	rights := s.ask()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tailing, s.tail, s.rights = true, s.tail[:0], rights
}

// begin writes the beginning of an invocation. started says that its process runs: then the
// tail has nothing of the start.
func (s *stream) begin(in *Invocation, started bool) {
	rights := s.ask()
	s.mu.Lock()
	s.rights = rights
	if s.tailing = in.Tail; started || !in.Tail {
		s.tail = s.tail[:0]
	}
	s.mu.Unlock()
	switch {
	case !s.wanted(in):
	case s.filter != nil:
		s.startRecord(in)
	default:
		line := append(make([]byte, 0, 96), "START RequestId: "...)
		line = append(append(line, in.RequestID...), " Version: "...)
		s.put(append(append(line, in.Target.Version...), '\n'))
	}
}

// end writes the end of an invocation and returns the tail, if it was requested.
func (s *stream) end(in *Invocation, r *Result, billed time.Duration) (tail []byte) {
	if !s.wanted(in) {
		return nil
	}
	if s.filter != nil {
		s.endRecords(in, r, billed)
	} else {
		s.endLines(in, r, billed)
	}
	if !in.Tail {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tailing = false
	return append([]byte(nil), s.tail[max(0, len(s.tail)-tailSize):]...)
}

// endLines write the result of an invocation, as text.
func (s *stream) endLines(in *Invocation, r *Result, billed time.Duration) {
	if f := r.Failure; f != nil && f.Status == StatusTimeout {
		line := s.clock.Now().AppendFormat(nil, clock.ISO8601)
		line = append(append(append(line, ' '), in.RequestID...), ' ')
		s.put(append(append(line, f.Message...), "\n\n"...))
	} else if f != nil && f.Status == StatusError {
		line := append(append([]byte("RequestId: "), in.RequestID...), " Error: "...)
		line = append(append(line, f.Message...), '\n')
		s.put(append(append(line, f.Type...), '\n'))
	}
	line := append(make([]byte, 0, 64), "END RequestId: "...)
	s.put(append(append(line, in.RequestID...), '\n'))
	s.put(report(in, r, billed))
}

// report is the line that reports what an invocation took.
func report(in *Invocation, r *Result, billed time.Duration) []byte {
	b := append(make([]byte, 0, 192), "REPORT RequestId: "...)
	b = append(append(b, in.RequestID...), "\tDuration: "...)
	b = appendMilliseconds(b, r.Duration)
	b = append(b, " ms\tBilled Duration: "...)
	b = strconv.AppendInt(b, billed.Milliseconds(), 10)
	b = append(b, " ms\tMemory Size: "...)
	b = strconv.AppendInt(b, int64(in.Target.MemoryMB), 10)
	b = append(b, " MB\tMax Memory Used: "...)
	b = append(strconv.AppendInt(b, int64(r.MemoryMB), 10), " MB\t"...)
	if r.Init > 0 {
		b = append(b, "Init Duration: "...)
		b = append(appendMilliseconds(b, r.Init), " ms\t"...)
	}
	if f := r.Failure; f != nil && f.Status != "" {
		b = append(append(append(b, "Status: "...), f.Status...), '\t')
		if f.Status == StatusError {
			b = append(append(append(b, "Error Type: "...), f.Type...), '\t')
		}
	}
	return append(b, '\n')
}

func appendMilliseconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, float64(d)/float64(time.Millisecond), 'f', 2, 64)
}

// billed is the duration of the handler and of the start, rounded up to ms.
func billed(r *Result) time.Duration {
	return (r.Duration + r.Init + time.Millisecond - 1).Truncate(time.Millisecond)
}

// body is what a caller sees of a failure.
func (f *Failure) body(requestID string) []byte {
	if len(f.Body) > 0 {
		return f.Body
	}
	b := append([]byte(nil), `{"errorType":`...)
	b = fastjson.AppendString(b, f.Type)
	b = append(b, `,"errorMessage":`...)
	text := f.Message
	if f.Type != TypeResponseTooLarge {
		text = "RequestId: " + requestID + " Error: " + text
	}
	return append(fastjson.AppendString(b, text), '}')
}
