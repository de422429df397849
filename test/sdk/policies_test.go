package sdk_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// allowAll is a statement that allows everybody an action on everything.
func allowAll(action string) string {
	return `{"Effect":"Allow","Principal":"*","Action":"` + action + `","Resource":"*"}`
}

// fromTopics is a statement that lets the service SNS send to a queue, under a
// condition.
func fromTopics(queue, condition string) string {
	return `{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + queueARN(queue) +
		`","Condition":` + condition + `}`
}

func policyOf(statements string) string {
	return `{"Version":"2012-10-17","Statement":[` + statements + `]}`
}

// policyWorld is two topics with one queue and a dead-letter queue.
type policyWorld struct {
	endpoint    string
	topics      *sns.Client
	queues      *sqs.Client
	one, other  string // ARNs
	queue, dead string // URLs
	viaOne      string // subscription
	viaOther    string
}

func newPolicyWorld(t *testing.T) *policyWorld {
	t.Helper()
	w := &policyWorld{endpoint: startOpen(t)}
	w.topics, w.queues = topicsClient(w.endpoint), client(w.endpoint)
	w.one, w.other = createTopic(t, w.topics, "one"), createTopic(t, w.topics, "other")
	w.queue, w.dead = createQueue(t, w.queues, "q"), createQueue(t, w.queues, "dead")
	redrive := `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`
	w.viaOne = subscribe(t, w.topics, w.one, "sqs", queueARN("q"), "RawMessageDelivery", "true", "RedrivePolicy", redrive)
	w.viaOther = subscribe(t, w.topics, w.other, "sqs", queueARN("q"), "RawMessageDelivery", "true", "RedrivePolicy", redrive)
	return w
}

func (w *policyWorld) setPolicy(t *testing.T, queueURL, policy string) {
	t.Helper()
	must(w.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &queueURL, Attributes: map[string]string{"Policy": policy},
	}))(t)
}

// publish publishes to both topics, each its own name.
func (w *policyWorld) publish(t *testing.T) {
	t.Helper()
	for _, topic := range []string{w.one, w.other} {
		must(w.topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String(topic[len(topic)-3:])}))(t)
	}
	advance(t, w.endpoint, "1ms") // what is under way comes to its end
}

// taken are the bodies in a queue, which is empty afterwards, by their number.
func (w *policyWorld) taken(t *testing.T, queueURL string) map[string]int {
	t.Helper()
	bodies := map[string]int{}
	for {
		out := must(w.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queueURL, MaxNumberOfMessages: 10}))(t)
		if len(out.Messages) == 0 {
			return bodies
		}
		for _, m := range out.Messages {
			bodies[*m.Body]++
			must(w.queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: m.ReceiptHandle}))(t)
		}
	}
}

// lastDelivery reports how the latest delivery of a subscription stands.
func (w *policyWorld) lastDelivery(t *testing.T, subscription string) string {
	t.Helper()
	r := visit(t, w.endpoint+"/_godwit/deliveries?subscription="+subscription)
	all, _ := decode(t, r.Body)["deliveries"].([]any)
	if len(all) == 0 {
		return "none"
	}
	d := all[0].(map[string]any)
	var outcomes []any
	for _, a := range d["attempts"].([]any) {
		outcomes = append(outcomes, a.(map[string]any)["outcome"])
	}
	return fmt.Sprint(d["state"], " ", outcomes, " ", d["reason"])
}

const (
	forbidden = "the queue's policy forbids it"
	clients   = " [client-error] client-side error: "
)

// A queue's policy decides about each topic by itself; what it forbids is a
// dead letter after one attempt.
func TestQueuePolicyHolds(t *testing.T) {
	one := `{"ArnEquals":{"aws:SourceArn":"` + topicARN("one") + `"}}`
	both, justOne, none := map[string]int{"one": 1, "her": 1}, map[string]int{"one": 1}, map[string]int{}
	for name, tc := range map[string]struct {
		policy string
		want   map[string]int
	}{
		"none":                             {"", both},
		"everybody":                        {policyOf(allowAll("sqs:*")), both},
		"one topic's ARN":                  {policyOf(fromTopics("q", one)), justOne},
		"the older form":                   {policyOf(`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"SQS:SendMessage","Resource":"` + queueARN("q") + `","Condition":` + one + `}`), justOne},
		"topics by a pattern":              {policyOf(fromTopics("q", `{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:*:o*"}}`)), both},
		"the account":                      {policyOf(fromTopics("q", `{"StringEquals":{"aws:SourceAccount":"`+account+`"}}`)), both},
		"another account":                  {policyOf(fromTopics("q", `{"StringEquals":{"aws:SourceAccount":"111122223333"}}`)), none},
		"deny wins":                        {policyOf(`{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":` + one + `},` + allowAll("sqs:*")), map[string]int{"her": 1}},
		"another queue":                    {policyOf(fromTopics("dead", `{}`)), none},
		"another action":                   {policyOf(allowAll("sqs:ReceiveMessage")), none},
		"another service":                  {policyOf(`{"Effect":"Allow","Principal":{"Service":"s3.amazonaws.com"},"Action":"sqs:*","Resource":"*"}`), none},
		"an account is no service":         {policyOf(`{"Effect":"Allow","Principal":{"AWS":"` + account + `"},"Action":"sqs:*","Resource":"*"}`), none},
		"encrypted connections only":       {policyOf(allowAll("*") + `,{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}`), both},
		"a topic of the queue's own owner": {policyOf(fromTopics("q", `{"StringEquals":{"aws:SourceAccount":"${aws:ResourceAccount}"}}`)), both},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPolicyWorld(t)
			if tc.policy != "" {
				w.setPolicy(t, w.queue, tc.policy)
			}
			w.publish(t)
			equal(t, "in the queue", tc.want, w.taken(t, w.queue))
			dead := 0
			for _, n := range w.taken(t, w.dead) {
				dead += n
			}
			equal(t, "dead letters", 2-len(tc.want), dead)
			for body, subscription := range map[string]string{"one": w.viaOne, "her": w.viaOther} {
				want := "dead-letter" + clients + forbidden
				if tc.want[body] == 1 {
					want = "delivered [success] <nil>"
				}
				equal(t, "delivery of "+body, want, w.lastDelivery(t, subscription))
			}
		})
	}
}

// A policy may name a time.
func TestQueuePolicyOfAPeriod(t *testing.T) {
	w := newPolicyWorld(t)
	now := must(w.queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &w.queue, AttributeNames: []types.QueueAttributeName{"CreatedTimestamp"},
	}))(t).Attributes["CreatedTimestamp"]
	w.setPolicy(t, w.queue, policyOf(fromTopics("q", `{"DateLessThanEquals":{"aws:EpochTime":"`+now+`"}}`)))
	w.publish(t)
	equal(t, "within", map[string]int{"one": 1, "her": 1}, w.taken(t, w.queue))
	advance(t, w.endpoint, "2s")
	w.publish(t)
	equal(t, "after", map[string]int{}, w.taken(t, w.queue))
}

// Another account's topic needs a policy that lets it in, for the request to
// confirm its subscription too.
func TestQueuePolicyOfAnotherAccount(t *testing.T) {
	const stranger = "111122223333"
	w := newPolicyWorld(t)
	theirs := topicsClientOf(w.endpoint, region, stranger)
	topic := createTopic(t, theirs, "theirs")
	refusedOne := subscribe(t, theirs, topic, "sqs", queueARN("q"))
	advance(t, w.endpoint, "1ms")
	equal(t, "without a policy", "dropped"+clients+forbidden, w.lastDelivery(t, refusedOne))
	must(theirs.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &refusedOne}))(t)

	letThemIn := policyOf(fromTopics("q", `{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:`+stranger+`:*"}}`))
	w.setPolicy(t, w.queue, letThemIn)
	subscribe(t, theirs, topic, "sqs", queueARN("q"))
	token, _ := decode(t, *takeMessage(t, w.queues, w.queue).Body)["Token"].(string)
	sub := must(theirs.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t).SubscriptionArn
	must(theirs.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: sub, AttributeName: aws.String("RawMessageDelivery"), AttributeValue: aws.String("true"),
	}))(t)
	publish := func() map[string]int {
		t.Helper()
		must(theirs.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("theirs")}))(t)
		w.publish(t)
		return w.taken(t, w.queue)
	}
	equal(t, "with a policy for them alone", map[string]int{"theirs": 1}, publish())
	w.setPolicy(t, w.queue, "")
	equal(t, "without one", map[string]int{"one": 1, "her": 1}, publish())
	equal(t, "their delivery", "dropped"+clients+forbidden, w.lastDelivery(t, *sub))
	w.setPolicy(t, w.queue, policyOf(fromTopics("q", `{}`)))
	equal(t, "with one for all", map[string]int{"one": 1, "her": 1, "theirs": 1}, publish())
}

// Deliveries that wait are held against the policy of the moment.
func TestQueuePolicyChangesUnderWay(t *testing.T) {
	w := newPolicyWorld(t)
	fault := func(name string) {
		t.Helper()
		post(t, w.endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q")+`","fault":"`+name+`"}`)
	}
	fault("unavailable")
	w.publish(t)
	w.publish(t)
	equal(t, "while the queue is out of reach", "pending", w.lastDelivery(t, w.viaOne)[:len("pending")])
	fault("none") // the retries wait for the clock
	w.setPolicy(t, w.queue, policyOf(fromTopics("q", `{"ArnEquals":{"aws:SourceArn":"`+w.other+`"}}`)))
	advance(t, w.endpoint, "1m")
	equal(t, "in the queue", map[string]int{"her": 2}, w.taken(t, w.queue))
	equal(t, "dead letters", map[string]int{"one": 2}, w.taken(t, w.dead))

	// And the other way: what the policy forbade lately it allows now.
	fault("unavailable")
	w.publish(t)
	fault("none")
	w.setPolicy(t, w.queue, "")
	advance(t, w.endpoint, "1m")
	equal(t, "in the queue", map[string]int{"one": 1, "her": 1}, w.taken(t, w.queue))

	// A purge changes nothing about it.
	w.setPolicy(t, w.queue, policyOf(fromTopics("q", `{"ArnEquals":{"aws:SourceArn":"`+w.one+`"}}`)))
	must(w.queues.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &w.queue}))(t)
	w.publish(t)
	equal(t, "after a purge", map[string]int{"one": 1}, w.taken(t, w.queue))
}

// A dead-letter queue can forbid a topic, too: then the message is dropped.
func TestDeadLetterQueueForbids(t *testing.T) {
	w := newPolicyWorld(t)
	w.setPolicy(t, w.dead, policyOf(fromTopics("dead", `{"ArnEquals":{"aws:SourceArn":"`+w.one+`"}}`)))
	must(w.queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &w.queue}))(t)
	w.publish(t)
	equal(t, "dead letters", map[string]int{"one": 1}, w.taken(t, w.dead))
	equal(t, "the allowed one", "dead-letter"+clients+"the queue does not exist", w.lastDelivery(t, w.viaOne))
	equal(t, "the forbidden one", "dropped"+clients+"the queue does not exist; dead-letter queue: "+forbidden, w.lastDelivery(t, w.viaOther))
}

// A queue's own dead letters do not go by its dead-letter queue's policy, and
// no policy keeps clients out where nobody has to prove who they are.
func TestQueuePolicyIsForTopics(t *testing.T) {
	w := newPolicyWorld(t)
	nobody := policyOf(`{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*"}`)
	w.setPolicy(t, w.dead, nobody)
	w.setPolicy(t, w.queue, nobody)
	must(w.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &w.queue, Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":1}`, "VisibilityTimeout": "1",
	}}))(t)
	must(w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &w.queue, MessageBody: aws.String("m")}))(t)
	received := must(w.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &w.queue}))(t)
	equal(t, "received", 1, len(received.Messages))
	advance(t, w.endpoint, "2s")
	must(w.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &w.queue}))(t)
	advance(t, w.endpoint, "1ms")
	equal(t, "in the dead-letter queue", map[string]int{"m": 1}, w.taken(t, w.dead))
}

// Permissions are statements like others: a policy with nothing but another
// account's lets no topic in.
func TestPermissionsKeepTopicsOut(t *testing.T) {
	w := newPolicyWorld(t)
	permission := func(label string) {
		t.Helper()
		must(w.queues.AddPermission(t.Context(), &sqs.AddPermissionInput{
			QueueUrl: &w.queue, Label: &label, AWSAccountIds: []string{"111122223333"}, Actions: []string{"SendMessage"},
		}))(t)
	}
	permission("theirs")
	w.publish(t)
	equal(t, "with a permission", map[string]int{}, w.taken(t, w.queue))
	must(w.queues.RemovePermission(t.Context(), &sqs.RemovePermissionInput{QueueUrl: &w.queue, Label: aws.String("theirs")}))(t)
	w.publish(t)
	equal(t, "without it", map[string]int{"one": 1, "her": 1}, w.taken(t, w.queue))
	w.setPolicy(t, w.queue, policyOf(fromTopics("q", `{}`)))
	permission("theirs")
	w.publish(t)
	equal(t, "beside one for topics", map[string]int{"one": 1, "her": 1}, w.taken(t, w.queue))
}

// What is no policy is refused, and changes nothing.
func TestQueuePolicyRefusals(t *testing.T) {
	w := newPolicyWorld(t)
	good := policyOf(fromTopics("q", `{"ArnEquals":{"aws:SourceArn":"`+w.one+`"}}`))
	w.setPolicy(t, w.queue, good)
	for _, policy := range []string{
		`{`, `[]`, `{}`, policyOf(``), policyOf(`{"Effect":"Allow"}`), policyOf(allowAll("SendMessage")), policyOf(allowAll("sns:Publish")),
		policyOf(`{"Effect":"Allow","Principal":"*","Action":"sqs:*"}`), `{"Version":"2012","Statement":[` + allowAll("sqs:*") + `]}`,
		policyOf(`{"Effect":"Allow","Principal":{"AWS":"nobody"},"Action":"sqs:*","Resource":"*"}`),
		policyOf(fromTopics("q", `{"ArnIs":{"aws:SourceArn":"x"}}`)),
	} {
		_, err := w.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: &w.queue, Attributes: map[string]string{"Policy": policy, "DelaySeconds": "7"},
		})
		refused(t, err, "InvalidAttributeValue", 400, "Invalid value for the parameter Policy.")
		_, err = w.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{
			QueueName: aws.String("another"), Attributes: map[string]string{"Policy": policy},
		})
		refused(t, err, "InvalidAttributeValue", 400, "Invalid value for the parameter Policy.")
	}
	equal(t, "after refusals", map[string]string{"Policy": good, "DelaySeconds": "0"},
		attributesOf(t, w.queues, w.queue, types.QueueAttributeNamePolicy, types.QueueAttributeNameDelaySeconds))
	equal(t, "queues", 2, len(must(w.queues.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls))
	w.publish(t)
	equal(t, "the policy holds", map[string]int{"one": 1}, w.taken(t, w.queue))
}

// A batch is held against the policy like a single message.
func TestQueuePolicyHoldsForBatches(t *testing.T) {
	w := newPolicyWorld(t)
	w.setPolicy(t, w.queue, policyOf(fromTopics("q", `{"ArnEquals":{"aws:SourceArn":"`+w.one+`"}}`)))
	for _, topic := range []string{w.one, w.other} {
		must(w.topics.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{
			{Id: aws.String("a"), Message: aws.String("a")}, {Id: aws.String("b"), Message: aws.String("b")},
		}}))(t)
	}
	advance(t, w.endpoint, "1ms")
	equal(t, "in the queue", map[string]int{"a": 1, "b": 1}, w.taken(t, w.queue))
	equal(t, "dead letters", map[string]int{"a": 1, "b": 1}, w.taken(t, w.dead))
}
