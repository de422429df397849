package topics

import (
	"cmp"
	"context"
	"encoding/binary"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/protect"
)

// Audited reports the audit of a message under a data protection policy.
type Audited struct {
	Topic     arn.ARN
	ID        message.ID
	Principal string // the ARN of the publisher
	At        time.Time
	protect.Audit
}

// SetDataProtection sets a topic's data protection policy; nil removes it. Errors: NotFound.
func (e *Topics) SetDataProtection(ctx context.Context, t arn.ARN, policy *protect.Policy) error {
	return e.WithCatalog(ctx, t, func(sh *Shard) error { return sh.Topics.SetDataProtection(t, policy, &sh.Batch) })
}

// DataProtection is the text of a topic's data protection policy; empty: it has none.
// Errors: NotFound.
func (e *Topics) DataProtection(ctx context.Context, t arn.ARN) (text string, err error) {
	err = e.ReadCatalog(ctx, t, func(sh *Shard) error {
		found, ok := sh.Topics.Topic(t)
		if !ok {
			return topic.ErrNoTopic
		}
		text = found.Protection.Text()
		return nil
	})
	return text, err
}

// Protect applies the topic's data protection policy to a publication: it removes what the
// policy masks or redacts. Publish does the same to publications that were not inspected. It
// fails with ErrProtected if the policy denies the publication, and audits that; and with
// ErrUnprotected if the inspection takes too long. A publication that passes is audited once it
// is durable.
func (e *Topics) Protect(t arn.ARN, p *publication.Publication) error {
	if p.Inspected {
		return nil
	}
	of, _ := e.ShardOf(t).lookupTopic(t)
	return e.inspect(t, of.protection, p)
}

// inspect is Protect under a given policy; nil: there is none.
func (e *Topics) inspect(t arn.ARN, policy *protect.Policy, p *publication.Publication) error {
	if p.Inspected {
		return nil
	}
	p.Inspected = true
	if policy == nil {
		return nil
	}
	principal := namesOf(t, p.Caller)
	sample := int(binary.BigEndian.Uint16(p.ID[14:]) % 100) // ids are random
	in := policy.Inbound(string(p.Body), principal, sample)
	bodies := make(map[string]string, len(p.Bodies))
	for protocol, body := range p.Bodies {
		own := policy.Inbound(body, principal, sample)
		bodies[protocol] = own.Body
		in.Denied, in.Endless = cmp.Or(in.Denied, own.Denied), cmp.Or(in.Endless, own.Endless)
		if in.Audit == nil || own.Audit != nil && len(own.Audit.Findings) > len(in.Audit.Findings) {
			in.Audit = own.Audit
		}
	}
	if in.Endless != "" {
		return ErrUnprotected.With(in.Endless)
	}
	p.Body = []byte(in.Body)
	if p.Bodies != nil {
		p.Bodies = bodies
	}
	if in.Audit != nil {
		p.Audit = in.Audit
	}
	if in.Denied == "" {
		return nil
	}
	e.audit(t, p)
	return ErrProtected.With(in.Denied)
}

// audit reports the findings in a publication, if its policy asks for that.
func (e *Topics) audit(t arn.ARN, p *publication.Publication) {
	if p.Audit == nil || e.options.Audited == nil {
		return
	}
	e.options.Audited(&Audited{Topic: t, ID: p.ID, Principal: namesOf(t, p.Caller)[0], At: e.Clock.Now(), Audit: *p.Audit})
}

// namesOf are the names by which a policy may match a publisher; the first is the publisher's
// own.
func namesOf(t arn.ARN, c *caller.Caller) []string {
	if c == nil {
		return []string{arn.Root(t.Account).String(), t.Account}
	}
	names := append([]string{c.ARN, c.PolicyARN()}, c.Services...)
	if c.Account != "" {
		names = append(names, c.Account, arn.Root(c.Account).String())
	}
	return names
}
