package sdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
)

// createFIFO creates a FIFO queue with further attributes, given in pairs.
func createFIFO(t *testing.T, c *sqs.Client, name string, attributes ...string) (url string) {
	t.Helper()
	all := map[string]string{"FifoQueue": "true"}
	for i := 0; i < len(attributes); i += 2 {
		all[attributes[i]] = attributes[i+1]
	}
	return aws.ToString(must(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: all}))(t).QueueUrl)
}

// sendTo sends a message whose deduplication id is its body, if it is not given.
func sendTo(t *testing.T, c *sqs.Client, url, group, body string, id ...string) *sqs.SendMessageOutput {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &body}
	if len(id) > 0 {
		in.MessageDeduplicationId = &id[0]
	}
	return must(c.SendMessage(t.Context(), in))(t)
}

func order(messages []types.Message) (all []string) {
	for _, m := range messages {
		all = append(all, aws.ToString(m.Body))
	}
	return all
}

func remove(t *testing.T, c *sqs.Client, url string, messages ...types.Message) {
	t.Helper()
	for _, m := range messages {
		must(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}))(t)
	}
}

func want(t *testing.T, got []types.Message, bodies ...string) []types.Message {
	t.Helper()
	if !slices.Equal(order(got), bodies) {
		t.Fatalf("received %v, want %v", order(got), bodies)
	}
	return got
}

// TestFIFOGroups: a group is delivered in order, and its earliest message in
// flight holds back those behind it and no other group's.
func TestFIFOGroups(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createFIFO(t, c, "q.fifo")
	for _, m := range []string{"a1", "b1", "a2", "b2", "a3", "c1"} {
		sendTo(t, c, url, m[:1], m)
	}
	// As many of one group as there are, before the next.
	first := want(t, receive(t, c, url, 4), "a1", "a2", "a3", "b1")
	want(t, receive(t, c, url, 10), "c1") // b2 waits for b1
	sendTo(t, c, url, "a", "a4")
	want(t, receive(t, c, url, 10))

	// What is visible and was accepted before the earliest in flight can be had.
	a1 := first[0]
	must(c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: a1.ReceiptHandle}))(t)
	again := want(t, receive(t, c, url, 10), "a1")
	if again[0].Attributes["ApproximateReceiveCount"] != "2" || again[0].Attributes["MessageGroupId"] != "a" ||
		again[0].Attributes["MessageDeduplicationId"] != "a1" {
		t.Errorf("a1 has %v", again[0].Attributes)
	}
	remove(t, c, url, first[1], again[0]) // a2, a1
	want(t, receive(t, c, url, 10))       // a3 is in flight
	remove(t, c, url, first[2])
	want(t, receive(t, c, url, 10), "a4")

	// All return in order.
	advance(t, endpoint, "31s")
	want(t, receive(t, c, url, 10), "b1", "b2", "c1", "a4")
	if got := counts(t, c, url); got != [3]string{"0", "4", "0"} {
		t.Errorf("counts %v", got)
	}
}

// TestFIFOHandles: a handle holds as long as its receive does.
func TestFIFOHandles(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createFIFO(t, c, "q.fifo")
	sendTo(t, c, url, "g", "m")
	old := receive(t, c, url, 1)[0]
	advance(t, endpoint, "30s")
	expired := fmt.Sprintf("Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", *old.ReceiptHandle)
	check := func() {
		t.Helper()
		_, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: old.ReceiptHandle})
		refused(t, err, "InvalidParameterValue", 400, expired)
		_, err = c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: old.ReceiptHandle, VisibilityTimeout: 1})
		refused(t, err, "InvalidParameterValue", 400, expired)
	}
	check()
	fresh := receive(t, c, url, 1)[0]
	check()
	remove(t, c, url, fresh, fresh) // twice succeeds
	want(t, receive(t, c, url, 1))
}

// TestFIFODeduplication: within five minutes of the first, a second send of the
// same id is answered as the first was, whatever became of that message.
func TestFIFODeduplication(t *testing.T) {
	data := t.TempDir()
	at := func(c *config.Config) { c.Store, c.Data = config.PebbleStore, data }
	t.Run("first", func(t *testing.T) {
		endpoint := startWith(t, at)
		c := client(endpoint)
		url := createFIFO(t, c, "q.fifo")
		first := sendTo(t, c, url, "g", "one", "id")
		if len(*first.SequenceNumber) != 20 {
			t.Errorf("the sequence number is %s", *first.SequenceNumber)
		}
		remove(t, c, url, want(t, receive(t, c, url, 1), "one")...)
		advance(t, endpoint, "4m59s")
		for _, group := range []string{"g", "other"} {
			again := sendTo(t, c, url, group, "two", "id")
			if *again.MessageId != *first.MessageId || *again.SequenceNumber != *first.SequenceNumber {
				t.Errorf("the duplicate is %s %s, the original %s %s", *again.MessageId, *again.SequenceNumber, *first.MessageId, *first.SequenceNumber)
			}
			if *again.MD5OfMessageBody != *md5Of("two") {
				t.Error("the digest is not that of what was sent")
			}
		}
		want(t, receive(t, c, url, 10))
		advance(t, endpoint, "1s")
		next := sendTo(t, c, url, "g", "three", "id")
		if *next.SequenceNumber <= *first.SequenceNumber || *next.MessageId == *first.MessageId {
			t.Errorf("after five minutes %s follows %s", *next.SequenceNumber, *first.SequenceNumber)
		}
		remove(t, c, url, want(t, receive(t, c, url, 10), "three")...)
	})
	t.Run("after a restart", func(t *testing.T) {
		endpoint := startWith(t, at)
		c := client(endpoint)
		url := *must(c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q.fifo")}))(t).QueueUrl
		sendTo(t, c, url, "g", "four", "id")
		want(t, receive(t, c, url, 10))
	})
}

// TestFIFODeduplicationScopes: contents as the id, and groups as the scope.
func TestFIFODeduplicationScopes(t *testing.T) {
	c := client(start(t))
	url := createFIFO(t, c, "q.fifo", "ContentBasedDeduplication", "true", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
	var ids []string
	out := must(c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("0"), MessageBody: aws.String("x"), MessageGroupId: aws.String("a")},
		{Id: aws.String("1"), MessageBody: aws.String("x"), MessageGroupId: aws.String("a")}, // a duplicate in the same batch
		{Id: aws.String("2"), MessageBody: aws.String("x"), MessageGroupId: aws.String("b")},
		{Id: aws.String("3"), MessageBody: aws.String("x"), MessageGroupId: aws.String("a"), MessageDeduplicationId: aws.String("own")},
	}}))(t)
	for _, s := range out.Successful {
		ids = append(ids, *s.MessageId)
	}
	if ids[0] != ids[1] || ids[0] == ids[2] || ids[0] == ids[3] || *out.Successful[0].SequenceNumber != *out.Successful[1].SequenceNumber {
		t.Errorf("ids %v", ids)
	}
	got := want(t, receive(t, c, url, 10), "x", "x", "x")
	sum := sha256.Sum256([]byte("x"))
	if got[0].Attributes["MessageDeduplicationId"] != hex.EncodeToString(sum[:]) || got[1].Attributes["MessageDeduplicationId"] != "own" {
		t.Errorf("deduplication ids %v, %v", got[0].Attributes, got[1].Attributes)
	}
	if got[0].Attributes["SequenceNumber"] != *out.Successful[0].SequenceNumber {
		t.Errorf("received number %s, sent %s", got[0].Attributes["SequenceNumber"], *out.Successful[0].SequenceNumber)
	}
}

// TestFIFOAttempt: the same messages again under the same handles, as long as
// none of them has changed.
func TestFIFOAttempt(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createFIFO(t, c, "q.fifo")
	for i := range 3 {
		sendTo(t, c, url, "g", fmt.Sprint(i))
	}
	attempt := func(id string) []types.Message {
		t.Helper()
		return must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 2, ReceiveRequestAttemptId: &id}))(t).Messages
	}
	first := want(t, attempt("one"), "0", "1")
	advance(t, endpoint, "20s")
	second := want(t, attempt("one"), "0", "1")
	if *first[0].ReceiptHandle != *second[0].ReceiptHandle || *first[1].ReceiptHandle != *second[1].ReceiptHandle {
		t.Error("the handles are others")
	}
	want(t, attempt("two"))
	advance(t, endpoint, "20s") // their visibility began again
	want(t, attempt("two"))
	remove(t, c, url, first[0])
	want(t, attempt("one")) // one has changed, and the other is in flight
	advance(t, endpoint, "11s")
	want(t, attempt("one"), "1", "2")
}

// TestFIFODeadLetters: dead letters keep their group and order, and two that
// shared a deduplication id are both kept.
func TestFIFODeadLetters(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead := createFIFO(t, c, "dead.fifo", "MessageRetentionPeriod", "3600")
	url := createFIFO(t, c, "q.fifo", "VisibilityTimeout", "1", "MessageRetentionPeriod", "3600",
		"RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead.fifo")+`","maxReceiveCount":1}`)
	ids := map[string]string{}
	send := func(body, id string) { ids[body] = *sendTo(t, c, url, "g", body, id).MessageId }
	send("1", "same")
	send("2", "b")
	want(t, receive(t, c, url, 10), "1", "2")
	advance(t, endpoint, "50m")
	send("3", "same")
	// The first of the group goes, then the next.
	for range 4 {
		receive(t, c, url, 10)
		advance(t, endpoint, "2s")
	}
	got := want(t, receive(t, c, dead, 10), "1", "2", "3")
	for _, m := range got {
		a := m.Attributes
		if a["MessageDeduplicationId"] != ids[*m.Body] || *m.MessageId != ids[*m.Body] || a["MessageGroupId"] != "g" ||
			a["DeadLetterQueueSourceArn"] != queueARN("q.fifo") || a["ApproximateReceiveCount"] != "2" {
			t.Errorf("%s has id %s, attributes %v", *m.Body, *m.MessageId, a)
		}
	}
	// The age starts over.
	advance(t, endpoint, "40m")
	want(t, receive(t, c, dead, 10), "1", "2", "3")
	advance(t, endpoint, "21m")
	want(t, receive(t, c, dead, 10))
}

// TestFIFODelay: a FIFO queue's delay holds for all of its messages.
func TestFIFODelay(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createFIFO(t, c, "q.fifo", "DelaySeconds", "10")
	sendTo(t, c, url, "g", "1")
	if got := counts(t, c, url); got != [3]string{"0", "0", "1"} {
		t.Errorf("counts %v", got)
	}
	want(t, receive(t, c, url, 10))
	advance(t, endpoint, "5s")
	sendTo(t, c, url, "g", "2")
	advance(t, endpoint, "5s")
	want(t, receive(t, c, url, 10), "1")
	must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"DelaySeconds": "0"}}))(t)
	sendTo(t, c, url, "h", "3")
	want(t, receive(t, c, url, 10), "3") // 2 waits for 1
}

// TestFIFORefusals: what a FIFO queue does not take, and what a standard queue
// does not.
func TestFIFORefusals(t *testing.T) {
	c := client(start(t))
	url, plain := createFIFO(t, c, "q.fifo"), createQueue(t, c, "q")
	send := func(in sqs.SendMessageInput) error {
		if in.QueueUrl == nil {
			in.QueueUrl = &url
		}
		in.MessageBody = aws.String("x")
		_, err := c.SendMessage(t.Context(), &in)
		return err
	}
	g, d := aws.String("g"), aws.String("d")
	const noID = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
	const forKind = "The request include parameter that is not valid for this queue type."
	refused(t, send(sqs.SendMessageInput{MessageDeduplicationId: d}), "MissingParameter", 400, "The request must contain the parameter MessageGroupId.")
	refused(t, send(sqs.SendMessageInput{MessageGroupId: g}), "InvalidParameterValue", 400, noID)
	refused(t, send(sqs.SendMessageInput{MessageGroupId: g, MessageDeduplicationId: d, DelaySeconds: 2}), "InvalidParameterValue", 400,
		"Value 2 for parameter DelaySeconds is invalid. Reason: "+forKind)
	long := strings.Repeat("x", 129)
	refused(t, send(sqs.SendMessageInput{MessageGroupId: g, MessageDeduplicationId: &long}), "InvalidParameterValue", 400,
		"Value "+long+" for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	refused(t, send(sqs.SendMessageInput{QueueUrl: &plain, MessageDeduplicationId: d}), "InvalidParameterValue", 400,
		"Value d for parameter MessageDeduplicationId is invalid. Reason: "+forKind)

	// In a batch such a fault is the whole call's.
	for _, e := range []types.SendMessageBatchRequestEntry{{MessageGroupId: g}, {MessageDeduplicationId: d}} {
		e.Id, e.MessageBody = aws.String("bad"), aws.String("x")
		_, err := c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("good"), MessageBody: aws.String("x"), MessageGroupId: g, MessageDeduplicationId: d}, e,
		}})
		text := noID
		if e.MessageGroupId == nil {
			text = "The request must contain the parameter MessageGroupId."
		}
		refused(t, err, "InvalidParameterValue", 400, text)
	}
	want(t, receive(t, c, url, 10))

	must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &plain, ReceiveRequestAttemptId: d}))(t) // which it ignores
	_, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("x"), Attributes: map[string]string{"FifoQueue": "true"}})
	refused(t, err, "InvalidParameterValue", 400, "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	_, err = c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("x.fifo"), Attributes: map[string]string{"FifoQueue": "true", "FifoThroughputLimit": "perMessageGroupId"}})
	refused(t, err, "InvalidAttributeValue", 400, "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup.")
}

// TestFairQueue: a tenant that holds much of what is in flight waits for the
// others.
func TestFairQueue(t *testing.T) {
	c := client(start(t))
	url := createQueue(t, c, "q")
	send := func(group, body string) {
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
		if group != "" {
			in.MessageGroupId = &group
		}
		must(c.SendMessage(t.Context(), in))(t)
	}
	for i := range 60 {
		send("noisy", fmt.Sprint("noisy ", i))
	}
	for range 3 { // thirty in flight, all of one tenant
		receive(t, c, url, 10)
	}
	send("quiet", "quiet 0")
	send("", "own 0")
	send("quiet", "quiet 1")
	if got := bodies(receive(t, c, url, 3)); !slices.Equal(got, []string{"own 0", "quiet 0", "quiet 1"}) {
		t.Errorf("received %v before the noisy tenant's", got)
	}
	got := receive(t, c, url, 1) // nothing starves
	if !strings.HasPrefix(*got[0].Body, "noisy") || got[0].Attributes["MessageGroupId"] != "noisy" {
		t.Errorf("received %v", got)
	}
	remove(t, c, url, got...)
}

// TestFIFOLongPoll: a poll that waits gets what a deletion frees.
func TestFIFOLongPoll(t *testing.T) {
	c := client(start(t))
	url := createFIFO(t, c, "q.fifo")
	sendTo(t, c, url, "g", "1")
	sendTo(t, c, url, "g", "2")
	first := want(t, receive(t, c, url, 1), "1")
	got := make(chan []types.Message)
	began := clock.System.Now()
	go func() {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		if took := clock.System.Now().Sub(began); took >= 20*time.Second {
			t.Errorf("the poll waited for %v", took)
		}
		got <- out.Messages
	}()
	remove(t, c, url, first...)
	want(t, <-got, "2")
}
