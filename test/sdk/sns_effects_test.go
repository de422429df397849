package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// attributeWorld is a topic with a queue and a web hook that have subscribed.
type attributeWorld struct {
	endpoint string
	c        *sns.Client
	topic    string
	hook     *hook
	viaHook  string // subscription
	queue    string // URL
	viaQueue string // subscription
}

func newAttributeWorld(t *testing.T) *attributeWorld {
	t.Helper()
	w := &attributeWorld{endpoint: start(t), hook: newHook(t)}
	w.c = topicsClient(w.endpoint)
	w.topic = createTopic(t, w.c, "orders")
	w.queue = createQueue(t, client(w.endpoint), "q")
	w.viaQueue = subscribe(t, w.c, w.topic, "sqs", queueARN("q"))
	w.viaHook = subscribe(t, w.c, w.topic, "http", w.hook.URL)
	token, _ := decode(t, w.hook.next(t).Body)["Token"].(string)
	must(w.c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &w.topic, Token: &token}))(t)
	return w
}

func (w *attributeWorld) setTopic(t *testing.T, name, value string) {
	t.Helper()
	must(w.c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &w.topic, AttributeName: &name, AttributeValue: &value}))(t)
}

func (w *attributeWorld) set(t *testing.T, subscription, name, value string) {
	t.Helper()
	must(w.c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &subscription, AttributeName: &name, AttributeValue: &value,
	}))(t)
}

func (w *attributeWorld) publish(t *testing.T, message string) {
	t.Helper()
	must(w.c.Publish(t.Context(), &sns.PublishInput{TopicArn: &w.topic, Message: &message, MessageAttributes: map[string]types.MessageAttributeValue{
		"status": textAttribute("open"),
	}}))(t)
}

// after moves the clock and returns how many requests have come by then.
func (w *attributeWorld) after(t *testing.T, duration string) (n int) {
	t.Helper()
	advance(t, w.endpoint, duration)
	for {
		select {
		case <-w.hook.requests:
			n++
		default:
			return n
		}
	}
}

const (
	oneToThree = `{"minDelayTarget":1,"maxDelayTarget":3,"numRetries":3,"backoffFunction":"linear"}`
	once       = `{"minDelayTarget":7,"maxDelayTarget":7,"numRetries":1}`
)

// A retry policy is seen by when requests come, from wherever it is taken.
func TestRetryPolicyHolds(t *testing.T) {
	for _, tc := range []struct {
		name              string
		topic, subscriber string // DeliveryPolicy
		want              []int  // requests at 0, 1, 2, 3, … s
	}{
		{"default", "", "", []int{1, 0, 0}},
		{"topic's", `{"http":{"defaultHealthyRetryPolicy":` + oneToThree + `}}`, "", []int{1, 1, 0, 1, 0, 0, 1, 0}},
		{"subscription's", "", `{"healthyRetryPolicy":` + oneToThree + `}`, []int{1, 1, 0, 1, 0, 0, 1, 0}},
		{"subscription's over topic's", `{"http":{"defaultHealthyRetryPolicy":` + once + `}}`, `{"healthyRetryPolicy":` + oneToThree + `}`, []int{1, 1, 0, 1, 0, 0, 1, 0}},
		{
			"no override", `{"http":{"defaultHealthyRetryPolicy":` + once + `,"disableSubscriptionOverrides":true}}`,
			`{"healthyRetryPolicy":` + oneToThree + `}`,
			[]int{1, 0, 0, 0, 0, 0, 0, 1, 0, 0},
		},
		{
			"no delay", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":2,"maxDelayTarget":2,"numRetries":3,"numNoDelayRetries":2}}}`, "",
			[]int{3, 0, 1, 0, 0},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newAttributeWorld(t)
			w.setTopic(t, "DeliveryPolicy", tc.topic)
			w.set(t, w.viaHook, "DeliveryPolicy", tc.subscriber)
			w.hook.status.Store(http.StatusServiceUnavailable)
			w.publish(t, "hello")
			var got []int
			for second := range tc.want {
				step := "1s"
				if second == 0 {
					step = "0s"
				}
				got = append(got, w.after(t, step))
			}
			equal(t, "requests by second", tc.want, got)
		})
	}
}

// What a delivery looks like, before and after an attribute is set, and once it
// is deleted.
func TestAttributesShowInDeliveries(t *testing.T) {
	contentType := func(t *testing.T, w *attributeWorld) string {
		return w.hook.next(t).Header.Get("Content-Type")
	}
	queued := func(t *testing.T, w *attributeWorld) string {
		body := *takeMessage(t, client(w.endpoint), w.queue).Body
		if strings.HasPrefix(body, "{") {
			return "an envelope"
		}
		return body
	}
	posted := func(t *testing.T, w *attributeWorld) string {
		r := w.hook.next(t)
		if r.Header.Get("x-amz-sns-rawdelivery") == "true" {
			return r.Body
		}
		return "an envelope"
	}
	// came says which of two messages came: one that a filter lets through comes
	// behind the one in question.
	came := func(t *testing.T, w *attributeWorld) string {
		w.set(t, w.viaQueue, "FilterPolicy", "")
		w.publish(t, "behind it")
		first, _ := decode(t, *takeMessage(t, client(w.endpoint), w.queue).Body)["Message"].(string)
		if first != "behind it" {
			takeMessage(t, client(w.endpoint), w.queue)
		}
		return first
	}
	for _, tc := range []struct {
		name                   string
		onTopic                bool
		subscription           func(w *attributeWorld) string
		attribute, value       string
		look                   func(t *testing.T, w *attributeWorld) string
		before, set, onceEmpty string
	}{
		{
			"the topic's content type", true, nil, "DeliveryPolicy", `{"http":{"defaultRequestPolicy":{"headerContentType":"application/json"}}}`,
			contentType, "text/plain; charset=UTF-8", "application/json", "text/plain; charset=UTF-8",
		},
		{
			"the subscription's content type", false, func(w *attributeWorld) string { return w.viaHook }, "DeliveryPolicy",
			`{"requestPolicy":{"headerContentType":"application/json"}}`,
			contentType, "text/plain; charset=UTF-8", "application/json", "text/plain; charset=UTF-8",
		},
		{
			"raw, to a queue", false, func(w *attributeWorld) string { return w.viaQueue }, "RawMessageDelivery", "true",
			queued, "an envelope", "hello", "an envelope",
		},
		{
			"raw, to a web hook", false, func(w *attributeWorld) string { return w.viaHook }, "RawMessageDelivery", "true",
			posted, "an envelope", "hello", "an envelope",
		},
		{
			"a filter that lets it through", false, func(w *attributeWorld) string { return w.viaQueue }, "FilterPolicy", `{"status":["open"]}`,
			came, "hello", "hello", "hello",
		},
		{
			"a filter that does not", false, func(w *attributeWorld) string { return w.viaQueue }, "FilterPolicy", `{"status":["closed"]}`,
			came, "hello", "behind it", "hello",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newAttributeWorld(t)
			see := func(what, want string) {
				t.Helper()
				w.publish(t, "hello")
				equal(t, what, want, tc.look(t, w))
			}
			change := func(value string) {
				t.Helper()
				if tc.onTopic {
					w.setTopic(t, tc.attribute, value)
				} else {
					w.set(t, tc.subscription(w), tc.attribute, value)
				}
			}
			see("before", tc.before)
			change(tc.value)
			see("set", tc.set)
			if tc.attribute == "RawMessageDelivery" {
				change("false") // as with AWS it cannot be emptied
			} else {
				change("")
			}
			see("deleted", tc.onceEmpty)
		})
	}
}

// The scope decides what the same policy is held against.
func TestFilterPolicyScopeHolds(t *testing.T) {
	w := newAttributeWorld(t)
	w.set(t, w.viaQueue, "FilterPolicy", `{"status":["open"]}`) // as publish says in an attribute
	w.publish(t, `{"status":"closed"}`)
	equal(t, "by attributes", any(`{"status":"closed"}`), decode(t, *takeMessage(t, client(w.endpoint), w.queue).Body)["Message"])
	w.set(t, w.viaQueue, "FilterPolicyScope", "MessageBody")
	w.publish(t, `{"status":"closed"}`)
	w.publish(t, `{"status":"open"}`)
	equal(t, "by the body", any(`{"status":"open"}`), decode(t, *takeMessage(t, client(w.endpoint), w.queue).Body)["Message"])
}

// A dead letter goes where RedrivePolicy says, and nowhere without one.
func TestRedrivePolicyHolds(t *testing.T) {
	w := newAttributeWorld(t)
	queues := client(w.endpoint)
	dead := createQueue(t, queues, "dead")
	w.hook.status.Store(http.StatusNotFound) // for good
	w.publish(t, "dropped")
	w.hook.next(t)
	advance(t, w.endpoint, "1s")
	w.set(t, w.viaHook, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	w.publish(t, "kept")
	equal(t, "dead letter", any("kept"), decode(t, *takeMessage(t, queues, dead).Body)["Message"])
	w.set(t, w.viaHook, "RedrivePolicy", "")
	w.hook.next(t)
	w.publish(t, "dropped again")
	w.hook.next(t)
	advance(t, w.endpoint, "1s")
	equal(t, "dead letters left", "0", attributesOf(t, queues, dead)["ApproximateNumberOfMessages"])
}

// Each subscription to a topic has a dead-letter queue of its own, or shares one.
func TestRedrivePoliciesOfOneTopic(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "t")
	dead := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		dead[name] = createQueue(t, queues, name)
	}
	redrive := func(name string) string { return `{"deadLetterTargetArn":"` + queueARN(name) + `"}` }
	var subs []string
	for i, name := range []string{"a", "b", "a", "b", "c"} {
		subs = append(subs, subscribe(t, c, topic, "sqs", queueARN(fmt.Sprint("gone", i)), "RedrivePolicy", redrive(name)))
	}
	counts := func(message string) map[string]int {
		t.Helper()
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &message}))(t)
		advance(t, endpoint, "1s")
		got := map[string]int{}
		for name, url := range dead {
			all := receive(t, queues, url, 10)
			remove(t, queues, url, all...)
			got[name] = len(all)
		}
		return got
	}
	equal(t, "dead letters", map[string]int{"a": 2, "b": 2, "c": 1}, counts("first"))
	must(c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &subs[0], AttributeName: aws.String("RedrivePolicy"), AttributeValue: aws.String(redrive("c")),
	}))(t)
	equal(t, "dead letters after a change", map[string]int{"a": 1, "b": 2, "c": 2}, counts("second"))
}

// maxReceivesPerSecond spreads requests over seconds, on the topic and on the
// subscription.
func TestThrottlePolicyHolds(t *testing.T) {
	for _, onTopic := range []bool{true, false} {
		t.Run(fmt.Sprint("on the topic: ", onTopic), func(t *testing.T) {
			w := newAttributeWorld(t)
			if onTopic {
				w.setTopic(t, "DeliveryPolicy", `{"http":{"defaultThrottlePolicy":{"maxReceivesPerSecond":2}}}`)
			} else {
				w.set(t, w.viaHook, "DeliveryPolicy", `{"throttlePolicy":{"maxReceivesPerSecond":2}}`)
			}
			for range 20 {
				w.publish(t, "hello")
			}
			// The first second may be under way already.
			if n := w.after(t, "1s"); n > 2*2 {
				t.Errorf("%d requests in the first second", n)
			}
			total := 0
			for range 3 {
				n := w.after(t, "1s")
				total += n
				if n != 2 {
					t.Errorf("%d requests in a second", n)
				}
			}
			w.set(t, w.viaHook, "DeliveryPolicy", "")
			w.setTopic(t, "DeliveryPolicy", "")
			w.publish(t, "hello") // the rest is held up no longer
			if n := w.after(t, "2s"); n < 20-2*2-total+1 {
				t.Errorf("%d requests without a throttle, %d with one", n, total)
			}
		})
	}
}

// A subscription that nobody confirms can be confirmed for two days, and is
// gone after three.
func TestPendingSubscriptionsLapse(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	arn := subscribe(t, c, topic, "http", h.URL)
	token, _ := decode(t, h.next(t).Body)["Token"].(string)
	counts := func() string {
		t.Helper()
		a := topicAttributes(t, c, topic)
		return a["SubscriptionsPending"] + " pending, " + a["SubscriptionsDeleted"] + " deleted"
	}
	advance(t, endpoint, "48h")
	_, err := c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Token")
	equal(t, "after two days", "1 pending, 0 deleted", counts())
	advance(t, endpoint, "24h")
	equal(t, "after three days", "0 pending, 1 deleted", counts())
	_, err = c.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &arn})
	refused(t, err, "NotFound", 404, "Subscription does not exist")
	// The endpoint may start over.
	if again := subscribe(t, c, topic, "http", h.URL); again == arn {
		t.Error("the subscription has its old ARN")
	}
	token, _ = decode(t, h.next(t).Body)["Token"].(string)
	must(c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t)
	advance(t, endpoint, "240h")
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
	equal(t, "delivered", any("hello"), decode(t, h.next(t).Body)["Message"])
}

// The trace header of a publish goes to queues, raw or not, whether the topic
// traces actively or passes it through.
func TestTraceHeaderGoesThrough(t *testing.T) {
	w := newAttributeWorld(t)
	for _, config := range []string{"PassThrough", "Active"} {
		for _, raw := range []string{"true", "false"} {
			w.setTopic(t, "TracingConfig", config)
			w.set(t, w.viaQueue, "RawMessageDelivery", raw)
			req := newTopics(t, w.endpoint, "Publish", "TopicArn", w.topic, "Message", "hello")
			const trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
			req.Header.Set("X-Amzn-Trace-Id", trace)
			equal(t, "Publish", http.StatusOK, do(t, req).Status)
			equal(t, config+", raw "+raw, trace, takeMessage(t, client(w.endpoint), w.queue).Attributes["AWSTraceHeader"])
		}
	}
}
