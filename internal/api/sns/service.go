package sns

import (
	"cmp"
	"context"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns/platforms"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/protect"
)

// Engine executes the operations; *shard.Engine implements it. Its errors are of package
// fault, with the message for the caller.
type Engine interface {
	CreateTopic(ctx context.Context, cmd topic.CreateTopic) error
	DeleteTopic(ctx context.Context, t arn.ARN) error
	TopicAttributes(ctx context.Context, t arn.ARN) (map[string]string, error)
	SetTopicAttribute(ctx context.Context, t arn.ARN, name, value string) error
	// SetDataProtection sets the policy, or removes it if it is nil.
	SetDataProtection(ctx context.Context, t arn.ARN, policy *protect.Policy) error
	DataProtection(ctx context.Context, t arn.ARN) (text string, err error)
	AddTopicPermission(ctx context.Context, t arn.ARN, p shard.Permission) error
	// RemoveTopicPermission succeeds for an unknown label.
	RemoveTopicPermission(ctx context.Context, t arn.ARN, label string) error
	// ListTopics returns up to limit topics, ordered by name, from the first name greater
	// than after.
	ListTopics(ctx context.Context, region, account, after string, limit int) (page []arn.ARN, more bool, err error)

	// TagTopic, UntagTopic and TopicTags fail with ResourceNotFound.
	TagTopic(ctx context.Context, t arn.ARN, tags map[string]string) error
	UntagTopic(ctx context.Context, t arn.ARN, keys []string) error
	TopicTags(ctx context.Context, t arn.ARN) (map[string]string, error)

	Subscribe(ctx context.Context, cmd topic.Subscribe) (topic.Subscription, error)
	ConfirmSubscription(ctx context.Context, cmd topic.Confirm) (arn.ARN, error)
	// Unsubscribe succeeds for an unknown subscription.
	Unsubscribe(ctx context.Context, cmd topic.Unsubscribe) error
	SubscriptionAttributes(ctx context.Context, sub arn.ARN) (map[string]string, error)
	SetSubscriptionAttribute(ctx context.Context, sub arn.ARN, name, value string) error
	// ListSubscriptions returns up to limit subscriptions of an account, beginning after the
	// one with the ARN after.
	ListSubscriptions(ctx context.Context, region, account, after string, limit int) (page []topic.Subscription, more bool, err error)
	// ListSubscriptionsByTopic returns up to limit subscriptions of a topic, ordered by id,
	// from the first id greater than after.
	ListSubscriptionsByTopic(ctx context.Context, t arn.ARN, after string, limit int) (page []topic.Subscription, more bool, err error)

	// TopicAdmits reports whether a topic's policy allows another account the action of a need;
	// address is the caller's host and port.
	TopicAdmits(ctx context.Context, t arn.ARN, account, address string, need *authorize.Need) bool
	// MaxMessageSize bounds a message to a topic, and all those of a batch together, in bytes.
	MaxMessageSize(t arn.ARN) int
	// Protect applies the topic's data protection policy to a message, and refuses a denied
	// one.
	Protect(t arn.ARN, p *shard.Publication) error
	// Publish accepts messages, in order, with a result for each. They are durable on return.
	Publish(ctx context.Context, t arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)

	platforms.Engine
	// MayPublish refuses an endpoint of a push platform that cannot be published to.
	// PublishToEndpoint accepts a message for an endpoint; it is durable on return.
	MayPublish(ctx context.Context, endpoint arn.ARN) error
	PublishToEndpoint(ctx context.Context, endpoint arn.ARN, p shard.Publication) error
}

// Options are the dependencies and settings of a Service. All are required but the quota.
type Options struct {
	Engine Engine
	// NewID returns a unique id, for a message or a subscription.
	NewID func() message.ID
	// NewToken returns an unguessable secret, which confirms or restores a subscription.
	NewToken func() string
	// PublishQuota is an account's quota of published messages in a region, in messages a
	// second; 0: none.
	PublishQuota int
	// Bytes counts the bytes of messages that an account publishes, and refuses them beyond
	// its quota; nil: no quota.
	Bytes func(account string, bytes int) error
	// NoMail refuses subscriptions by mail: there is no mail server.
	NoMail bool
	// Texting configures text messages.
	Texting Texting
	// Principals resolves the principals in topics' policies; nil: api.Unbound.
	Principals api.Principals
}

// Service answers the operations of SNS.
type Service struct {
	engine   Engine
	newID    func() message.ID
	newToken func() string
	quota    *quota
	noMail   bool
	texting  Texting

	principals api.Principals
}

// New makes a Service.
func New(o Options) *Service {
	return &Service{engine: o.Engine, newID: o.NewID, newToken: o.NewToken, quota: newQuota(o.PublishQuota, o.Bytes), noMail: o.NoMail, texting: o.Texting, principals: cmp.Or[api.Principals](o.Principals, api.Unbound{})}
}

// Operations are the operations that are implemented.
func (s *Service) Operations() []api.Operation {
	return slices.Concat(platforms.Operations(s.engine), s.textOperations(), api.Guarded(s.access(), []api.Operation{
		api.Op("CreateTopic", s.createTopic),
		api.Op("DeleteTopic", s.deleteTopic),
		api.Op("ListTopics", s.listTopics),
		api.Op("GetTopicAttributes", s.getTopicAttributes),
		api.Op("SetTopicAttributes", s.setTopicAttributes),
		api.Op("PutDataProtectionPolicy", s.putDataProtectionPolicy),
		api.Op("GetDataProtectionPolicy", s.getDataProtectionPolicy),
		api.Op("AddPermission", s.addPermission),
		api.Op("RemovePermission", s.removePermission),
		api.Op("Subscribe", s.subscribe),
		api.Op("ConfirmSubscription", s.confirmSubscription).Opened(),
		api.Op("Unsubscribe", s.unsubscribe).Opened(),
		api.Op("ListSubscriptions", s.listSubscriptions),
		api.Op("ListSubscriptionsByTopic", s.listSubscriptionsByTopic),
		api.Op("GetSubscriptionAttributes", s.getSubscriptionAttributes),
		api.Op("SetSubscriptionAttributes", s.setSubscriptionAttributes),
		api.Op("Publish", s.publish),
		api.Op("PublishBatch", s.publishBatch),
		api.Op("TagResource", s.tagResource).WithResult(),
		api.Op("UntagResource", s.untagResource).WithResult(),
		api.Op("ListTagsForResource", s.listTagsForResource),
	}))
}
