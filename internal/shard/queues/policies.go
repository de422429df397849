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

// A queue's policy says which topics may send to it. It is parsed when it is
// set and when it is loaded, and evaluated for each delivery: by the commit that
// publishes, and by every transfer out of a subscription's backlog. A change
// therefore holds for deliveries that wait. Requests of clients are held against it
// where callers are authorised.

// SnsService is the service principal of a topic's deliveries.
const SnsService = "sns.amazonaws.com"

// sendMessage is what a delivery does to a queue.
const sendMessage = "sqs:SendMessage"

// loadPolicy compiles a stored policy. One that is not understood, which an
// older version let in, admits no one; then ok is false.
func (qs *Queue) loadPolicy() (ok bool) {
	p, err := queuepolicy.Parse(qs.Record.Attributes[attribute.Policy])
	if err != nil {
		p = queuepolicy.DenyAll
	}
	qs.Policy = p
	return err == nil
}

// QueuePolicy is the policy of a queue; nil for none, and if there is no such queue.
func (e *Queues) QueuePolicy(ctx context.Context, a arn.ARN) (p *policy.Policy) {
	_ = e.WithCatalog(ctx, a, func(sh *Shard) error {
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
	if qs.Shard == nil || qs.Shard.engine.Keys == nil { // else it is encrypted before
		if err := key.Find(qs.ARN, qs.Record.Attributes[attribute.KmsMasterKeyID]); err != nil {
			return err
		}
	}
	if qs.Policy == nil {
		if strict := qs.Shard != nil && qs.Shard.engine.options.Strict; topic.Account == qs.ARN.Account && !strict {
			return nil
		}
		return ErrForbidden
	}
	who := authorize.ServiceCaller(SnsService, "sns."+topic.Region+".amazonaws.com")
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
