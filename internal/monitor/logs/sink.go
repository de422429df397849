package logs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
)

// Bounds of what waits to be written, and of one write.
const (
	sinkEvents  = 50_000
	sinkBytes   = 16 << 20
	sinkDelay   = 200 * time.Millisecond // real time
	batchEvents = 10_000
	batchBytes  = 1 << 20
)

// sink is how this server writes events of its own: at once for the caller, and in
// batches. Groups and streams are made on first use. What does not fit into memory
// is dropped and counted.
type sink struct {
	logs *Logs

	mu      sync.Mutex // guards what follows
	waiting []line
	bytes   int
	timer   bool
	closed  bool

	writing sync.Mutex // held while writing
	dropped atomic.Int64
}

type line struct {
	group  arn.ARN
	stream string
	time   int64
	text   []byte
	value  any // instead of text
}

// Log adds an event of this server's own; it does not block, and keeps text. An
// empty one is left out.
func (l *Logs) Log(group arn.ARN, stream string, at time.Time, text []byte) {
	if len(text) > 0 {
		l.sink.add(line{group: group, stream: stream, time: at.UnixMilli(), text: text}, len(text))
	}
}

// Writer is Log as those who write lines want it.
type Writer struct{ logs *Logs }

// Writer writes lines of this server's own.
func (l *Logs) Writer() Writer { return Writer{l} }

// Put is Logs.Log.
func (w Writer) Put(group arn.ARN, stream string, at time.Time, line []byte) {
	w.logs.Log(group, stream, at, line)
}

// jsonSize is about what an event of LogJSON takes.
const jsonSize = 1024

// LogJSON is Log of a value that is written as JSON, later: it must not change.
func (l *Logs) LogJSON(group arn.ARN, stream string, at time.Time, value any) {
	l.sink.add(line{group: group, stream: stream, time: at.UnixMilli(), value: value}, jsonSize)
}

// Dropped is how many events of this server's own were dropped so far.
func (l *Logs) Dropped() int64 { return l.sink.dropped.Load() }

func (s *sink) add(n line, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.waiting) == sinkEvents || s.bytes+size > sinkBytes {
		s.dropped.Add(1)
		return
	}
	s.waiting = append(s.waiting, n)
	s.bytes += size
	if !s.timer {
		s.timer = true
		clock.System.AfterFunc(sinkDelay, s.flush)
	}
}

func (s *sink) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.flush()
}

// flush writes what waits.
func (s *sink) flush() {
	s.logs.guard.Lock(&s.writing)
	defer s.logs.guard.Unlock(&s.writing)
	s.mu.Lock()
	lines := s.waiting
	s.waiting, s.bytes, s.timer = nil, 0, false
	s.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	type place struct {
		group  arn.ARN
		stream string
	}
	by := map[place][]Event{}
	var order []place
	for _, n := range lines {
		if n.value != nil {
			var err error
			if n.text, err = json.Marshal(n.value); err != nil {
				s.dropped.Add(1)
				continue
			}
		}
		if len(n.text) > batchBytes-eventOverhead {
			n.text = cut(n.text, batchBytes-eventOverhead)
		}
		p := place{n.group, n.stream}
		if by[p] == nil {
			order = append(order, p)
		}
		by[p] = append(by[p], Event{max(n.time, 0), string(n.text)})
	}
	for _, p := range order {
		events := by[p]
		slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
		for len(events) > 0 {
			n, size := 0, 0
			for n < min(len(events), batchEvents) && (n == 0 || size+len(events[n].Message) <= batchBytes) {
				size += len(events[n].Message)
				n++
			}
			if err := s.write(p.group, p.stream, events[:n]); err != nil {
				s.dropped.Add(int64(n))
				s.logs.Logger.Warn("log events of this server were dropped", "group", p.group.String(), "events", n, "error", err)
			}
			events = events[n:]
		}
	}
	s.logs.trim()
	s.logs.log.Sync()
}

// cut shortens a longer text to n bytes, or to where the character there begins.
func cut(text []byte, n int) []byte {
	for least := n - utf8.UTFMax; n > least && !utf8.RuneStart(text[n]); { // it may be no text at all
		n--
	}
	return text[:n]
}

var errFull = errors.New("the disk has too little space")

func (s *sink) write(group arn.ARN, stream string, events []Event) error {
	if s.logs.Full != nil && s.logs.Full() {
		return errFull
	}
	for try := 0; ; try++ {
		g, err := s.logs.find(group)
		if err == nil {
			_, err = s.logs.put(g.id, stream, events, true)
		}
		if !errors.Is(err, errNoGroup) || try == 3 {
			return err
		}
		// Somebody else may make it, or remove it again.
		_ = s.logs.CreateGroup(context.Background(), NewGroup{ARN: group})
	}
}
