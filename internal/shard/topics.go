package shard

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// CreateTopic creates a topic, or finds one that differs in nothing that cmd
// names. Errors: InvalidParameter, TagLimitExceeded, TopicLimitExceeded.
func (e *Engine) CreateTopic(ctx context.Context, cmd topic.CreateTopic) error {
	full := false
	if most := e.options.MaxTopics; most > 0 {
		e.quotas.Lock()
		defer e.quotas.Unlock()
		full = e.countTopics(cmd.ARN.Account, cmd.ARN.Region) >= most
	}
	return e.withCatalog(ctx, cmd.ARN, func(sh *shard) error {
		if e.full() {
			return errFull
		}
		_, there := sh.topics.Topic(cmd.ARN)
		if full && !there {
			return fault.New(fault.TopicLimitExceeded, "")
		}
		if err := checkTopicPolicy(cmd.Attributes[topicPolicy]); err != nil {
			return topicRefusal("Attributes Reason: ", err)
		}
		cmd.Incarnation = sh.meta.Incarnation + 1
		t, err := sh.topics.CreateTopic(sh.time(), cmd, &sh.batch)
		if err == nil && !there && t.Incarnation != 0 {
			sh.meta.Incarnation++
		}
		return err
	})
}

// countTopics counts the topics of an account and region.
func (e *Engine) countTopics(account, region string) (n int) {
	for _, sh := range e.shards {
		sh.view(func() { n += sh.topics.CountTopics(account, region) })
	}
	return n
}

// TagTopic adds tags to a topic; one with the key of another replaces it.
// Errors: ResourceNotFound, TagLimitExceeded.
func (e *Engine) TagTopic(ctx context.Context, t arn.ARN, tags map[string]string) error {
	return e.withCatalog(ctx, t, func(sh *shard) error { return sh.topics.Tag(t, tags, &sh.batch) })
}

// UntagTopic removes tags from a topic by their keys; those that it does not
// have are ignored. Errors: ResourceNotFound.
func (e *Engine) UntagTopic(ctx context.Context, t arn.ARN, keys []string) error {
	return e.withCatalog(ctx, t, func(sh *shard) error { return sh.topics.Untag(t, keys, &sh.batch) })
}

// TopicTags are the tags of a topic. Errors: ResourceNotFound.
func (e *Engine) TopicTags(ctx context.Context, t arn.ARN) (tags map[string]string, err error) {
	err = e.withCatalog(ctx, t, func(sh *shard) error {
		found, ok := sh.topics.Topic(t)
		if !ok {
			return topic.ErrNoResource
		}
		tags = maps.Clone(found.Tags)
		return nil
	})
	return tags, err
}

// lapseStep bounds how many subscriptions that nobody confirmed one command
// removes.
const lapseStep = 256

// removeLapsed removes subscriptions that nobody confirmed in time, and what is
// left of those that nobody restored.
func (sh *shard) removeLapsed() {
	gone := sh.topics.RemoveLapsed(sh.time(), lapseStep, &sh.batch)
	if len(gone) == 0 {
		return
	}
	for _, sub := range gone {
		sh.dropBacklog(layout.Incarnation(sub.Incarnation))
	}
	sh.catalogChanged(sh.commit(true))
}

// nextTimer is when the shard has something to do, in epoch milliseconds; 0 is
// never.
func (sh *shard) nextTimer() (at int64) {
	if len(sh.timers) > 0 {
		at = sh.timers[0].timerAt
	}
	if lapse, ok := sh.topics.NextLapse(); ok && (at == 0 || lapse.UnixMilli() < at) {
		at = lapse.UnixMilli()
	}
	if settle, ok := sh.mappings.NextSettle(); ok && (at == 0 || settle.UnixMilli() < at) {
		at = settle.UnixMilli()
	}
	if settle, ok := sh.functions.NextSettle(); ok && (at == 0 || settle.UnixMilli() < at) {
		at = settle.UnixMilli()
	}
	if sh.archivesAt != 0 && (at == 0 || sh.archivesAt < at) {
		at = sh.archivesAt
	}
	return at
}

// time is now as the topics' machine takes it.
func (sh *shard) time() time.Time { return time.UnixMilli(sh.now()).UTC() }

// DeleteTopic removes a topic, its subscriptions and their backlogs, at a cost that
// does not depend on how many these are. Deleting what is not there succeeds.
// Errors: InvalidState for one with an archive.
func (e *Engine) DeleteTopic(ctx context.Context, t arn.ARN) error {
	return e.withCatalog(ctx, t, func(sh *shard) error {
		gone, err := sh.topics.DeleteTopic(t, &sh.batch)
		if err != nil || gone == nil {
			return err
		}
		delete(sh.topicPolicies, t)
		sh.dropStream(gone)
		sh.leaveRemains(gone)
		return nil
	})
}

// HasTopic reports whether there is a topic, for statistics: it does not wait until
// what it tells is durable.
func (e *Engine) HasTopic(t arn.ARN) (ok bool) {
	sh := e.shardOf(t)
	sh.view(func() { _, ok = sh.topics.Topic(t) })
	return ok
}

// TopicAttributes are all attributes of a topic. Errors: NotFound.
func (e *Engine) TopicAttributes(ctx context.Context, t arn.ARN) (attributes map[string]string, err error) {
	err = e.withCatalog(ctx, t, func(sh *shard) error {
		found, ok := sh.topics.Topic(t)
		if !ok {
			return topic.ErrNoTopic
		}
		attributes = found.Attributes()
		if begins, ok := found.ArchiveBegins(sh.time()); ok {
			attributes["BeginningArchiveTime"] = begins.Format("2006-01-02T15:04:05.000Z")
		}
		return nil
	})
	return attributes, err
}

// SetTopicAttribute changes an attribute of a topic. Errors: NotFound,
// InvalidParameter.
func (e *Engine) SetTopicAttribute(ctx context.Context, t arn.ARN, name, value string) error {
	return e.withCatalog(ctx, t, func(sh *shard) error {
		if _, ok := sh.topics.Topic(t); ok && name == topicPolicy {
			if err := checkTopicPolicy(value); err != nil {
				return topicRefusal("", err)
			}
		}
		var before time.Duration
		found, ok := sh.topics.Topic(t)
		if ok {
			before = found.Retention
		}
		if err := sh.topics.SetTopicAttribute(sh.time(), t, name, value, &sh.batch); err != nil {
			return err
		}
		if found.Retention != before {
			sh.policyChanged(found, before)
		}
		return nil
	})
}

// Subscribe adds an endpoint to a topic; the incarnation of its backlog is
// given by the shard. An endpoint that must confirm is sent the token. Errors:
// NotFound, InvalidParameter.
func (e *Engine) Subscribe(ctx context.Context, cmd topic.Subscribe) (sub topic.Subscription, err error) {
	cmd.Draft = topic.Draft(cmd.Attributes)
	err = e.withCatalog(ctx, cmd.Topic, func(sh *shard) error {
		if e.full() {
			return errFull
		}
		cmd.Incarnation, cmd.Next = sh.meta.Incarnation+1, sh.order(cmd.Topic)
		done, err := sh.topics.Subscribe(sh.time(), cmd, &sh.batch)
		if err != nil {
			return err
		}
		if done.Created {
			sh.meta.Incarnation++
			sh.replayChanged(done.Subscription)
		}
		if done.Confirm {
			sh.notify(done.Subscription, message.SubscriptionConfirmation, cmd.Token)
		}
		sub = *done.Subscription
		return nil
	})
	return sub, err
}

// order is the sequence of a FIFO topic's next message; 0 for other topics.
func (sh *shard) order(t arn.ARN) uint64 {
	found, ok := sh.topics.Topic(t)
	if !ok || !t.FIFO() {
		return 0
	}
	return sh.stream(found).next
}

// notify queues a message of Godwit's own for a subscription's endpoint.
func (sh *shard) notify(sub *topic.Subscription, kind message.NoticeKind, token string) {
	now := sh.now()
	text := "You have chosen to subscribe to the topic " + sub.Topic().ARN.String() +
		".\nTo confirm the subscription, visit the SubscribeURL included in this message."
	if kind == message.UnsubscribeConfirmation {
		text = "You have chosen to deactivate subscription " + sub.ARN.String() +
			".\nTo cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
	}
	m := message.Message{
		ID:   message.ID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(token))),
		Sent: now, Body: []byte(text),
		Notice: &message.Notice{
			Kind: kind, Topic: sub.Topic().ARN.String(), Subscription: sub.ARN.String(),
			Token: token, SignatureVersion: signatureVersion(sub.Topic()),
		},
	}
	sh.accept(sh.openBacklog(sub), now, queue.Arrival{Record: m.AppendRecord(nil), Sent: now, Due: now})
}

// signatureVersion is how the messages of a topic are signed; 0: not at all.
func signatureVersion(t *topic.Topic) byte {
	if t.ARN.FIFO() {
		return 0
	}
	if t.Attribute("SignatureVersion") == "2" {
		return 2
	}
	return 1
}

// ConfirmSubscription opens a pending subscription for deliveries, or restores a
// removed one, and returns its name. Errors: NotFound, InvalidParameter,
// AccessDenied.
func (e *Engine) ConfirmSubscription(ctx context.Context, cmd topic.Confirm) (name arn.ARN, err error) {
	err = e.withCatalog(ctx, cmd.Topic, func(sh *shard) error {
		cmd.Incarnation, cmd.Next = sh.meta.Incarnation+1, sh.order(cmd.Topic)
		done, err := sh.topics.ConfirmSubscription(sh.time(), cmd, &sh.batch)
		if err != nil {
			return err
		}
		if done.Restored {
			sh.meta.Incarnation++
			sh.dropBacklog(layout.Incarnation(done.Dropped))
		}
		if sh.batch.Len() > 0 { // it was pending, or removed
			sh.replayChanged(done.Subscription)
		}
		name = done.Subscription.ARN
		return nil
	})
	return name, err
}

// Unsubscribe removes a subscription and its backlog; the incarnation of the
// one for telling its endpoint is given by the shard. Errors: AccessDenied.
func (e *Engine) Unsubscribe(ctx context.Context, cmd topic.Unsubscribe) error {
	return e.withSubscription(ctx, cmd.Subscription, func(sh *shard) error {
		cmd.Incarnation = sh.meta.Incarnation + 1
		done, err := sh.topics.Unsubscribe(sh.time(), cmd, &sh.batch)
		if done.Subscription != nil {
			sh.dropBacklog(layout.Incarnation(done.Dropped))
		}
		if done.Confirm {
			sh.meta.Incarnation++
			sh.notify(done.Subscription, message.UnsubscribeConfirmation, cmd.Token)
		}
		return err
	})
}

// withSubscription is withCatalog for the shard of a subscription.
func (e *Engine) withSubscription(ctx context.Context, sub arn.ARN, f func(sh *shard) error) error {
	if t, _, ok := sub.SplitSubscription(); ok {
		sub = t
	}
	return e.withCatalog(ctx, sub, f)
}

// SubscriptionAttributes are all attributes of a subscription. Errors: NotFound.
func (e *Engine) SubscriptionAttributes(ctx context.Context, sub arn.ARN) (attributes map[string]string, err error) {
	err = e.withSubscription(ctx, sub, func(sh *shard) error {
		found, ok := sh.topics.Subscription(sub)
		if !ok {
			return topic.ErrNoSubscription
		}
		attributes = found.Attributes()
		return nil
	})
	return attributes, err
}

// SetSubscriptionAttribute changes an attribute of a subscription. Errors:
// NotFound, InvalidParameter.
func (e *Engine) SetSubscriptionAttribute(ctx context.Context, sub arn.ARN, name, value string) error {
	draft := topic.Draft(map[string]string{name: value})
	return e.withSubscription(ctx, sub, func(sh *shard) error {
		t, _, _ := sub.SplitSubscription()
		err := sh.topics.SetSubscriptionAttribute(sh.time(), sh.order(t), sub, name, value, draft, &sh.batch)
		if found, ok := sh.topics.Subscription(sub); err == nil && ok && name == "ReplayPolicy" {
			sh.replayChanged(found)
		}
		return err
	})
}

// ListTopics lists an account's topics in a region by name, up to limit of them
// behind the name after.
func (e *Engine) ListTopics(ctx context.Context, region, account, after string, limit int) ([]arn.ARN, bool, error) {
	return mergePages(ctx, e, limit, arnCompare, func(sh *shard) (page []arn.ARN, more bool) {
		topics, more := sh.topics.Topics(account, region, after, limit)
		for _, t := range topics {
			page = append(page, t.ARN)
		}
		return page, more
	})
}

func arnCompare(a, b arn.ARN) int { return strings.Compare(a.Resource, b.Resource) }

// ListSubscriptions lists the subscriptions that an account owns in a region,
// up to limit of them behind the ARN after, which may be empty.
func (e *Engine) ListSubscriptions(ctx context.Context, region, account, after string, limit int) ([]topic.Subscription, bool, error) {
	from, _ := arn.Parse(after)
	byARN := func(a, b topic.Subscription) int { return topic.CompareSubscriptions(a.ARN, b.ARN) }
	return mergePages(ctx, e, limit, byARN, func(sh *shard) ([]topic.Subscription, bool) {
		page, more := sh.topics.Subscriptions(account, region, from, limit)
		return copies(page), more
	})
}

// ListSubscriptionsByTopic lists a topic's subscriptions, up to limit of them
// behind the subscription id after. Errors: NotFound.
func (e *Engine) ListSubscriptionsByTopic(ctx context.Context, t arn.ARN, after string, limit int) (subs []topic.Subscription, more bool, err error) {
	err = e.withCatalog(ctx, t, func(sh *shard) error {
		page, rest, err := sh.topics.SubscriptionsByTopic(t, after, limit)
		subs, more = copies(page), rest
		return err
	})
	return subs, more, err
}

func copies(page []*topic.Subscription) []topic.Subscription {
	out := make([]topic.Subscription, len(page))
	for i, sub := range page {
		out[i] = *sub
	}
	return out
}

// mergePages makes one page out of a page of each shard. What it returns is durable.
func mergePages[T any](ctx context.Context, e *Engine, limit int, compare func(a, b T) int, page func(sh *shard) ([]T, bool)) ([]T, bool, error) {
	var all []T
	more := false
	for _, sh := range e.shards {
		sh.view(func() {
			items, rest := page(sh)
			all = append(all, items...)
			more = more || rest
		})
		sh.awaitCatalog()
	}
	slices.SortFunc(all, compare)
	if len(all) > limit {
		all, more = all[:limit], true
	}
	return all, more, ctx.Err()
}
