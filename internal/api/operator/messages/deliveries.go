package messages

import (
	"context"
	"errors"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/shard"
)

// OnSubscription is a request with a subscription.
type OnSubscription struct {
	Subscription string `json:"subscription" required:"true" max:"2048" doc:"ARN of a subscription, a platform application, or direct/sms."`
}

// About implements rest.About.
func (o *OnSubscription) About() string { return o.Subscription }

// OnDelivery is a request with a delivery.
type OnDelivery struct {
	Subscription string `json:"subscription" required:"true" max:"2048"`
	ID           string `json:"id" required:"true" max:"64"`
}

// About implements rest.About.
func (o *OnDelivery) About() string { return o.Subscription }

// SetSubscriptionAttribute asks to change an attribute of a subscription.
type SetSubscriptionAttribute struct {
	Subscription string `json:"subscription" required:"true" max:"2048"`
	Name         string `json:"name" required:"true" enum:"DeliveryPolicy,FilterPolicy,FilterPolicyScope,RawMessageDelivery,RedrivePolicy"`
	Value        string `json:"value" doc:"As SetSubscriptionAttributes takes it; empty: the default."`
}

// About implements rest.About.
func (s *SetSubscriptionAttribute) About() string { return s.Subscription }

// SetTopicAttribute is the request to change an attribute of a topic that concerns
// deliveries, not permissions.
type SetTopicAttribute struct {
	Topic string `json:"topic" required:"true" max:"2048"`
	Name  string `json:"name" required:"true" enum:"DeliveryPolicy,DisplayName,SignatureVersion"`
	Value string `json:"value" max:"32768" doc:"As SetTopicAttributes takes it; empty: the default."`
}

// About implements rest.About.
func (s *SetTopicAttribute) About() string { return s.Topic }

// Retried says whether a delivery was made due.
type Retried struct {
	Changed bool `json:"changed" doc:"False: it was due already, or under way."`
}

// Dropped is the result of Drop.
type Dropped struct {
	DeadLettered int `json:"deadLettered"`
	Dropped      int `json:"dropped" doc:"Gone: there is no dead-letter queue that takes it."`
}

// Pause stops the deliveries of a subscription.
func (m *Messages) Pause(ctx context.Context, _ *rest.Call, in *OnSubscription) (*catalog.SubscriptionDetail, error) {
	sub, err := catalog.ParseSubscription(in.Subscription)
	if err != nil {
		return nil, err
	}
	if err := m.Operator.Pause(ctx, sub); err != nil {
		return nil, err
	}
	return m.Catalog.SubscriptionDetail(ctx, sub)
}

// Resume resumes a subscription's deliveries.
func (m *Messages) Resume(ctx context.Context, _ *rest.Call, in *OnSubscription) (*catalog.SubscriptionDetail, error) {
	sub, err := catalog.ParseSubscription(in.Subscription)
	if err != nil {
		return nil, err
	}
	if err := m.Operator.Resume(ctx, sub); err != nil {
		return nil, err
	}
	return m.Catalog.SubscriptionDetail(ctx, sub)
}

// SetAttribute changes an attribute of a subscription, as SNS does.
func (m *Messages) SetAttribute(ctx context.Context, _ *rest.Call, in *SetSubscriptionAttribute) (*catalog.SubscriptionDetail, error) {
	sub, err := catalog.ParseSubscription(in.Subscription)
	if err != nil {
		return nil, err
	}
	if err := m.Engine.SetSubscriptionAttribute(ctx, sub, in.Name, in.Value); err != nil {
		return nil, err
	}
	return m.Catalog.SubscriptionDetail(ctx, sub)
}

// SetTopicAttribute changes an attribute of a topic, as SNS does.
func (m *Messages) SetTopicAttribute(ctx context.Context, c *rest.Call, in *SetTopicAttribute) (*catalog.TopicDetail, error) {
	topic, err := catalog.ParseTopic(in.Topic)
	if err != nil {
		return nil, err
	}
	if err := m.Engine.SetTopicAttribute(ctx, topic, in.Name, in.Value); err != nil {
		return nil, err
	}
	return m.Catalog.GetTopic(ctx, c, &catalog.OneTopic{ARN: in.Topic})
}

// Retry makes the next attempt of a delivery due now.
func (m *Messages) Retry(ctx context.Context, _ *rest.Call, in *OnDelivery) (*Retried, error) {
	sub, err := catalog.ParseSubscription(in.Subscription)
	if err != nil {
		return nil, err
	}
	changed, err := m.Engine.RetryNow(ctx, sub, in.ID)
	return &Retried{changed}, err
}

// Drop ends a delivery as if its retries were exhausted.
func (m *Messages) Drop(ctx context.Context, _ *rest.Call, in *OnDelivery) (*Dropped, error) {
	sub, err := catalog.ParseSubscription(in.Subscription)
	if err != nil {
		return nil, err
	}
	done, err := m.Operator.Drop(ctx, sub, in.ID)
	if errors.Is(err, shard.ErrUnderWay) {
		return nil, rest.Conflict("an attempt at the delivery is under way; pause the subscription, and try again")
	}
	return &Dropped{done.DeadLettered, done.Dropped}, err
}
