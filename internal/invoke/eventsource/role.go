package eventsource

import (
	"context"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
)

// ErrRole is the error for a queue that the function's role may not poll.
var ErrRole = fault.NewRule(fault.AccessDenied, "eventsource: the function's role may not read its queue") // the denied action

const deleteMessage = "sqs:DeleteMessage"

// polled are the actions that a role must allow for polling a queue. Source: the Lambda
// developer guide, on execution role permissions for SQS.
var polled = []string{"sqs:ReceiveMessage", deleteMessage, "sqs:GetQueueAttributes"}

// May returns the caller that polls a queue for a function, or ErrRole if its role does not
// allow it.
func May(ctx context.Context, acting invoke.Acting, t *function.Target, queue arn.ARN) (*caller.Caller, error) {
	who, denied, err := acting.May(ctx, t, queue, polled...)
	if _, action, ok := strings.Cut(denied, ":"); ok {
		return nil, ErrRole.With(action)
	}
	return who, err
}

// Failing is why a mapping's queue cannot be read: ErrRole, or an error of the queue's key;
// nil: it can, or was not tried, or there is another cause.
func (p *Pollers) Failing(a arn.ARN) error {
	p.mu.Lock()
	one := p.running[a]
	p.mu.Unlock()
	if one == nil {
		return nil
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.failing.err
}

// trouble is why a poller cannot read its queue.
type trouble struct {
	err   error     // nil: none
	ofKey bool      // the queue's key is the cause; else a former one, under which messages still are
	until time.Time // what was refused is hidden no longer
}

// setFailing records why the queue cannot be read; nil: it can.
func (p *poller) setFailing(err error) {
	if kind := fault.KindOf(err); kind != fault.AccessDenied && !ofKey(kind) {
		err = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.failing = trouble{}
		return
	}
	p.failing.err, p.failing.ofKey = err, false // foundNothing finds out
}

// refused records that a receive has failed, which may have hidden for a while what it found.
func (p *poller) refused(visibility time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing.until = p.Clock.Now().Add(visibility)
}

// ofKey reports whether a refusal is about a key.
func ofKey(kind fault.Kind) bool {
	switch kind {
	case fault.KMSAccessDenied, fault.KMSDisabled, fault.KMSInvalidState, fault.KMSInvalidKeyUsage, fault.KMSNotFound:
		return true
	default:
		return false
	}
}

// foundNothing records that the queue can be read, unless its key is still refused, or what is under
// a former one may be hidden.
func (p *poller) foundNothing(ctx context.Context) {
	p.mu.Lock()
	before := p.failing
	p.mu.Unlock()
	if before.err == nil {
		return
	}
	if ofKey(fault.KindOf(before.err)) {
		switch err := p.keyRefused(ctx); {
		case ofKey(fault.KindOf(err)):
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failing.err, p.failing.ofKey = err, true
			return
		case !before.ofKey && p.Clock.Now().Before(before.until):
			return
		}
	}
	p.setFailing(nil)
}

// keyRefused is why the queue's key does not decrypt for the function's role.
func (p *poller) keyRefused(ctx context.Context) error {
	_, who, err := p.may(ctx)
	if err == nil {
		err = p.Engine.MayDecrypt(ctx, p.mapping.Queue, who)
	}
	return err
}

// allowed records that the role may poll the queue again.
func (p *poller) allowed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fault.KindOf(p.failing.err) == fault.AccessDenied {
		p.failing = trouble{}
	}
}

// stillMay refuses messages that arrived after the role had lost the permission. Other
// problems are found by the invocation.
func (p *poller) stillMay(ctx context.Context) error {
	if p.Acting == nil {
		return nil
	}
	if _, _, err := p.may(ctx); fault.KindOf(err) == fault.AccessDenied {
		return err
	}
	return nil
}

// mayDelete reports whether the role may delete the messages that succeeded.
func (p *poller) mayDelete(ctx context.Context) bool {
	if p.Acting == nil {
		return true
	}
	whole, qualifier, _ := p.mapping.Function.SplitFunction()
	target, err := p.Engine.Function(ctx, whole, qualifier)
	if err == nil {
		_, _, err = p.Acting.May(ctx, &target, p.mapping.Queue, deleteMessage)
	}
	return err == nil
}
