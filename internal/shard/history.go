package shard

import (
	"container/list"
	"encoding/binary"
	"sync"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

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
	// signature goes with the record, and is nothing to the history itself.
	signature []byte
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

const historyVersion = 2

func (h *history) encode() []byte {
	buf := []byte{historyVersion}
	buf = appendText(buf, string(h.signature))
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
	if version == 0 || version > historyVersion {
		return h, message.ErrCorrupt
	}
	p = p[1:]
	if version >= 2 { // the first had no signature
		signature, rest, ok := takeText(p)
		if !ok {
			return h, message.ErrCorrupt
		}
		if p = rest; signature != "" {
			h.signature = []byte(signature)
		}
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

// Bounds of the finished deliveries that stay visible, in memory.
const (
	finishedPerSubscription = 100
	finishedSubscriptions   = 1000
	finishedAttempts        = 200_000 // of deliveries with several, in all
)

// finished is a delivery that has ended. There may be a hundred thousand of them.
type finished struct {
	id            message.ID
	published, at int64 // epoch milliseconds
	total         int
	attempts      []Attempt // nil: the only one succeeded when it ended
	reason        string
	state         DeliveryState
}

// bulk is how many attempts count against finishedAttempts.
func (f *finished) bulk() int {
	if len(f.attempts) == 1 {
		return 0
	}
	return len(f.attempts)
}

func (f *finished) info(sub arn.ARN) DeliveryInfo {
	d := DeliveryInfo{
		MessageID: uuid.UUID(f.id).String(), Subscription: sub, State: f.state, Attempts: f.total,
		PublishedAt: time.UnixMilli(f.published).UTC(), FinishedAt: time.UnixMilli(f.at).UTC(),
		History: f.attempts, Reason: f.reason,
	}
	if f.attempts == nil {
		d.History = []Attempt{{At: d.FinishedAt, Outcome: "success"}}
	}
	return d
}

// finishedRing keeps the latest finished deliveries of the subscriptions that
// had one of late.
type finishedRing struct {
	life time.Duration

	mu       sync.Mutex
	rings    map[arn.ARN]*ring
	order    list.List // of *ring, the one that was longest without news first
	attempts int       // of deliveries with several
}

// ring is the last finished deliveries of one subscription.
type ring struct {
	subscription arn.ARN
	entries      []finished // full: a circle that begins at next
	next         int
	place        *list.Element
}

func newFinishedRing(life time.Duration) *finishedRing {
	return &finishedRing{life: life, rings: map[arn.ARN]*ring{}}
}

func (r *finishedRing) add(sub arn.ARN, f *finished) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(r.latest(sub), f)
	for r.attempts > finishedAttempts {
		r.forget()
	}
}

// addDirect adds those of planned deliveries that were made at once.
func (r *finishedRing) addDirect(all []planned, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var g *ring
	var of *topic.Subscription
	for i := range all {
		d := &all[i]
		if !d.made {
			continue
		}
		if d.sub != of {
			of, g = d.sub, r.latest(d.sub.ARN)
		}
		r.put(g, &finished{id: d.f.p.ID, published: d.f.sent, at: now, total: 1, state: DeliveryDelivered})
	}
}

func (r *finishedRing) put(g *ring, f *finished) {
	r.attempts += f.bulk()
	if len(g.entries) < finishedPerSubscription {
		g.entries = append(g.entries, *f)
		return
	}
	r.attempts -= g.entries[g.next].bulk()
	g.entries[g.next] = *f
	g.next = (g.next + 1) % finishedPerSubscription
}

// latest makes the ring of a subscription the one that had news last.
func (r *finishedRing) latest(sub arn.ARN) *ring {
	g, ok := r.rings[sub]
	if ok {
		r.order.MoveToBack(g.place)
		return g
	}
	if len(r.rings) == finishedSubscriptions {
		r.forget()
	}
	g = &ring{subscription: sub}
	g.place = r.order.PushBack(g)
	r.rings[sub] = g
	return g
}

// forget drops the deliveries of the subscription that was longest without news.
func (r *finishedRing) forget() {
	g := r.order.Remove(r.order.Front()).(*ring)
	delete(r.rings, g.subscription)
	for i := range g.entries {
		r.attempts -= g.entries[i].bulk()
	}
}

// of lists a subscription's finished deliveries, latest first.
func (r *finishedRing) of(now time.Time, sub arn.ARN, limit int) []DeliveryInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, ok := r.rings[sub]
	if !ok {
		return nil
	}
	var out []DeliveryInfo
	for i := range g.entries {
		f := &g.entries[(g.next-1-i+2*len(g.entries))%len(g.entries)]
		if len(out) == limit || now.UnixMilli()-f.at > r.life.Milliseconds() {
			break
		}
		out = append(out, f.info(sub))
	}
	return out
}
