package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard"
)

// Queue is a queue in a list.
type Queue struct {
	ARN       string    `json:"arn"`
	Name      string    `json:"name"`
	Region    string    `json:"region"`
	Account   string    `json:"account"`
	FIFO      bool      `json:"fifo"`
	Encrypted bool      `json:"encrypted" doc:"Its attributes ask for SSE-KMS or SSE-SQS. The latter seals nothing in godwit dev."`
	CreatedAt time.Time `json:"createdAt"`
	Held
	Rates             *QueueRates       `json:"rates" doc:"Null until they are known, some seconds after the first call."`
	DeadLetterQueue   *string           `json:"deadLetterQueue"`
	MaxReceiveCount   *int              `json:"maxReceiveCount"`
	DeadLetterSources int               `json:"deadLetterSources" doc:"How many queues have it as their dead-letter queue; 1,000 stands for any more."`
	TakesDeadLetters  bool              `json:"takesDeadLetters" doc:"Whether a queue, a function, or one of the first 100,000 subscriptions, has it as its dead-letter queue, or a function as its destination on failure; but for queues as of a moment at most two seconds ago."`
	Tags              map[string]string `json:"tags"`
	Problem           *string           `json:"problem" doc:"Why nothing more is known of it now."`
}

// Held are counts of messages by state.
type Held struct {
	Messages         int64    `json:"messages" doc:"The sum of the three that follow."`
	Visible          int64    `json:"visible" doc:"Can be received."`
	InFlight         int64    `json:"inFlight"`
	Delayed          int64    `json:"delayed"`
	OldestAgeSeconds *float64 `json:"oldestAgeSeconds" doc:"As ApproximateAgeOfOldestMessage; null without a message."`
}

// QueueRates are in messages a second.
type QueueRates struct {
	Sent     float64 `json:"sent"`
	Received float64 `json:"received"`
	Deleted  float64 `json:"deleted"`
}

// QueueDetail describes a queue in full.
type QueueDetail struct {
	Queue
	ModifiedAt     time.Time         `json:"modifiedAt"`
	Attributes     map[string]string `json:"attributes" doc:"As they were set, by AWS's names."`
	Policy         *string           `json:"policy"`
	Totals         QueueTotals       `json:"totals" doc:"Since the server began."`
	GroupsInFlight int               `json:"groupsInFlight"`
	NoisyGroups    int               `json:"noisyGroups"`
	Sources        []string          `json:"sources" doc:"The queues that have it as their dead-letter queue, up to 1,000."`
	Undelivered    []string          `json:"undelivered" doc:"The subscriptions that have it as their dead-letter queue, those of the same account and region, up to 100 of the first 5,000."`
	Subscriptions  []string          `json:"subscriptions" doc:"Those of the same account and region that lead to it, up to 100 of the first 5,000."`
	Mappings       []QueueMapping    `json:"mappings" doc:"The functions that take its messages."`
}

// QueueTotals count messages, and empty receives.
type QueueTotals struct {
	Sent          int64 `json:"sent"`
	SentBytes     int64 `json:"sentBytes"`
	Deduplicated  int64 `json:"deduplicated"`
	Received      int64 `json:"received"`
	EmptyReceives int64 `json:"emptyReceives"`
	Deleted       int64 `json:"deleted"`
	DeadLettered  int64 `json:"deadLettered"`
	Expired       int64 `json:"expired"`
}

// QueueMapping is an event-source mapping of a queue.
type QueueMapping struct {
	ID       string `json:"id"`
	Function string `json:"function"`
	State    string `json:"state"`
}

// ListQueues asks for queues.
type ListQueues struct {
	Search   string `query:"search" max:"80" doc:"Part of the name, whatever its case."`
	Sort     string `query:"sort" enum:"name,messages" default:"name" doc:"messages: most first, of those that have any."`
	Kind     string `query:"kind" enum:"all,standard,fifo,dead-letter" default:"all"`
	NonEmpty bool   `query:"nonEmpty" doc:"Only queues that have messages."`
	Tag      string `query:"tag" max:"400" doc:"Only those with this tag: KEY, or KEY=VALUE."`
	Region   string `query:"region" max:"64" doc:"By default the server's."`
	Account  string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit    int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor   string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// Queues is a page of queues.
type Queues struct {
	Queues []Queue   `json:"queues"`
	Total  int       `json:"total" doc:"All queues of the server, in every account and region."`
	AsOf   time.Time `json:"asOf" doc:"When the rates, and an order by messages, were looked at."`
	Next   *string   `json:"next" doc:"The page that follows begins here; null: there is none. A page may be empty and have one."`
}

// OneQueue names a queue.
type OneQueue struct {
	ARN string `query:"arn" required:"true" max:"2048" doc:"The queue's."`
}

// About implements rest.About.
func (q *OneQueue) About() string { return q.ARN }

// ParseQueue reads the ARN of a queue.
func ParseQueue(name string) (arn.ARN, error) {
	a, err := arn.Parse(name)
	if err != nil || a.Service != "sqs" || a.Resource == "" {
		return arn.ARN{}, rest.BadRequest("arn: want the ARN of a queue")
	}
	return a, nil
}

// ListQueues lists queues: by name, or those with the most messages first.
func (c *Catalog) ListQueues(ctx context.Context, _ *rest.Call, in *ListQueues) (*Queues, error) {
	from, now, err := c.begin(ctx, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &Queues{Queues: []Queue{}, Total: now.Queues, AsOf: now.At.UTC()}
	if in.Sort == "messages" {
		err = c.listByMessages(ctx, in, from, now, out)
	} else {
		err = c.listByName(ctx, in, from, now, out)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// listByMessages adds a page of the queues that hold messages, as they were ranked last, behind
// the first from of them.
func (c *Catalog) listByMessages(ctx context.Context, in *ListQueues, from string, now *live.Snapshot, out *Queues) error {
	region, account := c.in(in.Region, in.Account)
	at, _ := strconv.Atoi(from)
	at = max(at, 0)
	for _, h := range now.Holdings[min(at, len(now.Holdings)):] {
		if len(out.Queues) == in.Limit {
			out.Next = rest.Next(strconv.Itoa(at), true)
			break
		}
		at++
		if h.Name.Service != "sqs" || h.Name.Region != region || h.Name.Account != account {
			continue
		}
		if err := c.addIfWanted(ctx, in, h.Name, now, out); err != nil {
			return err
		}
	}
	return nil
}

// listByName adds a page of the queues behind the name from. It may be short of in.Limit, or
// empty, where many queues do not match.
func (c *Catalog) listByName(ctx context.Context, in *ListQueues, from string, now *live.Snapshot, out *Queues) error {
	region, account := c.in(in.Region, in.Account)
	for looked := 0; ; {
		names, more, err := c.Engine.ListQueues(ctx, region, account, "", from, min(1000, 2*in.Limit))
		if err != nil {
			return err
		}
		for _, name := range names {
			if len(out.Queues) == in.Limit {
				out.Next = rest.Next(from, true)
				return nil
			}
			from = name
			if err := c.addIfWanted(ctx, in, arn.Queue(region, account, name), now, out); err != nil {
				return err
			}
		}
		if looked += len(names); !more || looked >= examined || len(names) == 0 {
			out.Next = rest.Next(from, more)
			return nil
		}
	}
}

// addIfWanted adds a queue to a page if it matches the request, and is still there.
func (c *Catalog) addIfWanted(ctx context.Context, in *ListQueues, a arn.ARN, now *live.Snapshot, out *Queues) error {
	if !rest.Matches(a.Resource, in.Search) || in.Kind == "fifo" && !a.FIFO() || in.Kind == "standard" && a.FIFO() {
		return nil
	}
	if in.Kind == "dead-letter" && !now.DeadLetterQueues[a] {
		if sources, _, err := c.Engine.DeadLetterSources(ctx, a, "", 1); err == nil && len(sources) == 0 {
			return nil
		}
	}
	q, _, err := c.queue(ctx, a, now)
	if fault.KindOf(err) == fault.QueueDoesNotExist {
		return nil
	}
	if err != nil {
		return err
	}
	if tagged(q.Tags, in.Tag) && (q.Messages > 0 || !in.NonEmpty) {
		out.Queues = append(out.Queues, q)
	}
	return nil
}

// queue is a queue in a list. Errors: QueueDoesNotExist.
func (c *Catalog) queue(ctx context.Context, a arn.ARN, now *live.Snapshot) (q Queue, info shard.QueueInfo, err error) {
	q = Queue{ARN: a.String(), FIFO: a.FIFO(), Tags: map[string]string{}}
	q.Name, q.Region, q.Account = namesSplit(a)
	if rates, ok := now.Queue(a); ok {
		q.Rates = &QueueRates{round(rates.Sent), round(rates.Received), round(rates.Deleted)}
	}
	if info, err = c.Engine.QueueInfo(ctx, a); err != nil {
		q.Problem = injected(err)
		if q.Problem != nil {
			err = nil
		}
		return q, info, err
	}
	q.CreatedAt, q.Tags = info.Created.UTC(), orEmpty(info.Tags)
	q.Visible, q.InFlight, q.Delayed = info.Counts.Visible, info.Counts.InFlight, info.Counts.Delayed
	q.Messages = q.Visible + q.InFlight + q.Delayed
	if q.Messages > 0 {
		if g, err := c.Engine.SampleQueue(a); err == nil {
			q.OldestAgeSeconds = seconds(g.OldestAge)
		}
	}
	cfg, err := attribute.Config(info.Attributes)
	if err != nil {
		return q, info, err
	}
	q.Encrypted = cfg.Key != "" || cfg.Managed
	if !cfg.DeadLetter.IsZero() {
		q.DeadLetterQueue, q.MaxReceiveCount = rest.Optional(cfg.DeadLetter.String()), &cfg.MaxReceives
	}
	sources, _, err := c.Engine.DeadLetterSources(ctx, a, "", 1000)
	q.DeadLetterSources = len(sources)
	q.TakesDeadLetters = len(sources) > 0 || now.DeadLetterQueues[a]
	return q, info, err
}

// round rounds a rate to two decimals.
func round(rate float64) float64 { return float64(int64(rate*100+0.5)) / 100 }

// GetQueue describes one queue.
func (c *Catalog) GetQueue(ctx context.Context, _ *rest.Call, in *OneQueue) (*QueueDetail, error) {
	a, err := ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	now, err := c.Live.Now(ctx)
	if err != nil {
		return nil, err
	}
	q, info, err := c.queue(ctx, a, now)
	if err != nil {
		return nil, err
	}
	out := &QueueDetail{
		Queue: q, ModifiedAt: info.Modified.UTC(), Attributes: orEmpty(info.Attributes),
		Policy: rest.Optional(info.Attributes[attribute.Policy]), Sources: []string{}, Undelivered: []string{}, Subscriptions: []string{}, Mappings: []QueueMapping{},
	}
	t := c.Totals.Of(a)
	out.Totals = QueueTotals{
		Sent: t.Sent, SentBytes: t.SentBytes, Deduplicated: t.Deduplicated, Received: t.Received, EmptyReceives: t.EmptyReceives,
		Deleted: t.Deleted, DeadLettered: t.DeadLettered, Expired: t.Expired,
	}
	if q.Problem != nil {
		return out, nil
	}
	if g, err := c.Engine.SampleQueue(a); err == nil {
		out.GroupsInFlight, out.NoisyGroups = g.GroupsInFlight, g.NoisyGroups
	}
	sources, _, err := c.Engine.DeadLetterSources(ctx, a, "", 1000)
	if err != nil {
		return nil, err
	}
	for _, name := range sources {
		out.Sources = append(out.Sources, arn.Queue(a.Region, a.Account, name).String())
	}
	subs, _, err := c.Engine.ListSubscriptions(ctx, a.Region, a.Account, "", 5000)
	if err != nil {
		return nil, err
	}
	for i := range subs {
		if subs[i].Endpoint == out.ARN && len(out.Subscriptions) < 100 {
			out.Subscriptions = append(out.Subscriptions, subs[i].ARN.String())
		}
		if subs[i].DeadLetters() == a && len(out.Undelivered) < 100 {
			out.Undelivered = append(out.Undelivered, subs[i].ARN.String())
		}
	}
	mapped, err := c.mappings(ctx)
	if err != nil {
		return nil, err
	}
	for i := range mapped {
		if m := &mapped[i]; m.Queue == a {
			out.Mappings = append(out.Mappings, QueueMapping{ID: m.UUID(), Function: m.Function.String(), State: m.State()})
		}
	}
	slices.SortFunc(out.Mappings, func(a, b QueueMapping) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// tagged reports whether there is a tag KEY, or KEY=VALUE. A key may contain an equals sign.
func tagged(tags map[string]string, wanted string) bool {
	if _, ok := tags[wanted]; ok || wanted == "" {
		return true
	}
	for key, value := range tags {
		if key+"="+value == wanted {
			return true
		}
	}
	return false
}
