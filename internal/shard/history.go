package shard

import (
	"encoding/binary"
	"time"

	"godwit.dev/godwit/internal/queue/message"
)

// Cause is why a delivery has failed for good. It is kept with the attempts until
// the dead-letter queue has taken the message. The zero value is that of a delivery
// that has not failed.
type Cause struct {
	Reason  string
	Attempt int // Delivery.Attempt of when it failed
}

// IsZero reports that the delivery has not failed.
func (c Cause) IsZero() bool { return c == Cause{} }

// The attempts of a delivery that are kept: the first and the last ones.
const (
	historyFirst = 20
	historyLast  = 80
)

// history is the bounded record of a delivery's attempts.
type history struct {
	total int
	first []Attempt
	last  []Attempt // oldest first
	// signature and cause go with the record, and are nothing to the history itself.
	signature []byte
	cause     Cause
}

func (h *history) add(a Attempt) {
	h.total++
	if len(h.first) < historyFirst {
		h.first = append(h.first, a)
		return
	}
	if len(h.last) == historyLast {
		h.last = append(h.last[:0:0], h.last[1:]...)
	}
	h.last = append(h.last, a)
}

func (h *history) attempts() []Attempt {
	return append(append(make([]Attempt, 0, len(h.first)+len(h.last)), h.first...), h.last...)
}

// Versions of a history's record: the first had no signature. The latest is written
// where there is a cause, so that versions of Godwit that know none read all others.
const (
	historySigned = 2
	historyCaused = 3
)

func (h *history) encode() []byte {
	version := byte(historySigned)
	if !h.cause.IsZero() {
		version = historyCaused
	}
	buf := appendText([]byte{version}, string(h.signature))
	if version == historyCaused {
		buf = appendText(buf, h.cause.Reason)
		buf = binary.AppendUvarint(buf, uint64(h.cause.Attempt))
	}
	buf = binary.AppendUvarint(buf, uint64(h.total))
	for _, a := range h.attempts() {
		buf = binary.AppendVarint(buf, a.At.UnixMilli())
		buf = appendText(buf, a.Outcome)
		buf = binary.AppendUvarint(buf, uint64(a.Status))
		buf = appendText(buf, a.Detail)
		buf = binary.AppendUvarint(buf, uint64(a.Latency.Microseconds()))
	}
	return buf
}

// decodeHistory reads what encode wrote. Of a damaged one h is what could be read,
// and goes on: a history is for people, and no delivery must fail for it.
func decodeHistory(p []byte) (h history, err error) {
	if len(p) == 0 {
		return h, nil
	}
	version := p[0]
	if version == 0 || version > historyCaused {
		return h, message.ErrCorrupt
	}
	p = p[1:]
	if version >= historySigned {
		signature, rest, ok := takeText(p)
		if !ok {
			return h, message.ErrCorrupt
		}
		if p = rest; signature != "" {
			h.signature = []byte(signature)
		}
	}
	if version >= historyCaused {
		reason, rest, ok := takeText(p)
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
	h.total = int(total)
	return h, err
}

func takeAttempt(p []byte) (a Attempt, rest []byte, err error) {
	err = message.ErrCorrupt
	at, w := binary.Varint(p)
	if w <= 0 {
		return a, nil, err
	}
	var ok bool
	if a.Outcome, p, ok = takeText(p[w:]); !ok {
		return a, nil, err
	}
	status, w := binary.Uvarint(p)
	if w <= 0 {
		return a, nil, err
	}
	if a.Detail, p, ok = takeText(p[w:]); !ok {
		return a, nil, err
	}
	latency, w := binary.Uvarint(p)
	if w <= 0 {
		return a, nil, err
	}
	a.At, a.Status = time.UnixMilli(at).UTC(), int(status)
	a.Latency = time.Duration(latency) * time.Microsecond
	return a, p[w:], nil
}
