package sns

import (
	"cmp"
	"context"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns/platforms"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/protect"
)

// Engine is what the handlers need of the owner of the state, which is
// *shard.Engine. Refusals are of package fault, with the text that the caller
// sees.
type Engine interface {
	CreateTopic(ctx context.Context, cmd topic.CreateTopic) error
	DeleteTopic(ctx context.Context, t arn.ARN) error
	TopicAttributes(ctx context.Context, t arn.ARN) (map[string]string, error)
	SetTopicAttribute(ctx context.Context, t arn.ARN, name, value string) error
	// SetDataProtection takes the policy away if it is nil.
	SetDataProtection(ctx context.Context, t arn.ARN, policy *protect.Policy) error
	DataProtection(ctx context.Context, t arn.ARN) (text string, err error)
	AddTopicPermission(ctx context.Context, t arn.ARN, p shard.Permission) error
	// RemoveTopicPermission succeeds for a label that is not there.
	RemoveTopicPermission(ctx context.Context, t arn.ARN, label string) error
	// ListTopics gives up to limit topics in the order of their names, those
	// whose names are greater than after.
	ListTopics(ctx context.Context, region, account, after string, limit int) (page []arn.ARN, more bool, err error)

	// TagTopic, UntagTopic and TopicTags fail with ResourceNotFound.
	TagTopic(ctx context.Context, t arn.ARN, tags map[string]string) error
	UntagTopic(ctx context.Context, t arn.ARN, keys []string) error
	TopicTags(ctx context.Context, t arn.ARN) (map[string]string, error)

	Subscribe(ctx context.Context, cmd topic.Subscribe) (topic.Subscription, error)
	ConfirmSubscription(ctx context.Context, cmd topic.Confirm) (arn.ARN, error)
	// Unsubscribe succeeds for what is not there.
	Unsubscribe(ctx context.Context, cmd topic.Unsubscribe) error
	SubscriptionAttributes(ctx context.Context, sub arn.ARN) (map[string]string, error)
	SetSubscriptionAttribute(ctx context.Context, sub arn.ARN, name, value string) error
	// ListSubscriptions gives up to limit subscriptions of an account behind
	// the one whose ARN is after.
	ListSubscriptions(ctx context.Context, region, account, after string, limit int) (page []topic.Subscription, more bool, err error)
	// ListSubscriptionsByTopic gives up to limit subscriptions of a topic in
	// the order of their ids, those whose ids are greater than after.
	ListSubscriptionsByTopic(ctx context.Context, t arn.ARN, after string, limit int) (page []topic.Subscription, more bool, err error)

	// AdmitsPublisher reports whether a topic's policy lets another account
	// publish; address is the caller's host and port.
	AdmitsPublisher(ctx context.Context, t arn.ARN, account, address string) bool
	// Protect applies the topic's data protection policy to a message, and refuses what
	// that denies.
	Protect(t arn.ARN, p *shard.Publication) error
	// Publish accepts messages, in their order; they are durable on return. It
	// gives a result for each.
	Publish(ctx context.Context, t arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)

	platforms.Engine
	// MayPublish refuses an endpoint of a push platform that takes no message, and
	// PublishToEndpoint accepts one for it; it is durable on return.
	MayPublish(ctx context.Context, endpoint arn.ARN) error
	PublishToEndpoint(ctx context.Context, endpoint arn.ARN, p shard.Publication) error
}

// Options are what a Service is made of. Every field is needed but for the
// quota.
type Options struct {
	Engine Engine
	// NewID gives an id that was never given before: of a message, or of a
	// subscription.
	NewID func() message.ID
	// NewToken gives a secret that cannot be guessed: what confirms a
	// subscription, or restores it.
	NewToken func() string
	// PublishQuota is how many messages an account may publish in a region in a
	// second; 0: any number.
	PublishQuota int
	// Bytes counts bytes of messages that an account publishes, and refuses them where it
	// may not; nil: it may any number.
	Bytes func(account string, bytes int) error
	// NoMail has subscriptions by mail refused: mails go nowhere.
	NoMail bool
	// Texting are text messages.
	Texting Texting
	// Principals are who can be named by topics' policies; nil: api.Unbound.
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

// Operations declares the operations that are built.
func (s *Service) Operations() []api.Operation {
	return slices.Concat(platforms.Operations(s.engine), s.textOperations(), api.Guarded(access, []api.Operation{
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
