package topics

import (
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
)

// The stored forms of a publication (in backlogs, fan-outs, archives) are encrypted under the
// topic's key, or under the store's own key where that is the default. That is done once,
// before a lock is taken, for all subscriptions that get the same body. The readers decrypt it.

// encrypt encrypts publications under the key that their topic's attribute names; empty: it has
// none. The publications are copied for it. Errors are KMS's.
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

// rendered is a publication rendered for queues, encrypted under the store's own key.
// Subscriptions with the same result share it.
type rendered struct {
	content  *message.Message
	sequence uint64 // the sequence that it was rendered with, in a FIFO topic
	used     bool   // one queue has it: others need their own message ids
}

// of reports that it was rendered with the sequence that an admitted publication has got; false
// for nil.
func (r *rendered) of(f *fanout) bool { return r != nil && r.sequence == f.Sequence }

// message is the message for a queue; it carries its record in clear unless encrypted.
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

// renderer returns a function that renders and encrypts publications for queues, without any
// lock. It assumes the sequences that the publications of a FIFO topic get if none is a
// duplicate; if one is, the results for those after it do not fit, and are not used.
func (sh *Shard) renderer(fs []fanout, p plan) func() {
	scratch := slices.Clone(fs)
	if t, ok := sh.Topics.Topic(fs[0].Topic); ok && t.ARN.FIFO() {
		next, now := sh.fifoState(t).next, sh.Now()
		for i := range scratch {
			fs[i].dated, fs[i].Sent = true, now
			scratch[i].Sent, scratch[i].Sequence = now, next+uint64(i)
		}
	}
	subs := make([]topic.Subscription, len(p.deliveries)) // a copy of what it needs of them: they change under the lock
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
			case size <= fanoutBytes: // one commit does not put more into queues
				if d.rendered = sh.module.render(f, sub); alike {
					raw[d.n] = d.rendered
				}
				if d.rendered != nil {
					size += d.rendered.content.Size()
				}
			}
		}
	}
}

// render renders and encrypts a publication for a queue; nil if that fails.
func (e *Topics) render(f *fanout, sub *topic.Subscription) *rendered {
	m, err := e.options.Render(f.Notification(sub))
	if err != nil || e.EncryptWaiting(f.Topic, "", nil, arn.ARN{}, m) != nil {
		return nil
	}
	return &rendered{content: m, sequence: f.Sequence}
}
