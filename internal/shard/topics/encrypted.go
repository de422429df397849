package topics

import (
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
)

// What a topic keeps of a publication (backlogs, fan-outs, archive) is encrypted under the
// topic's key, or under the store's own where that is the default: once, before a lock is
// taken, for all who get the same body. It is decrypted by whoever takes it out.

// encrypt encrypts publications for their topic under its key, as the topic's attribute
// names that; empty: it has none. They are copied for it. Errors are KMS's.
func (e *Topics) encrypt(t arn.ARN, key string, publications []publication.Publication) ([]publication.Publication, error) {
	if possible, always := e.Encrypting(); !possible || key == "" && !always {
		return publications, nil
	}
	publications = slices.Clone(publications)
	for i := range publications {
		p := &publications[i]
		var source arn.ARN
		if p.Source != nil {
			source = *p.Source
		}
		err := p.Encrypt(func(m *message.Message) error { return e.EncryptWaiting(t, key, p.Caller, source, m) })
		if err != nil {
			return nil, err
		}
	}
	return publications, nil
}

// rendered is what a queue gets of a publication, encrypted under the store's own key. It
// is shared by those that get the same.
type rendered struct {
	content  *message.Message
	sequence uint64 // that it was rendered with, in a FIFO topic
	used     bool   // one queue has it: others need ids of their own
}

// of reports that it is what a publication is that has been admitted; false for nil.
func (r *rendered) of(f *fanout) bool { return r != nil && r.sequence == f.Sequence }

// message is what a queue gets; its record is in clear if that is not encrypted.
func (r *rendered) message(newID func() message.ID, encrypted bool) *message.Message {
	m := *r.content
	if r.used {
		m.ID = newID()
	}
	r.used = true
	if !encrypted {
		m.Cipher = nil
	}
	return &m
}

// renderer returns a function that renders and encrypts, without any lock, what queues will get
// of publications. It assumes the sequences that those of a FIFO topic get if none is a
// duplicate; if one is, the results for those behind it do not fit, and are not used.
func (sh *Shard) renderer(fs []fanout, p plan) func() {
	scratch := slices.Clone(fs)
	if t, ok := sh.Topics.Topic(fs[0].Topic); ok && t.ARN.FIFO() {
		next, now := sh.fifoState(t).next, sh.Now()
		for i := range scratch {
			fs[i].dated, fs[i].Sent = true, now
			scratch[i].Sent, scratch[i].Sequence = now, next+uint64(i)
		}
	}
	subs := make([]topic.Subscription, len(p.deliveries)) // what it needs of them: they change under the lock
	for i := range p.deliveries {
		sub := p.nth(i).sub
		subs[i] = topic.Subscription{ARN: sub.ARN, Protocol: sub.Protocol, Settings: topic.Settings{Raw: sub.Raw}}
	}
	return func() {
		raw, size := make([]*rendered, len(scratch)), 0
		for i := range p.deliveries {
			d := p.nth(i)
			f, sub := &scratch[d.n], &subs[i]
			alike := sub.Raw && f.Shared(sub)
			switch {
			case d.to == nil:
			case alike && raw[d.n] != nil:
				d.rendered = raw[d.n]
			case size <= fanoutBytes: // more is not put into queues by one commit
				if d.rendered = sh.engine.render(f, sub); alike {
					raw[d.n] = d.rendered
				}
				if d.rendered != nil {
					size += d.rendered.content.Size()
				}
			}
		}
	}
}

// render renders and encrypts what a queue gets; nil if that cannot be.
func (e *Topics) render(f *fanout, sub *topic.Subscription) *rendered {
	m, err := e.options.Render(f.Notification(sub))
	if err != nil || e.EncryptWaiting(f.Topic, "", nil, arn.ARN{}, m) != nil {
		return nil
	}
	return &rendered{content: m, sequence: f.Sequence}
}
