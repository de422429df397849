package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

// quiet are queues of which nothing is counted.
type quiet struct{}

func (quiet) EachActive(int, func(arn.ARN, monitor.Totals)) {}

func open(t *testing.T) *Catalog {
	t.Helper()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start)})
	t.Cleanup(func() { _ = e.Close() })
	looking := inspect.New(e.Queues, e.Functions)
	return New(Options{
		Engine: e, Live: live.New(live.Options{Census: looking.Census, Queues: quiet{}, Clock: clock.System}),
		Server: func() Server { return Server{Region: shardtest.Region, Account: shardtest.Account} },
	})
}

// Each page continues where the one before ended, whatever was left out of it, and no queue is
// on two of them.
func TestListQueues(t *testing.T) {
	c := open(t)
	for i := range 9 {
		spec := queues.QueueSpec{ARN: shardtest.QueueARN(fmt.Sprintf("orders-%d", i)), Tags: map[string]string{"team": []string{"shop", "post"}[i%2]}}
		if i == 8 {
			spec.ARN, spec.Attributes = shardtest.QueueARN("orders.fifo"), map[string]string{"FifoQueue": "true"}
		}
		if i == 7 {
			spec.Attributes = map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("orders-0").String() + `","maxReceiveCount":3}`}
		}
		if err := c.Engine.CreateQueue(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		for range i + 1 {
			if _, err := c.Engine.Send(t.Context(), shardtest.QueueARN(fmt.Sprintf("orders-%d", i)), []queues.SendEntry{{Message: shardtest.NewMessage(i, "x")}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, tt := range map[string]struct {
		in   ListQueues
		want string
	}{
		"all":               {ListQueues{Limit: 2}, "0 1 2 3 4 5 6 7 .fifo"},
		"one page":          {ListQueues{Limit: 100}, "0 1 2 3 4 5 6 7 .fifo"},
		"part of the name":  {ListQueues{Limit: 2, Search: "ORDERS-"}, "0 1 2 3 4 5 6 7"},
		"fifo":              {ListQueues{Limit: 2, Kind: "fifo"}, ".fifo"},
		"standard":          {ListQueues{Limit: 3, Kind: "standard"}, "0 1 2 3 4 5 6 7"},
		"dead-letter":       {ListQueues{Limit: 3, Kind: "dead-letter"}, "0"},
		"a tag":             {ListQueues{Limit: 2, Tag: "team=post"}, "1 3 5 7"},
		"a tag's key":       {ListQueues{Limit: 4, Tag: "team"}, "0 1 2 3 4 5 6 7 .fifo"},
		"no tag":            {ListQueues{Limit: 4, Tag: "team=none"}, ""},
		"not empty":         {ListQueues{Limit: 2, NonEmpty: true}, "0 1 2"},
		"by messages":       {ListQueues{Limit: 2, Sort: "messages"}, "2 1 0"},
		"another region":    {ListQueues{Limit: 2, Region: "eu-west-1"}, ""},
		"of another holder": {ListQueues{Limit: 2, Account: "999999999999"}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			var names []string
			in := tt.in
			for page := 0; ; page++ {
				out, err := c.ListQueues(t.Context(), nil, &in)
				if err != nil {
					t.Fatal(err)
				}
				if len(out.Queues) > in.Limit || page > 20 || out.Total != 9 {
					t.Fatalf("page %d has %d of %d", page, len(out.Queues), out.Total)
				}
				for _, q := range out.Queues {
					names = append(names, strings.TrimPrefix(strings.TrimPrefix(q.Name, "orders"), "-"))
				}
				if out.Next == nil {
					break
				}
				in.Cursor = *out.Next
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	if _, err := c.ListQueues(t.Context(), nil, &ListQueues{Limit: 1, Cursor: "no cursor"}); err == nil {
		t.Error("a cursor of one's own is taken")
	}
}

func TestTagged(t *testing.T) {
	tags := map[string]string{"team": "shop", "a=b": "c", "empty": ""}
	for wanted, want := range map[string]bool{
		"": true, "team": true, "team=shop": true, "team=post": false, "shop": false, "a": false, "a=b": true, "a=b=c": true, "a=c": false,
		"empty": true, "empty=": true, "none": false, "none=": false,
	} {
		if tagged(tags, wanted) != want {
			t.Errorf("%q: %v", wanted, !want)
		}
	}
}

// A delivery's schedule is what its policy says from where it stands, up to when its message
// expires.
func TestSchedule(t *testing.T) {
	now := shardtest.Start
	policy := retry.Policy{
		NumRetries: 6, NumNoDelayRetries: 1, NumMinDelayRetries: 2, NumMaxDelayRetries: 1,
		MinDelayTarget: 10 * time.Second, MaxDelayTarget: 40 * time.Second, Backoff: retry.Linear,
	}
	for what, tt := range map[string]struct {
		info     shard.DeliveryInfo
		deadline time.Time
		want     string
	}{
		"not yet attempted": {
			shard.DeliveryInfo{State: shard.DeliveryPending, NextAttemptAt: now},
			time.Time{},
			"1 first 0s, 2 immediate 0s, 3 pre-backoff 10s, 4 pre-backoff 20s, 5 backoff 30s, 6 backoff 1m10s, 7 post-backoff 1m50s",
		},
		"waits for its third attempt": {
			shard.DeliveryInfo{State: shard.DeliveryPending, Attempts: 2, NextAttemptAt: now.Add(4 * time.Second)},
			time.Time{},
			"3 pre-backoff 4s, 4 pre-backoff 14s, 5 backoff 24s, 6 backoff 1m4s, 7 post-backoff 1m44s",
		},
		"under way": {
			shard.DeliveryInfo{State: shard.DeliveryInFlight, Attempts: 3},
			time.Time{},
			"5 backoff 10s, 6 backoff 50s, 7 post-backoff 1m30s",
		},
		"the last under way":                {shard.DeliveryInfo{State: shard.DeliveryInFlight, Attempts: 6}, time.Time{}, ""},
		"waits for its dead-letter queue":   {shard.DeliveryInfo{State: shard.DeliveryPending, Attempts: 3, Reason: "gone", NextAttemptAt: now}, time.Time{}, ""},
		"expires in the middle of its time": {shard.DeliveryInfo{State: shard.DeliveryPending, Attempts: 2, NextAttemptAt: now}, now.Add(25 * time.Second), "3 pre-backoff 0s, 4 pre-backoff 10s, 5 backoff 20s"},
	} {
		s := schedule(policy, &tt.info, tt.deadline, now)
		var got []string
		for _, p := range s.Ahead {
			got = append(got, fmt.Sprint(p.Attempt, " ", p.Phase, " ", p.At.Sub(now)))
		}
		if strings.Join(got, ", ") != tt.want || s.AheadTotal != len(got) || s.RetriesTotal != 6 || s.Made != tt.info.Attempts {
			t.Errorf("%s: %s, %d in all, want %s", what, strings.Join(got, ", "), s.AheadTotal, tt.want)
		}
		if ends := s.EndsAt; len(got) == 0 && ends != nil || len(got) > 0 && (ends == nil || !ends.Equal(s.Ahead[len(got)-1].At)) {
			t.Errorf("%s: ends at %v", what, ends)
		}
	}
	s := schedule(retry.AWSManaged, &shard.DeliveryInfo{State: shard.DeliveryPending, NextAttemptAt: now}, time.Time{}, now)
	if len(s.Ahead) != maxPlanned || s.AheadTotal != 100_016 || s.EndsAt.Sub(now).Round(time.Hour) != retry.AWSManaged.Total().Round(time.Hour) {
		t.Errorf("the longest: %d shown of %d, to %v", len(s.Ahead), s.AheadTotal, s.EndsAt)
	}
}

// Messages to web hooks live for a time from when they were published, or from when their
// subscription went on.
func TestDeadline(t *testing.T) {
	published := shardtest.Start
	info := &shard.DeliveryInfo{PublishedAt: published}
	hook := &topic.Subscription{Protocol: topic.HTTPS}
	first := deadline(hook, info)
	if !first.After(published) {
		t.Errorf("of a web hook: %v", first)
	}
	hook.ResumedAt = published.Add(-time.Hour).UnixMilli()
	if got := deadline(hook, info); !got.Equal(first) {
		t.Errorf("of one that went on before: %v", got)
	}
	hook.ResumedAt = published.Add(time.Hour).UnixMilli()
	if got := deadline(hook, info); !got.Equal(first.Add(time.Hour)) {
		t.Errorf("of one that went on later: %v", got)
	}
	if got := deadline(&topic.Subscription{Protocol: topic.SQS}, info); !got.IsZero() {
		t.Errorf("of a queue: %v", got)
	}
}

// Sources that take no posts need a person: one with a problem before one that is paused.
func TestClosedSources(t *testing.T) {
	c := open(t)
	c.Problems = func() map[string]string { return nil }
	c.Closed = func(limit int) []Closed {
		if limit < 2 {
			t.Errorf("at most %d are asked for", limit)
		}
		return []Closed{{Name: "a"}, {Name: "b", Problem: "its secrets are to be set anew"}}
	}
	out, err := c.GetOverview(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Attention{
		{Kind: "source", Severity: "critical", Text: "b: its secrets are to be set anew"},
		{Kind: "source", Severity: "warning", Text: "a: it is paused, and takes no posts"},
	}
	if !slices.Equal(out.Attention, want) {
		t.Errorf("%+v, want %+v", out.Attention, want)
	}
}
