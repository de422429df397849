// Package topics is the module of topics: publishing, fan-out, archives and replays.
package topics

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/topics/coalesce"
	"godwit.dev/godwit/internal/shard/topics/confirmations"
	"godwit.dev/godwit/internal/shard/topics/topicpolicy"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// CreateTopic creates a topic, or finds an existing one that agrees with all attributes of cmd.
// Errors: InvalidParameter, TagLimitExceeded, TopicLimitExceeded.
func (e *Topics) CreateTopic(ctx context.Context, cmd topic.CreateTopic) error {
	full := false
	if most := e.options.MaxTopics; most > 0 {
		e.quotas.Lock()
		defer e.quotas.Unlock()
		full = e.countTopics(cmd.ARN.Account, cmd.ARN.Region) >= most
	}
	return e.WithCatalog(ctx, cmd.ARN, func(sh *Shard) error {
		_, there := sh.Topics.Topic(cmd.ARN)
		if !there && e.Full() {
			return kernel.ErrFull
		}
		if full && !there {
			return ErrTooManyTopics
		}
		if err := topicpolicy.Check(cmd.Attributes[topicpolicy.Attribute]); err != nil {
			return topic.InAttributes(err)
		}
		held := e.Accounts.Of(cmd.ARN.Account)
		if !there {
			if err := held.AddTopic(); err != nil {
				return err
			}
		}
		cmd.Incarnation = sh.LatestIncarnation() + 1
		t, err := sh.Topics.CreateTopic(clock.Time(sh.Now()), cmd, &sh.Batch)
		if err != nil && !there {
			held.DropTopic()
		}
		if err == nil && !there && t.Incarnation != 0 {
			sh.NextIncarnation()
		}
		return err
	})
}

// countTopics counts the topics of an account and region.
func (e *Topics) countTopics(account, region string) (n int) {
	for _, sh := range e.Shards {
		sh.View(func() { n += sh.Topics.CountTopics(account, region) })
	}
	return n
}

// TagTopic adds tags to a topic; a tag with an existing key replaces it. Errors:
// ResourceNotFound, TagLimitExceeded.
func (e *Topics) TagTopic(ctx context.Context, t arn.ARN, tags map[string]string) error {
	return e.WithCatalog(ctx, t, func(sh *Shard) error { return sh.Topics.Tag(t, tags, &sh.Batch) })
}

// UntagTopic removes tags from a topic by their keys; unknown keys are ignored. Errors:
// ResourceNotFound.
func (e *Topics) UntagTopic(ctx context.Context, t arn.ARN, keys []string) error {
	return e.WithCatalog(ctx, t, func(sh *Shard) error { return sh.Topics.Untag(t, keys, &sh.Batch) })
}

// TopicTags are the tags of a topic. Errors: ResourceNotFound.
func (e *Topics) TopicTags(ctx context.Context, t arn.ARN) (tags map[string]string, err error) {
	err = e.ReadCatalog(ctx, t, func(sh *Shard) error {
		found, ok := sh.Topics.Topic(t)
		if !ok {
			return topic.ErrNoResource
		}
		tags = maps.Clone(found.Tags)
		return nil
	})
	return tags, err
}

// expiryStep bounds how many unconfirmed subscriptions one command
// removes.
const expiryStep = 256

// removeExpired removes subscriptions that were not confirmed in time, and deleted ones that
// were not restored in time.
func (sh *Shard) removeExpired() {
	gone := sh.Topics.RemoveExpired(clock.Time(sh.Now()), expiryStep, &sh.Batch)
	if len(gone) == 0 {
		return
	}
	for _, sub := range gone {
		sh.dropSubscription(layout.Incarnation(sub.Incarnation))
	}
	sh.CatalogChanged(sh.Append(journal.Eager))
}

// DeleteTopic removes a topic, its subscriptions and their backlogs, at a cost that does not
// depend on their number. It is idempotent. Errors: InvalidState for one with an archive.
func (e *Topics) DeleteTopic(ctx context.Context, t arn.ARN) error {
	return e.WithCatalog(ctx, t, func(sh *Shard) error {
		gone, err := sh.Topics.DeleteTopic(t, &sh.Batch)
		if err != nil || gone == nil {
			return err
		}
		e.Accounts.Of(t.Account).DropTopic()
		delete(sh.topicPolicies, t)
		sh.dropFIFOState(gone)
		sh.leaveToGC(gone)
		return nil
	})
}

// HasTopic reports whether a topic exists, for statistics: it does not wait until what it
// reports is durable.
func (e *Topics) HasTopic(t arn.ARN) (ok bool) {
	sh := e.ShardOf(t)
	sh.View(func() { _, ok = sh.Topics.Topic(t) })
	return ok
}

// TopicCreated is when a topic was created. Errors: NotFound.
func (e *Topics) TopicCreated(ctx context.Context, t arn.ARN) (at time.Time, err error) {
	err = e.ReadCatalog(ctx, t, func(sh *Shard) error {
		found, ok := sh.Topics.Topic(t)
		if !ok {
			return topic.ErrNoTopic
		}
		at = found.Created
		return nil
	})
	return at, err
}

// TopicAttributes are all attributes of a topic. Errors: NotFound.
func (e *Topics) TopicAttributes(ctx context.Context, t arn.ARN) (attributes map[string]string, err error) {
	err = e.ReadCatalog(ctx, t, func(sh *Shard) error {
		found, ok := sh.Topics.Topic(t)
		if !ok {
			return topic.ErrNoTopic
		}
		attributes = found.Attributes()
		if begins, ok := found.ArchiveBegins(clock.Time(sh.Now())); ok {
			attributes["BeginningArchiveTime"] = begins.Format(clock.ISO8601)
		}
		return nil
	})
	return attributes, err
}

// SetTopicAttribute changes an attribute of a topic. Errors: NotFound,
// InvalidParameter.
func (e *Topics) SetTopicAttribute(ctx context.Context, t arn.ARN, name, value string) error {
	return e.WithCatalog(ctx, t, func(sh *Shard) error {
		if _, ok := sh.Topics.Topic(t); ok && name == topicpolicy.Attribute {
			if err := topicpolicy.Check(value); err != nil {
				return topic.InAttribute(err)
			}
		}
		var before time.Duration
		found, ok := sh.Topics.Topic(t)
		if ok {
			before = found.Retention
		}
		if err := sh.Topics.SetTopicAttribute(clock.Time(sh.Now()), t, name, value, &sh.Batch); err != nil {
			return err
		}
		if found.Retention != before {
			sh.policyChanged(found, before)
		}
		return nil
	})
}

// Subscribe adds an endpoint to a topic; the shard assigns the incarnation of its backlog. An
// endpoint that must confirm is sent the token. Errors: NotFound, InvalidParameter.
func (e *Topics) Subscribe(ctx context.Context, cmd topic.Subscribe) (sub topic.Subscription, err error) {
	cmd.Draft = topic.Draft(cmd.Attributes)
	err = e.WithCatalog(ctx, cmd.Topic, func(sh *Shard) error {
		if e.Full() {
			cmd.RefusedNew = kernel.ErrFull
		}
		cmd.Incarnation, cmd.Next = sh.LatestIncarnation()+1, sh.order(cmd.Topic)
		cmd.Token = sh.Topics.Token(cmd.Topic, cmd.Token)
		now := clock.Time(sh.Now())
		cmd.Refused = e.confirmations.Admit(cmd.Owner, cmd.Endpoint, now)
		done, err := sh.Topics.Subscribe(now, cmd, &sh.Batch)
		if err != nil {
			return err
		}
		if done.Created {
			sh.NextIncarnation()
			sh.replayChanged(done.Subscription)
		}
		if done.Confirm {
			if done.Subscription.Protocol.Mail() {
				now = e.confirmations.Reserve(sh.ID, &sh.Batch, cmd.Owner, cmd.Endpoint, now)
			}
			sh.notify(done.Subscription, message.SubscriptionConfirmation, cmd.Token, now)
		}
		sub = *done.Subscription
		return nil
	})
	return sub, err
}

// order is the sequence of a FIFO topic's next message; 0 for other topics.
func (sh *Shard) order(t arn.ARN) uint64 {
	found, ok := sh.Topics.Topic(t)
	if !ok || !t.FIFO() {
		return 0
	}
	return sh.fifoState(found).next
}

// notify enqueues a message of Godwit's own for a subscription's endpoint, to be sent at due.
func (sh *Shard) notify(sub *topic.Subscription, kind message.NoticeKind, token string, due time.Time) {
	now := sh.Now()
	text := "You have chosen to subscribe to the topic " + sub.Topic().ARN.String() +
		".\nTo confirm the subscription, visit the SubscribeURL included in this message."
	if kind == message.UnsubscribeConfirmation {
		text = "You have chosen to deactivate subscription " + sub.ARN.String() +
			".\nTo cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
	}
	m := message.Message{
		ID:   message.ID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(token))),
		Sent: now, Sender: sub.Owner, Body: []byte(text),
		Notice: &message.Notice{
			Kind: kind, Topic: sub.Topic().ARN.String(), Subscription: sub.ARN.String(),
			Token: token, SignatureVersion: signatureVersion(sub.Topic()),
		},
	}
	if sub.Topic().ARN.FIFO() { // a FIFO queue's messages have both
		_, m.Group, _ = sub.ARN.SplitSubscription()
		m.Dedup = m.ID.String()
	}
	if err := sh.module.EncryptWaiting(sub.Topic().ARN, "", nil, arn.ARN{}, &m); err != nil {
		panic(err) // encryption with the store's own key fails only without randomness
	}
	sh.Accept(sh.OpenBacklog(sub), now, queue.Arrival{Message: &m, Sent: now, Due: due.UnixMilli(), Lane: layout.GroupLane(m.Group)})
}

// signatureVersion is the version of the signatures of a topic's messages; 0: they are not
// signed.
func signatureVersion(t *topic.Topic) byte {
	if t.ARN.FIFO() {
		return 0
	}
	if t.Attribute("SignatureVersion") == "2" {
		return 2
	}
	return 1
}

// ConfirmSubscription activates a pending subscription, or restores a deleted one, and returns
// its name. The token identifies it: of the topic's name only the region counts. Errors:
// InvalidParameter, AccessDenied.
func (e *Topics) ConfirmSubscription(ctx context.Context, cmd topic.Confirm) (name arn.ARN, err error) {
	if t, ok := e.topicOfToken(cmd.Topic, cmd.Token); ok {
		if t.Region != cmd.Topic.Region {
			return arn.ARN{}, topic.ErrTopicOfToken
		}
		cmd.Topic = t
	}
	err = e.WithCatalog(ctx, cmd.Topic, func(sh *Shard) error {
		cmd.Incarnation, cmd.Next = sh.LatestIncarnation()+1, sh.order(cmd.Topic)
		done, err := sh.Topics.ConfirmSubscription(clock.Time(sh.Now()), cmd, &sh.Batch)
		if err != nil {
			return err
		}
		if done.Restored {
			sh.NextIncarnation()
			sh.dropSubscription(layout.Incarnation(done.Dropped))
		}
		if sh.Batch.Len() > 0 { // it was pending, or deleted
			sh.replayChanged(done.Subscription)
		}
		if done.Subscription.Protocol.Mail() {
			e.confirmations.Answered(sh.ID, &sh.Batch, done.Subscription.Endpoint, clock.Time(sh.Now()))
		}
		name = done.Subscription.ARN
		return nil
	})
	return name, err
}

// topicOfToken finds the topic that has the subscription of a token.
func (e *Topics) topicOfToken(named arn.ARN, token string) (t arn.ARN, ok bool) {
	sh := e.ShardOf(named)
	if sh.View(func() { t, ok = sh.Topics.TopicOfToken(named, token) }); ok {
		return t, true
	}
	if n, known := topic.ShardOfToken(token); known && int(n) < len(e.Shards) {
		sh = e.Shards[n]
		sh.View(func() { t, ok = sh.Topics.TopicOfToken(named, token) })
	}
	return t, ok
}

// Unsubscribe removes a subscription and its backlog; the shard assigns the incarnation of the
// backlog for the confirmation that its endpoint gets. Errors: AccessDenied.
func (e *Topics) Unsubscribe(ctx context.Context, cmd topic.Unsubscribe) error {
	return e.withSubscription(ctx, cmd.Subscription, func(sh *Shard) error {
		cmd.Incarnation = sh.LatestIncarnation() + 1
		t, _, _ := cmd.Subscription.SplitSubscription()
		cmd.Token = sh.Topics.Token(t, cmd.Token)
		done, err := sh.Topics.Unsubscribe(clock.Time(sh.Now()), cmd, &sh.Batch)
		if done.Subscription != nil {
			sh.dropSubscription(layout.Incarnation(done.Dropped))
		}
		if done.Confirm {
			sh.NextIncarnation()
			sh.notify(done.Subscription, message.UnsubscribeConfirmation, cmd.Token, clock.Time(sh.Now()))
		}
		return err
	})
}

// withSubscription is WithCatalog for the shard of a subscription.
func (e *Topics) withSubscription(ctx context.Context, sub arn.ARN, f func(sh *Shard) error) error {
	return e.WithSubscription(ctx, sub, func(sh *backlog.Shard) error { return f(e.Shards[sh.ID]) })
}

// SubscriptionAttributes are all attributes of a subscription. Errors: NotFound.
func (e *Topics) SubscriptionAttributes(ctx context.Context, sub arn.ARN) (attributes map[string]string, err error) {
	err = e.ReadSubscription(ctx, sub, func(sh *backlog.Shard) error {
		found, ok := e.Shards[sh.ID].Topics.Subscription(sub)
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
func (e *Topics) SetSubscriptionAttribute(ctx context.Context, sub arn.ARN, name, value string) error {
	cmd := topic.SetSubscriptionAttribute{Subscription: sub, Name: name, Value: value, Draft: topic.Draft(map[string]string{name: value})}
	return e.withSubscription(ctx, sub, func(sh *Shard) error {
		t, _, _ := sub.SplitSubscription()
		cmd.Next = sh.order(t)
		err := sh.Topics.SetSubscriptionAttribute(clock.Time(sh.Now()), cmd, &sh.Batch)
		if found, ok := sh.Topics.Subscription(sub); err == nil && ok && name == "ReplayPolicy" {
			sh.replayChanged(found)
		}
		return err
	})
}

// ListTopics lists an account's topics in a region by name, up to limit of them after the name
// after.
func (e *Topics) ListTopics(ctx context.Context, region, account, after string, limit int) ([]arn.ARN, bool, error) {
	return kernel.MergePages(ctx, &e.Shards, limit, arnCompare, func(sh *Shard) (page []arn.ARN, more bool) {
		topics, more := sh.Topics.Topics(account, region, after, limit)
		for _, t := range topics {
			page = append(page, t.ARN)
		}
		return page, more
	})
}

func arnCompare(a, b arn.ARN) int { return strings.Compare(a.Resource, b.Resource) }

// ListSubscriptions lists the subscriptions that an account owns in a region, up to limit of
// them after the ARN after, which may be empty.
func (e *Topics) ListSubscriptions(ctx context.Context, region, account, after string, limit int) ([]topic.Subscription, bool, error) {
	from, _ := arn.Parse(after)
	byARN := func(a, b topic.Subscription) int { return topic.CompareSubscriptions(a.ARN, b.ARN) }
	return kernel.MergePages(ctx, &e.Shards, limit, byARN, func(sh *Shard) ([]topic.Subscription, bool) {
		page, more := sh.Topics.Subscriptions(account, region, from, limit)
		return copies(page), more
	})
}

// ListSubscriptionsByTopic lists a topic's subscriptions, up to limit of them after the
// subscription id after. Errors: NotFound.
func (e *Topics) ListSubscriptionsByTopic(ctx context.Context, t arn.ARN, after string, limit int) (subs []topic.Subscription, more bool, err error) {
	err = e.ReadCatalog(ctx, t, func(sh *Shard) error {
		page, rest, err := sh.Topics.SubscriptionsByTopic(t, after, limit)
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

func (sh *Shard) loadTopics() error {
	for _, tag := range [...]byte{keyspace.Topics, keyspace.Subscriptions} {
		if err := store.Each(sh.module.Store, keyspace.Prefix(keyspace.Shard(sh.ID, tag)), sh.Topics.Load); err != nil {
			return err
		}
	}
	if err := sh.Topics.Loaded(); err != nil {
		return err
	}
	for t := range sh.Topics.All() {
		sh.module.Accounts.Of(t.ARN.Account).LoadTopic()
	}
	for sub := range sh.Topics.AllDeliverable() {
		if _, ok := sh.OfQueues().Counters[layout.Incarnation(sub.Incarnation)]; ok {
			if err := sh.OfQueues().LoadMachine(sh.OpenBacklog(sub)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Options configure the module.
type Options struct {
	// Render and NewID make the messages for subscribed queues that a publish delivers by its
	// own commit. Without them no publish does.
	Render Renderer
	NewID  func() message.ID
	// Published is called for every publish, if it is not nil. It may be called concurrently,
	// and must be quick.
	Published func(*Published)
	// Audited is called for the findings of data protection policies, and for messages without
	// findings, if it is not nil; as Published.
	Audited func(*Audited)
	// MaxTopics is how many topics an account may have in a region; 0: any number.
	MaxTopics int
}

// Topics is the module of topics: publications go to the backlogs of subscriptions, or immediately
// into subscribed queues.
type Topics struct {
	*backlog.Backlogs
	kernel.Parts[*Shard]
	options Options
	quotas  sync.Mutex // held while a count with a quota may grow

	confirmations confirmations.Counts
}

// Shard is the module's part in a shard.
type Shard struct {
	*backlog.Shard
	module *Topics
	// topicPolicies are the policies that were used, by topic.
	topicPolicies map[arn.ARN]compiledPolicy

	fanouts    []pendingFanout // publications with a fan-out in progress, oldest first
	fanningOut map[arn.ARN]int // how many of them a topic has
	fanning    bool
	nextFan    uint64
	reached    map[uint64]topic.Reached // of fan-outs in progress that this process began
	publishers coalesce.Coalescer[*publisher]
	topicCache topicCache                        // recently used
	planned    int                               // how many deliveries the latest publication had
	targets    map[*topic.Subscription]target    // recently used; see target
	targetsOf  uint64                            // the generation of targets
	fifoStates map[layout.Incarnation]*fifoState // of FIFO topics

	archivesAt  int64 // when the next sweep of archives is due; 0: never
	replays     map[layout.Incarnation]*pendingReplay
	replayQueue []*pendingReplay // replays whose next step can be made
	replaying   bool

	deletedTopics []*deletedTopic // topics whose backlogs are not collected yet
	reclaiming    bool
}

// maxCoalesced bounds the publications of one command.
const maxCoalesced = 64

// New adds the module to the shards, after that of backlogs.
func New(below *backlog.Backlogs, o Options) *Topics {
	e := &Topics{Backlogs: below, options: o}
	for id, sh := range below.Shards {
		s := &Shard{
			Shard: sh, module: e, fanningOut: map[arn.ARN]int{}, reached: map[uint64]topic.Reached{},
			fifoStates: map[layout.Incarnation]*fifoState{}, replays: map[layout.Incarnation]*pendingReplay{}, targets: map[*topic.Subscription]target{},
		}
		s.publishers.Bounds = coalesce.Bounds{Publications: maxCoalesced, Deliveries: fanoutStep, Bytes: fanoutBytes}
		s.publishers.Publish = s.publish
		e.Shards[id] = s
		sh.Add(lifecycle{sh: s})
	}
	below.Removed = func(qs *queues.Queue) { e.Shards[qs.Shard.ID].delivered(qs) }
	return e
}

// lifecycle is how the kernel runs a Shard of this package.
type lifecycle struct {
	kernel.NopLifecycle
	sh *Shard
}

func (l lifecycle) Load() error {
	sh := l.sh
	if err := cmp.Or(sh.loadTopics(), sh.loadFIFOStates(), sh.loadArchives()); err != nil {
		return err
	}
	return cmp.Or(sh.loadFanouts(), sh.loadReplays(), sh.module.confirmations.Load(sh.module.Store, sh.ID))
}

func (l lifecycle) Resume() {
	l.sh.startFanouts(nil)
	l.sh.resumeReplays()
}

func (l lifecycle) NextDue() int64 {
	sh := l.sh
	at := sh.archivesAt
	if expiry, ok := sh.Topics.NextExpiry(); ok && (at == 0 || expiry.UnixMilli() < at) {
		at = expiry.UnixMilli()
	}
	return at
}

func (l lifecycle) Tick(int64) {
	l.sh.removeExpired()
	l.sh.sweepArchives()
}
