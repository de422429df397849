package source

import (
	"context"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
)

// ErrRole is the error for a queue that the function's role may not poll.
var ErrRole = fault.NewRule(fault.AccessDenied, "source: the function's role may not read its queue") // the denied action

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
	return one.failing
}

// setFailing records why the queue cannot be read; nil: it can.
func (p *poller) setFailing(err error) {
	switch fault.KindOf(err) {
	case fault.AccessDenied, fault.KMSAccessDenied, fault.KMSDisabled, fault.KMSInvalidState, fault.KMSInvalidKeyUsage, fault.KMSNotFound:
	default:
		err = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing = err
}

// foundNothing records that the queue can be read, unless its key is out of use: then what could not
// be decrypted is only hidden for a while.
func (p *poller) foundNothing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch fault.KindOf(p.failing) {
	case fault.KMSDisabled, fault.KMSInvalidState, fault.KMSNotFound:
	default:
		p.failing = nil
	}
}

// allowed records that the role may poll the queue again.
func (p *poller) allowed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fault.KindOf(p.failing) == fault.AccessDenied {
		p.failing = nil
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
