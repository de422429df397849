package topic

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/arn"
)

// Whatever the history of commands, the records that it leaves behind load
// into a state equal to the live one, and all indexes agree; checked checks
// both after each command.
func TestHistoriesReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		var subs []arn.ARN
		topic := func(t *rapid.T) arn.ARN {
			return arn.Topic(region, account, rapid.SampledFrom([]string{"a", "a0", "B"}).Draw(t, "topic"))
		}
		anySub := func(t *rapid.T) arn.ARN {
			if len(subs) == 0 {
				return arn.Topic(region, account, "a").Subscription("none")
			}
			return rapid.SampledFrom(subs).Draw(t, "subscription")
		}
		attribute := func(t *rapid.T, from map[string][]string) (name, value string) {
			name = rapid.SampledFrom(keys(from)).Draw(t, "attribute")
			return name, rapid.SampledFrom(from[name]).Draw(t, "value")
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {},
			"create topic": func(t *rapid.T) {
				name, value := attribute(t, topicValues)
				_, err := w.CreateTopic(w.now, CreateTopic{
					ARN: topic(t), Attributes: map[string]string{name: value},
					Tags: map[string]string{"team": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tag")},
				}, &w.batch)
				w.checked(t, err)
			},
			"set topic": func(t *rapid.T) {
				name, value := attribute(t, topicValues)
				w.checked(t, w.SetTopicAttribute(w.now, topic(t), name, value, &w.batch))
			},
			"delete topic": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
					_, err := w.DeleteTopic(topic(t), &w.batch)
					w.checked(t, err)
				}
			},
			"tag": func(t *rapid.T) {
				key := rapid.SampledFrom([]string{"team", "stage"}).Draw(t, "key")
				w.checked(t, w.Tag(topic(t), map[string]string{key: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tag")}, &w.batch))
			},
			"untag": func(t *rapid.T) {
				w.checked(t, w.Untag(topic(t), []string{rapid.SampledFrom([]string{"team", "stage"}).Draw(t, "key")}, &w.batch))
			},
			"expire": func(t *rapid.T) {
				w.RemoveExpired(w.now, rapid.IntRange(1, 3).Draw(t, "limit"), &w.batch)
				w.checked(t, nil)
			},
			"subscribe": func(t *rapid.T) {
				name, value := attribute(t, subscriptionValues)
				owner := rapid.SampledFrom([]string{account, "111111111111"}).Draw(t, "owner")
				n := rapid.IntRange(0, 5).Draw(t, "endpoint")
				cmd := Subscribe{Topic: topic(t), Owner: owner, Attributes: map[string]string{name: value}}
				cmd.Protocol = rapid.SampledFrom([]string{"sqs", "http", "https", "email", "sms"}).Draw(t, "protocol")
				switch cmd.Protocol {
				case "sqs":
					cmd.Endpoint = queue(n)
				case "sms":
					cmd.Endpoint = rapid.SampledFrom([]string{"+15551234567", "+1-555-123-4567", "+1.555.123.4568"}).Draw(t, "number")
				default:
					cmd.Endpoint = fmt.Sprintf("%s://user:secret@host%d/", cmd.Protocol, n)
					if cmd.Protocol == "http" {
						cmd.Endpoint = fmt.Sprintf("http://host%d/", n)
					}
				}
				got, err := w.subscribe(cmd)
				w.checked(t, err)
				if got.Created {
					subs = append(subs, got.Subscription.ARN)
				}
			},
			"confirm": func(t *rapid.T) {
				token := fmt.Sprintf("token-%d", rapid.IntRange(0, w.ids+1).Draw(t, "token"))
				if rapid.Bool().Draw(t, "restore") {
					token = fmt.Sprintf("regret-%d", rapid.IntRange(1, w.told+1).Draw(t, "regret"))
				}
				_, err := w.ConfirmSubscription(w.now, Confirm{
					Topic: topic(t), Token: token, Incarnation: uint64(w.ids + 1000),
					Authenticated:             rapid.Bool().Draw(t, "signed"),
					AuthenticateOnUnsubscribe: rapid.Bool().Draw(t, "protect"),
				}, &w.batch)
				w.checked(t, err)
			},
			"set subscription": func(t *rapid.T) {
				name, value := attribute(t, subscriptionValues)
				w.checked(t, w.SetSubscriptionAttribute(w.now, SetSubscriptionAttribute{Subscription: anySub(t), Name: name, Value: value, Next: 1}, &w.batch))
			},
			"unsubscribe": func(t *rapid.T) {
				_, err := w.unsubscribe(anySub(t), rapid.Bool().Draw(t, "signed"), "")
				w.checked(t, err)
			},
			"wait": func(*rapid.T) { w.now = w.now.Add(time.Duration(1+w.ids%7) * 7 * time.Hour) },
		})
	})
}

var topicValues = map[string][]string{
	"DisplayName":                  {"", "Rental <Orders> & more", "é\u2028"},
	"DeliveryPolicy":               {"", `{"http":{"defaultThrottlePolicy":{"maxReceivesPerSecond":3}}}`, `{"http":{"disableSubscriptionOverrides":true}}`, `{`},
	"Policy":                       {"", `{ "Statement": [] }`, `x`, "{\"a\":\"\xff\"}"},
	"SignatureVersion":             {"1", "2", "3"},
	"SQSSuccessFeedbackSampleRate": {"50", "500"},
	"KmsMasterKeyId":               {"", "alias/aws/sns", "a b"},
}

var subscriptionValues = map[string][]string{
	"RawMessageDelivery": {"true", "false", "maybe"},
	"FilterPolicy": {
		"", `{"a":["x"]}`, `{ "a": ["x", "y"] }`, `{"a":{"b":["x"]}}`, `{"a":[1]}`, `{}`, "{\"a\":[\"\xff\"]}", `{"a":["x"],"b":[true]}`,
		`{"a":[{"prefix":"x"}]}`, `{"a":[{"numeric":[">",0]}]}`, `{"a":[{"exists":false}]}`, `{"$or":[{"a":["y"]},{"b":["x"]}]}`,
	},
	"FilterPolicyScope":   {"", "MessageBody", "MessageAttributes", "Neither"},
	"DeliveryPolicy":      {"", `{"requestPolicy":{"headerContentType":"text/csv"}}`, `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":2,"numRetries":3}}`},
	"SubscriptionRoleArn": {"", "arn:aws:iam::000000000000:role/firehose", "x"},
	"RedrivePolicy":       {"", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq"}`, `{"deadLetterTargetArn":"x"}`},
}

// keys are in order, for rapid draws by position.
func keys(m map[string][]string) []string { return slices.Sorted(maps.Keys(m)) }
