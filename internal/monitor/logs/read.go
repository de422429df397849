package logs

import (
	"fmt"
	"slices"
	"strconv"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/store"
)

// Bounds of what one call returns, and reads.
const (
	MaxEvents = 10_000  // that are returned
	maxPage   = 1 << 20 // bytes of messages, and 26 for each
	maxHops   = 2_000   // hours of a group without events of a stream
	chunk     = 256     // events that are read together
)

// maxTime is the maximum time in a token, in epoch milliseconds: no event is as late.
const maxTime = 99_999_999_999_999_999

// Found is an event that was found.
type Found struct {
	ID       string
	Stream   string
	Time     int64 // epoch milliseconds
	Ingested int64 // when it came
	Message  string
}

// EventsQuery selects events of a stream.
type EventsQuery struct {
	Group    arn.ARN
	Stream   string
	From, To *int64 // epoch milliseconds, inclusive and exclusive; nil: no bound
	Token    string // of an earlier answer
	FromHead bool   // without a token: the earliest, not the latest
	Limit    int    // 1 to MaxEvents
}

// EventsPage is a part of a stream. The tokens are never empty. The token of the query is
// returned unless there was more in its direction.
type EventsPage struct {
	Events            []Found
	Forward, Backward string
}

// Events reads a part of a stream. It fails with ResourceNotFound, and with InvalidParameter
// for an invalid token.
func (l *Logs) Events(q EventsQuery) (page EventsPage, err error) {
	l.sink.flush()
	defer l.shard.AwaitReads()
	g, err := l.find(q.Group)
	if err != nil {
		return page, err
	}
	s, err := l.stream(g.id, q.Stream)
	if err != nil {
		return page, err
	}
	t, err := l.totals(g.id)
	if err != nil {
		return page, err
	}
	low, high := l.bounds(t, q.From, q.To)
	forward, at := q.FromHead, low
	if q.Token != "" {
		if at, forward, err = readToken(q.Token, s.id); err != nil {
			return page, err
		}
	} else if !forward {
		at = high
	}
	read := l.backward
	if forward {
		read = l.forward
	}
	found, before, behind, err := read(g.id, s.id, at, low, high, q.Limit)
	if err != nil {
		return page, err
	}
	if len(found) == 0 && q.Token == "" && !forward {
		before, behind = low, low // later events are found from here
	}
	for i := range found {
		found[i].Stream = q.Stream
	}
	return EventsPage{found, token('f', s.id, behind), token('b', s.id, before)}, nil
}

// bounds are those of a query, restricted to the group's retention: from is inclusive, to
// exclusive.
func (l *Logs) bounds(t totals, from, to *int64) (low, high position) {
	high = last
	if to != nil {
		high = position{time: uint64(max(*to, 0))}
	}
	if from != nil {
		low.time = uint64(min(max(*from, 0), maxTime))
	}
	if t.retention > 0 {
		if now, kept := uint64(max(l.kernel.Clock.Now().UnixMilli(), 0)), t.retention*24*hour; now > kept {
			low.time = max(low.time, now-kept)
		}
	}
	return low, high
}

// pageSize counts the events and bytes of a page.
type pageSize struct{ events, bytes, limit int }

func (p *pageSize) fits(message int) bool {
	if p.events == p.limit || p.events > 0 && p.bytes+message+eventOverhead > maxPage {
		return false
	}
	p.events++
	p.bytes += message + eventOverhead
	return true
}

// forward reads from a position on. before and behind are the ends of the part read.
func (l *Logs) forward(group, stream uint64, at, low, high position, limit int) (found []Found, before, behind position, err error) {
	size := pageSize{limit: limit}
	behind = at
	if at.less(low) {
		at = low
	}
	before = behind
	for done, full := false, false; !done && !full; {
		var places []position
		var reached position
		if places, reached, done, err = l.index(group, stream, at, high, min(chunk, limit-size.events+1)); err != nil {
			return nil, before, behind, err
		}
		err = l.read(group, places, func(p position, e stored) error {
			if full = !size.fits(len(e.message)); full {
				return store.ErrStop
			}
			if len(found) == 0 {
				before = p
			}
			found = append(found, e.found(group, p))
			behind = p.next()
			return nil
		})
		if err != nil {
			return nil, before, behind, err
		}
		if len(places) == 0 && !done { // many hours without events: the next call continues
			behind = reached
			break
		}
		at = reached
	}
	if len(found) == 0 {
		before = behind
	}
	return found, before, behind, nil
}

// backward reads the events before a position, and returns them in the order of the stream.
func (l *Logs) backward(group, stream uint64, at, low, high position, limit int) (found []Found, before, behind position, err error) {
	size := pageSize{limit: limit}
	before, behind = at, at
	if high.less(at) {
		at = high
	}
	for done, full := false, false; !done && !full; {
		var places []position
		var reached position
		if places, reached, done, err = l.indexDown(group, stream, low, at, min(chunk, limit-size.events+1)); err != nil {
			return nil, before, behind, err
		}
		// They come in the order of the keys, but are needed from the end.
		batch := make([]Found, 0, len(places))
		taken := make([]position, 0, len(places))
		err = l.read(group, places, func(p position, e stored) error {
			batch, taken = append(batch, e.found(group, p)), append(taken, p)
			return nil
		})
		if err != nil {
			return nil, before, behind, err
		}
		for i, event := range slices.Backward(batch) {
			if full = !size.fits(len(event.Message)); full {
				break
			}
			if len(found) == 0 {
				behind = taken[i].next()
			}
			found = append(found, event)
			before = taken[i]
		}
		if len(places) == 0 && !done {
			before = reached
			break
		}
		at = reached
	}
	slices.Reverse(found)
	if len(found) == 0 {
		behind = before
	}
	return found, before, behind, nil
}

// index finds up to limit events of a stream in [at, high). reached is where to continue,
// unless it is done. It stops after many hours without events.
func (l *Logs) index(group, stream uint64, at, high position, limit int) (places []position, reached position, done bool, err error) {
	if !at.less(high) {
		return nil, at, true, nil
	}
	it, err := l.reader.Iter(indexKey(group, stream, at), key(tagIndex, group, high.hour()+1))
	if err != nil {
		return nil, at, false, err
	}
	reached, done = at, true
	ok := it.Next()
	for hops := 0; ok; {
		k := it.Key()
		h, whose := number(k, 1), number(k, 2)
		if whose == stream {
			p := position{number(k, 3), number(k, 4)}
			if !p.less(high) {
				break
			}
			if len(places) == limit {
				done = false
				break
			}
			places, reached = append(places, p), p.next()
			ok = it.Next()
			continue
		}
		if whose > stream {
			h++
		}
		if hops++; hops > maxHops {
			reached, done = position{time: h * hour}, false
			break
		}
		ok = it.Seek(key(tagIndex, group, h, stream))
	}
	return places, reached, done, it.Close()
}

// indexDown finds the last up to limit events of a stream in [low, at).
func (l *Logs) indexDown(group, stream uint64, low, at position, limit int) (places []position, reached position, done bool, err error) {
	reached = at
	lower, upper := key(tagIndex, group, low.hour()), indexKey(group, stream, at)
	for hops := 0; hops <= maxHops; hops++ {
		if !low.less(reached) {
			return places, reached, true, nil
		}
		var next []byte // where to continue; nil: at the end
		more := false
		err := l.eachDown(lower, upper, func(k, _ []byte) error {
			h, whose := number(k, 1), number(k, 2)
			switch {
			case whose == stream:
				p := position{number(k, 3), number(k, 4)}
				if p.less(low) {
					return store.ErrStop
				}
				if len(places) == limit {
					more = true
					return store.ErrStop
				}
				places, reached = append(places, p), p
				return nil
			case whose > stream:
				next = key(tagIndex, group, h, stream+1)
			default:
				next = key(tagIndex, group, h)
			}
			reached = position{time: (h + 1) * hour}
			if whose < stream {
				reached = position{time: h * hour}
			}
			return store.ErrStop
		})
		if err != nil || more || next == nil {
			return places, reached, err == nil && !more, err
		}
		upper = next
	}
	return places, reached, false, nil
}

// read calls f with the events at positions, in the order of the group, until f returns an error;
// it is store.GetEach. Events removed meanwhile are left out.
func (l *Logs) read(group uint64, places []position, f func(p position, e stored) error) error {
	keys := make([][]byte, len(places))
	for i, p := range places {
		keys[i] = eventKey(group, p)
	}
	return store.GetEach(l.reader, keys, func(i int, v []byte) error {
		if e, ok := decodeStored(v); ok {
			return f(places[i], e)
		}
		return nil
	})
}

func (e stored) found(group uint64, p position) Found {
	return Found{ID: eventID(group, p), Time: int64(p.time), Ingested: int64(e.ingested), Message: string(e.message)}
}

// eventID is the id of an event, with 56 digits like AWS's.
func eventID(group uint64, p position) string {
	return fmt.Sprintf("%017d%019d%020d", p.time, group, p.sequence)
}

// token encodes a position in a stream: f continues forward from it, b backward.
func token(direction byte, stream uint64, p position) string {
	return string(direction) + "/" + eventID(stream, p)
}

func readToken(text string, stream uint64) (p position, forward bool, err error) {
	if len(text) != 2+56 || text[:2] != "f/" && text[:2] != "b/" {
		return p, false, ErrToken
	}
	digits := text[2:]
	var n [3]uint64
	for i, part := range []string{digits[:17], digits[17:36], digits[36:]} {
		if n[i], err = strconv.ParseUint(part, 10, 64); err != nil {
			return p, false, ErrToken
		}
	}
	if n[1] != stream {
		return p, false, ErrToken
	}
	return position{n[0], n[2]}, text[0] == 'f', nil
}
