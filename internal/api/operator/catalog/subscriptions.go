package catalog

import (
	"context"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

// Subscription is a subscription in a list, or an equivalent: a platform application, or an
// account's text messages without a topic.
type Subscription struct {
	ARN         string     `json:"arn"`
	ID          string     `json:"id" doc:"The last part of the ARN."`
	Topic       string     `json:"topic" doc:"Its ARN; empty where messages are published to no topic."`
	Protocol    string     `json:"protocol"`
	Endpoint    string     `json:"endpoint" doc:"Without credentials."`
	EndpointARN *string    `json:"endpointArn" doc:"The queue, function or stream, if it is one."`
	Owner       string     `json:"owner" doc:"The account that subscribed."`
	State       string     `json:"state" enum:"active,paused,pending-confirmation,failing" doc:"failing: the last attempt did not succeed."`
	CreatedAt   *time.Time `json:"createdAt"`
	PausedAt    *time.Time `json:"pausedAt"`
	Owed
	DeadLetterQueue *string      `json:"deadLetterQueue"`
	Filtered        bool         `json:"filtered" doc:"It has a filter policy."`
	Raw             bool         `json:"raw"`
	LastAttempt     *LastAttempt `json:"lastAttempt" doc:"Null if none was made since the server began."`
}

// Owed are counts of a backlog by state.
type Owed struct {
	Owed              int64      `json:"owed" doc:"The sum of the three that follow."`
	Due               int64      `json:"due" doc:"Could be attempted now: they wait for a throttle, a place at their host, the end of a pause, or the message before them in their group."`
	Waiting           int64      `json:"waiting" doc:"For the time of their next attempt."`
	InFlight          int64      `json:"inFlight"`
	OldestPublishedAt *time.Time `json:"oldestPublishedAt"`
	OldestAgeSeconds  *float64   `json:"oldestAgeSeconds"`
}

// Attempt is one attempt at a delivery.
type Attempt struct {
	At        time.Time `json:"at"`
	Outcome   string    `json:"outcome" enum:"success,client-error,server-error"`
	Status    int       `json:"status" doc:"The HTTP status; 0 where there is none."`
	LatencyMs float64   `json:"latencyMs" doc:"Real time, also on a virtual clock."`
	Detail    string    `json:"detail" doc:"Why it failed, in a few words."`
}

// LastAttempt is an attempt with its delivery.
type LastAttempt struct {
	Attempt
	MessageID string `json:"messageId"`
	Number    int    `json:"number" doc:"Of the delivery's attempts, from 1."`
}

// SubscriptionDetail describes a subscription in full.
type SubscriptionDetail struct {
	Subscription
	Attributes        map[string]string `json:"attributes" doc:"As GetSubscriptionAttributes has them."`
	FilterPolicy      *string           `json:"filterPolicy"`
	FilterPolicyScope string            `json:"filterPolicyScope"`
	DeliveryPolicy    *string           `json:"deliveryPolicy" doc:"The subscription's own."`
	EffectivePolicy   RetryPolicy       `json:"effectivePolicy" doc:"By which failed deliveries are retried."`
	ThrottlePerSecond *int              `json:"throttlePerSecond"`
	RedrivePolicy     *string           `json:"redrivePolicy"`
}

// RetryPolicy is a complete schedule of retries.
type RetryPolicy struct {
	NumRetries         int     `json:"numRetries"`
	NumNoDelayRetries  int     `json:"numNoDelayRetries"`
	NumMinDelayRetries int     `json:"numMinDelayRetries"`
	NumMaxDelayRetries int     `json:"numMaxDelayRetries"`
	MinDelaySeconds    float64 `json:"minDelaySeconds"`
	MaxDelaySeconds    float64 `json:"maxDelaySeconds"`
	BackoffFunction    string  `json:"backoffFunction"`
	TotalSeconds       float64 `json:"totalSeconds" doc:"The sum of all delays."`
}

// Shown is a policy in an answer.
func Shown(p retry.Policy) RetryPolicy {
	return RetryPolicy{
		NumRetries: p.NumRetries, NumNoDelayRetries: p.NumNoDelayRetries, NumMinDelayRetries: p.NumMinDelayRetries, NumMaxDelayRetries: p.NumMaxDelayRetries,
		MinDelaySeconds: p.MinDelayTarget.Seconds(), MaxDelaySeconds: p.MaxDelayTarget.Seconds(), BackoffFunction: p.Backoff.String(),
		TotalSeconds: p.Total().Seconds(),
	}
}

// ListSubscriptions asks for subscriptions.
type ListSubscriptions struct {
	Topic    string `query:"topic" max:"2048" doc:"Only the topic's."`
	Endpoint string `query:"endpoint" max:"2048" doc:"Only those that lead to this queue, function or stream, by ARN."`
	Protocol string `query:"protocol" enum:"sqs,http,https,lambda,email,email-json,application,sms,firehose"`
	State    string `query:"state" enum:"active,paused,pending-confirmation,failing"`
	Search   string `query:"search" max:"256" doc:"Part of the topic's name or of the endpoint, whatever its case."`
	Sort     string `query:"sort" enum:"name,owed" default:"name" doc:"owed: most first, of those that are owed anything."`
	Region   string `query:"region" max:"64" doc:"By default the server's."`
	Account  string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit    int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor   string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// About implements rest.About.
func (l *ListSubscriptions) About() string { return l.Topic }

// Subscriptions is a page of subscriptions.
type Subscriptions struct {
	Subscriptions []Subscription `json:"subscriptions"`
	Total         int            `json:"total" doc:"All subscriptions of the server, in every account and region."`
	AsOf          time.Time      `json:"asOf" doc:"When the order by what is owed was looked at."`
	Next          *string        `json:"next" doc:"A page may be empty and have one."`
}

// OneSubscription names a subscription.
type OneSubscription struct {
	ARN string `query:"arn" required:"true" max:"2048" doc:"Of a subscription, a platform application, or direct/sms."`
}

// About implements rest.About.
func (s *OneSubscription) About() string { return s.ARN }

// ParseSubscription parses the ARN of a subscription, or of another resource with a backlog
// of deliveries.
func ParseSubscription(name string) (arn.ARN, error) {
	a, err := arn.Parse(name)
	_, _, ok := a.SplitSubscription()
	_, direct := a.DirectProtocol()
	_, _, application := a.SplitApplication()
	if err != nil || !ok && !direct && !application {
		return arn.ARN{}, rest.BadRequest("want the ARN of a subscription, or of a platform application")
	}
	return a, nil
}

// ListSubscriptions lists subscriptions.
func (c *Catalog) ListSubscriptions(ctx context.Context, _ *rest.Call, in *ListSubscriptions) (*Subscriptions, error) {
	from, now, err := c.begin(ctx, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &Subscriptions{Subscriptions: []Subscription{}, Total: now.Subscriptions, AsOf: now.At.UTC()}
	p := subscriptionPage{Catalog: c, in: in, out: out}
	p.region, p.account = c.in(in.Region, in.Account)
	if in.Sort == "owed" || in.State == "failing" {
		return out, p.byRank(ctx, now, from)
	}
	return out, p.byName(ctx, from)
}

// subscriptionPage is a page of subscriptions that is being filled.
type subscriptionPage struct {
	*Catalog
	in              *ListSubscriptions
	region, account string
	out             *Subscriptions
}

func (p *subscriptionPage) full() bool { return len(p.out.Subscriptions) == p.in.Limit }

// take adds a subscription, if the request wants it.
func (p *subscriptionPage) take(ctx context.Context, sub *topic.Subscription) error {
	if !p.wanted(sub, p.in) {
		return nil
	}
	s, _, err := p.Subscription(ctx, sub.ARN)
	if fault.KindOf(err) == fault.NotFound {
		return nil // it was deleted in the meantime
	}
	if err == nil {
		p.out.Subscriptions = append(p.out.Subscriptions, s)
	}
	return err
}

// byName fills the page with subscriptions that follow from, in the order of their names.
func (p *subscriptionPage) byName(ctx context.Context, from string) error {
	next := func() (subs []topic.Subscription, more bool, err error) {
		if p.in.Topic == "" {
			return p.Engine.ListSubscriptions(ctx, p.region, p.account, from, min(1000, 2*p.in.Limit))
		}
		t, err := ParseTopic(p.in.Topic)
		if err != nil {
			return nil, false, err
		}
		return p.Engine.ListSubscriptionsByTopic(ctx, t, from, min(1000, 2*p.in.Limit))
	}
	for looked := 0; ; {
		subs, more, err := next()
		if err != nil {
			return err
		}
		for i := range subs {
			if p.full() {
				p.out.Next = rest.Next(from, true)
				return nil
			}
			if from = subs[i].ARN.String(); p.in.Topic != "" {
				from = subs[i].ID()
			}
			if err := p.take(ctx, &subs[i]); err != nil {
				return err
			}
		}
		if looked += len(subs); !more || looked >= examined || len(subs) == 0 {
			p.out.Next = rest.Next(from, more)
			return nil
		}
	}
}

// byRank fills the page with subscriptions ordered by backlog, or with the failing ones.
func (p *subscriptionPage) byRank(ctx context.Context, now *live.Snapshot, from string) error {
	var names []arn.ARN
	if p.in.State == "failing" {
		names = p.Live.Failing(live.MaxHoldings)
	} else {
		for _, h := range now.Holdings {
			names = append(names, h.Name)
		}
	}
	at, _ := strconv.Atoi(from)
	at = max(at, 0)
	for _, name := range names[min(at, len(names)):] {
		if p.full() {
			p.out.Next = rest.Next(strconv.Itoa(at), true)
			return nil
		}
		at++
		if _, _, ok := name.SplitSubscription(); !ok || name.Region != p.region || name.Account != p.account {
			continue
		}
		info, err := p.Engine.Backlog(ctx, name)
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if err := p.take(ctx, &info.Subscription); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether a subscription matches the request.
func (c *Catalog) wanted(sub *topic.Subscription, in *ListSubscriptions) bool {
	t, _, _ := sub.ARN.SplitSubscription()
	switch {
	case in.Topic != "" && t.String() != in.Topic,
		in.Endpoint != "" && sub.ShownEndpoint() != in.Endpoint, // otherwise passwords could be guessed
		in.Protocol != "" && sub.Protocol.String() != in.Protocol,
		in.State != "" && c.stateOf(sub) != in.State:
		return false
	}
	return rest.Matches(t.Resource, in.Search) || rest.Matches(sub.ShownEndpoint(), in.Search)
}

func (c *Catalog) stateOf(sub *topic.Subscription) string {
	switch last, ok := c.Live.Last(sub.ARN); {
	case sub.PausedAt != 0:
		return "paused"
	case sub.Pending:
		return "pending-confirmation"
	case ok && last.Outcome != "success":
		return "failing"
	}
	return "active"
}

// Subscription is a subscription in a list. Errors: NotFound.
func (c *Catalog) Subscription(ctx context.Context, a arn.ARN) (s Subscription, info shard.BacklogInfo, err error) {
	info, err = c.Engine.Backlog(ctx, a)
	if err != nil {
		return s, info, err
	}
	sub := &info.Subscription
	s = Subscription{
		ARN: a.String(), ID: sub.ID(), Protocol: sub.Protocol.String(), Endpoint: sub.ShownEndpoint(), Owner: sub.Owner, State: c.stateOf(sub),
		Filtered: sub.Filter != nil, Raw: sub.Raw, DeadLetterQueue: rest.Optional(sub.DeadLetters().String()),
	}
	if t, _, ok := a.SplitSubscription(); ok {
		s.Topic = t.String()
	}
	if sub.Protocol.Within() {
		s.EndpointARN = rest.Optional(sub.Endpoint)
	}
	if sub.Created != 0 {
		s.CreatedAt = rest.Moment(clock.Time(sub.Created))
	}
	if sub.PausedAt != 0 {
		s.PausedAt = rest.Moment(clock.Time(sub.PausedAt))
	}
	s.Due, s.Waiting, s.InFlight = info.Due, info.Waiting, info.InFlight
	s.Owed.Owed = s.Due + s.Waiting + s.InFlight
	if !info.Oldest.IsZero() {
		s.OldestPublishedAt, s.OldestAgeSeconds = rest.Moment(info.Oldest), seconds(info.Now.Sub(info.Oldest))
	}
	if last, ok := c.Live.Last(a); ok {
		s.LastAttempt = &LastAttempt{attempt(last.Attempt), last.MessageID, last.Number}
	}
	return s, info, nil
}

func attempt(a shard.Attempt) Attempt {
	return Attempt{At: a.At.UTC(), Outcome: a.Outcome, Status: a.Status, Detail: a.Detail, LatencyMs: float64(a.Latency.Microseconds()) / 1000}
}

// GetSubscription describes one subscription.
func (c *Catalog) GetSubscription(ctx context.Context, _ *rest.Call, in *OneSubscription) (*SubscriptionDetail, error) {
	a, err := ParseSubscription(in.ARN)
	if err != nil {
		return nil, err
	}
	return c.SubscriptionDetail(ctx, a)
}

// SubscriptionDetail describes one subscription. Errors: NotFound.
func (c *Catalog) SubscriptionDetail(ctx context.Context, a arn.ARN) (*SubscriptionDetail, error) {
	s, info, err := c.Subscription(ctx, a)
	if err != nil {
		return nil, err
	}
	out := &SubscriptionDetail{Subscription: s, Attributes: map[string]string{}, FilterPolicyScope: info.Subscription.Scope.String()}
	if _, _, ok := a.SplitSubscription(); ok {
		if out.Attributes, err = c.Engine.SubscriptionAttributes(ctx, a); err != nil {
			return nil, err
		}
		if perSecond, ok := info.Subscription.Throttle(); ok {
			out.ThrottlePerSecond = &perSecond
		}
		out.EffectivePolicy = Shown(info.Subscription.RetryPolicy())
	} else {
		out.EffectivePolicy = Shown(retry.CustomerManaged)
	}
	out.FilterPolicy, out.DeliveryPolicy = rest.Optional(out.Attributes["FilterPolicy"]), rest.Optional(out.Attributes["DeliveryPolicy"])
	out.RedrivePolicy = rest.Optional(out.Attributes["RedrivePolicy"])
	return out, nil
}
