// Package recent has the recent publishes of topics, for the operator. It is in memory,
// bounded, and empty when the process starts. Messages under a key stay encrypted until a
// caller with the permission to decrypt reads them.
package recent

import (
	"bytes"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic/filter"
)

// Bounds of the memory.
const (
	// PerTopic is how many publishes of a topic are kept.
	PerTopic = 100
	// everyUntil is the rate of a topic's publishes per second up to which all are kept.
	// Beyond, one in oneIn is kept, because the latest hundred would be of a few
	// milliseconds.
	everyUntil = 1000
	oneIn      = 10
	// maxTopics bounds the topics; those with the latest publishes are kept.
	maxTopics = 10_000
	// maxTopicBytes bounds the memory of one topic, and maxBytes of all.
	maxTopicBytes = 1 << 20
	maxBytes      = 32 << 20
	// recordOverhead is about the size of a record without the message, in bytes;
	// keptOverhead is the memory of a kept publish besides its record, including its slots in
	// the ring.
	recordOverhead = 1 << 10
	keptOverhead   = 128
)

// Publishes has the recent publishes by topic. It is safe for concurrent use.
type Publishes struct {
	mu    sync.Mutex // no other lock is taken while it is held
	of    *simplelru.LRU[arn.ARN, *ring]
	bytes int // of all publishes
}

// ring has the publishes of a topic, oldest first.
type ring struct {
	all      []*kept
	bytes    int   // of all of them
	second   int64 // of the latest publish
	inSecond int   // publishes
}

// leavesOut counts a publish, and reports whether it is not to be kept.
func (r *ring) leavesOut(at time.Time) bool {
	if s := at.Unix(); s != r.second {
		r.second, r.inSecond = s, 0
	}
	r.inSecond++
	return r.inSecond > everyUntil && r.inSecond%oneIn != 0
}

// kept is a kept publish.
type kept struct {
	id                     message.ID
	at                     time.Time
	size, delivered, unfit int
	spreading              bool // to more subscriptions than were evaluated
	record                 []byte
}

// bytes is its memory.
func (k *kept) bytes() int { return cap(k.record) + keptOverhead }

// New makes an empty Publishes.
func New() *Publishes {
	p := &Publishes{}
	of, err := simplelru.NewLRU(maxTopics, func(_ arn.ARN, r *ring) { p.bytes -= r.bytes })
	if err != nil {
		panic(err) // the size is positive
	}
	p.of = of
	return p
}

func unfit(by *[filter.Verdicts]int) (n int) {
	for _, of := range by {
		n += of
	}
	return n
}

// Add keeps a publish, or completes the data of one.
func (p *Publishes) Add(e *topics.Published) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Later {
		p.complete(e)
		return
	}
	if e.What == nil {
		return // it was not published to a topic
	}
	r, ok := p.of.Get(e.Topic)
	if !ok {
		r = &ring{}
		p.of.Add(e.Topic.Own(), r)
	}
	if r.leavesOut(e.At) {
		return
	}
	var k *kept
	need := e.Size + recordOverhead
	for len(r.all) == PerTopic || len(r.all) > 0 && r.bytes+need > maxTopicBytes {
		k = p.drop(r)
	}
	switch {
	case k == nil:
		k = &kept{}
	case cap(k.record) > 2*need: // a small record would keep a large buffer
		k.record = nil
	}
	*k = kept{
		id: e.ID, at: e.At, size: e.Size, delivered: e.Delivered, unfit: unfit(&e.FilteredOut), spreading: e.FanOutPending,
		record: e.What.AppendTo(k.record[:0]),
	}
	r.all = append(r.all, k)
	r.bytes += k.bytes()
	p.bytes += k.bytes()
	for r.bytes > maxTopicBytes && len(r.all) > 1 {
		p.drop(r)
	}
	for p.bytes > maxBytes && p.of.Len() > 1 {
		p.of.RemoveOldest()
	}
}

// drop removes the oldest publish of a topic.
func (p *Publishes) drop(r *ring) *kept {
	k := r.all[0]
	r.all[0] = nil
	r.all = r.all[1:] // append moves the rest once in a hundred publishes
	r.bytes -= k.bytes()
	p.bytes -= k.bytes()
	return k
}

// complete notes that all subscriptions were evaluated for a publish.
func (p *Publishes) complete(e *topics.Published) {
	r, ok := p.of.Peek(e.Topic)
	if !ok {
		return
	}
	for _, k := range r.all {
		if k.id == e.ID {
			k.spreading, k.unfit = false, unfit(&e.FilteredOut)
			return
		}
	}
}

// Publish is a kept publish.
type Publish struct {
	ID          message.ID
	At          time.Time
	Size        int // as SNS bills it
	Delivered   int // to queues, at once
	FilteredOut int // subscriptions that did not get it
	Spreading   bool
	Record      publication.Record // a copy; encrypted until it is opened
}

// Of are the publishes of a topic since a time, latest first.
func (p *Publishes) Of(topic arn.ARN, since time.Time) []Publish {
	copies := p.copies(topic, since)
	out := make([]Publish, 0, len(copies))
	for i := range copies {
		k := &copies[len(copies)-1-i]
		record, err := publication.Decode(k.record)
		if err != nil {
			continue // cannot fail, as Add encoded it
		}
		out = append(out, Publish{ID: k.id, At: k.at, Size: k.size, Delivered: k.delivered, FilteredOut: k.unfit, Spreading: k.spreading, Record: record})
	}
	return out
}

// copies returns copies, because buffers are reused.
func (p *Publishes) copies(topic arn.ARN, since time.Time) (all []kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.of.Peek(topic)
	if !ok {
		return nil
	}
	for _, k := range r.all {
		if !k.at.Before(since) {
			c := *k
			c.record = bytes.Clone(k.record)
			all = append(all, c)
		}
	}
	return all
}
