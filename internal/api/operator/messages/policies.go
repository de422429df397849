package messages

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/internal/topic/retry/plan"
)

// PlanPolicy is the request of the schedule of a delivery policy.
type PlanPolicy struct {
	Policy       string `json:"policy" max:"32768" doc:"A DeliveryPolicy of a topic or of a subscription; empty: the subscription's own, or that of the protocol."`
	Protocol     string `json:"protocol" enum:"sqs,http,https,lambda,email,email-json,application,sms,firehose" default:"https"`
	Subscription string `json:"subscription" max:"2048" doc:"What it is owed is taken into account."`
}

// About implements rest.About.
func (p *PlanPolicy) About() string { return p.Subscription }

// PolicyPlan is the schedule of a delivery policy, without jitter and the duration of
// attempts.
type PolicyPlan struct {
	Valid        bool                 `json:"valid"`
	Error        *string              `json:"error" doc:"What SNS says about a policy that is not valid."`
	Policy       *catalog.RetryPolicy `json:"policy"`
	MaxPerSecond *int                 `json:"maxPerSecond" doc:"The throttle."`
	Phases       []PlanPhase          `json:"phases"`
	Steps        []PlanStep           `json:"steps" doc:"Retries, those of one phase with the same delay in one: 500 at most."`
	Backlog      *PlanBacklog         `json:"backlog" doc:"Null without a subscription."`
}

// PlanPhase is one of the four phases.
type PlanPhase struct {
	Name             string  `json:"name" enum:"immediate,pre-backoff,backoff,post-backoff"`
	Retries          int     `json:"retries"`
	FromSeconds      float64 `json:"fromSeconds" doc:"When its first retry is made, since the first attempt."`
	UntilSeconds     float64 `json:"untilSeconds" doc:"When its last one is."`
	ShortestDelaySec float64 `json:"shortestDelaySeconds"`
	LongestDelaySec  float64 `json:"longestDelaySeconds"`
}

// PlanStep is a run of retries.
type PlanStep struct {
	Retry        int     `json:"retry" doc:"The number of the first, from 1."`
	Count        int     `json:"count"`
	Phase        string  `json:"phase" enum:"immediate,pre-backoff,backoff,post-backoff"`
	DelaySeconds float64 `json:"delaySeconds" doc:"Before each."`
	FromSeconds  float64 `json:"fromSeconds" doc:"When the first is made, since the first attempt."`
	UntilSeconds float64 `json:"untilSeconds" doc:"When the last is made."`
}

// PlanBacklog is the effect of the policy on the backlog.
type PlanBacklog struct {
	Owed         int64    `json:"owed"`
	Attempts     int64    `json:"attempts" doc:"How many attempts all of it costs at most, if none succeeds: those that were made count as well."`
	SecondsAtMax *float64 `json:"secondsAtMax" doc:"How long one attempt at each takes at the throttle; null: there is none."`
}

// maxSteps bounds the steps in a plan.
const maxSteps = 500

// Plan computes the schedule of a delivery policy.
func (m *Messages) Plan(ctx context.Context, _ *rest.Call, in *PlanPolicy) (*PolicyPlan, error) {
	out := &PolicyPlan{Phases: []PlanPhase{}, Steps: []PlanStep{}}
	p, _ := plan.OfProtocol(in.Protocol)
	if in.Subscription != "" {
		sub, err := catalog.ParseSubscription(in.Subscription)
		if err != nil {
			return nil, err
		}
		info, err := m.Engine.Backlog(ctx, sub)
		if err != nil {
			return nil, err
		}
		out.Backlog = &PlanBacklog{Owed: info.Due + info.Waiting + info.InFlight}
		p, _ = plan.OfProtocol(info.Subscription.Protocol.String())
		if _, _, ok := sub.SplitSubscription(); ok {
			p.Policy = info.Subscription.RetryPolicy()
			p.MaxReceivesPerSecond, _ = info.Subscription.Throttle()
		}
	}
	if in.Policy != "" {
		var err error
		if p, err = plan.Of("", in.Policy); err != nil {
			out.Error = rest.Optional(rest.Text(err))
			return out, nil
		}
	}
	shown := catalog.Shown(p.Policy)
	out.Valid, out.Policy = true, &shown
	if p.MaxReceivesPerSecond > 0 {
		out.MaxPerSecond = &p.MaxReceivesPerSecond
	}
	out.lay(p.Policy)
	if b := out.Backlog; b != nil {
		b.Attempts = b.Owed * int64(p.Policy.NumRetries+1)
		if p.MaxReceivesPerSecond > 0 {
			s := float64(b.Owed) / float64(p.MaxReceivesPerSecond)
			b.SecondsAtMax = &s
		}
	}
	return out, nil
}

// lay computes the retries of a policy.
func (out *PolicyPlan) lay(p retry.Policy) {
	at := time.Duration(0)
	for i := 0; ; i++ {
		delay, ok := p.Delay(i)
		if !ok {
			return
		}
		at += delay
		phase := p.Phase(i).String()
		if n := len(out.Phases); n == 0 || out.Phases[n-1].Name != phase {
			out.Phases = append(out.Phases, PlanPhase{Name: phase, FromSeconds: at.Seconds(), ShortestDelaySec: delay.Seconds()})
		}
		f := &out.Phases[len(out.Phases)-1]
		f.Retries++
		f.UntilSeconds, f.ShortestDelaySec, f.LongestDelaySec = at.Seconds(), min(f.ShortestDelaySec, delay.Seconds()), max(f.LongestDelaySec, delay.Seconds())
		if n := len(out.Steps); n > 0 && out.Steps[n-1].Phase == phase && out.Steps[n-1].DelaySeconds == delay.Seconds() {
			out.Steps[n-1].Count++
			out.Steps[n-1].UntilSeconds = at.Seconds()
		} else if n < maxSteps {
			out.Steps = append(out.Steps, PlanStep{Retry: i + 1, Count: 1, Phase: phase, DelaySeconds: delay.Seconds(), FromSeconds: at.Seconds(), UntilSeconds: at.Seconds()})
		}
	}
}

// TestFilter is the request to test a filter policy.
type TestFilter struct {
	FilterPolicy string       `json:"filterPolicy" required:"true" max:"32768"`
	Scope        string       `json:"scope" enum:"MessageAttributes,MessageBody" default:"MessageAttributes"`
	Messages     []FilterCase `json:"messages" max:"100"`
	Topic        string       `json:"topic" max:"2048" doc:"ARN of a topic: what was published to it of late is looked at, too, which takes godwit:PeekMessages on it."`
}

// About implements rest.About.
func (t *TestFilter) About() string { return t.Topic }

// FilterCase is a message that a filter policy is tested on.
type FilterCase struct {
	Body       string            `json:"body"`
	Attributes []FilterAttribute `json:"attributes" max:"100"`
}

// FilterAttribute is a message attribute for the test of a filter policy. The values of
// binary attributes are not compared.
type FilterAttribute struct {
	Name  string `json:"name" required:"true"`
	Type  string `json:"type" required:"true"`
	Value string `json:"value"`
}

// FilterTest is the result of the test.
type FilterTest struct {
	Valid   bool    `json:"valid"`
	Error   *string `json:"error" doc:"What SNS says about a policy that is not valid."`
	Results []bool  `json:"results" doc:"Whether it lets each message through, in their order."`
	Matched int     `json:"matched" doc:"How many of them."`
	// Publishes are the results for recent publishes of the topic.
	Publishes []FilterPublish `json:"publishes" doc:"What was published to the topic of late, the latest first; empty without a topic."`
}

// FilterPublish is the result for a recent publish.
type FilterPublish struct {
	MessageID   string    `json:"messageId"`
	PublishedAt time.Time `json:"publishedAt"`
	Matched     bool      `json:"matched"`
	Reason      *string   `json:"reason" doc:"Why not, as the metrics of NumberOfNotificationsFilteredOut say it: MessageAttributes, NoMessageAttributes, InvalidAttributes, MessageBody or InvalidMessageBody."`
	Refused     *string   `json:"refused" doc:"Why it is not decrypted, and so nobody can say."`
}

// TestFilter reports which messages match a filter policy.
func (m *Messages) TestFilter(ctx context.Context, c *rest.Call, in *TestFilter) (*FilterTest, error) {
	out := &FilterTest{Results: []bool{}, Publishes: []FilterPublish{}}
	scope, err := filter.ParseScope(in.Scope)
	if err != nil {
		return nil, err
	}
	policy, err := filter.Compile(in.FilterPolicy, scope)
	if err != nil {
		out.Error = rest.Optional(rest.Text(err))
		return out, nil
	}
	out.Valid = true
	for _, one := range in.Messages {
		attributes := make([]filter.Attribute, len(one.Attributes))
		for i, a := range one.Attributes {
			attributes[i] = filter.Attribute{Name: a.Name, Type: a.Type, Value: a.Value}
		}
		matched := policy.Match(filter.NewMessage(attributes, []byte(one.Body))) == filter.Match
		if out.Results = append(out.Results, matched); matched {
			out.Matched++
		}
	}
	if in.Topic == "" {
		return out, nil
	}
	if c.May != nil { // the result discloses something of the messages
		if err := c.May(ctx, rest.Peeking, in.Topic); err != nil {
			return nil, err
		}
	}
	return out, m.testPublishes(ctx, c, in.Topic, policy, out)
}

// testPublishes reports which recent publishes of a topic match a filter policy.
func (m *Messages) testPublishes(ctx context.Context, c *rest.Call, topic string, policy *filter.Policy, out *FilterTest) error {
	of, err := catalog.ParseTopic(topic)
	if err != nil {
		return err
	}
	all, err := m.published(ctx, c, of)
	for i := range all {
		o := &all[i]
		one := FilterPublish{MessageID: o.ID.String(), PublishedAt: o.At.UTC(), Refused: rest.Optional(o.refused)}
		if o.refused == "" {
			v := policy.Match(o.Record.Message())
			if one.Matched = v == filter.Match; !one.Matched {
				one.Reason = rest.Optional(v.String())
			}
		}
		out.Publishes = append(out.Publishes, one)
	}
	return err
}
