package backlog

import (
	"encoding/binary"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
)

// Cause is why a delivery has failed for good. It is persisted with the attempts until the
// dead-letter queue has taken the message. The zero value: it has not failed.
type Cause struct {
	Reason  string
	Attempt int // Delivery.Attempt when it failed
}

// IsZero reports that the delivery has not failed.
func (c Cause) IsZero() bool { return c == Cause{} }

// How many attempts of a delivery are kept: the first and the last ones.
const (
	historyFirst = 20
	historyLast  = 80
)

// History is the bounded record of a delivery's attempts.
type History struct {
	Total int
	First []Attempt
	last  []Attempt // oldest first
	// Kept and cause are stored in the same record.
	Kept  []byte
	cause Cause
}

func (h *History) add(a Attempt) {
	h.Total++
	if len(h.First) < historyFirst {
		h.First = append(h.First, a)
		return
	}
	if len(h.last) == historyLast {
		h.last = append(h.last[:0:0], h.last[1:]...)
	}
	h.last = append(h.last, a)
}

func (h *History) attempts() []Attempt {
	return append(append(make([]Attempt, 0, len(h.First)+len(h.last)), h.First...), h.last...)
}

// Ended counts the attempts that ended with a detail, of those that are kept.
func (h *History) Ended(detail string) (n int) {
	for _, all := range [...][]Attempt{h.First, h.last} {
		for i := range all {
			if all[i].Detail == detail {
				n++
			}
		}
	}
	return n
}

// Versions of a history's record: the first had no signature. The latest is only written if
// there is a cause, so that older versions of Godwit can read all other records.
const (
	historySigned = 2
	historyCaused = 3
)

// Encode is the record of the history.
func (h *History) Encode() []byte {
	version := byte(historySigned)
	if !h.cause.IsZero() {
		version = historyCaused
	}
	buf := mutation.AppendText([]byte{version}, string(h.Kept))
	if version == historyCaused {
		buf = mutation.AppendText(buf, h.cause.Reason)
		buf = binary.AppendUvarint(buf, uint64(h.cause.Attempt))
	}
	buf = binary.AppendUvarint(buf, uint64(h.Total))
	for _, a := range h.attempts() {
		buf = binary.AppendVarint(buf, a.At.UnixMilli())
		buf = mutation.AppendText(buf, a.Outcome)
		buf = binary.AppendUvarint(buf, uint64(a.Status))
		buf = mutation.AppendText(buf, a.Detail)
		buf = binary.AppendUvarint(buf, uint64(a.Latency.Microseconds()))
	}
	return buf
}

// DecodeHistory reads a record of Encode. Of a damaged one, h has what could be read, and is of
// use: a history is for people, and no delivery must fail for it.
func DecodeHistory(p []byte) (h History, err error) {
	if len(p) == 0 {
		return h, nil
	}
	version := p[0]
	if version == 0 || version > historyCaused {
		return h, message.ErrCorrupt
	}
	p = p[1:]
	if version >= historySigned {
		signature, rest, ok := mutation.TakeText(p)
		if !ok {
			return h, message.ErrCorrupt
		}
		if p = rest; signature != "" {
			h.Kept = []byte(signature)
		}
	}
	if version >= historyCaused {
		reason, rest, ok := mutation.TakeText(p)
		attempt, w := binary.Uvarint(rest)
		if !ok || w <= 0 {
			return h, message.ErrCorrupt
		}
		h.cause, p = Cause{Reason: reason, Attempt: int(attempt)}, rest[w:]
	}
	total, w := binary.Uvarint(p)
	if w <= 0 {
		return h, message.ErrCorrupt
	}
	for p = p[w:]; len(p) > 0; {
		var a Attempt
		if a, p, err = takeAttempt(p); err != nil {
			break
		}
		h.add(a)
	}
	h.Total = int(total)
	return h, err
}

func takeAttempt(p []byte) (a Attempt, rest []byte, err error) {
	err = message.ErrCorrupt
	at, w := binary.Varint(p)
	if w <= 0 {
		return a, nil, err
	}
	var ok bool
	if a.Outcome, p, ok = mutation.TakeText(p[w:]); !ok {
		return a, nil, err
	}
	status, w := binary.Uvarint(p)
	if w <= 0 {
		return a, nil, err
	}
	if a.Detail, p, ok = mutation.TakeText(p[w:]); !ok {
		return a, nil, err
	}
	latency, w := binary.Uvarint(p)
	if w <= 0 {
		return a, nil, err
	}
	a.At, a.Status = clock.Time(at), int(status)
	a.Latency = time.Duration(latency) * time.Microsecond
	return a, p[w:], nil
}
