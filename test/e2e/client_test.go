package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	region  = "us-east-1"
	account = "000000000000"
)

// client speaks to a server without an SDK, which would cost more than the
// server does: SQS in AWS JSON 1.0, SNS in AWS Query.
type client struct {
	base string
	http *http.Client
	hung *atomic.Bool // an answer did not come
}

// answerTime bounds every request; those that move the clock may take longer: the server does then
// all that is due.
const (
	answerTime = 60 * time.Second
	clockTime  = 5 * time.Minute
)

func newClient(addr string) client {
	return client{base: "http://" + addr, http: &http.Client{Timeout: clockTime, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, hung: new(atomic.Bool)}
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// refusal is an answer that is an error.
type refusal struct {
	operation string
	status    int
	code      string // JSON's __type or Query's code
	message   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", r.operation, r.status, r.code, r.message)
}

// signed is an Authorization header as an SDK sends it, but for its signature.
func signed(service string) string {
	return "AWS4-HMAC-SHA256 Credential=test/20260101/" + region + "/" + service +
		"/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + strings.Repeat("0", 64)
}

func (c client) call(ctx context.Context, method, path string, header map[string]string, body []byte) (_ answer, err error) {
	most := answerTime
	if path == "/_godwit/clock" {
		most = clockTime
	}
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer func() {
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			c.hung.Store(true)
		}
	}()
	req, err := http.NewRequestWithContext(within, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: got}, err
}

// object is a JSON object.
type object = map[string]any

// jsonService is a service whose operations are called by AWS JSON.
type jsonService struct {
	signed  string // its name in signatures
	target  string // what stands before an operation in X-Amz-Target
	version string // of the protocol
}

var (
	sqsJSON        = jsonService{signed: "sqs", target: "AmazonSQS", version: "1.0"}
	logsJSON       = jsonService{signed: "logs", target: "Logs_20140328", version: "1.1"}
	firehoseJSON   = jsonService{signed: "firehose", target: "Firehose_20150804", version: "1.1"}
	cloudWatchJSON = jsonService{signed: "monitoring", target: "GraniteServiceVersion20100801", version: "1.0"}
)

// header is the header of a request.
func (s jsonService) header(operation string) map[string]string {
	return map[string]string{
		"Content-Type": "application/x-amz-json-" + s.version, "X-Amz-Target": s.target + "." + operation, "Authorization": signed(s.signed),
	}
}

// rawSQS sends a body as it is.
func (c client) rawSQS(ctx context.Context, operation string, body []byte) (answer, error) {
	return c.call(ctx, http.MethodPost, "/", sqsJSON.header(operation), body)
}

// sqs calls an operation. out may be nil. An error answer is a *refusal.
func (c client) sqs(ctx context.Context, operation string, in, out any) error {
	return c.json(ctx, sqsJSON, operation, in, out)
}

// json calls an operation of a service. out may be nil. An error answer is a *refusal.
func (c client) json(ctx context.Context, s jsonService, operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	a, err := c.call(ctx, http.MethodPost, "/", s.header(operation), body)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return jsonRefusal(operation, a)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.body, out)
}

func jsonRefusal(operation string, a answer) *refusal {
	var e struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(a.body, &e) // what is no JSON has no code
	return &refusal{operation: operation, status: a.status, code: e.Type, message: e.Message}
}

// params are the parameters of a Query request.
type params map[string]string

// attributes adds Attributes.entry.N of an even list of keys and values.
func (p params) attributes(list ...string) params {
	for i := 0; i+1 < len(list); i += 2 {
		prefix := "Attributes.entry." + strconv.Itoa(i/2+1)
		p[prefix+".key"], p[prefix+".value"] = list[i], list[i+1]
	}
	return p
}

func (c client) rawSNS(ctx context.Context, form string) (answer, error) {
	return c.call(ctx, http.MethodPost, "/", map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Authorization": signed("sns"),
	}, []byte(form))
}

// sns calls an action. out may be nil. An error answer is a *refusal.
func (c client) sns(ctx context.Context, action string, in params, out any) error {
	form := url.Values{"Action": {action}, "Version": {"2010-03-31"}}
	for name, value := range in {
		form.Set(name, value)
	}
	a, err := c.rawSNS(ctx, form.Encode())
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return xmlRefusal(action, a)
	}
	if out == nil {
		return nil
	}
	return xml.Unmarshal(a.body, out)
}

func xmlRefusal(action string, a answer) *refusal {
	var e struct {
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	_ = xml.Unmarshal(a.body, &e) // what is no XML has no code
	return &refusal{operation: action, status: a.status, code: e.Code, message: e.Message}
}

// admin calls what lies under /_godwit/ and expects a status.
func (c client) admin(t *testing.T, method, path string, in any, want int, out any) {
	t.Helper()
	err := c.try(t.Context(), method, path, in, out)
	if r, ok := errors.AsType[*refusal](err); ok && r.status == want {
		err = json.Unmarshal([]byte(r.message), out)
	} else if err == nil && want != http.StatusOK {
		err = errors.New("status 200")
	}
	if err != nil {
		t.Fatalf("%s /_godwit/%s: want status %d: %v", method, path, want, err)
	}
}

// try calls what lies under /_godwit/. out may be nil. An answer that is not 200
// is a *refusal, with the body for a message.
func (c client) try(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	a, err := c.call(ctx, method, "/_godwit/"+path, nil, body)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return &refusal{operation: path, status: a.status, message: string(a.body)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.body, out)
}

// advanced is the answer of the virtual clock.
type advanced struct {
	Now  time.Time
	Ran  int
	Next *time.Time
}

// advance moves the virtual clock.
func (c client) advance(t *testing.T, d string) advanced {
	t.Helper()
	var out advanced
	c.admin(t, http.MethodPost, "clock", object{"advance": d}, http.StatusOK, &out)
	return out
}

// fault makes a queue fail: unavailable, throttled or none.
func (c client) fault(t *testing.T, arn, fault string) {
	t.Helper()
	c.admin(t, http.MethodPost, "faults", object{"arn": arn, "fault": fault}, http.StatusOK, nil)
}

// delivery is what the server shows about one delivery.
type delivery struct {
	MessageID     string
	State         string
	Attempt       int
	NextAttemptAt *time.Time
	Attempts      []struct {
		At      time.Time
		Outcome string
		Status  int
	}
}

// deliveries lists those of a subscription.
func (c client) deliveries(t *testing.T, subscription string) []delivery {
	t.Helper()
	var out struct{ Deliveries []delivery }
	c.admin(t, http.MethodGet, "deliveries?subscription="+url.QueryEscape(subscription), nil, http.StatusOK, &out)
	return out.Deliveries
}

// pending counts the deliveries that are not finished.
func (c client) pending(t *testing.T, subscription string) (n int) {
	t.Helper()
	for _, d := range c.deliveries(t, subscription) {
		if d.State == "pending" || d.State == "in-flight" {
			n++
		}
	}
	return n
}

func (c client) mustSQS(t *testing.T, operation string, in, out any) {
	t.Helper()
	if err := c.sqs(t.Context(), operation, in, out); err != nil {
		t.Fatal(err)
	}
}

func (c client) mustSNS(t *testing.T, action string, in params, out any) {
	t.Helper()
	if err := c.sns(t.Context(), action, in, out); err != nil {
		t.Fatal(err)
	}
}

// queueARN is the name of a queue of the tests' account.
func queueARN(name string) string { return "arn:aws:sqs:" + region + ":" + account + ":" + name }

// queueURL is a queue's address.
func (c client) queueURL(name string) string { return c.base + "/" + account + "/" + name }

// createQueue creates a queue with an even list of attributes.
func (c client) createQueue(t *testing.T, name string, attributes ...string) (queue string) {
	t.Helper()
	set := object{}
	for i := 0; i+1 < len(attributes); i += 2 {
		set[attributes[i]] = attributes[i+1]
	}
	var out struct{ QueueUrl string }
	c.mustSQS(t, "CreateQueue", object{"QueueName": name, "Attributes": set}, &out)
	if want := c.queueURL(name); out.QueueUrl != want {
		t.Fatalf("CreateQueue: %s, want %s", out.QueueUrl, want)
	}
	return out.QueueUrl
}

func (c client) createTopic(t *testing.T, name string) (arn string) {
	t.Helper()
	var out struct {
		ARN string `xml:"CreateTopicResult>TopicArn"`
	}
	c.mustSNS(t, "CreateTopic", params{"Name": name}, &out)
	return out.ARN
}

func (c client) subscribe(t *testing.T, topic, protocol, endpoint string, attributes ...string) (arn string) {
	t.Helper()
	var out struct {
		ARN string `xml:"SubscribeResult>SubscriptionArn"`
	}
	in := params{"TopicArn": topic, "Protocol": protocol, "Endpoint": endpoint, "ReturnSubscriptionArn": "true"}
	c.mustSNS(t, "Subscribe", in.attributes(attributes...), &out)
	return out.ARN
}

// publish publishes a message, with one String attribute unless kind is empty.
func (c client) publish(ctx context.Context, topic, message, kind string) (id string, err error) {
	in := params{"TopicArn": topic, "Message": message}
	if kind != "" {
		in["MessageAttributes.entry.1.Name"] = "kind"
		in["MessageAttributes.entry.1.Value.DataType"] = "String"
		in["MessageAttributes.entry.1.Value.StringValue"] = kind
	}
	var out struct {
		ID string `xml:"PublishResult>MessageId"`
	}
	err = c.sns(ctx, "Publish", in, &out)
	return out.ID, err
}

// message is what a receive gives.
type message struct {
	MessageId, ReceiptHandle, Body string
	Attributes                     map[string]string
}

// receive takes up to ten messages.
func (c client) receive(ctx context.Context, queue string, wait int) ([]message, error) {
	var out struct{ Messages []message }
	err := c.sqs(ctx, "ReceiveMessage", object{
		"QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": wait,
		"MessageSystemAttributeNames": []string{"All"},
	}, &out)
	return out.Messages, err
}

// counts are a queue's messages: visible, in flight, delayed.
func (c client) counts(t *testing.T, queue string) (counts [3]int) {
	t.Helper()
	names := []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"}
	var out struct{ Attributes map[string]string }
	c.mustSQS(t, "GetQueueAttributes", object{"QueueUrl": queue, "AttributeNames": names}, &out)
	for i, name := range names {
		n, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			t.Fatalf("GetQueueAttributes: %s is %q", name, out.Attributes[name])
		}
		counts[i] = n
	}
	return counts
}

// envelope is the JSON that subscribers get.
type envelope struct {
	Type, MessageId, TopicArn, Message, Token string
}

func openEnvelope(body string) (e envelope, err error) {
	err = json.Unmarshal([]byte(body), &e)
	return e, err
}
