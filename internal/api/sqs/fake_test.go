package sqs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

const (
	testRegion  = "us-east-1"
	testAccount = "000000000000"
	testHost    = "http://localhost:4566"
)

// fake is an engine that remembers what it was told and does nothing else.
type fake struct {
	queues   map[arn.ARN]map[string]string // attributes
	sent     []shard.SendEntry
	received shard.ReceiveRequest
	changed  []shard.VisibilityChange
	gives    []shard.Received
	handles  []string
	errs     []error // of DeleteMessages and ChangeVisibility
	calls    [][]any // of what is only passed on
	tags     map[string]string
	sources  []string
	more     bool
	tasks    []shard.MoveTask
}

func newFake(names ...string) *fake {
	f := &fake{queues: map[arn.ARN]map[string]string{}}
	for _, name := range names {
		f.queues[arn.Queue(testRegion, testAccount, name)] = map[string]string{}
	}
	return f
}

var errNoQueue = fault.New(fault.QueueDoesNotExist, "no such queue")

func (f *fake) CreateQueue(_ context.Context, spec shard.QueueSpec) error {
	f.queues[spec.ARN] = spec.Attributes
	return nil
}

func (f *fake) DeleteQueue(_ context.Context, q arn.ARN) error {
	if _, ok := f.queues[q]; !ok {
		return errNoQueue
	}
	delete(f.queues, q)
	return nil
}

func (f *fake) QueueInfo(_ context.Context, q arn.ARN) (shard.QueueInfo, error) {
	attrs, ok := f.queues[q]
	if !ok {
		return shard.QueueInfo{}, errNoQueue
	}
	return shard.QueueInfo{ARN: q, Attributes: attrs}, nil
}

func (f *fake) QueueConfig(_ context.Context, q arn.ARN) (queue.Config, error) {
	attrs, ok := f.queues[q]
	if !ok {
		return queue.Config{}, errNoQueue
	}
	return attribute.Config(attrs)
}

func (f *fake) SetQueueAttributes(_ context.Context, q arn.ARN, set map[string]string) error {
	f.queues[q] = set
	return nil
}

func (f *fake) ListQueues(_ context.Context, region, account, prefix, after string, limit int) (names []string, more bool, err error) {
	for q := range f.queues {
		if q.Region == region && q.Account == account && strings.HasPrefix(q.Resource, prefix) && q.Resource > after {
			names = append(names, q.Resource)
		}
	}
	slices.Sort(names)
	return names[:min(limit, len(names))], len(names) > limit, nil
}

func (f *fake) PurgeQueue(_ context.Context, q arn.ARN) error {
	f.calls = append(f.calls, []any{"PurgeQueue", q.Resource})
	return nil
}

func (f *fake) TagQueue(_ context.Context, q arn.ARN, tags map[string]string) error {
	f.calls = append(f.calls, []any{"TagQueue", q.Resource, tags})
	return nil
}

func (f *fake) UntagQueue(_ context.Context, q arn.ARN, keys []string) error {
	f.calls = append(f.calls, []any{"UntagQueue", q.Resource, keys})
	return nil
}

func (f *fake) QueueTags(context.Context, arn.ARN) (map[string]string, error) { return f.tags, nil }

func (f *fake) AddPermission(_ context.Context, q arn.ARN, p shard.Permission) error {
	f.calls = append(f.calls, []any{"AddPermission", q.Resource, p})
	return nil
}

func (f *fake) RemovePermission(_ context.Context, q arn.ARN, label string) error {
	f.calls = append(f.calls, []any{"RemovePermission", q.Resource, label})
	return nil
}

func (f *fake) DeadLetterSources(_ context.Context, q arn.ARN, after string, limit int) ([]string, bool, error) {
	f.calls = append(f.calls, []any{"DeadLetterSources", q.Resource, after, limit})
	return f.sources, f.more, nil
}

func (f *fake) StartMoveTask(_ context.Context, spec shard.MoveTaskSpec) error {
	f.calls = append(f.calls, []any{"StartMoveTask", spec})
	return nil
}

func (f *fake) MoveTasks(_ context.Context, source arn.ARN, limit int) ([]shard.MoveTask, error) {
	f.calls = append(f.calls, []any{"MoveTasks", source.Resource, limit})
	return f.tasks, nil
}

func (f *fake) CancelMoveTask(_ context.Context, source arn.ARN, id string) (int64, error) {
	f.calls = append(f.calls, []any{"CancelMoveTask", source.Resource, id})
	return 7, nil
}

func (f *fake) Send(_ context.Context, _ arn.ARN, msgs []shard.SendEntry) ([]shard.SendResult, error) {
	f.sent = append(f.sent, msgs...)
	results := make([]shard.SendResult, len(msgs))
	for i := range msgs {
		results[i].ID = msgs[i].Message.ID
	}
	return results, nil
}

func (f *fake) Receive(_ context.Context, req shard.ReceiveRequest) ([]shard.Received, error) {
	f.received = req
	return f.gives, nil
}

func (f *fake) DeleteMessages(_ context.Context, _ arn.ARN, handles []string) ([]error, error) {
	f.handles = handles
	return f.errs, nil
}

func (f *fake) ChangeVisibility(_ context.Context, _ arn.ARN, changes []shard.VisibilityChange) ([]error, error) {
	f.changed = changes
	return f.errs, nil
}

func newService(f *fake) *Service {
	var last byte
	return New(Options{DefaultRegion: testRegion, Engine: f, NewID: func() message.ID {
		last++
		return message.ID{15: last}
	}})
}

func newCall() *api.Call {
	return &api.Call{
		Region: testRegion, Account: testAccount, Host: testHost, Header: map[string][]string{},
		Describe: func(err error) (string, string, bool) {
			if fault.KindOf(err) == fault.InvalidParameter {
				return "InvalidParameterValue", refusal.Text(err), true
			}
			if fault.KindOf(err) == fault.InvalidMessageContents {
				return "InvalidMessageContents", refusal.Text(err), true
			}
			return "Other", refusal.Text(err), true
		},
	}
}

func urlOf(name string) string { return testHost + "/" + testAccount + "/" + name }

// wantFault fails unless err is a refusal of this kind and text; the empty
// text stands for any.
func wantFault(t *testing.T, err error, kind fault.Kind, text string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind || text != "" && refusal.Text(err) != text {
		t.Errorf("error: %v (kind %d)\nwant:  %s (kind %d)", err, fault.KindOf(err), text, kind)
	}
}

func (f *fake) Encrypt(arn.ARN, queue.Config, *caller.Caller, arn.ARN, ...*message.Message) error {
	return nil
}
