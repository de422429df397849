package queues

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
)

// A queue's policy says which topics may send to it. It is parsed when it is set and when it is
// loaded, and evaluated for each delivery: by the commit of a publish, and by each transfer from
// a subscription's backlog. So a change also applies to pending deliveries. Requests of clients
// are authorised elsewhere, also by this policy.

// sendMessage is the action of a delivery to a queue.
const sendMessage = "sqs:SendMessage"

// loadPolicy compiles the stored policy. If that fails, as an older version did not validate it,
// the queue admits nobody, and ok is false.
func (qs *Queue) loadPolicy() (ok bool) {
	p, err := queuepolicy.Parse(qs.Record.Attributes[attribute.Policy])
	if err != nil {
		p = queuepolicy.DenyAll
	}
	qs.Policy = p
	return err == nil
}

// QueuePolicy is the policy of a queue; nil: it has none, or does not exist.
func (q *Queues) QueuePolicy(ctx context.Context, a arn.ARN) (p *policy.Policy) {
	_ = q.ReadCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err == nil {
			p = qs.Policy
		}
		return err
	})
	return p
}

// Admits refuses deliveries of a topic that may not send to the queue at now, in epoch
// milliseconds. The queue's policy decides. Without one, topics of the same account are
// allowed, unless Options.Strict. Errors: AccessDenied; KMSNotFound if the queue's key does
// not exist.
func (qs *Queue) Admits(topic arn.ARN, now int64) error {
	if qs.Shard == nil || qs.Shard.module.Keys == nil { // otherwise encryption has checked the key
		if err := key.Find(qs.ARN, qs.Record.Attributes[attribute.KmsMasterKeyID]); err != nil {
			return err
		}
	}
	if qs.Policy == nil {
		if strict := qs.Shard != nil && qs.Shard.module.options.Strict; topic.Account == qs.ARN.Account && !strict {
			return nil
		}
		return ErrForbidden
	}
	who := authorize.SNS(topic.Region)
	r := policy.Request{
		Caller: who, Action: sendMessage, Resource: qs.ARN.String(), Owner: qs.ARN.Account,
		Context: &authorize.Context{
			Caller: who, Account: qs.ARN.Account, Region: qs.ARN.Region, Now: now, Source: topic.String(), Owner: topic.Account,
		},
	}
	if result := policy.Decide(&r, &policy.Policies{Resource: qs.Policy}); !result.Allowed() {
		return ErrForbidden
	}
	return nil
}
