package sdk_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/config"
)

// A queue whose owner wants it encrypted under a key of their own takes nothing
// as long as there is no such key. AWS's own key is always there.
func TestKeyThatDoesNotExist(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	const kms = "arn:aws:kms:us-east-1:000000000000:"
	url := createQueue(t, c, "q")
	send(t, c, url, "before")
	for key, text := range map[string]string{
		"mrk-1":                 "Key '" + kms + "key/mrk-1' does not exist",
		kms + "key/mrk-1":       "Key '" + kms + "key/mrk-1' does not exist",
		"alias/orders":          "Alias " + kms + "alias/orders is not found.",
		kms + "alias/orders":    "Alias " + kms + "alias/orders is not found.",
		"arn:aws:kms:x:1:key/2": "Key 'arn:aws:kms:x:1:key/2' does not exist",
	} {
		must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"KmsMasterKeyId": key}}))(t)
		want := failure{sqsNS + "KmsNotFound", "KMS.NotFoundException", 400, text, ""}
		for operation, in := range map[string]members{
			"SendMessage":      {"QueueUrl": url, "MessageBody": "b"},
			"SendMessageBatch": {"QueueUrl": url, "Entries": list{members{"Id": "1", "MessageBody": "b"}, members{"Id": "2", "MessageBody": ""}}},
		} {
			for _, f := range forms {
				if !f.asJSON { // whose quotes are escaped in their own way
					wantError(t, f, do(t, f.request(t, endpoint, operation, in)), want)
				}
			}
			if err := throughSDK(t, c, operation, in); !isType[*types.KmsNotFound](err) {
				t.Errorf("%s through the SDK: %v", operation, err)
			}
		}
	}
	for _, key := range []string{"alias/aws/sqs", kms + "alias/aws/sqs", ""} {
		must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"KmsMasterKeyId": key}}))(t)
		send(t, c, url, "under "+key)
	}
	equal(t, "received", []string{"before", "under ", "under alias/aws/sqs", "under " + kms + "alias/aws/sqs"}, bodies(receive(t, c, url, 10)))
}

// A message that waits to be taken by its dead-letter queue is in its own queue
// still, and in flight to nobody.
func TestVisibilityOfAMessageOnItsWay(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead := createQueue(t, c, "dead")
	url := createQueue(t, c, "q", "RedrivePolicy", redriveTo("dead"))
	send(t, c, url, "m")
	handle := receive(t, c, url, 1)[0].ReceiptHandle
	fault := func(kind string) {
		t.Helper()
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("dead")+`","fault":"`+kind+`"}`); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	fault("unavailable")
	advance(t, endpoint, "30s")
	equal(t, "received", 0, len(receive(t, c, url, 1)))
	equal(t, "counts", [3]string{"0", "1", "0"}, counts(t, c, url))

	in := members{"QueueUrl": url, "ReceiptHandle": *handle, "VisibilityTimeout": 1}
	want := failure{sqsNS + "MessageNotInflight", prefix + "MessageNotInflight", 400, "The specified message isn't in flight.", ""}
	for _, f := range forms {
		wantError(t, f, do(t, f.request(t, endpoint, "ChangeMessageVisibility", in)), want)
	}
	if err := throughSDK(t, c, "ChangeMessageVisibility", in); !isType[*types.MessageNotInflight](err) {
		t.Errorf("through the SDK: %v", err)
	}
	out := must(c.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
		{Id: aws.String("1"), ReceiptHandle: handle},
	}}))(t)
	equal(t, "in a batch", []types.BatchResultErrorEntry{{
		Id: aws.String("1"), Code: &want.Code, Message: &want.Text, SenderFault: true,
	}}, out.Failed)

	fault("none")
	advance(t, endpoint, "10m")
	equal(t, "counts", [3]string{"0", "0", "0"}, counts(t, c, url))
	equal(t, "the dead letter", []string{"m"}, bodies(receive(t, c, dead, 10)))
}

// At most 120,000 messages of a queue are in flight: then a short poll is
// refused, a long one waits, and one message fewer makes room for one.
func TestMessagesInFlight(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "VisibilityTimeout", "43200")
	const most = 120_000
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprintf(`{"Id":"%d","MessageBody":"m"}`, i))
	}
	fill := func(operation, body, part string) {
		t.Helper()
		var group sync.WaitGroup
		for range 2 { // as many connections are kept open
			group.Go(func() {
				for range most / 10 / 2 {
					if r, err := callFast(endpoint, operation, body); err != nil || strings.Count(r, part) != 10 {
						t.Errorf("%s: %v %s", operation, err, r)
						return
					}
				}
			})
		}
		group.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	fill("SendMessageBatch", `{"QueueUrl":"`+url+`","Entries":[`+strings.Join(all, ",")+`]}`, `"MessageId"`)
	fill("ReceiveMessage", `{"QueueUrl":"`+url+`","MaxNumberOfMessages":10}`, `"ReceiptHandle"`)
	send(t, c, url, "one too many")
	equal(t, "counts", [3]string{"1", fmt.Sprint(most), "0"}, counts(t, c, url))

	want := failure{sqsNS + "OverLimit", "OverLimit", 403, "Too many messages in flight: at most 120,000 can be received and not yet deleted.", ""}
	in := members{"QueueUrl": url}
	for _, f := range forms {
		wantError(t, f, do(t, f.request(t, endpoint, "ReceiveMessage", in)), want)
	}
	if err := throughSDK(t, c, "ReceiveMessage", in); !isType[*types.OverLimit](err) {
		t.Errorf("through the SDK: %v", err)
	}
	equal(t, "a long poll", 0, len(must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 1}))(t).Messages))

	advance(t, endpoint, "12h1s")
	held := receive(t, c, url, 10)
	equal(t, "received again", 10, len(held))
	equal(t, "counts", [3]string{fmt.Sprint(most + 1 - 10), "10", "0"}, counts(t, c, url))
}

// A FIFO queue has AWS's quota of calls if the server is told so; the clock that
// counts the seconds is the server's.
func TestQuotaOfFIFOQueues(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.SQSFIFORate = 3 })
	c := client(endpoint)
	url := createFIFO(t, c, "q.fifo")
	fast := createFIFO(t, c, "fast.fifo", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
	standard := createQueue(t, c, "q")
	want := failure{sqsNS + "RequestThrottled", "RequestThrottled", 400, "Request is throttled.", ""}
	for second := range 3 {
		for i := range 3 {
			sendTo(t, c, url, "g", fmt.Sprintf("%d-%d", second, i))
		}
		in := members{"QueueUrl": url, "MessageBody": "b", "MessageGroupId": "g", "MessageDeduplicationId": "more"}
		for _, f := range forms {
			wantError(t, f, do(t, f.request(t, endpoint, "SendMessage", in)), want)
		}
		if err := throughSDK(t, c, "SendMessage", in); !isType[*types.RequestThrottled](err) {
			t.Errorf("through the SDK: %v", err)
		}
		for i := range 5 {
			sendTo(t, c, fast, "g", fmt.Sprintf("%d-%d", second, i))
			send(t, c, standard, "m")
		}
		advance(t, endpoint, "1s")
	}
	equal(t, "counts", [3]string{"9", "0", "0"}, counts(t, c, url))
}

// callFast sends an operation as JSON and gives the answer's body.
func callFast(endpoint, operation, body string) (string, error) {
	req, err := http.NewRequest(http.MethodPost, endpoint, strings.NewReader(body)) //nolint:noctx // thousands of them, in a test with a deadline
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(answer), err
}
