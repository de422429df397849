package sdk_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/checklist"
)

// everyAction has a request for each action of SQS that is right but for what
// url, a queue's, and arn, another's, may lack.
func everyAction(url, arn string) map[string]members {
	handle := list{members{"Id": "1", "ReceiptHandle": "h"}}
	hidden := list{members{"Id": "1", "ReceiptHandle": "h", "VisibilityTimeout": 1}}
	return map[string]members{
		"AddPermission":                {"QueueUrl": url, "Label": "l", "AWSAccountIds": list{"111111111111"}, "Actions": list{"SendMessage"}},
		"CancelMessageMoveTask":        {"TaskHandle": "h"},
		"ChangeMessageVisibility":      {"QueueUrl": url, "ReceiptHandle": "h", "VisibilityTimeout": 1},
		"ChangeMessageVisibilityBatch": {"QueueUrl": url, "Entries": hidden},
		"CreateQueue":                  {"QueueName": "new"},
		"DeleteMessage":                {"QueueUrl": url, "ReceiptHandle": "h"},
		"DeleteMessageBatch":           {"QueueUrl": url, "Entries": handle},
		"DeleteQueue":                  {"QueueUrl": url},
		"GetQueueAttributes":           {"QueueUrl": url, "AttributeNames": list{"All"}},
		"GetQueueUrl":                  {"QueueName": "none"},
		"ListDeadLetterSourceQueues":   {"QueueUrl": url},
		"ListMessageMoveTasks":         {"SourceArn": arn},
		"ListQueueTags":                {"QueueUrl": url},
		"ListQueues":                   {},
		"PurgeQueue":                   {"QueueUrl": url},
		"ReceiveMessage":               {"QueueUrl": url},
		"RemovePermission":             {"QueueUrl": url, "Label": "l"},
		"SendMessage":                  {"QueueUrl": url, "MessageBody": "b"},
		"SendMessageBatch":             {"QueueUrl": url, "Entries": list{members{"Id": "1", "MessageBody": "b"}}},
		"SetQueueAttributes":           {"QueueUrl": url, "Attributes": members{"DelaySeconds": "1"}},
		"StartMessageMoveTask":         {"SourceArn": arn},
		"TagQueue":                     {"QueueUrl": url, "Tags": members{"k": "v"}},
		"UntagQueue":                   {"QueueUrl": url, "TagKeys": list{"k"}},
	}
}

// throughSDK makes the same request with the SDK.
func throughSDK(t *testing.T, c *sqs.Client, operation string, in members) error {
	t.Helper()
	method := reflect.ValueOf(c).MethodByName(operation)
	input := reflect.New(method.Type().In(1).Elem())
	text, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(text, input.Interface()) // its fields have the members' names
	}
	if err != nil {
		t.Fatal(err)
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), input})
	err, _ = reflect.TypeAssert[error](out[1])
	return err
}

// changed is an SDK's transport that changes its requests.
type changed func(*http.Request)

func (change changed) Do(req *http.Request) (*http.Response, error) {
	before := req.Header.Get("Authorization")
	if change(req); req.Header.Get("Authorization") == before {
		req.Header.Del("Authorization") // it is signed again
	}
	return eager.Do(req)
}

func changedClient(endpoint string, change func(*http.Request)) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String(endpoint), Region: region, RetryMaxAttempts: 1, HTTPClient: changed(change),
		Credentials: credentials.NewStaticCredentialsProvider("test", secretOf("test"), ""),
	})
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// What can be wrong with a request of any action is refused alike for all, in
// all forms, and through the SDK with its own types; and it changes nothing.
func TestCommonErrors(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createQueue(t, c, "q")
	none := endpoint + "/000000000000/none"
	send(t, c, q, "a message")
	before := attributesOf(t, c, q)

	model, err := checklist.Load("sqs")
	if err != nil {
		t.Fatal(err)
	}
	valid := everyAction(q, queueARN("none"))
	equal(t, "the actions", slices.Sorted(maps.Keys(model.Actions)), slices.Sorted(maps.Keys(valid)))

	security := failure{sqsNS + "InvalidSecurity", "InvalidSecurity", 400, "The request must be signed with Signature Version 4.", ""}
	throttled := failure{sqsNS + "RequestThrottled", "RequestThrottled", 400, "Rate exceeded.", ""}
	address := func(at string) failure {
		return failure{sqsNS + "InvalidAddress", "InvalidAddress", 400, "The address " + at + " is not valid for this endpoint.", ""}
	}
	method := func(operation, method string) failure {
		return failure{
			sqsNS + "UnsupportedOperation", prefix + "UnsupportedOperation", 400,
			"The operation " + operation + " is not supported by the method " + method + ".", "",
		}
	}
	// want sends a request in each form and expects a refusal of it.
	want := func(t *testing.T, operation string, in members, at string, change func(f form, r *http.Request), want func(f form) failure) {
		t.Helper()
		for _, f := range forms {
			if f.atQueue && at != endpoint { // elsewhere, that is
				continue
			}
			r := f.request(t, at, operation, in)
			change(f, r)
			wantError(t, f, do(t, r), want(f))
		}
	}
	as := func(f failure) func(form) failure { return func(form) failure { return f } }
	same := func(form, *http.Request) {}

	for operation, in := range valid {
		t.Run(operation, func(t *testing.T) {
			want(t, operation, in, endpoint, func(f form, r *http.Request) {
				if f.json {
					r.Header.Set("Authorization", "AWS AKIDEXAMPLE:c2lnbmF0dXJl")
					return
				}
				query := r.URL.Query()
				query.Set("SignatureVersion", "2")
				r.URL.RawQuery = query.Encode()
			}, as(security))
			if err := throughSDK(t, changedClient(endpoint, func(r *http.Request) { r.Header.Set("Authorization", "AWS AKIDEXAMPLE:c2ln") }), operation, in); !isType[*types.InvalidSecurity](err) {
				t.Errorf("InvalidSecurity through the SDK: %v", err)
			}

			want(t, operation, in, endpoint, func(_ form, r *http.Request) { r.Method = http.MethodPut }, as(method(operation, "PUT")))
			if err := throughSDK(t, changedClient(endpoint, func(r *http.Request) { r.Method = http.MethodPatch }), operation, in); !isType[*types.UnsupportedOperation](err) {
				t.Errorf("UnsupportedOperation through the SDK: %v", err)
			}

			nowhere := endpoint + "/nowhere"
			want(t, operation, in, nowhere, same, as(address(nowhere)))
			if err := throughSDK(t, client(nowhere), operation, in); !isType[*types.InvalidAddress](err) {
				t.Errorf("InvalidAddress through the SDK: %v", err)
			}
			if _, ok := in["QueueUrl"]; !ok {
				return
			}
			odd, lost := maps.Clone(in), maps.Clone(in)
			for _, value := range []string{"none", "http://", "ftp" + strings.TrimPrefix(q, "http"), endpoint + "/q", q + "/more", endpoint + "/1/q"} {
				odd["QueueUrl"] = value
				for _, f := range forms {
					if !f.atQueue {
						wantError(t, f, do(t, f.request(t, endpoint, operation, odd)), noQueue)
					}
				}
			}
			lost["QueueUrl"] = none
			want(t, operation, lost, endpoint, same, as(noQueue))
			if err := throughSDK(t, c, operation, lost); !isType[*types.QueueDoesNotExist](err) {
				t.Errorf("QueueDoesNotExist through the SDK: %v", err)
			}
		})
	}

	all := func(fault string) {
		t.Helper()
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:sqs:us-east-1:000000000000:*","fault":"`+fault+`"}`); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	all("throttled")
	for operation, in := range valid {
		want(t, operation, in, endpoint, same, as(throttled))
		if err := throughSDK(t, c, operation, in); !isType[*types.RequestThrottled](err) {
			t.Errorf("RequestThrottled of %s through the SDK: %v", operation, err)
		}
	}
	all("none")

	equal(t, "the queue after all that", before, attributesOf(t, c, q))
	equal(t, "the queues after all that", []string{q}, must(c.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls)
	equal(t, "the messages after all that", []string{"a message"}, bodies(receive(t, c, q, 10)))
}

// wantError expects a refusal in a form.
func wantError(t *testing.T, f form, r response, want failure) {
	t.Helper()
	switch {
	case f.json:
		wantJSONError(t, r, want)
	case f.asJSON:
		text := want.Text
		if want.QueryText != "" {
			text = want.QueryText
		}
		id := r.Header.Get("x-amzn-RequestId")
		var got map[string]any
		err := json.Unmarshal([]byte(r.Body), &got)
		if r.Status != want.Status || r.Header.Get("Content-Type") != "application/json" || !uuidForm.MatchString(id) || err != nil {
			t.Errorf("%s: %d %v %s\nwant %d", f.name, r.Status, r.Header, r.Body, want.Status)
		}
		equal(t, f.name, map[string]any{"Error": map[string]any{"Type": "Sender", "Code": want.Code, "Message": text}, "RequestId": id}, got)
	default:
		wantXMLError(t, r, want)
	}
}

// A form may also name one element of a list without a number, as AWS's older
// examples do.
func TestQueryWithoutNumbers(t *testing.T) {
	endpoint := start(t)
	q := createQueue(t, client(endpoint), "q")
	get := func(parameters url.Values) response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, q+"?"+parameters.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return do(t, req)
	}
	wantXML(t, get(url.Values{"Action": {"SetQueueAttributes"}, "Attribute.Name": {"DelaySeconds"}, "Attribute.Value": {"7"}}), "SetQueueAttributes", "")
	wantXML(t, get(url.Values{"Action": {"GetQueueAttributes"}, "AttributeName": {"DelaySeconds"}}), "GetQueueAttributes", xmlAttribute("DelaySeconds", "7"))
}
