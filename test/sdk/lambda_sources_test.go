package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// farFunction is a function that runs in the test.
type farFunction struct {
	t     *testing.T
	name  string
	calls chan *farCall
}

// farCall is an invocation that waits for its answer.
type farCall struct {
	Event  string
	answer chan func(w http.ResponseWriter)
}

// createAnswered makes a function whose invocations wait for the test.
func createAnswered(t *testing.T, c *lambda.Client, name string) *farFunction {
	t.Helper()
	return createAnsweredAs(t, c, name, roleARN)
}

// createAnsweredAs is createAnswered for another role.
func createAnsweredAs(t *testing.T, c *lambda.Client, name, role string) *farFunction {
	t.Helper()
	f := &farFunction{t: t, name: name, calls: make(chan *farCall)}
	done := make(chan struct{})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		call := &farCall{Event: string(body), answer: make(chan func(http.ResponseWriter), 1)}
		select {
		case f.calls <- call:
		case <-done:
			return
		}
		select {
		case answer := <-call.answer:
			answer(w)
		case <-done:
		}
	}))
	t.Cleanup(func() {
		close(done)
		far.Close()
	})
	in := functionInput(t, name)
	in.PackageType, in.Runtime, in.Handler, in.Timeout, in.Role = types.PackageTypeImage, "", nil, aws.Int32(runTime), &role
	in.Code = &types.FunctionCode{ImageUri: &far.URL}
	must(c.CreateFunction(t.Context(), in))(t)
	return f
}

// next is the next invocation, which has to come.
func (f *farFunction) next() *farCall {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), testTimeout)
	defer cancel()
	select {
	case call := <-f.calls:
		return call
	case <-ctx.Done():
		f.t.Fatal("no invocation")
		return nil
	}
}

// testTimeout is how long what has to come is waited for: a test that fails should end.
const testTimeout = 2 * time.Minute

// eventually waits until something that happens by itself has happened.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for !happened() {
		if ctx.Err() != nil {
			t.Fatalf("%s: it did not happen within %s", what, testTimeout)
		}
	}
}

// inFlight waits until n messages of a queue have been received.
func inFlight(t *testing.T, q *sqs.Client, url, n string) {
	t.Helper()
	eventually(t, n+" messages in flight", func() bool { return counts(t, q, url)[1] == n })
}

func (c *farCall) succeed(payload string) {
	c.answer <- func(w http.ResponseWriter) { fmt.Fprint(w, payload) }
}

func (c *farCall) fail() {
	c.answer <- func(w http.ResponseWriter) {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		fmt.Fprint(w, `{"errorMessage":"no"}`)
	}
}

type sourceRecord struct {
	MessageID  string            `json:"messageId"`
	Body       string            `json:"body"`
	Attributes map[string]string `json:"attributes"`
}

func (c *farCall) records(t *testing.T) []sourceRecord {
	t.Helper()
	var event struct{ Records []sourceRecord }
	if err := json.Unmarshal([]byte(c.Event), &event); err != nil {
		t.Fatalf("%v in %s", err, c.Event)
	}
	return event.Records
}

func (c *farCall) bodies(t *testing.T) (all []string) {
	t.Helper()
	for _, r := range c.records(t) {
		all = append(all, r.Body)
	}
	return all
}

// advancing moves the server's clock while the test answers the invocations that
// this brings about, which it waits for. finish returns once it has moved.
func advancing(t *testing.T, endpoint, duration string) (finish func()) {
	t.Helper()
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		resp, err := http.Post(endpoint+"/_godwit/clock", "application/json", strings.NewReader(`{"advance":"`+duration+`"}`))
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("advancing the clock by %s: %d", duration, resp.StatusCode)
		}
	}()
	return func() { <-moved }
}

// drained checks that the queue is empty once the batches under way have ended.
func drained(t *testing.T, endpoint string, q *sqs.Client, url string) {
	t.Helper()
	advance(t, endpoint, "1ms") // which waits for them
	equal(t, "what is left in the queue", [3]string{"0", "0", "0"}, counts(t, q, url))
}

// sendAll sends messages in one request, so that one receive gets them.
func sendAll(t *testing.T, q *sqs.Client, url string, bodies ...string) (ids []string) {
	t.Helper()
	in := &sqs.SendMessageBatchInput{QueueUrl: &url}
	for i, body := range bodies {
		in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body})
	}
	out := must(q.SendMessageBatch(t.Context(), in))(t)
	for _, e := range out.Successful {
		ids = append(ids, *e.MessageId)
	}
	if len(ids) != len(bodies) {
		t.Fatalf("%d of %d sent", len(ids), len(bodies))
	}
	return ids
}

func TestSourceEvent(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	mapped(t, c, "work", "f", nil)
	sent := must(q.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: aws.String("<a> & \"b\"\n"),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{
			"kind":  {DataType: aws.String("String"), StringValue: aws.String("order")},
			"count": {DataType: aws.String("Number.int"), StringValue: aws.String("7")},
			"raw":   {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
		},
		MessageSystemAttributes: map[string]sqstypes.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
		},
	}))(t)
	call := f.next()
	received := must(q.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"}}))(t)
	equal(t, "in flight", "1", received.Attributes["ApproximateNumberOfMessagesNotVisible"])
	var event map[string][]map[string]any
	if err := json.Unmarshal([]byte(call.Event), &event); err != nil || len(event) != 1 || len(event["Records"]) != 1 {
		t.Fatalf("event %s: %v", call.Event, err)
	}
	record := event["Records"][0]
	if handle, _ := record["receiptHandle"].(string); handle == "" {
		t.Error("no receipt handle")
	}
	delete(record, "receiptHandle")
	attributes, _ := record["attributes"].(map[string]any)
	for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
		if at, _ := attributes[name].(string); !regexp.MustCompile(`^\d{13}$`).MatchString(at) {
			t.Errorf("%s %q", name, at)
		}
		delete(attributes, name)
	}
	sender, _ := attributes["SenderId"].(string)
	if sender == "" {
		t.Error("no sender")
	}
	delete(attributes, "SenderId")
	none := []any{}
	equal(t, "the record", map[string]any{
		"messageId": *sent.MessageId, "body": "<a> & \"b\"\n", "md5OfBody": *sent.MD5OfMessageBody, "md5OfMessageAttributes": *sent.MD5OfMessageAttributes,
		"eventSource": "aws:sqs", "eventSourceARN": queueARN("work"), "awsRegion": region,
		"attributes": map[string]any{"ApproximateReceiveCount": "1", "AWSTraceHeader": "Root=1-5759e988-bd862e3fe1be46a994272793"},
		"messageAttributes": map[string]any{
			"kind":  map[string]any{"stringValue": "order", "stringListValues": none, "binaryListValues": none, "dataType": "String"},
			"count": map[string]any{"stringValue": "7", "stringListValues": none, "binaryListValues": none, "dataType": "Number.int"},
			"raw":   map[string]any{"binaryValue": "AAH/", "stringListValues": none, "binaryListValues": none, "dataType": "Binary"},
		},
	}, record)
	call.succeed("null")
	drained(t, endpoint, q, url)

	sendAll(t, q, url, "plain", "too")
	call = f.next()
	if strings.Contains(call.Event, "md5OfMessageAttributes") || !strings.Contains(call.Event, `"messageAttributes":{}`) {
		t.Errorf("a message without attributes: %s", call.Event)
	}
	equal(t, "a batch", []string{"plain", "too"}, call.bodies(t))
	call.succeed(`"whatever"`)
	drained(t, endpoint, q, url)
}

// Groups of a FIFO queue keep their order, and a group waits for its batch.
func TestSourceFIFO(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work.fifo", "FifoQueue", "true", "ContentBasedDeduplication", "true")
	mapped(t, c, "work.fifo", "f", func(in *lambda.CreateEventSourceMappingInput) { in.BatchSize = aws.Int32(1) })
	for _, body := range []string{"a1", "a2", "b1", "a3"} {
		must(q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: aws.String(body[:1])}))(t)
	}
	first, second := f.next(), f.next()
	if second.bodies(t)[0] == "a1" {
		first, second = second, first
	}
	equal(t, "of each group one", []string{"a1", "b1"}, append(first.bodies(t), second.bodies(t)...))
	attributes := first.records(t)[0].Attributes
	if attributes["MessageGroupId"] != "a" || attributes["MessageDeduplicationId"] == "" || len(attributes["SequenceNumber"]) != 20 {
		t.Errorf("attributes %v", attributes)
	}
	second.succeed("{}")
	first.fail()
	finish := advancing(t, endpoint, "30s")
	again := f.next()
	equal(t, "a failed group waits for its first", []string{"a1"}, again.bodies(t))
	equal(t, "its receives", "2", again.records(t)[0].Attributes["ApproximateReceiveCount"])
	again.succeed("{}")
	for _, want := range []string{"a2", "a3"} {
		call := f.next()
		equal(t, "the next of the group", []string{want}, call.bodies(t))
		call.succeed("{}")
	}
	finish() // which may have waited for the whole group
	drained(t, endpoint, q, url)
}

func TestSourceWindow(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	mapped(t, c, "work", "f", func(in *lambda.CreateEventSourceMappingInput) {
		in.BatchSize, in.MaximumBatchingWindowInSeconds = aws.Int32(12), aws.Int32(40)
	})
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprint(i))
		send(t, q, url, want[i])
	}
	call := f.next() // as many as a batch may have
	got := call.bodies(t)
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "a full batch", want, got)
	if !strings.Contains(call.Event, `"md5OfMessageAttributes":null`) {
		t.Errorf("under a window: %s", call.Event)
	}
	call.succeed("{}")
	drained(t, endpoint, q, url)

	send(t, q, url, "first")
	inFlight(t, q, url, "1")
	advance(t, endpoint, "20s")
	send(t, q, url, "second")
	inFlight(t, q, url, "2")
	// Its visibility timeout is shorter, but not for a mapping with a window.
	finish := advancing(t, endpoint, "20s")
	call = f.next()
	got = call.bodies(t)
	slices.Sort(got)
	equal(t, "what the window gathered", []string{"first", "second"}, got)
	equal(t, "received once", "1", call.records(t)[0].Attributes["ApproximateReceiveCount"])
	call.succeed("{}")
	finish()
	drained(t, endpoint, q, url)
}

// What a function says of its batch, and what is left of it. Source: the Lambda
// developer guide, "Success and failure conditions".
func TestSourceReportsFailures(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	mapped(t, c, "work", "f", func(in *lambda.CreateEventSourceMappingInput) {
		in.FunctionResponseTypes = []types.FunctionResponseType{types.FunctionResponseTypeReportBatchItemFailures}
	})
	for answer, left := range map[string]int{
		`{"batchItemFailures":[]}`:   0,
		`{"batchItemFailures":null}`: 0,
		`{}`:                         0,
		`null`:                       0,
		``:                           0,
		`{"batchItemFailures":[{"itemIdentifier":"$1"}]}`:                           1,
		`{"batchItemFailures":[{"itemIdentifier":"$1"},{"itemIdentifier":"$0"}]}`:   2,
		`{"batchItemFailures":[{"itemIdentifier":"none"}]}`:                         3,
		`{"batchItemFailures":[{"itemIdentifier":"$1"},{"itemIdentifier":"none"}]}`: 3,
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                             3,
		`{"batchItemFailures":[{"itemIdentifier":null}]}`:                           3,
		`{"batchItemFailures":[{"itemIdentifier":7}]}`:                              3,
		`{"batchItemFailures":[{"ItemIdentifier":"$1"}]}`:                           3,
		`{"batchItemFailures":[{}]}`:                                                3,
		`{"batchItemFailures":["$1"]}`:                                              3,
		`{"batchItemFailures":{}}`:                                                  3,
		`{"batchItemFailures":[`:                                                    3,
		`"done"`:                                                                    3,
		`error`:                                                                     3,
	} {
		ids := sendAll(t, q, url, "0", "1", "2")
		call := f.next()
		if answer == "error" {
			call.fail()
		} else {
			call.succeed(strings.NewReplacer("$0", ids[0], "$1", ids[1]).Replace(answer))
		}
		advance(t, endpoint, "1ms")
		if got := counts(t, q, url); got != [3]string{"0", fmt.Sprint(left), "0"} {
			t.Errorf("%s: %v left", answer, got)
		}
		if left > 0 { // they come again
			finish := advancing(t, endpoint, "30s")
			for left > 0 {
				again := f.next()
				left -= len(again.records(t))
				again.succeed("{}")
			}
			finish()
		}
		drained(t, endpoint, q, url)
	}
}

func TestSourceFilters(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	mapped(t, c, "work", "f", func(in *lambda.CreateEventSourceMappingInput) {
		in.FilterCriteria = &types.FilterCriteria{Filters: []types.Filter{
			{Pattern: aws.String(`{"body":{"kind":["order"],"total":[{"numeric":[">",10]}]}}`)},
			{Pattern: aws.String(`{"body":[{"prefix":"urgent"}]}`)},
		}}
	})
	sendAll(t, q, url, `{"kind":"order","total":11}`, `{"kind":"order","total":9}`, `{"kind":"refund","total":11}`, "urgent: call back", "later", `"urgent"`, `{"kind":`)
	call := f.next()
	equal(t, "what matches", []string{`{"kind":"order","total":11}`, "urgent: call back"}, call.bodies(t))
	equal(t, "what does not is deleted", [3]string{"0", "2", "0"}, counts(t, q, url))
	call.succeed("{}")
	drained(t, endpoint, q, url)
}

func TestSourceMaximumConcurrency(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	mapped(t, c, "work", "f", func(in *lambda.CreateEventSourceMappingInput) {
		in.BatchSize, in.ScalingConfig = aws.Int32(1), &types.ScalingConfig{MaximumConcurrency: aws.Int32(2)}
	})
	sendAll(t, q, url, "0", "1", "2", "3", "4")
	under := []*farCall{f.next(), f.next()}
	for range 3 {
		equal(t, "waiting, under way", [3]string{counts(t, q, url)[0], "2", "0"}, counts(t, q, url))
		under[0].succeed("{}")
		under = append(under[1:], f.next())
	}
	under[0].succeed("{}")
	under[1].succeed("{}")
	drained(t, endpoint, q, url)
}

// Messages that a function fails with come again, until they are dead letters.
func TestSourceFunctionErrors(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	dead := createQueue(t, q, "dead")
	url := createQueue(t, q, "work", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`","maxReceiveCount":"2"}`)
	mapped(t, c, "work", "f", nil)
	sendAll(t, q, url, "poison")
	finish := func() {}
	for receives := 1; receives <= 2; receives++ {
		call := f.next()
		equal(t, "receives", fmt.Sprint(receives), call.records(t)[0].Attributes["ApproximateReceiveCount"])
		call.fail()
		finish()
		advance(t, endpoint, "1ms") // it has failed
		finish = advancing(t, endpoint, "30s")
	}
	finish()
	equal(t, "the dead letter", "poison", *takeMessage(t, q, dead).Body)
	drained(t, endpoint, q, url)

	// A mapping continues where a function is gone and comes again.
	must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("f")}))(t)
	sendAll(t, q, url, "patient")
	f = createAnswered(t, c, "f")
	call := f.next()
	equal(t, "after its return", []string{"patient"}, call.bodies(t))
	equal(t, "receives", "1", call.records(t)[0].Attributes["ApproximateReceiveCount"])
	call.succeed("{}")
	drained(t, endpoint, q, url)
}

// The clock waits for what a queue has for a function: however it is moved, the
// function has got what was there before.
func TestSourceAndClock(t *testing.T) {
	endpoint := start(t)
	c, q, f := functionsClient(endpoint), client(endpoint), startFar(t)
	url := createQueue(t, q, "work", "VisibilityTimeout", "40")
	sendAll(t, q, url, "0")
	createFar(t, endpoint, c, "f", f, "")
	uuid := mapped(t, c, "work", "f", func(in *lambda.CreateEventSourceMappingInput) { in.BatchSize = aws.Int32(1) })
	advance(t, endpoint, "1h")
	equal(t, "runs for what was there before the mapping", 1, len(f.ran()))
	for range 20 {
		sendAll(t, q, url, "1", "2", "3", "4", "5", "6", "7")
		advance(t, endpoint, "1h")
		equal(t, "runs", 7, len(f.ran()))
		equal(t, "what is left in the queue", [3]string{"0", "0", "0"}, counts(t, q, url))
	}
	f.fail(2)
	sendAll(t, q, url, "again")
	for range 3 {
		advance(t, endpoint, "0s")
		equal(t, "runs", 1, len(f.ran()))
		advance(t, endpoint, "40s")
	}
	for range 20 {
		must(c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: uuid, Enabled: aws.Bool(false)}))(t)
		sendAll(t, q, url, "later")
		advance(t, endpoint, "1h")
		equal(t, "runs of a disabled mapping", 0, len(f.ran()))
		must(c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: uuid, Enabled: aws.Bool(true)}))(t)
		advance(t, endpoint, "1h")
		equal(t, "runs once it is enabled", 1, len(f.ran()))
	}
}

// A throttled batch is tried again, and is the same receive.
func TestSourceThrottled(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	reserve := func(n int32) {
		t.Helper()
		must(c.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: aws.String("f"), ReservedConcurrentExecutions: &n}))(t)
	}
	reserve(0)
	mapped(t, c, "work", "f", nil)
	sendAll(t, q, url, "patient")
	inFlight(t, q, url, "1")
	advance(t, endpoint, "3s")
	reserve(1)
	finish := advancing(t, endpoint, "10s")
	call := f.next()
	equal(t, "receives", "1", call.records(t)[0].Attributes["ApproximateReceiveCount"])
	call.succeed("{}")
	finish()
	drained(t, endpoint, q, url)
}

// A mapping whose queue was deleted feeds its function from the next of that name.
func TestSourceQueueMadeAgain(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	mapped(t, c, "work", "f", nil)
	for range 2 {
		must(q.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
		createQueue(t, q, "work")
		sendAll(t, q, url, "again")
		call := f.next()
		equal(t, "event", []string{"again"}, call.bodies(t))
		call.succeed("{}")
		drained(t, endpoint, q, url)
	}
}

// A disabled mapping takes nothing, and an enabled one what there is.
func TestSourceDisabled(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	uuid := mapped(t, c, "work", "f", nil)
	enable := func(on bool, state string) {
		t.Helper()
		must(c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: uuid, Enabled: &on}))(t)
		equal(t, "state", state, aws.ToString(mappingOf(t, c, uuid).State))
	}
	sendAll(t, q, url, "under way")
	call := f.next()
	enable(false, "Disabled")
	sendAll(t, q, url, "later")
	call.succeed("{}") // what is under way ends as it would have
	advance(t, endpoint, "1m")
	equal(t, "what is left", [3]string{"1", "0", "0"}, counts(t, q, url))
	enable(true, "Enabled")
	call = f.next()
	equal(t, "what is taken", []string{"later"}, call.bodies(t))
	call.succeed("{}")
	drained(t, endpoint, q, url)

	// A deleted mapping takes nothing either.
	must(c.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: uuid}))(t)
	sendAll(t, q, url, "left")
	advance(t, endpoint, "1m")
	equal(t, "what is left", [3]string{"1", "0", "0"}, counts(t, q, url))
}

// A mapping whose queue or function is gone, or no longer fits, can be disabled, and then takes
// nothing of the next queue of that name.
func TestSourceGoneIsDisabled(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	uuid := mapped(t, c, "work", "f", nil)
	enable := func(on bool) error {
		_, err := c.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: uuid, Enabled: &on})
		return err
	}
	for name, goes := range map[string]func() (back func()){
		"the queue": func() func() {
			must(q.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
			return func() { createQueue(t, q, "work") }
		},
		"the function": func() func() {
			must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("f")}))(t)
			return func() { createAnswered(t, c, "f") }
		},
		"the visibility timeout": func() func() {
			set := func(seconds string) {
				must(q.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"VisibilityTimeout": seconds}}))(t)
			}
			set("0")
			return func() { set("30") }
		},
	} {
		back := goes()
		if err := enable(false); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
		if err := enable(true); err == nil {
			t.Errorf("%s is gone, and the mapping is enabled", name)
		}
		back()
		sendAll(t, q, url, "left")
		advance(t, endpoint, "1m")
		equal(t, "what is left", [3]string{"1", "0", "0"}, counts(t, q, url))
		must(q.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t)
		if err := enable(true); err != nil {
			t.Error(err)
		}
	}
}

// What a mapping has taken and not given to its function was not received: a queue that allows
// one receive still has it.
func TestSourceUnseen(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	createAnswered(t, c, "f")
	for _, name := range []string{"work", "work.fifo"} {
		fifo := strings.HasSuffix(name, ".fifo")
		var attributes []string
		if fifo {
			attributes = []string{"FifoQueue", "true", "ContentBasedDeduplication", "true"}
		}
		createQueue(t, q, "dead-"+name, attributes...)
		attributes = append(attributes, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead-"+name)+`","maxReceiveCount":"1"}`)
		url := createQueue(t, q, name, attributes...)
		must(c.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: aws.String("f"), ReservedConcurrentExecutions: aws.Int32(0)}))(t)
		uuid := mapped(t, c, name, "f", nil)
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("unseen")}
		if fifo {
			in.MessageGroupId = aws.String("g")
		}
		must(q.SendMessage(t.Context(), in))(t)
		inFlight(t, q, url, "1")
		must(c.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: uuid}))(t)
		equal(t, "what is left for others in "+name, "unseen", *takeMessage(t, q, url).Body)
	}
}

// Messages and mappings survive a restart.
func TestSourceRestart(t *testing.T) {
	d := newDurable(t)
	c, q := functionsClient(d.URL), client(d.URL)
	f := createAnswered(t, c, "f")
	url := createQueue(t, q, "work")
	uuid := mapped(t, c, "work", "f", func(in *lambda.CreateEventSourceMappingInput) {
		in.BatchSize, in.MaximumBatchingWindowInSeconds = aws.Int32(100), aws.Int32(300)
		in.FilterCriteria = &types.FilterCriteria{Filters: []types.Filter{{Pattern: aws.String(`{"body":[{"anything-but":"x"}]}`)}}}
	})
	before := mappingOf(t, c, uuid)
	sendAll(t, q, url, "left", "over")
	inFlight(t, q, url, "2") // they wait for the window's end
	d.restart()
	after := mappingOf(t, c, uuid)
	before.ResultMetadata = after.ResultMetadata
	equal(t, "the mapping", before, after)
	inFlight(t, q, url, "2") // which are not lost for the time of their visibility
	finish := advancing(t, d.URL, "5m")
	call := f.next()
	got := call.bodies(t)
	slices.Sort(got)
	equal(t, "after the restart", []string{"left", "over"}, got)
	call.succeed("{}")
	finish()
	drained(t, d.URL, q, url)
}
