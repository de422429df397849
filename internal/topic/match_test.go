package topic

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic/filter"
)

// policyOf fills in a policy's %d, if it has one.
func policyOf(policy string, i int) string {
	if !strings.Contains(policy, "%") {
		return policy
	}
	return fmt.Sprintf(policy, i)
}

const matching = 10 // subscriptions, of however many

// matchEach is Match without the index: it checks every subscription, and calls filteredOut with
// those that do not match and the reason.
func matchEach(s *State, name arn.ARN, after string, m *filter.Message, filteredOut func(*Subscription, filter.Verdict)) iter.Seq[*Subscription] {
	return func(yield func(*Subscription) bool) {
		t, ok := s.topics[name]
		if !ok {
			return
		}
		for _, sub := range t.subscriptions.Items {
			if sub.ID() <= after || sub.Pending {
				continue
			}
			if v := s.Verdict(sub, m); v != filter.Match {
				filteredOut(sub, v)
			} else if !yield(sub) {
				return
			}
		}
	}
}

// What one publish costs among many filtered subscriptions of which ten match:
// the time for each policy is the same with 10 and with 10,000 where the index
// can tell them apart. "each" is what it would be without.
func BenchmarkMatch(b *testing.B) {
	attributes := []filter.Attribute{
		{Name: "type", Type: "String", Value: "order"},
		{Name: "customer", Type: "String", Value: "c-0-17"},
		{Name: "region", Type: "Number", Value: "0.25"},
		{Name: "tags", Type: "String.Array", Value: `["new","group-0","blue"]`},
	}
	const body = `{"type":"order","order":{"lines":[{"sku":"s-0","count":1},{"sku":"none","count":3}],"customer":"someone"}}`
	for _, bm := range []struct {
		name, policy string // %d: i/matching
		body         bool
	}{
		{"strings", `{"type":["order"],"tags":["group-%d"]}`, false},
		{"prefix", `{"customer":[{"prefix":"c-%d-"}]}`, false},
		{"numeric", `{"region":[{"numeric":[">=",%d,"<",%[1]d.5]}]}`, false},
		{"$or", `{"$or":[{"tags":["group-%d"]},{"customer":["c-%[1]d"]}]}`, false},
		{"body", `{"order":{"lines":{"sku":["s-%d"]}}}`, true},
		{"anything-but", `{"customer":[{"anything-but":{"wildcard":"c-[!%d]*"}}],"tags":["group-%[1]d"]}`, false},
		{"no index helps", `{"type":[{"anything-but":["order","x%d"]}]}`, false},
	} {
		for _, n := range []int{10, 1_000, 10_000} {
			w, topic := subscribed(b, n, bm.policy, bm.body)
			want := matching
			if bm.name == "no index helps" {
				want = 0
			}
			run := func(b *testing.B, match func(m *filter.Message) iter.Seq[*Subscription]) {
				b.ReportAllocs()
				for b.Loop() {
					got := 0
					for range match(filter.NewMessage(attributes, []byte(body))) {
						got++
					}
					if got != want {
						b.Fatalf("%d match", got)
					}
				}
			}
			b.Run(fmt.Sprintf("%s/of=%d", bm.name, n), func(b *testing.B) {
				run(b, func(m *filter.Message) iter.Seq[*Subscription] { return w.Match(topic, "", m) })
			})
			if bm.name == "strings" {
				b.Run(fmt.Sprintf("%s, each/of=%d", bm.name, n), func(b *testing.B) {
					run(b, func(m *filter.Message) iter.Seq[*Subscription] {
						return matchEach(w.State, topic, "", m, func(*Subscription, filter.Verdict) {})
					})
				})
			}
		}
	}
}

// BenchmarkSetFilterPolicy is what keeping the index costs when the policy of one of
// 10,000 subscriptions changes.
func BenchmarkSetFilterPolicy(b *testing.B) {
	w, topic := subscribed(b, 10_000, `{"type":["order"],"tags":["group-%d"]}`, false)
	sub := w.topics[topic].subscriptions.Items[5_000].ARN
	i := 0
	for b.Loop() {
		i++
		if err := w.SetSubscriptionAttribute(w.now, SetSubscriptionAttribute{Subscription: sub, Name: "FilterPolicy", Value: fmt.Sprintf(`{"type":["order"],"tags":["group-%d"]}`, i%1000), Next: 1}, &w.batch); err != nil {
			b.Fatal(err)
		}
		w.batch.Reset()
	}
}

// subscribed is a topic with n subscriptions, ten for each value in the policy.
func subscribed(tb testing.TB, n int, policy string, body bool) (*world, arn.ARN) {
	tb.Helper()
	w := newWorld()
	topic := mustCreate(tb, w, "Orders")
	scope := filter.MessageAttributes
	if body {
		scope = filter.MessageBody
	}
	for i := range n {
		mustSubscribe(tb, w, Subscribe{Topic: topic, Protocol: "sqs", Endpoint: queue(i), Attributes: map[string]string{
			"FilterPolicy": policyOf(policy, i/matching), "FilterPolicyScope": scope.String(),
		}})
		w.batch.Reset()
	}
	return w, topic
}
