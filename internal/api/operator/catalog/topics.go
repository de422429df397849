package catalog

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// Topic is a topic in a list.
type Topic struct {
	ARN           string            `json:"arn"`
	Name          string            `json:"name"`
	Region        string            `json:"region"`
	Account       string            `json:"account"`
	FIFO          bool              `json:"fifo"`
	DisplayName   string            `json:"displayName"`
	Encrypted     bool              `json:"encrypted" doc:"Under a key of KMS."`
	Subscriptions int               `json:"subscriptions" doc:"Confirmed ones."`
	Pending       int               `json:"pending" doc:"Subscriptions that wait for their confirmation."`
	Owed          int64             `json:"owed" doc:"Deliveries that its subscriptions are owed."`
	Rates         *TopicRates       `json:"rates" doc:"Null until they are known."`
	Tags          map[string]string `json:"tags"`
}

// TopicRates are in messages a second.
type TopicRates struct {
	Published float64 `json:"published"`
}

// TopicDetail describes a topic in full.
type TopicDetail struct {
	Topic
	Attributes     map[string]string `json:"attributes" doc:"As GetTopicAttributes has them."`
	Policy         *string           `json:"policy"`
	DeliveryPolicy *string           `json:"deliveryPolicy"`
	Protocols      map[string]int    `json:"protocols" doc:"How many subscriptions there are by protocol, of the first 10,000."`
}

// ListTopics asks for topics.
type ListTopics struct {
	Search  string `query:"search" max:"256" doc:"Part of the name, whatever its case."`
	Tag     string `query:"tag" max:"400" doc:"Only those with this tag: KEY, or KEY=VALUE."`
	Region  string `query:"region" max:"64" doc:"By default the server's."`
	Account string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor  string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// Topics is a page of topics.
type Topics struct {
	Topics []Topic   `json:"topics"`
	Total  int       `json:"total" doc:"All topics of the server, in every account and region."`
	AsOf   time.Time `json:"asOf" doc:"When rates and what is owed were looked at."`
	Next   *string   `json:"next"`
}

// OneTopic names a topic.
type OneTopic struct {
	ARN string `query:"arn" required:"true" max:"2048" doc:"The topic's."`
}

// About implements rest.About.
func (t *OneTopic) About() string { return t.ARN }

// ParseTopic reads the ARN of a topic.
func ParseTopic(name string) (arn.ARN, error) {
	a, err := arn.Parse(name)
	_, _, sub := a.SplitSubscription()
	if err != nil || a.Service != "sns" || a.Resource == "" || sub {
		return arn.ARN{}, rest.BadRequest("arn: want the ARN of a topic")
	}
	return a, nil
}

// ListTopics lists topics by name.
func (c *Catalog) ListTopics(ctx context.Context, _ *rest.Call, in *ListTopics) (*Topics, error) {
	from, now, err := c.begin(ctx, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &Topics{Topics: []Topic{}, Total: now.Topics, AsOf: now.At.UTC()}
	region, account := c.in(in.Region, in.Account)
	for looked := 0; ; {
		names, more, err := c.Engine.ListTopics(ctx, region, account, from, min(1000, 2*in.Limit))
		if err != nil {
			return nil, err
		}
		for _, a := range names {
			if len(out.Topics) == in.Limit {
				out.Next = rest.Next(from, true)
				return out, nil
			}
			from = a.Resource
			if !rest.Matches(a.Resource, in.Search) {
				continue
			}
			t, _, err := c.topic(ctx, a, now)
			if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.ResourceNotFound {
				continue // it was deleted in the meantime
			}
			if err != nil {
				return nil, err
			}
			if tagged(t.Tags, in.Tag) {
				out.Topics = append(out.Topics, t)
			}
		}
		if looked += len(names); !more || looked >= examined || len(names) == 0 {
			out.Next = rest.Next(from, more)
			return out, nil
		}
	}
}

// topic is a topic in a list, with its attributes. Errors: NotFound, ResourceNotFound.
func (c *Catalog) topic(ctx context.Context, a arn.ARN, now *live.Snapshot) (t Topic, attributes map[string]string, err error) {
	attributes, err = c.Engine.TopicAttributes(ctx, a)
	if err != nil {
		return t, nil, err
	}
	t = Topic{
		ARN: a.String(), FIFO: a.FIFO(), DisplayName: attributes["DisplayName"], Encrypted: attributes["KmsMasterKeyId"] != "",
		Subscriptions: number(attributes["SubscriptionsConfirmed"]), Pending: number(attributes["SubscriptionsPending"]), Owed: now.ByTopic[a],
	}
	t.Name, t.Region, t.Account = namesSplit(a)
	tags, err := c.Engine.TopicTags(ctx, a)
	if err != nil {
		return t, nil, err
	}
	t.Tags = orEmpty(tags)
	if rate, ok := now.Topic(a); ok {
		t.Rates = &TopicRates{round(rate)}
	}
	return t, attributes, nil
}

// GetTopic describes one topic.
func (c *Catalog) GetTopic(ctx context.Context, _ *rest.Call, in *OneTopic) (*TopicDetail, error) {
	a, err := ParseTopic(in.ARN)
	if err != nil {
		return nil, err
	}
	now, err := c.Live.Now(ctx)
	if err != nil {
		return nil, err
	}
	t, attributes, err := c.topic(ctx, a, now)
	if err != nil {
		return nil, err
	}
	subs, _, err := c.Engine.ListSubscriptionsByTopic(ctx, a, "", 10_000)
	if err != nil {
		return nil, err
	}
	out := &TopicDetail{
		Topic: t, Attributes: attributes, Policy: rest.Optional(attributes["Policy"]),
		DeliveryPolicy: rest.Optional(attributes["DeliveryPolicy"]), Protocols: map[string]int{},
	}
	for i := range subs {
		out.Protocols[subs[i].Protocol.String()]++
	}
	return out, nil
}
