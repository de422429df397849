package logs

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Bounds of the waiting events, and of one write.
const (
	sinkEvents  = 50_000
	sinkBytes   = 16 << 20
	sinkDelay   = 200 * time.Millisecond // real time
	batchEvents = 10_000
	batchBytes  = 1 << 20
)

// sink writes the server's own events, in batches: callers do not wait. Groups and streams are
// made at first use. Events that exceed the memory bound are dropped and counted.
type sink struct {
	logs *Logs

	mu      sync.Mutex // guards what follows
	waiting []line
	bytes   int
	timer   bool
	closed  bool

	writing chan struct{} // full while a goroutine writes, which may wait for the disk
	dropped atomic.Int64
}

type line struct {
	group  arn.ARN
	stream string
	time   int64
	text   []byte
	value  any // instead of text
	as     authorize.LogRights
}

// Log adds an event of the server's own; it does not block, and keeps text. An empty text is
// ignored.
func (l *Logs) Log(group arn.ARN, stream string, at time.Time, text []byte) {
	l.LogAs(group, stream, at, text, authorize.AllLogRights)
}

// LogAs is Log on behalf of a principal; as says whether the group and the stream may be made.
func (l *Logs) LogAs(group arn.ARN, stream string, at time.Time, text []byte, as authorize.LogRights) {
	if len(text) > 0 {
		l.sink.add(line{group: group, stream: stream, time: at.UnixMilli(), text: text, as: as}, len(text))
	}
}

// jsonSize is the approximate size of an event of LogJSON, in bytes.
const jsonSize = 1024

// LogJSON is Log of a value that is encoded as JSON later: it must not change. as says whether
// its group and stream may be made.
func (l *Logs) LogJSON(group arn.ARN, stream string, at time.Time, value any, as authorize.LogRights) {
	l.sink.add(line{group: group, stream: stream, time: at.UnixMilli(), value: value, as: as}, jsonSize)
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
		clock.System.AfterFunc(sinkDelay, func() { s.logs.kernel.GoBackground(s.flush) })
	}
}

// close writes the waiting events, in the shard's last transaction.
func (s *sink) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.write(s.take(), s.logs.shard.Logger, func(command func() error) error {
		err := command()
		s.logs.shard.AppendPartial(journal.Lazy)
		return err
	})
}

// flush writes the waiting events. These, and those that others are writing, are durable on
// return.
func (s *sink) flush() {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	lines := s.take()
	if len(lines) == 0 {
		return
	}
	s.write(lines, s.logs.kernel.Logger, func(command func() error) error {
		_, err := s.logs.shard.Run(journal.Lazy, func(*kernel.Tx) error { return command() })
		return err
	})
	s.logs.shard.Stream.Sync() // one for all batches
}

// take takes the waiting events.
func (s *sink) take() []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.waiting
	s.waiting, s.bytes, s.timer = nil, 0, false
	return lines
}

// write writes lines in batches, each a command for run.
func (s *sink) write(lines []line, log *slog.Logger, run func(command func() error) error) {
	type place struct {
		group  arn.ARN
		stream string
		as     authorize.LogRights
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
		p := place{n.group, n.stream, n.as}
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
			var g groupRecord
			err := run(func() (err error) {
				g, err = s.put(p.group, p.stream, events[:n], p.as)
				return err
			})
			if err != nil {
				s.dropped.Add(int64(n))
				log.Warn("log events of this server were dropped", "group", p.group.String(), "events", n, "error", err)
			} else if !s.closing() { // when metrics are not written any more
				s.logs.measure(p.group, g, events[:n], true)
			}
			events = events[n:]
		}
	}
}

// cut shortens a longer text to at most n bytes, at the beginning of a character.
func cut(text []byte, n int) []byte {
	for least := n - utf8.UTFMax; n > least && !utf8.RuneStart(text[n]); { // it may not be UTF-8
		n--
	}
	return text[:n]
}

func (s *sink) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// put writes a batch, in a transaction.
func (s *sink) put(group arn.ARN, stream string, events []Event, as authorize.LogRights) (g groupRecord, err error) {
	l := s.logs
	if l.kernel.Full() {
		return g, ErrFull
	}
	g, err = l.find(group)
	if errors.Is(err, ErrNoGroup) && as.CreateGroup {
		if err = l.createGroup(NewGroup{ARN: group}); err == nil {
			l.shard.AppendPartial(journal.Lazy)
			g, err = l.find(group)
		}
	}
	if err == nil && !as.CreateStream {
		_, err = l.stream(g.id, stream)
	}
	if err == nil {
		_, _, err = l.put(group, g.id, stream, events, true)
	}
	return g, err
}
