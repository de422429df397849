package sdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"

	"godwit.dev/godwit/internal/config"
)

// createFIFOTopic makes a FIFO topic with further attributes, given in pairs, and
// gives its ARN.
func createFIFOTopic(t *testing.T, c *sns.Client, name string, attributes ...string) string {
	t.Helper()
	all := map[string]string{"FifoTopic": "true"}
	for i := 0; i < len(attributes); i += 2 {
		all[attributes[i]] = attributes[i+1]
	}
	return *must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: all}))(t).TopicArn
}

// publishTo publishes a message whose deduplication id is its body, if it is not
// given.
func publishTo(t *testing.T, c *sns.Client, topic, group, body string, id ...string) *sns.PublishOutput {
	t.Helper()
	in := &sns.PublishInput{TopicArn: &topic, Message: &body, MessageGroupId: &group, MessageDeduplicationId: &body}
	if len(id) > 0 {
		in.MessageDeduplicationId = &id[0]
	}
	return must(c.Publish(t.Context(), in))(t)
}

// sequence is the SequenceNumber of a publish.
func sequence(t *testing.T, out *sns.PublishOutput) uint64 {
	t.Helper()
	return must(strconv.ParseUint(*out.SequenceNumber, 10, 64))(t)
}

func TestFIFOTopicAttributes(t *testing.T) {
	c := topicsClient(start(t))
	topic := createFIFOTopic(t, c, "orders.fifo")
	show := func() string {
		t.Helper()
		all := topicAttributes(t, c, topic)
		return fmt.Sprint(all["FifoTopic"], " ", all["ContentBasedDeduplication"], " ", all["FifoThroughputScope"])
	}
	equal(t, "by default", "true false ", show())
	equal(t, "the same again", topic, createFIFOTopic(t, c, "orders.fifo", "ContentBasedDeduplication", "false", "FifoThroughputScope", "Topic"))
	setTopic(t, c, topic, "ContentBasedDeduplication", "true")
	setTopic(t, c, topic, "FifoThroughputScope", "MessageGroup")
	equal(t, "set", "true true MessageGroup", show())
	_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{
		Name: aws.String("orders.fifo"), Attributes: map[string]string{"FifoTopic": "true", "ContentBasedDeduplication": "false"},
	})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: Topic already exists with different attributes")
	setTopic(t, c, topic, "ContentBasedDeduplication", "")
	setTopic(t, c, topic, "FifoThroughputScope", "")
	equal(t, "deleted", "true false ", show())

	standard := createTopic(t, c, "orders")
	for _, tc := range []struct{ topic, name, value, text string }{
		{topic, "FifoTopic", "false", "Invalid parameter: AttributeName"},
		{topic, "ContentBasedDeduplication", "yes", "Invalid parameter: ContentBasedDeduplication: Invalid value [yes]. Must be true or false."},
		{topic, "FifoThroughputScope", "Queue", "Invalid parameter: FifoThroughputScope: Invalid value [Queue]. Must be Topic or MessageGroup."},
		{standard, "FifoTopic", "true", "Invalid parameter: AttributeName"},
		{standard, "ContentBasedDeduplication", "true", "Invalid parameter: If content-based deduplication is enabled, it must also be a FIFO topic."},
		{standard, "FifoThroughputScope", "Topic", "Invalid parameter: FifoThroughputScope: FIFO topics only"},
	} {
		_, err := c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &tc.topic, AttributeName: &tc.name, AttributeValue: &tc.value,
		})
		refused(t, err, "InvalidParameter", 400, tc.text)
	}
	for name, attributes := range map[string]map[string]string{
		"a.fifo": nil, "a": {"FifoTopic": "true"}, ".fifo": {"FifoTopic": "true"}, "b.fifo": {"FifoTopic": "false"},
		strings.Repeat("x", 252) + ".fifo": {"FifoTopic": "true"},
	} {
		_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: attributes})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: Topic Name")
	}
	createFIFOTopic(t, c, strings.Repeat("x", 251)+".fifo")
}

func TestFIFOTopicRefuses(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic, standard := createFIFOTopic(t, c, "orders.fifo"), createTopic(t, c, "orders")
	url := createFIFO(t, client(endpoint), "q.fifo")
	sub := subscribe(t, c, topic, "sqs", queueARN("q.fifo"))
	for _, protocol := range []string{"http", "https", "email", "lambda", "sms"} {
		_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: &protocol, Endpoint: aws.String("http://127.0.0.1/")})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: Invalid protocol type: "+protocol)
	}
	const (
		noGroup = "Invalid parameter: The MessageGroupId parameter is required for FIFO topics"
		noDedup = "Invalid parameter: The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
	)
	for _, tc := range []struct {
		topic      string
		group, id  *string
		text       string
		wholeBatch bool
	}{
		{topic, nil, aws.String("id"), noGroup, true},
		{topic, aws.String(""), aws.String("id"), noGroup, true},
		{topic, aws.String("g"), nil, noDedup, true},
		{topic, aws.String("a b"), aws.String("id"), "Invalid parameter: MessageGroupId", false},
		{topic, aws.String(strings.Repeat("g", 129)), aws.String("id"), "Invalid parameter: MessageGroupId", false},
		{topic, aws.String("g"), aws.String(strings.Repeat("i", 129)), "Invalid parameter: MessageDeduplicationId", false},
		{topic, aws.String("g"), aws.String(""), "Invalid parameter: MessageDeduplicationId", false},
		{standard, aws.String("g"), aws.String("id"), "Invalid parameter: MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type", false},
	} {
		_, err := c.Publish(t.Context(), &sns.PublishInput{TopicArn: &tc.topic, Message: aws.String("m"), MessageGroupId: tc.group, MessageDeduplicationId: tc.id})
		refused(t, err, "InvalidParameter", 400, tc.text)
		bad := batchEntry("bad", "m")
		bad.MessageGroupId, bad.MessageDeduplicationId = tc.group, tc.id
		good := batchEntry("good", "m")
		good.MessageGroupId, good.MessageDeduplicationId = aws.String("g"), aws.String("id")
		if !tc.wholeBatch {
			continue
		}
		_, err = c.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &tc.topic, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{good, bad}})
		refused(t, err, "InvalidParameter", 400, tc.text)
	}
	want(t, receive(t, client(endpoint), url, 10)) // nothing came

	// Dead letters of a FIFO queue's subscription go to a FIFO queue.
	_, err := c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &sub, AttributeName: aws.String("RedrivePolicy"), AttributeValue: aws.String(`{"deadLetterTargetArn":"` + queueARN("dead") + `"}`),
	})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: RedrivePolicy: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic.")
	subscribe(t, c, topic, "sqs", queueARN("standard"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
}

// What comes to a FIFO queue and to a standard one, in an envelope and raw.
func TestFIFOTopicDelivers(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic := createFIFOTopic(t, c, "orders.fifo", "ContentBasedDeduplication", "true")
	fifo, raw := createFIFO(t, q, "q.fifo"), createFIFO(t, q, "raw.fifo")
	standard, rawStandard := createQueue(t, q, "q"), createQueue(t, q, "raw")
	sub := subscribe(t, c, topic, "sqs", queueARN("q.fifo"))
	subscribe(t, c, topic, "sqs", queueARN("raw.fifo"), "RawMessageDelivery", "true")
	subscribe(t, c, topic, "sqs", queueARN("q"))
	subscribe(t, c, topic, "sqs", queueARN("raw"), "RawMessageDelivery", "true")

	out := must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello"), MessageGroupId: aws.String("g")}))(t)
	if n := aws.ToString(out.SequenceNumber); len(n) != 20 || n == "10000000000000000001" {
		t.Errorf("the sequence number is %q", n)
	}
	sum := sha256.Sum256([]byte("hello"))
	id := hex.EncodeToString(sum[:])

	m := takeMessage(t, q, fifo)
	envelope := decode(t, *m.Body)
	if at, ok := envelope["Timestamp"].(string); !ok || !strings.HasSuffix(at, "Z") {
		t.Errorf("the timestamp is %v", envelope["Timestamp"])
	}
	delete(envelope, "Timestamp")
	equal(t, "the envelope", map[string]any{
		"Type": "Notification", "MessageId": *out.MessageId, "SequenceNumber": *out.SequenceNumber, "TopicArn": topic, "Message": "hello",
		"UnsubscribeURL": endpoint + "/?Action=Unsubscribe&SubscriptionArn=" + sub,
	}, envelope)
	equal(t, "group and id", "g "+id, m.Attributes["MessageGroupId"]+" "+m.Attributes["MessageDeduplicationId"])
	m = takeMessage(t, q, raw)
	equal(t, "raw", "hello g "+id, *m.Body+" "+m.Attributes["MessageGroupId"]+" "+m.Attributes["MessageDeduplicationId"])
	for _, url := range []string{standard, rawStandard} {
		m = takeMessage(t, q, url)
		equal(t, "in a standard queue", " ", m.Attributes["MessageGroupId"]+" "+m.Attributes["MessageDeduplicationId"])
	}

	// A standard topic hands on the group to standard queues.
	plain := createTopic(t, c, "plain")
	subscribe(t, c, plain, "sqs", queueARN("q"))
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &plain, Message: aws.String("m"), MessageGroupId: aws.String("tenant")}))(t)
	equal(t, "the group", "tenant", takeMessage(t, q, standard).Attributes["MessageGroupId"])
}

// A duplicate is answered as its original was, and goes nowhere, for five
// minutes, through a restart, too.
func TestFIFOTopicDeduplicates(t *testing.T) {
	data := t.TempDir()
	at := func(c *config.Config) { c.Store, c.Data = config.PebbleStore, data }
	var topic, queue string
	var first *sns.PublishOutput
	again := func(t *testing.T, c *sns.Client, group string) {
		t.Helper()
		got := publishTo(t, c, topic, group, "another body", "id")
		equal(t, "the duplicate's answer", *first.MessageId+" "+*first.SequenceNumber, *got.MessageId+" "+*got.SequenceNumber)
	}
	t.Run("first", func(t *testing.T) {
		endpoint := startWith(t, at)
		c := topicsClient(endpoint)
		topic = createFIFOTopic(t, c, "orders.fifo")
		queue = createQueue(t, client(endpoint), "q") // which does not tell duplicates
		subscribe(t, c, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
		first = publishTo(t, c, topic, "g", "one", "id")
		again(t, c, "g")
		again(t, c, "other")
		want(t, receive(t, client(endpoint), queue, 10), "one")
	})
	t.Run("restarted", func(t *testing.T) {
		endpoint := startWith(t, at)
		c := topicsClient(endpoint)
		queue = createQueue(t, client(endpoint), "q")
		again(t, c, "g")
		// The clock went on while nobody ran: by seconds, on a busy machine.
		advance(t, endpoint, "4m40s")
		again(t, c, "g")
		want(t, receive(t, client(endpoint), queue, 10), "one") // its visibility is over
		advance(t, endpoint, "20s")
		next := publishTo(t, c, topic, "g", "two", "id")
		begin := sequence(t, first)
		equal(t, "the next sequence number", begin+1, sequence(t, next))
		want(t, receive(t, client(endpoint), queue, 10), "two")

		// Within one batch.
		var entries []snstypes.PublishBatchRequestEntry
		for i, body := range []string{"a", "b", "a"} {
			e := batchEntry(fmt.Sprint(i), body)
			e.MessageGroupId, e.MessageDeduplicationId = aws.String("g"), aws.String(body)
			entries = append(entries, e)
		}
		out := must(c.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: entries}))(t)
		var numbers []uint64
		for _, e := range out.Successful {
			numbers = append(numbers, sequence(t, &sns.PublishOutput{SequenceNumber: e.SequenceNumber})-begin)
		}
		equal(t, "a batch", []uint64{2, 3, 2}, numbers)
		want(t, receive(t, client(endpoint), queue, 10), "a", "b")

		// A topic that is made again remembers nothing.
		must(c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &topic}))(t)
		createFIFOTopic(t, c, "orders.fifo")
		if n := sequence(t, publishTo(t, c, topic, "g", "a", "a")); n-begin < 1000 {
			t.Errorf("the new topic's messages are numbered from %d, those of the old one were from %d", n, begin)
		}
	})
}

// Where the scope is the group, an id counts in each group by itself.
func TestFIFOTopicScope(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic := createFIFOTopic(t, c, "orders.fifo", "FifoThroughputScope", "MessageGroup")
	byQueue := createFIFO(t, q, "queue.fifo")
	byGroup := createFIFO(t, q, "group.fifo", "DeduplicationScope", "messageGroup")
	for _, name := range []string{"queue.fifo", "group.fifo"} {
		subscribe(t, c, topic, "sqs", queueARN(name), "RawMessageDelivery", "true")
	}
	for _, group := range []string{"g", "h", "g"} {
		publishTo(t, c, topic, group, "in "+group, "id")
	}
	advance(t, endpoint, "1s") // a duplicate takes the long way, and holds up what follows
	want(t, receive(t, q, byGroup, 10), "in g", "in h")
	want(t, receive(t, q, byQueue, 10), "in g") // the queue has a scope of its own
	e := batchEntry("1", "in i")
	e.MessageGroupId, e.MessageDeduplicationId = aws.String("i"), aws.String("other")
	f := batchEntry("2", "in j")
	f.MessageGroupId, f.MessageDeduplicationId = aws.String("j"), aws.String("other")
	must(c.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{e, f}}))(t)
	advance(t, endpoint, "1s")
	want(t, receive(t, q, byGroup, 10), "in i", "in j")
	want(t, receive(t, q, byQueue, 10), "in i")
}

// A delivery that is retried holds up its group, and no other; order holds
// through a restart in the middle.
func TestFIFOTopicOrder(t *testing.T) {
	data := t.TempDir()
	at := func(c *config.Config) { c.Store, c.Data = config.PebbleStore, data }
	setFault := func(t *testing.T, endpoint, fault string) {
		t.Helper()
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q.fifo")+`","fault":"`+fault+`"}`); r.Status != 200 {
			t.Fatalf("fault %s: %d %s", fault, r.Status, r.Body)
		}
	}
	var topic string
	t.Run("first", func(t *testing.T) {
		endpoint := startWith(t, at)
		c := topicsClient(endpoint)
		topic = createFIFOTopic(t, c, "orders.fifo")
		createFIFO(t, client(endpoint), "q.fifo")
		subscribe(t, c, topic, "sqs", queueARN("q.fifo"), "RawMessageDelivery", "true")
		setFault(t, endpoint, "unavailable")
		for i := range 6 {
			publishTo(t, c, topic, fmt.Sprint("g", i%2), fmt.Sprint("m", i))
		}
		advance(t, endpoint, "3s")
	})
	t.Run("restarted", func(t *testing.T) {
		endpoint := startWith(t, at)
		c, q := topicsClient(endpoint), client(endpoint)
		url := createFIFO(t, q, "q.fifo")
		setFault(t, endpoint, "unavailable")
		advance(t, endpoint, "1m")
		setFault(t, endpoint, "none")
		publishTo(t, c, topic, "g0", "m6")
		advance(t, endpoint, "1m")
		var even, odd []string
		for _, m := range receive(t, q, url, 10) {
			if m.Attributes["MessageGroupId"] == "g0" {
				even = append(even, *m.Body)
			} else {
				odd = append(odd, *m.Body)
			}
		}
		equal(t, "g0", []string{"m0", "m2", "m4", "m6"}, even)
		equal(t, "g1", []string{"m1", "m3", "m5"}, odd)
	})
}

// Dead letters keep group and id, and those of two subscriptions are both kept.
func TestFIFOTopicDeadLetters(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic := createFIFOTopic(t, c, "orders.fifo")
	dead := createFIFO(t, q, "dead.fifo")
	for _, name := range []string{"gone.fifo", "gone2.fifo"} {
		subscribe(t, c, topic, "sqs", queueARN(name), "RawMessageDelivery", "true",
			"RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead.fifo")+`"}`)
	}
	for _, body := range []string{"a", "b", "c"} {
		publishTo(t, c, topic, "g", body)
	}
	advance(t, endpoint, "1s")
	got := receive(t, q, dead, 10)
	bodies := order(got)
	first := slices.Compact(slices.Sorted(slices.Values(bodies)))
	equal(t, "the dead letters", "6 [a b c]", fmt.Sprint(len(bodies), " ", first))
	for _, m := range got {
		equal(t, "group and id", "g "+*m.Body, m.Attributes["MessageGroupId"]+" "+m.Attributes["MessageDeduplicationId"])
	}
	for _, body := range []string{"a", "b", "c"} { // each subscription's in order
		if i := slices.Index(bodies, body); body > "a" && i < slices.Index(bodies, string(body[0]-1)) {
			t.Errorf("%s comes too early in %v", body, bodies)
		}
	}
}
