package catalog

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

// Delivery is one delivery.
type Delivery struct {
	ID            string     `json:"id" doc:"Names the delivery among its subscription's while it waits or is under way; empty afterwards."`
	MessageID     string     `json:"messageId"`
	State         string     `json:"state" enum:"pending,in-flight,delivered,dead-letter,dropped"`
	Attempt       int        `json:"attempt" doc:"How many were made."`
	NextAttemptAt *time.Time `json:"nextAttemptAt"`
	PublishedAt   *time.Time `json:"publishedAt"`
	FinishedAt    *time.Time `json:"finishedAt"`
	Reason        *string    `json:"reason" doc:"Why it became a dead letter, is to become one, or was dropped."`
	Attempts      []Attempt  `json:"attempts" doc:"Oldest first; of many the first 20 and the last 80."`
}

// DeliveryDetail is a delivery with its schedule.
type DeliveryDetail struct {
	Delivery
	Subscription string   `json:"subscription"`
	Topic        string   `json:"topic"`
	SizeBytes    int      `json:"sizeBytes"`
	Schedule     Schedule `json:"schedule"`
}

// Schedule has the times of a delivery's next attempts, if each failed at once, without
// jitter.
type Schedule struct {
	Made         int        `json:"made" doc:"Attempts so far."`
	RetriesTotal int        `json:"retriesTotal" doc:"Of the policy."`
	Ahead        []Planned  `json:"ahead" doc:"The next 100."`
	AheadTotal   int        `json:"aheadTotal" doc:"How many attempts are ahead."`
	EndsAt       *time.Time `json:"endsAt" doc:"The last of them; null: none is ahead."`
	ExpiresAt    *time.Time `json:"expiresAt" doc:"When the message is too old for any attempt; null: never."`
}

// Planned is a future attempt.
type Planned struct {
	Attempt      int       `json:"attempt" doc:"Its number, from 1."`
	At           time.Time `json:"at"`
	Phase        string    `json:"phase" enum:"first,immediate,pre-backoff,backoff,post-backoff"`
	DelaySeconds float64   `json:"delaySeconds" doc:"Since the attempt before it."`
}

// ListDeliveries asks for deliveries of a subscription.
type ListDeliveries struct {
	Subscription string `query:"subscription" required:"true" max:"2048" doc:"ARN of a subscription or a platform application."`
	State        string `query:"state" enum:"waiting,pending,in-flight,finished" doc:"waiting: pending and in flight; finished: of late, in memory. By default all."`
	Limit        int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor       string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// About implements rest.About.
func (l *ListDeliveries) About() string { return l.Subscription }

// Deliveries is a page of deliveries: first those in flight, then those with a due time,
// earliest first, then those without any attempt, then those that ended, latest first.
type Deliveries struct {
	Deliveries []Delivery `json:"deliveries"`
	Next       *string    `json:"next"`
}

// OneDelivery names a delivery.
type OneDelivery struct {
	Subscription string `query:"subscription" required:"true" max:"2048"`
	ID           string `query:"id" required:"true" max:"64"`
}

// About implements rest.About.
func (d *OneDelivery) About() string { return d.Subscription }

// ListDeliveries lists deliveries of a subscription.
func (c *Catalog) ListDeliveries(ctx context.Context, _ *rest.Call, in *ListDeliveries) (*Deliveries, error) {
	sub, err := ParseSubscription(in.Subscription)
	if err != nil {
		return nil, err
	}
	from, until := shard.DeliveryPlace{}, shard.StageFinished
	switch in.State {
	case "waiting":
		until = shard.StageFresh
	case "in-flight":
		until = shard.StageInFlight
	case "pending":
		from.Stage, until = shard.StageDue, shard.StageFresh
	case "finished":
		from.Stage = shard.StageFinished
	}
	if in.Cursor != "" {
		value, err := base64.RawURLEncoding.DecodeString(in.Cursor)
		if err != nil || json.Unmarshal(value, &from) != nil || from.Stage > shard.StageFinished {
			return nil, rest.BadRequest("cursor: it is none of this list")
		}
	}
	infos, more, err := c.Engine.DeliveriesFrom(ctx, sub, from, until, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &Deliveries{Deliveries: make([]Delivery, len(infos))}
	for i := range infos {
		out.Deliveries[i] = delivery(&infos[i])
	}
	if more != nil {
		place, err := json.Marshal(more)
		if err != nil {
			return nil, err
		}
		out.Next = rest.Next(string(place), true)
	}
	return out, nil
}

func delivery(info *shard.DeliveryInfo) Delivery {
	d := Delivery{
		ID: info.ID, MessageID: info.MessageID, State: string(info.State), Attempt: info.Attempts, Reason: rest.Optional(info.Reason),
		NextAttemptAt: rest.Moment(info.NextAttemptAt), PublishedAt: rest.Moment(info.PublishedAt), FinishedAt: rest.Moment(info.FinishedAt),
		Attempts: make([]Attempt, len(info.History)),
	}
	for i, a := range info.History {
		d.Attempts[i] = attempt(a)
	}
	return d
}

// GetDelivery describes a delivery that waits or is in flight, with its schedule.
func (c *Catalog) GetDelivery(ctx context.Context, _ *rest.Call, in *OneDelivery) (*DeliveryDetail, error) {
	a, err := ParseSubscription(in.Subscription)
	if err != nil {
		return nil, err
	}
	info, err := c.Engine.Delivery(ctx, a, in.ID)
	if err != nil {
		return nil, err
	}
	backlog, err := c.Engine.Backlog(ctx, a)
	if err != nil {
		return nil, err
	}
	out := &DeliveryDetail{Delivery: delivery(&info), Subscription: a.String(), SizeBytes: info.Size}
	policy := retry.CustomerManaged
	if t, _, ok := a.SplitSubscription(); ok {
		out.Topic, policy = t.String(), backlog.Subscription.RetryPolicy()
	}
	out.Schedule = schedule(policy, &info, deadline(&backlog.Subscription, &info), backlog.Now)
	return out, nil
}

// deadline is when a message becomes too old for any attempt; zero: never.
func deadline(sub *topic.Subscription, info *shard.DeliveryInfo) time.Time {
	if sub.Protocol != topic.HTTP && sub.Protocol != topic.HTTPS {
		return time.Time{}
	}
	at := info.PublishedAt
	if resumed := clock.Time(sub.ResumedAt); sub.ResumedAt != 0 && resumed.After(at) {
		at = resumed
	}
	return at.Add(deliver.Lifetime)
}

// maxPlanned bounds the attempts in a schedule.
const maxPlanned = 100

// schedule computes the next attempts of a delivery.
func schedule(p retry.Policy, info *shard.DeliveryInfo, deadline, now time.Time) Schedule {
	s := Schedule{Made: info.Attempts, RetriesTotal: p.NumRetries, Ahead: []Planned{}, ExpiresAt: rest.Moment(deadline)}
	if info.Reason != "" { // it waits for its dead-letter queue
		return s
	}
	at := info.NextAttemptAt
	n := info.Attempts + 1
	if info.State == shard.DeliveryInFlight { // the attempts after a failure of the one in flight
		delay, ok := p.Delay(n - 1)
		if !ok {
			return s
		}
		at, n = now.Add(delay), n+1
	}
	for first := true; ; first = false {
		delay, phase := time.Duration(0), "first"
		if n > 1 {
			var ok bool
			if delay, ok = p.Delay(n - 2); !ok {
				return s
			}
			phase = p.Phase(n - 2).String()
			if !first {
				at = at.Add(delay)
			}
		}
		if !deadline.IsZero() && at.After(deadline) {
			return s
		}
		if s.AheadTotal++; len(s.Ahead) < maxPlanned {
			s.Ahead = append(s.Ahead, Planned{Attempt: n, At: at.UTC(), Phase: phase, DelaySeconds: delay.Seconds()})
		}
		s.EndsAt = rest.Moment(at)
		n++
	}
}
