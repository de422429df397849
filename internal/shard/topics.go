package shard

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// CreateTopic creates a topic, or finds one that differs in nothing that cmd
// names. Errors: InvalidParameter, TagLimitExceeded, TopicLimitExceeded.
func (e *topicEngine) CreateTopic(ctx context.Context, cmd topic.CreateTopic) error {
	full := false
	if most := e.options.MaxTopics; most > 0 {
		e.quotas.Lock()
		defer e.quotas.Unlock()
		full = e.countTopics(cmd.ARN.Account, cmd.ARN.Region) >= most
	}
	return e.withCatalog(ctx, cmd.ARN, func(sh *topicShard) error {
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
func (e *topicEngine) countTopics(account, region string) (n int) {
	for _, sh := range e.shards {
		sh.view(func() { n += sh.topics.CountTopics(account, region) })
	}
	return n
}

// TagTopic adds tags to a topic; one with the key of another replaces it.
// Errors: ResourceNotFound, TagLimitExceeded.
func (e *topicEngine) TagTopic(ctx context.Context, t arn.ARN, tags map[string]string) error {
	return e.withCatalog(ctx, t, func(sh *topicShard) error { return sh.topics.Tag(t, tags, &sh.batch) })
}

// UntagTopic removes tags from a topic by their keys; those that it does not
// have are ignored. Errors: ResourceNotFound.
func (e *topicEngine) UntagTopic(ctx context.Context, t arn.ARN, keys []string) error {
	return e.withCatalog(ctx, t, func(sh *topicShard) error { return sh.topics.Untag(t, keys, &sh.batch) })
}

// TopicTags are the tags of a topic. Errors: ResourceNotFound.
func (e *topicEngine) TopicTags(ctx context.Context, t arn.ARN) (tags map[string]string, err error) {
	err = e.withCatalog(ctx, t, func(sh *topicShard) error {
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
func (sh *topicShard) removeLapsed() {
	gone := sh.topics.RemoveLapsed(sh.time(), lapseStep, &sh.batch)
	if len(gone) == 0 {
		return
	}
	for _, sub := range gone {
		sh.dropBacklog(layout.Incarnation(sub.Incarnation))
	}
	sh.catalogChanged(sh.commit(true))
}

// DeleteTopic removes a topic, its subscriptions and their backlogs, at a cost that
// does not depend on how many these are. Deleting what is not there succeeds.
// Errors: InvalidState for one with an archive.
func (e *topicEngine) DeleteTopic(ctx context.Context, t arn.ARN) error {
	return e.withCatalog(ctx, t, func(sh *topicShard) error {
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
func (e *topicEngine) HasTopic(t arn.ARN) (ok bool) {
	sh := e.shardOf(t)
	sh.view(func() { _, ok = sh.topics.Topic(t) })
	return ok
}

// TopicAttributes are all attributes of a topic. Errors: NotFound.
func (e *topicEngine) TopicAttributes(ctx context.Context, t arn.ARN) (attributes map[string]string, err error) {
	err = e.withCatalog(ctx, t, func(sh *topicShard) error {
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
func (e *topicEngine) SetTopicAttribute(ctx context.Context, t arn.ARN, name, value string) error {
	return e.withCatalog(ctx, t, func(sh *topicShard) error {
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
func (e *topicEngine) Subscribe(ctx context.Context, cmd topic.Subscribe) (sub topic.Subscription, err error) {
	cmd.Draft = topic.Draft(cmd.Attributes)
	err = e.withCatalog(ctx, cmd.Topic, func(sh *topicShard) error {
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
func (sh *topicShard) order(t arn.ARN) uint64 {
	found, ok := sh.topics.Topic(t)
	if !ok || !t.FIFO() {
		return 0
	}
	return sh.stream(found).next
}

// notify queues a message of Godwit's own for a subscription's endpoint.
func (sh *topicShard) notify(sub *topic.Subscription, kind message.NoticeKind, token string) {
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
func (e *topicEngine) ConfirmSubscription(ctx context.Context, cmd topic.Confirm) (name arn.ARN, err error) {
	err = e.withCatalog(ctx, cmd.Topic, func(sh *topicShard) error {
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
func (e *topicEngine) Unsubscribe(ctx context.Context, cmd topic.Unsubscribe) error {
	return e.withSubscription(ctx, cmd.Subscription, func(sh *topicShard) error {
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
func (e *topicEngine) withSubscription(ctx context.Context, sub arn.ARN, f func(sh *topicShard) error) error {
	return e.backlogEngine.withSubscription(ctx, sub, func(sh *backlogShard) error { return f(e.shards[sh.id]) })
}

// SubscriptionAttributes are all attributes of a subscription. Errors: NotFound.
func (e *topicEngine) SubscriptionAttributes(ctx context.Context, sub arn.ARN) (attributes map[string]string, err error) {
	err = e.withSubscription(ctx, sub, func(sh *topicShard) error {
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
func (e *topicEngine) SetSubscriptionAttribute(ctx context.Context, sub arn.ARN, name, value string) error {
	draft := topic.Draft(map[string]string{name: value})
	return e.withSubscription(ctx, sub, func(sh *topicShard) error {
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
func (e *topicEngine) ListTopics(ctx context.Context, region, account, after string, limit int) ([]arn.ARN, bool, error) {
	return mergePages(ctx, &e.shards, limit, arnCompare, func(sh *topicShard) (page []arn.ARN, more bool) {
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
func (e *topicEngine) ListSubscriptions(ctx context.Context, region, account, after string, limit int) ([]topic.Subscription, bool, error) {
	from, _ := arn.Parse(after)
	byARN := func(a, b topic.Subscription) int { return topic.CompareSubscriptions(a.ARN, b.ARN) }
	return mergePages(ctx, &e.shards, limit, byARN, func(sh *topicShard) ([]topic.Subscription, bool) {
		page, more := sh.topics.Subscriptions(account, region, from, limit)
		return copies(page), more
	})
}

// ListSubscriptionsByTopic lists a topic's subscriptions, up to limit of them
// behind the subscription id after. Errors: NotFound.
func (e *topicEngine) ListSubscriptionsByTopic(ctx context.Context, t arn.ARN, after string, limit int) (subs []topic.Subscription, more bool, err error) {
	err = e.withCatalog(ctx, t, func(sh *topicShard) error {
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

func (sh *topicShard) loadTopics() error {
	for _, tag := range [...]byte{keyspace.Topics, keyspace.Subscriptions} {
		var failed error
		err := each(sh.engine.store, keyspace.Prefix(keyspace.Shard(sh.id, tag)), func(key, value []byte) bool {
			failed = sh.topics.Load(key, value)
			return failed == nil
		})
		if err := cmp.Or(failed, err); err != nil {
			return err
		}
	}
	if err := sh.topics.Loaded(); err != nil {
		return err
	}
	for sub := range sh.topics.AllDeliverable() {
		if _, ok := sh.counters[layout.Incarnation(sub.Incarnation)]; ok {
			if err := sh.loadMachine(sh.openBacklog(sub)); err != nil {
				return err
			}
		}
	}
	return nil
}

// topicOptions are what the module is made of.
type topicOptions struct {
	// Render and NewID make what subscribed queues get, for publishes that are
	// delivered by their own commit. Without them none is.
	Render Renderer
	NewID  func() message.ID
	// Published is told of every publish, if it is not nil. It may be called
	// concurrently, and must be quick.
	Published func(*Published)
	// MaxTopics is how many topics an account may have in a region; 0: any number.
	MaxTopics int
}

// topicEngine is the module of topics: what is published goes to the backlogs of
// their subscriptions, or into subscribed queues at once.
type topicEngine struct {
	*backlogEngine
	parts[*topicShard]
	options topicOptions
	quotas  sync.Mutex // held while what a quota counts may grow
}

// topicShard is the module's part in a shard.
type topicShard struct {
	*backlogShard
	engine *topicEngine
	// topicPolicies are those that were asked for, by topic.
	topicPolicies map[arn.ARN]compiledPolicy

	fanouts   []pendingFanout // publications that are still being spread, oldest first
	spreading map[arn.ARN]int // how many of them there are of a topic
	fanning   bool
	nextFan   uint64
	reached   map[uint64]topic.Reached       // by publications that are being spread, of this process
	line      line                           // of publishers
	planned   int                            // the deliveries of the latest publication
	targets   map[*topic.Subscription]target // of late; see target
	targetsOf uint64                         // the generation that targets is of
	streams   map[layout.Incarnation]*stream // of FIFO topics

	archivesAt int64 // when archives are to be looked at; 0: never
	replays    map[layout.Incarnation]*pendingReplay
	replayLine []*pendingReplay // those whose next step can be made
	replaying  bool

	remains    []*remains // of deleted topics
	reclaiming bool
}

func newTopicEngine(below *backlogEngine, o topicOptions) *topicEngine {
	e := &topicEngine{backlogEngine: below, options: o}
	for id, sh := range below.shards {
		s := &topicShard{
			backlogShard: sh, engine: e, spreading: map[arn.ARN]int{}, reached: map[uint64]topic.Reached{},
			streams: map[layout.Incarnation]*stream{}, replays: map[layout.Incarnation]*pendingReplay{}, targets: map[*topic.Subscription]target{},
		}
		s.line.shard = s
		e.shards[id] = s
		sh.add(topicModule{sh: s})
	}
	below.removed = func(qs *queueState) { e.shards[qs.shard.id].delivered(qs) }
	return e
}

// topicModule is the module of a shard.
type topicModule struct {
	nothing
	sh *topicShard
}

func (m topicModule) load() error {
	sh := m.sh
	if err := cmp.Or(sh.loadTopics(), sh.loadStreams(), sh.loadArchives()); err != nil {
		return err
	}
	return cmp.Or(sh.loadFanouts(), sh.loadReplays())
}

func (m topicModule) resume() {
	m.sh.startFanouts(nil)
	m.sh.resumeReplays()
}

func (m topicModule) nextDue() int64 {
	sh := m.sh
	at := sh.archivesAt
	if lapse, ok := sh.topics.NextLapse(); ok && (at == 0 || lapse.UnixMilli() < at) {
		at = lapse.UnixMilli()
	}
	return at
}

func (m topicModule) tick(int64) {
	m.sh.removeLapsed()
	m.sh.sweepArchives()
}
