package logs

import (
	"encoding/base64"
	"fmt"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/logs/pattern"
	"godwit.dev/godwit/internal/store"
)

// Bounds of what one Filter reads.
const (
	maxScanned      = 50_000   // events
	maxScannedBytes = 16 << 20 // bytes of their messages, times the cost of the pattern
	maxMerged       = 100      // streams that are read separately; beyond it, the group is read
	maxPauses       = 10       // times maxHops
)

// FilterQuery selects events of a group.
type FilterQuery struct {
	Group    arn.ARN
	Streams  []string // the names, up to 100; with the prefix, at most one of them
	Prefix   string   // of the names
	From, To *int64   // epoch milliseconds, both inclusive; nil: no bound
	Pattern  *pattern.Pattern
	Token    string // of an earlier answer
	Limit    int    // 1 to MaxEvents
}

// Filter finds events of a group, in order. A call reads a bounded part: it may return few
// events, or none, and a token for the next call; without a token there are no more. It fails
// with ResourceNotFound, and with InvalidParameter for an invalid token.
func (l *Logs) Filter(q FilterQuery) (found []Found, next string, err error) {
	l.sink.flush()
	defer l.shard.AwaitReads()
	g, err := l.find(q.Group)
	if err != nil {
		return nil, "", err
	}
	t, err := l.totals(g.id)
	if err != nil {
		return nil, "", err
	}
	to := q.To
	if to != nil {
		behind := max(*to, *to+1) // the maximum has no successor
		to = &behind
	}
	f := &filtering{logs: l, q: q, group: g.id, size: pageSize{limit: q.Limit}, names: map[uint64]string{}, cost: 1}
	if q.Pattern != nil {
		f.cost = q.Pattern.Cost()
	}
	low, high := l.bounds(t, q.From, to)
	if q.Token != "" {
		place, err := readFilterToken(q.Token, g.id)
		if err != nil {
			return nil, "", err
		}
		if low.less(place) {
			low = place
		}
	}
	merge, err := f.streams()
	if err != nil {
		return nil, "", err
	}
	f.at = low
	if merge {
		err = f.merge(low, high)
	} else {
		err = f.scan(low, high)
	}
	if err != nil || !f.more {
		return f.found, "", err
	}
	return f.found, filterToken(g.id, f.at), nil
}

// filtering is one call of Filter.
type filtering struct {
	logs  *Logs
	q     FilterQuery
	group uint64
	names map[uint64]string // of the streams seen; empty for one that is not selected

	found          []Found
	size           pageSize
	scanned, bytes int
	cost           int      // of the pattern
	at             position // where the next call continues
	more           bool     // there may be more events there
	merged         []cursor
}

// streams finds the streams that are to be read separately; false means to read the group.
func (f *filtering) streams() (merge bool, err error) {
	add := func(name string, s streamRecord) {
		f.names[s.id] = name
		f.merged = append(f.merged, cursor{stream: s.id})
	}
	switch {
	case len(f.q.Streams) > 0:
		for _, name := range f.q.Streams {
			s, err := f.logs.stream(f.group, name)
			if err != nil {
				return false, err
			}
			if _, twice := f.names[s.id]; !twice {
				add(name, s)
			}
		}
		return true, nil
	case f.q.Prefix != "":
		few := true
		low := streamKey(f.group, f.q.Prefix)
		err := f.logs.each(low, behind(low), func(k, v []byte) error {
			if few = len(f.merged) < maxMerged; !few {
				return store.ErrStop
			}
			if s, ok := decodeStream(v); ok {
				add(string(k[10:]), s)
			}
			return nil
		})
		if !few {
			f.merged = nil
			clear(f.names)
		}
		return few, err
	}
	return false, nil
}

// name is the name of a selected stream; empty if it is not selected, or was removed.
func (f *filtering) name(stream uint64) (string, error) {
	name, ok := f.names[stream]
	if ok {
		return name, nil
	}
	v, _, err := f.logs.reader.Get(nil, key(tagName, f.group, stream))
	if err != nil {
		return "", err
	}
	if name = string(v); !strings.HasPrefix(name, f.q.Prefix) {
		name = ""
	}
	f.names[stream] = name
	return name, nil
}

// match adds an event if it matches; store.ErrStop ends the call before it.
func (f *filtering) match(p position, e stored) error {
	if f.scanned == maxScanned || f.bytes > maxScannedBytes {
		f.at, f.more = p, true
		return store.ErrStop
	}
	f.scanned++
	f.bytes += len(e.message) * f.cost
	name, err := f.name(e.stream)
	if err != nil || name == "" {
		return err
	}
	event := e.found(f.group, p)
	if f.q.Pattern != nil && !f.q.Pattern.Match(pattern.NewEvent(event.Message)) {
		return nil
	}
	if !f.size.fits(len(event.Message)) {
		f.at, f.more = p, true
		return store.ErrStop
	}
	event.Stream = name
	f.found = append(f.found, event)
	return nil
}

// scan reads the whole group.
func (f *filtering) scan(low, high position) error {
	if !low.less(high) {
		return nil
	}
	return f.logs.each(eventKey(f.group, low), eventKey(f.group, high), func(k, v []byte) error {
		e, ok := decodeStored(v)
		if !ok {
			return nil
		}
		return f.match(position{number(k, 1), number(k, 2)}, e)
	})
}

// cursor iterates over the index of a stream, in steps that double.
type cursor struct {
	stream uint64
	step   int
	ahead  []position
	at     position
	done   bool
}

// merge reads several streams, merged by position.
func (f *filtering) merge(low, high position) error {
	for i := range f.merged {
		f.merged[i].at = low
	}
	hops := 0
	for {
		batch, err := f.nextBatch(high, &hops)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return nil
		}
		if err = f.logs.read(f.group, batch, f.match); err != nil || f.more {
			return err
		}
	}
}

// nextBatch is the next chunk of positions of all streams.
func (f *filtering) nextBatch(high position, hops *int) (batch []position, err error) {
	for len(batch) < chunk {
		first := -1
		for i := range f.merged {
			c := &f.merged[i]
			paused, err := f.fill(c, high, hops)
			if err != nil {
				return nil, err
			}
			if paused {
				f.at, f.more = f.lowWatermark(high), true
				return batch, nil
			}
			if len(c.ahead) > 0 && (first < 0 || c.ahead[0].less(f.merged[first].ahead[0])) {
				first = i
			}
		}
		if first < 0 {
			return batch, nil
		}
		c := &f.merged[first]
		batch, c.ahead = append(batch, c.ahead[0]), c.ahead[1:]
	}
	return batch, nil
}

// fill reads ahead in a stream until a position is there or the stream ends. It pauses once all
// streams together have had too many steps without one, so that the next call continues.
func (f *filtering) fill(c *cursor, high position, hops *int) (paused bool, err error) {
	for len(c.ahead) == 0 && !c.done {
		c.step = min(chunk/4, max(4, 2*c.step))
		if c.ahead, c.at, c.done, err = f.logs.index(f.group, c.stream, c.at, high, c.step); err != nil {
			return false, err
		}
		if len(c.ahead) > 0 || c.done {
			break
		}
		if *hops++; *hops > maxPauses {
			return true, nil
		}
	}
	return false, nil
}

// lowWatermark is the lowest position up to which all streams have been read.
func (f *filtering) lowWatermark(high position) position {
	at := high
	for i := range f.merged {
		c := &f.merged[i]
		switch {
		case len(c.ahead) > 0 && c.ahead[0].less(at):
			at = c.ahead[0]
		case len(c.ahead) == 0 && !c.done && c.at.less(at):
			at = c.at
		}
	}
	return at
}

func filterToken(group uint64, p position) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "1.%d.%d.%d", group, p.time, p.sequence))
}

func readFilterToken(text string, group uint64) (p position, err error) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	var of uint64
	if err == nil {
		_, err = fmt.Sscanf(string(plain), "1.%d.%d.%d", &of, &p.time, &p.sequence)
	}
	if err != nil || filterToken(group, p) != text { // also if it is of another group
		return p, ErrToken
	}
	return p, nil
}
