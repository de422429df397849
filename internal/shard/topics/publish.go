package topics

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
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
	// Caller is who publishes, who has to have the right to the topic's key; nil: the root
	// of the topic's account. Source is what a service publishes for, else zero. Neither
	// is kept.
	Caller *caller.Caller
	Source arn.ARN

	cipher  []byte            // the message's, if it is encrypted
	ciphers map[string][]byte // by protocol, of those that have a body of their own
	dated   bool              // what queues get of it is rendered, and tells its time
}

// Fanout is a publication on its way to the backlogs of its subscriptions.
type Fanout struct {
	Topic     arn.ARN
	signature byte
	sent      int64 // epoch milliseconds of the publish
	// incarnation is the shard's latest at the publish: what has a later one was
	// subscribed after it.
	incarnation      uint64
	Cursor           string // the id of the last subscription that has got it
	Later            bool   // some get it in the background
	alreadyDelivered []byte // who got it before those; see alreadyDeliveredKey
	sequence         uint64 // in a FIFO topic
	replayed         bool   // it is read from the topic's archive
	P                Publication
	result           queues.SendResult // what its publisher is told

	// For the event; not kept on disk.
	reached   topic.Reached
	Delivered int
	direct    []DirectDelivery
	feedback  topic.Feedback  // of queues
	event     *Published      // the event, once it is made
	commit    *journal.Commit // that it becomes durable with; nil: nothing was written

	note   message.Message // reused by notification
	record []byte          // reused by spreadTo
	raw    rawRecord       // reused by directWriter
}

// Publish puts messages into the backlog of each subscription that its filter
// lets them through, in the order given. It returns once that is durable, or,
// for very many subscriptions, once it is durable that all of them will get
// each. A duplicate of a message that a FIFO topic has accepted is spread no
// further. Errors: NotFound, InvalidParameter for a message without a
// deduplication id where the topic needs one, InsufficientStorage, and KMS's for the
// topic's key.
func (e *Topics) Publish(ctx context.Context, t arn.ARN, publications ...Publication) ([]queues.SendResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.Full() {
		return nil, kernel.ErrFull
	}
	publications, err := e.encrypt(t, publications)
	if err != nil {
		return nil, err
	}
	p := Publisher{Topic: t, Publications: publications}
	e.ShardOf(t).Publishers.run(&p)
	p.durable.Wait()
	for _, event := range p.events {
		e.Options.Published(event)
	}
	return p.results, p.err
}

// publish publishes for several, whose topic is the same, and returns how many
// subscriptions a publication goes to. In FIFO topics it is for one only, whose
// error may be its own.
func (sh *Shard) publish(ps []*Publisher) (reach int) {
	t, all := ps[0].Topic, ps[0].Publications
	if len(ps) > 1 {
		all = make([]Publication, 0, len(ps)*len(all))
		for _, p := range ps {
			all = append(all, p.Publications...)
		}
	}
	var fs []Fanout
	var refused *journal.Commit
	_, err := sh.Run(true, func(tx *kernel.Tx) (err error) {
		fs, refused, err = sh.spreadAll(tx, t, all)
		if t.FIFO() { // duplicates rest on their originals
			refused = sh.Log.Last()
		}
		if refused == nil { // that there is such a topic, or none, must be durable all the same
			refused = sh.LastCatalogCommit
		}
		reach = sh.Planned
		if sh.Spreading[t] >= DeferredMost {
			reach = FanoutStep // the next has to make steps, and comes alone
		}
		return err
	})
	for _, p := range ps {
		n := min(len(p.Publications), len(fs))
		p.take(fs[:n])
		fs = fs[n:]
		if n < len(p.Publications) || n == 0 {
			p.results, p.err = nil, err
		}
		if p.durable == nil || t.FIFO() || p.err != nil {
			p.durable = refused
		}
	}
	return reach
}

// take notes what became of the publisher's publications.
func (p *Publisher) take(fs []Fanout) {
	p.results = make([]queues.SendResult, len(fs))
	for i := range fs {
		f := &fs[i]
		p.results[i] = f.result
		if f.commit != nil {
			p.durable = f.commit // commits become durable in their order
		}
		if f.event != nil {
			p.events = append(p.events, f.event)
		}
	}
}

// spreadAll accepts publications and puts them where they go. If it is refused,
// fs holds those that were accepted before, and the refusal may rest on what
// becomes durable with a group.
func (sh *Shard) spreadAll(tx *kernel.Tx, t arn.ARN, publications []Publication) (fs []Fanout, refused *journal.Commit, err error) {
	found, ok := sh.Topics.Topic(t)
	if !ok {
		return nil, nil, topic.ErrNoTopic
	}
	if possible, _ := sh.Engine.Encrypting(); !possible {
		if err := key.Find(t, found.Key()); err != nil {
			return nil, nil, err
		}
	}
	if t.FIFO() {
		publications = slices.Clone(publications)
		for i := range publications {
			if p := &publications[i]; p.Dedup == "" {
				if !found.ContentDedup() {
					return nil, nil, ErrNoDedup
				}
				p.Dedup = p.Content
			}
		}
	}
	fs = make([]Fanout, len(publications))
	for i := range fs {
		fs[i] = Fanout{
			Topic: t, signature: signatureVersion(found), sent: sh.Now(), incarnation: sh.Meta.Incarnation,
			P: publications[i], feedback: found.Feedback(topic.SQS),
		}
	}
	for rest, again := fs, false; len(rest) > 0; {
		sh.applyBackpressure(tx, t)
		if _, ok := sh.Topics.Topic(t); !ok { // deleted while the lock was open
			return fs[:len(fs)-len(rest)], sh.LastCatalogCommit, topic.ErrNoTopic
		}
		generation := sh.Generation.Load()
		g, n := sh.publishAtOnce(tx, rest)
		if n == 0 && generation != sh.Generation.Load() && !again { // it was planned on what has changed
			again = true
			continue
		}
		again = false
		done := true
		if n == 0 {
			if g, done, err = sh.PublishInSteps(tx, rest[:1]); err != nil {
				return fs[:len(fs)-len(rest)], g, err
			}
			n = 1
		}
		for i := range rest[:n] {
			rest[i].commit, rest[i].event = g, sh.publishedEvent(&rest[i], done && !rest[i].Later)
		}
		sh.StartFanouts(g)
		rest = rest[n:]
	}
	return fs, nil, nil
}

// PublishInSteps makes the first step of a fan-out, which is the only one in fs,
// and leaves the others to the background, unless it is done; all of them where
// earlier messages come first. It fails with NotFound.
func (sh *Shard) PublishInSteps(tx *kernel.Tx, fs []Fanout) (g *journal.Commit, done bool, err error) {
	f := &fs[0]
	if _, ok := sh.Topics.Topic(f.Topic); !ok { // deleted while the lock was open
		return sh.LastCatalogCommit, false, topic.ErrNoTopic
	}
	if sh.admit(fs); f.result.Duplicate {
		return nil, true, nil
	}
	f.reached, f.Later, f.Delivered, f.direct = topic.Reached{}, false, 0, nil
	more := sh.behind(f.Topic) || sh.Spread(f, FanoutStep, nil)
	if more {
		n := sh.addFanout(f.Topic)
		sh.Batch.Set(fanoutKey(sh.ID, n), f.encode())
		sh.Reached[n] = f.reached
	}
	return tx.Commit(), !more, nil
}

// spreadTo puts the message into the backlog of one subscription and returns
// the size of its record.
func (sh *Shard) spreadTo(f *Fanout, sub *topic.Subscription, now int64) int {
	f.record = f.notification(sub).AppendRecord(f.record[:0])
	lane := layout.MainLane
	if f.Topic.FIFO() {
		lane = layout.GroupLane(f.P.Group)
	}
	sh.Accept(sh.OpenBacklog(sub), now, queue.Arrival{Record: f.record, Sent: f.sent, Due: now, Lane: lane})
	return len(f.record)
}

// message is the publication as filter policies see it.
func (f *Fanout) message() *filter.Message {
	attributes := make([]filter.Attribute, len(f.P.Attributes))
	for i := range attributes {
		a := &f.P.Attributes[i]
		attributes[i] = filter.Attribute{Name: a.Name, Type: a.Type, Value: string(a.Value)}
	}
	return filter.NewMessage(attributes, f.P.Body)
}

// notification is the publication as it stands in a subscription's backlog. It
// is valid until the next call.
func (f *Fanout) notification(sub *topic.Subscription) *message.Message {
	if f.note.Notice == nil {
		f.note = f.stored()
	}
	f.note.Notice.Subscription, f.note.Notice.Raw = sub.ARN.String(), sub.Raw
	f.note.Body, f.note.Cipher, f.note.Notice.Own = f.body(sub), f.P.cipherFor(sub), !f.shared(sub)
	return &f.note
}

// body is what a subscription gets.
func (f *Fanout) body(sub *topic.Subscription) []byte {
	if body, ok := f.P.Bodies[sub.BodyName()]; ok {
		return []byte(body)
	}
	return f.P.Body
}

// stored is the publication as a message, without what differs from
// subscription to subscription.
func (f *Fanout) stored() message.Message {
	return message.Message{
		ID: f.P.ID, Sent: f.sent, Sender: f.P.Sender, Group: f.P.Group, Dedup: f.P.Dedup, Trace: f.P.Trace,
		Attributes: f.P.Attributes, Body: f.P.Body, Cipher: f.P.cipher,
		Notice: &message.Notice{
			Kind: message.Notification, Topic: f.Topic.String(), Subject: f.P.Subject, SignatureVersion: f.signature,
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
func (f *Fanout) shared(sub *topic.Subscription) bool {
	_, own := f.P.Bodies[sub.BodyName()]
	return !own
}
