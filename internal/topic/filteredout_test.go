package topic

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/topic/filter"
)

// TestFilteredOutCounts: counting what a message does not reach gives what a check
// at every subscription gives, whatever happened to the subscriptions.
func TestFilteredOutCounts(t *testing.T) {
	policies := []string{
		"", "{}", `{"type":["order"]}`, `{"list":["a"]}`, `{"other":[{"exists":false}]}`,
		`{"type":["refund"],"list":["b"]}`,
	}
	messages := []struct {
		attributes []filter.Attribute
		body       string
	}{
		{nil, "text"},
		{nil, `{"type":"order"}`},
		{[]filter.Attribute{{Name: "type", Type: "String", Value: "order"}}, `{"type":"refund","list":["b"]}`},
		{[]filter.Attribute{{Name: "list", Type: "String.Array", Value: `["a"]`}}, `[]`},
		{[]filter.Attribute{{Name: "list", Type: "String.Array", Value: `no array`}, {Name: "type", Type: "String", Value: "refund"}}, `{}`},
		{[]filter.Attribute{{Name: "type", Type: "Binary", Value: "x"}}, `null`},
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := New(0, Limits{})
		var b mutation.Batch
		check := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		name := arn.Topic(region, account, "T")
		_, err := s.CreateTopic(time.UnixMilli(0), CreateTopic{ARN: name}, &b)
		check(err)
		for i := range rapid.IntRange(0, 12).Draw(rt, "subscriptions") {
			scope := rapid.SampledFrom([]string{"MessageAttributes", "MessageBody"}).Draw(rt, "scope")
			policy := rapid.SampledFrom(policies).Draw(rt, "policy")
			cmd := Subscribe{
				Topic: name, Owner: name.Account, Protocol: "http", Endpoint: fmt.Sprintf("http://h/%d", i),
				ID: fmt.Sprintf("id-%02d", i), Incarnation: uint64(i + 1), Token: fmt.Sprint("token", i),
				Attributes: map[string]string{"FilterPolicyScope": scope, "FilterPolicy": policy},
			}
			done, err := s.Subscribe(time.UnixMilli(0), cmd, &b)
			check(err)
			if rapid.IntRange(0, 3).Draw(rt, "confirmed") > 0 {
				_, err := s.ConfirmSubscription(time.UnixMilli(0), Confirm{Topic: name, Token: cmd.Token}, &b)
				check(err)
			}
			switch rapid.IntRange(0, 4).Draw(rt, "then") {
			case 0:
				check(s.SetSubscriptionAttribute(time.UnixMilli(0), SetSubscriptionAttribute{Subscription: done.Subscription.ARN, Name: "FilterPolicy", Value: rapid.SampledFrom(policies).Draw(rt, "another"), Next: 1}, &b))
			case 1:
				check(s.SetSubscriptionAttribute(time.UnixMilli(0), SetSubscriptionAttribute{Subscription: done.Subscription.ARN, Name: "FilterPolicyScope", Value: "MessageBody", Next: 1}, &b))
			case 2:
				_, err := s.Unsubscribe(time.UnixMilli(0), Unsubscribe{Subscription: done.Subscription.ARN, Authenticated: true}, &b)
				check(err)
			}
		}
		for i, m := range messages {
			message := func() *filter.Message { return filter.NewMessage(m.attributes, []byte(m.body)) }
			var want [filter.Verdicts]int
			for range matchEach(s, name, "", message(), func(_ *Subscription, v filter.Verdict) { want[v]++ }) {
			}
			var reached Reached
			for sub := range s.Match(name, "", message()) {
				reached.Add(sub)
			}
			if got := s.FilteredOut(name, message, reached); got != want {
				rt.Errorf("message %d: %v are filtered out, want %v", i, got, want)
			}
		}
	})
}
