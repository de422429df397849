package sns

import (
	"context"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns/arns"
	"godwit.dev/godwit/internal/api/sns/platforms"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic"
)

// The substitutes for the ARN of a pending subscription.
const (
	pendingAnswer = "pending confirmation" // Subscribe
	pendingListed = "PendingConfirmation"  // the lists
)

// subscribe answers Subscribe. The answer has the ARN of a pending subscription only if the
// request asks for it.
func (s *Service) subscribe(ctx context.Context, call *api.Call, in *SubscribeInput) (*SubscribeOutput, error) {
	t, err := s.topicToSubscribe(ctx, call, in)
	if err != nil {
		return nil, err
	}
	if api.Deref(in.Endpoint) == "" {
		return nil, invalid("Endpoint")
	}
	if s.noMail && (in.Protocol == topic.Email.String() || in.Protocol == topic.EmailJSON.String()) {
		return nil, invalid("Protocol Reason: " + in.Protocol + " subscriptions need a mail relay, which this server has none of (--mail-relay)")
	}
	if s.texting.None && in.Protocol == topic.SMS.String() {
		return nil, invalid("Protocol Reason: " + needsCarrier)
	}
	missing, err := s.noEndpoint(ctx, in)
	if err != nil {
		return nil, err
	}
	sub, err := s.engine.Subscribe(ctx, topic.Subscribe{
		Topic:      t,
		Owner:      call.Account,
		Principal:  call.Principal(),
		Protocol:   in.Protocol,
		Endpoint:   *in.Endpoint,
		Attributes: in.Attributes,
		ID:         s.newID().String(),
		Token:      s.newToken(),
		Missing:    missing,
	})
	if err != nil {
		return nil, err
	}
	if sub.Pending && !in.ReturnSubscriptionArn {
		return &SubscribeOutput{SubscriptionArn: pendingAnswer}, nil
	}
	return &SubscribeOutput{SubscriptionArn: sub.ARN.String()}, nil
}

// topicToSubscribe parses the ARN of a topic that the caller may subscribe to: a topic of its own
// account, or one whose policy allows it.
func (s *Service) topicToSubscribe(ctx context.Context, call *api.Call, in *SubscribeInput) (arn.ARN, error) {
	t, err := parseAnyTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return t, err
	}
	if err = owned(call, t); err == nil {
		return t, nil
	}
	if needs, refused := subscribing(call, in); refused == nil && s.engine.TopicAdmits(ctx, t, call.Account, call.RemoteAddr, &needs[0]) {
		return t, nil
	}
	return t, err
}

// ownSubscription parses the ARN of a subscription that the caller's account has, or that is one
// of its topics'.
func (s *Service) ownSubscription(ctx context.Context, call *api.Call, value string) (arn.ARN, error) {
	sub, err := parseSubscription(call, "SubscriptionArn", value)
	if err != nil {
		return sub, err
	}
	if err = owned(call, sub); err != nil && s.subscribed(ctx, call, sub) {
		err = nil
	}
	return sub, err
}

// noEndpoint reports whether the request subscribes an endpoint of a push platform that does
// not exist.
func (s *Service) noEndpoint(ctx context.Context, in *SubscribeInput) (bool, error) {
	if in.Protocol != topic.Application.String() || !platforms.IsEndpoint(*in.Endpoint) {
		return false, nil
	}
	endpoint, _ := arn.Parse(*in.Endpoint)
	_, err := s.engine.EndpointAttributes(ctx, endpoint)
	if fault.KindOf(err) == fault.NotFound {
		return true, nil
	}
	return false, err
}

// confirmSubscription answers ConfirmSubscription, which a SubscribeURL also calls: the token
// is the only credential.
func (s *Service) confirmSubscription(ctx context.Context, call *api.Call, in *ConfirmSubscriptionInput) (*ConfirmSubscriptionOutput, error) {
	// Any holder of the token may confirm, of whatever account. Of the topic's ARN only the
	// region is used, which is that of the subscription.
	t, err := arns.Parse(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, invalid("Topic")
	}
	var authenticate bool
	switch strings.ToLower(api.Deref(in.AuthenticateOnUnsubscribe)) {
	case "true":
		authenticate = true
	case "false", "":
	default:
		return nil, invalid("AuthenticateOnUnsubscribe")
	}
	sub, err := s.engine.ConfirmSubscription(ctx, topic.Confirm{
		Topic:                     t,
		Token:                     in.Token,
		Authenticated:             call.Vouched(),
		AuthenticateOnUnsubscribe: authenticate,
	})
	if err != nil {
		return nil, err
	}
	return &ConfirmSubscriptionOutput{SubscriptionArn: sub.String()}, nil
}

// unsubscribe answers Unsubscribe, which an UnsubscribeURL also calls: then the endpoint is
// notified, and can undo it. It succeeds for an unknown subscription.
func (s *Service) unsubscribe(ctx context.Context, call *api.Call, in *UnsubscribeInput) (*UnsubscribeOutput, error) {
	sub, err := s.ownSubscription(ctx, call, in.SubscriptionArn)
	if err != nil {
		return nil, err
	}
	return &UnsubscribeOutput{}, s.engine.Unsubscribe(ctx, topic.Unsubscribe{
		Subscription: sub, Authenticated: call.Vouched(), Token: s.newToken(),
	})
}

// listSubscriptions answers ListSubscriptions.
func (s *Service) listSubscriptions(ctx context.Context, call *api.Call, in *ListSubscriptionsInput) (*ListSubscriptionsOutput, error) {
	const list = "subscriptions"
	after, err := readToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	page, more, err := s.engine.ListSubscriptions(ctx, call.Region, call.Account, after, pageSize)
	if err != nil {
		return nil, err
	}
	out := &ListSubscriptionsOutput{Subscriptions: listed(page)}
	if more {
		out.NextToken = nextToken(list, page[len(page)-1].ARN.String())
	}
	return out, nil
}

// listSubscriptionsByTopic answers ListSubscriptionsByTopic.
func (s *Service) listSubscriptionsByTopic(ctx context.Context, call *api.Call, in *ListSubscriptionsByTopicInput) (*ListSubscriptionsByTopicOutput, error) {
	t, err := parseTopic(call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	list := t.String()
	after, err := readToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	page, more, err := s.engine.ListSubscriptionsByTopic(ctx, t, after, pageSize)
	if err != nil {
		return nil, err
	}
	out := &ListSubscriptionsByTopicOutput{Subscriptions: listed(page)}
	if more {
		out.NextToken = nextToken(list, page[len(page)-1].ID())
	}
	return out, nil
}

func listed(page []topic.Subscription) []Subscription {
	shown := make([]Subscription, 0, len(page))
	for i := range page {
		sub := &page[i]
		t, _, _ := sub.ARN.SplitSubscription()
		name := sub.ARN.String()
		if sub.Pending {
			name = pendingListed
		}
		shown = append(shown, Subscription{
			SubscriptionArn: name,
			Owner:           sub.Owner,
			Protocol:        sub.Protocol.String(),
			Endpoint:        sub.ShownEndpoint(),
			TopicArn:        t.String(),
		})
	}
	return shown
}

// getSubscriptionAttributes answers GetSubscriptionAttributes.
func (s *Service) getSubscriptionAttributes(ctx context.Context, call *api.Call, in *GetSubscriptionAttributesInput) (*GetSubscriptionAttributesOutput, error) {
	// The ARN of another service, with a subscription's form, is an unknown subscription.
	if a, err := arn.Parse(in.SubscriptionArn); err == nil && a.Service != "sns" && strings.Count(a.Resource, ":") == 1 {
		return nil, topic.ErrNoSubscription
	}
	sub, err := s.ownSubscription(ctx, call, in.SubscriptionArn)
	if err != nil {
		return nil, err
	}
	attrs, err := s.engine.SubscriptionAttributes(ctx, sub)
	if err != nil {
		return nil, err
	}
	return &GetSubscriptionAttributesOutput{Attributes: attrs}, nil
}

// setSubscriptionAttributes answers SetSubscriptionAttributes. A missing value means the
// empty one, which deletes the attribute.
func (s *Service) setSubscriptionAttributes(ctx context.Context, call *api.Call, in *SetSubscriptionAttributesInput) (*SetSubscriptionAttributesOutput, error) {
	sub, err := s.ownSubscription(ctx, call, in.SubscriptionArn)
	if err != nil {
		return nil, err
	}
	return &SetSubscriptionAttributesOutput{}, s.engine.SetSubscriptionAttribute(ctx, sub, in.AttributeName, api.Deref(in.AttributeValue))
}
