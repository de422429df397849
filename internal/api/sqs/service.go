package sqs

import (
	"cmp"
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// Engine executes the operations; *shard.Engine implements it. Its errors are of package
// fault.
type Engine interface {
	CreateQueue(ctx context.Context, spec shard.QueueSpec) error
	DeleteQueue(ctx context.Context, q arn.ARN) error
	QueueInfo(ctx context.Context, q arn.ARN) (shard.QueueInfo, error)
	QueueConfig(ctx context.Context, q arn.ARN) (queue.Config, error)
	SetQueueAttributes(ctx context.Context, q arn.ARN, set map[string]string) error
	PurgeQueue(ctx context.Context, q arn.ARN) error
	TagQueue(ctx context.Context, q arn.ARN, tags map[string]string) error
	UntagQueue(ctx context.Context, q arn.ARN, keys []string) error
	QueueTags(ctx context.Context, q arn.ARN) (map[string]string, error)
	AddPermission(ctx context.Context, q arn.ARN, p shard.Permission) error
	RemovePermission(ctx context.Context, q arn.ARN, label string) error
	DeadLetterSources(ctx context.Context, q arn.ARN, after string, limit int) (names []string, more bool, err error)
	StartMoveTask(ctx context.Context, spec shard.MoveTaskSpec) error
	MoveTasks(ctx context.Context, source arn.ARN, limit int) ([]shard.MoveTask, error)
	CancelMoveTask(ctx context.Context, source arn.ARN, id string) (moved int64, err error)
	ListQueues(ctx context.Context, region, account, prefix, after string, limit int) (names []string, more bool, err error)
	Encrypt(q arn.ARN, cfg queue.Config, who *caller.Caller, source arn.ARN, msgs ...*message.Message) error
	Send(ctx context.Context, q arn.ARN, msgs []shard.SendEntry) ([]shard.SendResult, error)
	Receive(ctx context.Context, req shard.ReceiveRequest) ([]shard.Received, error)
	DeleteMessages(ctx context.Context, q arn.ARN, handles []string) ([]error, error)
	ChangeVisibility(ctx context.Context, q arn.ARN, changes []shard.VisibilityChange) ([]error, error)
}

// Options are the dependencies and settings of a Service.
type Options struct {
	Engine Engine
	NewID  func() message.ID // returns a new message id
	// FIFORate is the quota of each action on messages on one FIFO queue without high
	// throughput, in calls a second; 0: none.
	FIFORate int
	// Bytes counts the bytes of messages that an account sends, and refuses them beyond its
	// quota; nil: no quota.
	Bytes func(account string, bytes int) error
	// DefaultRegion is the region that queue URLs need not contain.
	DefaultRegion string
	// URLHost is the domain of queue URLs, as sqs.<region>.<URLHost>; empty: queue URLs have
	// the host of the request.
	URLHost string
	// Principals resolves the principals in queues' policies; nil: api.Unbound.
	Principals api.Principals
}

// Service answers the operations of SQS.
type Service struct {
	engine Engine
	newID  func() message.ID
	fifo   quota
	bytes  func(account string, bytes int) error
	region string // the default region

	urlHost    string
	principals api.Principals
}

// New makes a Service.
func New(o Options) *Service {
	if o.Bytes == nil {
		o.Bytes = func(string, int) error { return nil }
	}
	return &Service{engine: o.Engine, newID: o.NewID, fifo: quota{perSecond: o.FIFORate}, bytes: o.Bytes, region: o.DefaultRegion, urlHost: o.URLHost, principals: cmp.Or[api.Principals](o.Principals, api.Unbound{})}
}

// listing is about the memory of a page of 1,000 queues, in bytes: names and URLs, the
// encoded answer, and the scan of each shard's names.
const listing = 1 << 20

// Operations are the operations that are implemented.
func (s *Service) Operations() []api.Operation {
	return api.Guarded(access, []api.Operation{
		checked(api.Op("CreateQueue", s.CreateQueue), checkCreation),
		api.Op("GetQueueUrl", s.GetQueueUrl).Anywhere(),
		api.Op("ListQueues", s.ListQueues).Holding(listing),
		api.Op("DeleteQueue", s.DeleteQueue),
		api.Op("GetQueueAttributes", s.GetQueueAttributes),
		checked(api.Op("SetQueueAttributes", s.SetQueueAttributes), checkChange),
		withQuota(s, "SendMessage", func(in *SendMessageInput) string { return in.QueueUrl }, s.SendMessage),
		withQuota(s, "SendMessageBatch", func(in *SendMessageBatchInput) string { return in.QueueUrl }, s.SendMessageBatch),
		withQuota(s, "ReceiveMessage", func(in *ReceiveMessageInput) string { return in.QueueUrl }, s.ReceiveMessage),
		withQuota(s, "DeleteMessage", func(in *DeleteMessageInput) string { return in.QueueUrl }, s.DeleteMessage),
		withQuota(s, "DeleteMessageBatch", func(in *DeleteMessageBatchInput) string { return in.QueueUrl }, s.DeleteMessageBatch),
		withQuota(s, "ChangeMessageVisibility", func(in *ChangeMessageVisibilityInput) string { return in.QueueUrl }, s.ChangeMessageVisibility),
		withQuota(s, "ChangeMessageVisibilityBatch", func(in *ChangeMessageVisibilityBatchInput) string { return in.QueueUrl }, s.ChangeMessageVisibilityBatch),
		api.Op("PurgeQueue", s.PurgeQueue),
		api.Op("TagQueue", s.TagQueue),
		api.Op("UntagQueue", s.UntagQueue),
		api.Op("ListQueueTags", s.ListQueueTags),
		api.Op("AddPermission", s.AddPermission),
		api.Op("RemovePermission", s.RemovePermission),
		api.Op("ListDeadLetterSourceQueues", s.ListDeadLetterSourceQueues).Holding(listing),
		api.Op("StartMessageMoveTask", s.StartMessageMoveTask),
		api.Op("ListMessageMoveTasks", s.ListMessageMoveTasks),
		api.Op("CancelMessageMoveTask", s.CancelMessageMoveTask),
	})
}
