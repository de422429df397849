package e2e_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 8 << 20

// state is all that a client can ask about queues, topics and subscriptions.
func (c client) state(t *testing.T, queue string) (all []string) {
	t.Helper()
	for _, ask := range []struct {
		operation string
		in        string
	}{
		{"ListQueues", `{}`},
		{"GetQueueAttributes", `{"QueueUrl":"` + queue + `","AttributeNames":["All"]}`},
	} {
		a, err := c.rawSQS(t.Context(), ask.operation, []byte(ask.in))
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: %d, %v: %s", ask.operation, a.status, err, a.body)
		}
		all = append(all, string(a.body))
	}
	for _, action := range []string{"ListTopics", "ListSubscriptions"} {
		a, err := c.rawSNS(t.Context(), "Action="+action)
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: %d, %v: %s", action, a.status, err, a.body)
		}
		all = append(all, requestID.ReplaceAllString(string(a.body), ""))
	}
	return all
}

var requestID = regexp.MustCompile(`<RequestId>[^<]*</RequestId>`)

// TestBadRequests sends what cannot be read, or asks for what is not there: AWS
// has a code for each, and none changes anything.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	p := start(t)
	queue, topic := p.createQueue(t, "calm"), p.createTopic(t, "calm")
	p.subscribe(t, topic, "sqs", queueARN("calm"))
	p.mustSQS(t, "SendMessage", object{"QueueUrl": queue, "MessageBody": "hi"}, nil)
	before := p.state(t, queue)

	const (
		coral   = "com.amazon.coral.service#"
		sqs     = "com.amazonaws.sqs#"
		badJSON = coral + "SerializationException"
	)
	at := `"QueueUrl":"` + queue + `",`
	for _, tt := range []struct{ name, operation, body, code string }{
		{"no JSON", "SendMessage", `QueueUrl=x`, badJSON},
		{"half an object", "SendMessage", `{` + at + `"MessageBody":"x"`, badJSON},
		{"half a string", "SendMessage", `{` + at + `"MessageBody":"x`, badJSON},
		{"something behind the object", "SendMessage", `{` + at + `"MessageBody":"x"} {}`, badJSON},
		{"array", "SendMessage", `[]`, badJSON},
		{"string", "DeleteQueue", `"` + queue + `"`, badJSON},
		{"number for a string", "SendMessage", `{` + at + `"MessageBody":7}`, badJSON},
		{"string for a number", "SendMessage", `{` + at + `"MessageBody":"x","DelaySeconds":"soon"}`, badJSON},
		{"number beyond 32 bits", "SendMessage", `{` + at + `"MessageBody":"x","DelaySeconds":99999999999}`, coral + "InvalidParameterValueException"},
		{"object for a list", "DeleteMessageBatch", `{` + at + `"Entries":{}}`, badJSON},
		{"list for an object", "CreateQueue", `{"QueueName":"new","Attributes":[]}`, badJSON},
		{"too deep", "SendMessage", strings.Repeat(`{"a":`, 100_000), badJSON},
		{"zeros", "SendMessage", "\x00\x00\x00", badJSON},
		{"no such operation", "SendPostcard", `{}`, coral + "UnknownOperationException"},
		{"no operation", "", `{}`, coral + "UnknownOperationException"},
		{"another case", "sendmessage", `{` + at + `"MessageBody":"x"}`, coral + "UnknownOperationException"},
		{"nothing", "SendMessage", ``, coral + "MissingRequiredParameterException"},
		{"no body", "SendMessage", `{` + at + `"MessageBody":""}`, coral + "MissingRequiredParameterException"},
		{"delay out of range", "SendMessage", `{` + at + `"MessageBody":"x","DelaySeconds":901}`, coral + "InvalidParameterValueException"},
		{"bad character", "SendMessage", `{` + at + `"MessageBody":"\u0001"}`, sqs + "InvalidMessageContents"},
		{"too long", "SendMessage", `{` + at + `"MessageBody":"` + strings.Repeat("x", 1<<20+1) + `"}`, coral + "InvalidParameterValueException"},
		{"missing queue", "SendMessage", `{"QueueUrl":"` + p.queueURL("none") + `","MessageBody":"x"}`, sqs + "QueueDoesNotExist"},
		{"missing queue deleted", "DeleteQueue", `{"QueueUrl":"` + p.queueURL("none") + `"}`, sqs + "QueueDoesNotExist"},
		{"bad name", "CreateQueue", `{"QueueName":"a/b"}`, coral + "InvalidParameterValueException"},
		{"bad attribute", "SetQueueAttributes", `{` + at + `"Attributes":{"VisibilityTimeout":"-1"}}`, sqs + "InvalidAttributeValue"},
		{"unknown attribute", "SetQueueAttributes", `{` + at + `"Attributes":{"Colour":"red"}}`, sqs + "InvalidAttributeName"},
		{"garbage for a handle", "DeleteMessage", `{` + at + `"ReceiptHandle":"AAAA"}`, sqs + "ReceiptHandleIsInvalid"},
		{"empty batch", "SendMessageBatch", `{` + at + `"Entries":[]}`, sqs + "EmptyBatchRequest"},
	} {
		t.Run("SQS "+tt.name, func(t *testing.T) {
			a, err := p.rawSQS(t.Context(), tt.operation, []byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			r := jsonRefusal(tt.operation, a)
			if a.status != http.StatusBadRequest || r.code != tt.code || r.message == "" {
				t.Errorf("%d %s %q; want 400 %s and a text", a.status, r.code, r.message, tt.code)
			}
			if a.header.Get("x-amzn-RequestId") == "" || !strings.HasSuffix(a.header.Get("x-amzn-query-error"), ";Sender") {
				t.Errorf("header %v", a.header)
			}
		})
	}

	for _, tt := range []struct {
		name, form, code string
		status           int
	}{
		{"nothing", "", "MissingAction", 400},
		{"no action", "TopicArn=" + topic, "MissingAction", 400},
		{"no such action", "Action=PublishPostcard", "InvalidAction", 400},
		{"bad escape", "Action=Publish&TopicArn=" + topic + "&Message=%zz", "MalformedInput", 400},
		{"JSON", `{"Action":"Publish"}`, "MissingAction", 400},
		{"no topic", "Action=Publish&Message=x", "InvalidParameter", 400},
		{"no message", "Action=Publish&TopicArn=" + topic, "ValidationError", 400},
		{"an empty message", "Action=Publish&TopicArn=" + topic + "&Message=", "InvalidParameter", 400},
		{"no ARN", "Action=Publish&TopicArn=calm&Message=x", "InvalidParameter", 400},
		{"missing topic", "Action=Publish&TopicArn=" + topic + "x&Message=x", "NotFound", 404},
		{"too long", "Action=Publish&TopicArn=" + topic + "&Message=" + strings.Repeat("x", 1<<18+1), "InvalidParameter", 400},
		{"bad name", "Action=CreateTopic&Name=a%20b", "InvalidParameter", 400},
		{"bad policy", "Action=SetTopicAttributes&TopicArn=" + topic + "&AttributeName=DeliveryPolicy&AttributeValue=%7B", "InvalidParameter", 400},
		{"bad protocol", "Action=Subscribe&TopicArn=" + topic + "&Protocol=pigeon&Endpoint=x", "InvalidParameter", 400},
		{"bad endpoint", "Action=Subscribe&TopicArn=" + topic + "&Protocol=http&Endpoint=https://x", "InvalidParameter", 400},
	} {
		t.Run("SNS "+tt.name, func(t *testing.T) {
			a, err := p.rawSNS(t.Context(), tt.form)
			if err != nil {
				t.Fatal(err)
			}
			if r := xmlRefusal("", a); a.status != tt.status || r.code != tt.code {
				t.Errorf("%d %s %q; want %d %s", a.status, r.code, r.message, tt.status, tt.code)
			}
		})
	}

	if diff := cmp.Diff(before, p.state(t, queue)); diff != "" {
		t.Errorf("something has changed (-before +after):\n%s", diff)
	}
}

// TestBodyLimit sends bodies around the limit. One above it is refused while it
// is being read, whether its length is known or not.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	p := start(t)
	queue := p.createQueue(t, "narrow")

	// White space counts, and means nothing.
	pad := func(size int) []byte {
		body := `{"QueueUrl":"` + queue + `","MessageBody":"hi"}`
		return []byte(body + strings.Repeat(" ", size-len(body)))
	}
	if a, err := p.rawSQS(t.Context(), "SendMessage", pad(maxBody)); err != nil || a.status != http.StatusOK {
		t.Errorf("a body of 8 MiB: %d, %v: %s", a.status, err, a.body)
	}

	head := "POST / HTTP/1.1\r\nHost: " + p.addr + "\r\nAuthorization: " + signed("sqs") +
		"\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Type: application/x-amz-json-1.0\r\n"
	chunk := pad(64 << 10)
	t.Run("above", func(t *testing.T) {
		for _, tt := range []struct {
			name string
			head string
			send string // written again and again
		}{
			{"chunked", "Transfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk)},
			{"one byte more", fmt.Sprintf("Content-Length: %d\r\n\r\n", maxBody+1), string(chunk)},
			{"a terabyte", "Content-Length: 1099511627776\r\n\r\n", string(chunk)},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel() // each waits for net/http to see the answer off
				conn, err := net.Dial("tcp", p.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(testTimeout))
				stopped := make(chan int, 1)
				go func() { stopped <- flood(conn, head+tt.head, tt.send) }()

				answers := bufio.NewReader(conn)
				resp, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				r := jsonRefusal("SendMessage", answer{status: resp.StatusCode, body: body})
				if r.status != http.StatusRequestEntityTooLarge || r.code != "com.amazon.coral.service#RequestEntityTooLargeException" {
					t.Errorf("answered %v", r)
				}
				if !resp.Close {
					t.Error("the answer does not say that the connection is closed")
				}
				if _, err := answers.ReadByte(); err == nil {
					t.Error("something follows the answer")
				} else if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
					t.Error("the connection stays open")
				}
				// What the kernel has buffered on both sides was sent, too.
				if n := <-stopped; n > 16*maxBody {
					t.Errorf("%d bytes were taken", n)
				}
			})
		}
	})
	if got := p.counts(t, queue); got != [3]int{1, 0, 0} {
		t.Errorf("the queue has %v messages, want the first one only", got)
	}
}

// flood writes until the other side has had enough, 1 GiB at most, and tells
// how many bytes went.
func flood(conn net.Conn, head, again string) (sent int) {
	n, err := io.WriteString(conn, head)
	for sent += n; err == nil && sent < 1<<30; sent += n {
		n, err = io.WriteString(conn, again)
	}
	return sent
}
