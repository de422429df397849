package shard

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// Publication is a message for a topic's subscribers.
type Publication struct {
	ID         message.ID
	Sender     string
	Subject    string // empty: none
	Group      string
	Dedup      string // MessageDeduplicationId, on FIFO topics only
	Content    string // on FIFO topics: the id that the content gives, where there is no other
	Trace      string
	Body       []byte            // for every protocol that has no body of its own
	Bodies     map[string]string // by protocol; nil if there are none
	Attributes []message.Attribute
}

// fanout is a publication on its way to the backlogs of its subscriptions.
type fanout struct {
	topic     arn.ARN
	signature byte
	sent      int64 // epoch milliseconds of the publish
	// incarnation is the shard's latest at the publish: what has a later one was
	// subscribed after it.
	incarnation uint64
	cursor      string // the id of the last subscription that has got it
	later       bool   // some get it in the background
	first       []byte // who got it before those; see firstKey
	sequence    uint64 // in a FIFO topic
	replayed    bool   // it is read from the topic's archive
	p           Publication
	result      SendResult // what its publisher is told

	// For the event; not kept on disk.
	reached   topic.Reached
	delivered int
	direct    []DirectDelivery
	feedback  topic.Feedback  // of queues
	event     *Published      // the event, once it is made
	group     *journal.Commit // that it becomes durable with; nil: nothing was written

	note   message.Message // reused by notification
	record []byte          // reused by spreadTo
	raw    rawRecord       // reused by directWriter
}

// Publish puts messages into the backlog of each subscription that its filter
// lets them through, in the order given. It returns once that is durable, or,
// for very many subscriptions, once it is durable that all of them will get
// each. A duplicate of a message that a FIFO topic has accepted is spread no
// further. Errors: NotFound, InvalidParameter for a message without a
// deduplication id where the topic needs one, KMSNotFound, InsufficientStorage.
func (e *topicEngine) Publish(_ context.Context, t arn.ARN, publications ...Publication) ([]SendResult, error) {
	if e.full() {
		return nil, errFull
	}
	p := publisher{topic: t, publications: publications}
	e.shardOf(t).line.run(&p)
	p.durable.Wait()
	for _, event := range p.events {
		e.options.Published(event)
	}
	return p.results, p.err
}

// publish publishes for several, whose topic is the same, and returns how many
// subscriptions a publication goes to. In FIFO topics it is for one only, whose
// error may be its own.
func (sh *topicShard) publish(ps []*publisher) (reach int) {
	t, all := ps[0].topic, ps[0].publications
	if len(ps) > 1 {
		all = make([]Publication, 0, len(ps)*len(all))
		for _, p := range ps {
			all = append(all, p.publications...)
		}
	}
	var fs []fanout
	var refused *journal.Commit
	_, err := sh.run(true, func(tx *Tx) (err error) {
		fs, refused, err = sh.spreadAll(tx, t, all)
		if t.FIFO() { // duplicates rest on their originals
			refused = sh.log.Last()
		}
		if refused == nil { // that there is such a topic, or none, must be durable all the same
			refused = sh.lastCatalogCommit
		}
		reach = sh.planned
		if sh.spreading[t] >= laterMost {
			reach = fanoutStep // the next has to make steps, and comes alone
		}
		return err
	})
	for _, p := range ps {
		n := min(len(p.publications), len(fs))
		p.take(fs[:n])
		fs = fs[n:]
		if n < len(p.publications) || n == 0 {
			p.results, p.err = nil, err
		}
		if p.durable == nil || t.FIFO() || p.err != nil {
			p.durable = refused
		}
	}
	return reach
}

// take notes what became of the publisher's publications.
func (p *publisher) take(fs []fanout) {
	p.results = make([]SendResult, len(fs))
	for i := range fs {
		f := &fs[i]
		p.results[i] = f.result
		if f.group != nil {
			p.durable = f.group // groups become durable in their order
		}
		if f.event != nil {
			p.events = append(p.events, f.event)
		}
	}
}

var errNoDedup = fault.New(fault.InvalidParameter,
	"Invalid parameter: The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")

// spreadAll accepts publications and puts them where they go. If it is refused,
// fs holds those that were accepted before, and the refusal may rest on what
// becomes durable with a group.
func (sh *topicShard) spreadAll(tx *Tx, t arn.ARN, publications []Publication) (fs []fanout, refused *journal.Commit, err error) {
	found, ok := sh.topics.Topic(t)
	if !ok {
		return nil, nil, topic.ErrNoTopic
	}
	if err := key.Find(t, found.Key()); err != nil {
		return nil, nil, err
	}
	if t.FIFO() {
		publications = slices.Clone(publications)
		for i := range publications {
			if p := &publications[i]; p.Dedup == "" {
				if !found.ContentDedup() {
					return nil, nil, errNoDedup
				}
				p.Dedup = p.Content
			}
		}
	}
	fs = make([]fanout, len(publications))
	for i := range fs {
		fs[i] = fanout{
			topic: t, signature: signatureVersion(found), sent: sh.now(), incarnation: sh.meta.Incarnation,
			p: publications[i], feedback: found.Feedback(topic.SQS),
		}
	}
	for rest, again := fs, false; len(rest) > 0; {
		sh.applyBackpressure(tx, t)
		if _, ok := sh.topics.Topic(t); !ok { // deleted while the lock was open
			return fs[:len(fs)-len(rest)], sh.lastCatalogCommit, topic.ErrNoTopic
		}
		generation := sh.generation.Load()
		g, n := sh.publishAtOnce(tx, rest)
		if n == 0 && generation != sh.generation.Load() && !again { // it was planned on what has changed
			again = true
			continue
		}
		again = false
		done := true
		if n == 0 {
			if g, done, err = sh.publishInSteps(tx, rest[:1]); err != nil {
				return fs[:len(fs)-len(rest)], g, err
			}
			n = 1
		}
		for i := range rest[:n] {
			rest[i].group, rest[i].event = g, sh.publishedEvent(&rest[i], done && !rest[i].later)
		}
		sh.startFanouts(g)
		rest = rest[n:]
	}
	return fs, nil, nil
}

// publishInSteps makes the first step of a fan-out, which is the only one in fs,
// and leaves the others to the background, unless it is done; all of them where
// earlier messages come first. It fails with NotFound.
func (sh *topicShard) publishInSteps(tx *Tx, fs []fanout) (g *journal.Commit, done bool, err error) {
	f := &fs[0]
	if _, ok := sh.topics.Topic(f.topic); !ok { // deleted while the lock was open
		return sh.lastCatalogCommit, false, topic.ErrNoTopic
	}
	if sh.admit(fs); f.result.Duplicate {
		return nil, true, nil
	}
	f.reached, f.later, f.delivered, f.direct = topic.Reached{}, false, 0, nil
	more := sh.behind(f.topic) || sh.spread(f, fanoutStep, nil)
	if more {
		n := sh.addFanout(f.topic)
		sh.batch.Set(fanoutKey(sh.id, n), f.encode())
		sh.reached[n] = f.reached
	}
	return tx.commit(), !more, nil
}

// spreadTo puts the message into the backlog of one subscription and returns
// the size of its record.
func (sh *topicShard) spreadTo(f *fanout, sub *topic.Subscription, now int64) int {
	f.record = f.notification(sub).AppendRecord(f.record[:0])
	lane := layout.MainLane
	if f.topic.FIFO() {
		lane = layout.GroupLane(f.p.Group)
	}
	sh.accept(sh.openBacklog(sub), now, queue.Arrival{Record: f.record, Sent: f.sent, Due: now, Lane: lane})
	return len(f.record)
}

// message is the publication as filter policies see it.
func (f *fanout) message() *filter.Message {
	attributes := make([]filter.Attribute, len(f.p.Attributes))
	for i := range attributes {
		a := &f.p.Attributes[i]
		attributes[i] = filter.Attribute{Name: a.Name, Type: a.Type, Value: string(a.Value)}
	}
	return filter.NewMessage(attributes, f.p.Body)
}

// notification is the publication as it stands in a subscription's backlog. It
// is valid until the next call.
func (f *fanout) notification(sub *topic.Subscription) *message.Message {
	if f.note.Notice == nil {
		f.note = f.stored()
	}
	f.note.Notice.Subscription, f.note.Notice.Raw = sub.ARN.String(), sub.Raw
	f.note.Body = f.body(sub)
	return &f.note
}

// body is what a subscription gets.
func (f *fanout) body(sub *topic.Subscription) []byte {
	if body, ok := f.p.Bodies[sub.Protocol.String()]; ok {
		return []byte(body)
	}
	return f.p.Body
}

// stored is the publication as a message, without what differs from
// subscription to subscription.
func (f *fanout) stored() message.Message {
	return message.Message{
		ID: f.p.ID, Sent: f.sent, Sender: f.p.Sender, Group: f.p.Group, Dedup: f.p.Dedup, Trace: f.p.Trace,
		Attributes: f.p.Attributes, Body: f.p.Body,
		Notice: &message.Notice{
			Kind: message.Notification, Topic: f.topic.String(), Subject: f.p.Subject, SignatureVersion: f.signature,
			Sequence: f.sequence, Replayed: f.replayed,
		},
	}
}

// size bounds the record of one notification, in bytes.
func (p *Publication) size() int {
	body := len(p.Body)
	for _, own := range p.Bodies {
		body = max(body, len(own))
	}
	m := message.Message{Attributes: p.Attributes}
	return body + m.Size() + len(p.Subject) + 512
}

// shared reports that a subscription gets the body that most get.
func (f *fanout) shared(sub *topic.Subscription) bool {
	_, own := f.p.Bodies[sub.Protocol.String()]
	return !own
}
