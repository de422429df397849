package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// topicsClient is an SNS client of account 000000000000.
func topicsClient(endpoint string) *sns.Client { return topicsClientOf(endpoint, region, "test") }

func topicsClientOf(endpoint, region, accessKey string) *sns.Client {
	return sns.New(sns.Options{
		BaseEndpoint:     &endpoint,
		Region:           region,
		Credentials:      credentials.NewStaticCredentialsProvider(accessKey, secretOf(accessKey), ""),
		RetryMaxAttempts: 1,
		HTTPClient:       eager,
	})
}

// topicARN is the ARN of a topic of account 000000000000.
func topicARN(name string) string { return "arn:aws:sns:" + region + ":" + account + ":" + name }

// queueARN is the ARN of a queue of account 000000000000.
func queueARN(name string) string { return "arn:aws:sqs:" + region + ":" + account + ":" + name }

// createTopic makes a topic and gives its ARN.
func createTopic(t *testing.T, c *sns.Client, name string) string {
	t.Helper()
	return *must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name}))(t).TopicArn
}

// subscribe subscribes and gives the subscription's ARN. The attributes are
// pairs of name and value.
func subscribe(t *testing.T, c *sns.Client, topic, protocol, endpoint string, attributes ...string) string {
	t.Helper()
	in := &sns.SubscribeInput{
		TopicArn: &topic, Protocol: &protocol, Endpoint: &endpoint, ReturnSubscriptionArn: true, Attributes: map[string]string{},
	}
	for i := 0; i < len(attributes); i += 2 {
		in.Attributes[attributes[i]] = attributes[i+1]
	}
	return *must(c.Subscribe(t.Context(), in))(t).SubscriptionArn
}

func topicAttributes(t *testing.T, c *sns.Client, topic string) map[string]string {
	t.Helper()
	return must(c.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: &topic}))(t).Attributes
}

func subscriptionAttributes(t *testing.T, c *sns.Client, subscription string) map[string]string {
	t.Helper()
	return must(c.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &subscription}))(t).Attributes
}

// refused checks code, status and text of a refusal.
func refused(t *testing.T, err error, code string, status int, text string) {
	t.Helper()
	refusal, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		t.Errorf("got %v, want %s", err, code)
		return
	}
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok || refusal.ErrorCode() != code || response.HTTPStatusCode() != status || refusal.ErrorMessage() != text {
		t.Errorf("got  %v\nwant %d %s: %s", err, status, code, text)
	}
}

// takeMessage receives a message, which has to come, and deletes it.
func takeMessage(t *testing.T, c *sqs.Client, queueURL string) sqstypes.Message {
	t.Helper()
	out := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queueURL, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	}))(t)
	if len(out.Messages) != 1 {
		t.Fatalf("%d messages came to %s", len(out.Messages), queueURL)
	}
	must(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: out.Messages[0].ReceiptHandle}))(t)
	return out.Messages[0]
}

// decode reads JSON text, with numbers and objects as they come.
func decode(t *testing.T, document string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return v
}

// hookRequest is a request that came to a web hook.
type hookRequest struct {
	Header http.Header
	Body   string
}

// hook is a web hook that answers 200 to everything, or the status that is set.
type hook struct {
	URL      string
	requests chan hookRequest
	status   atomic.Int64
}

func (h *hook) answer(status int) { h.status.Store(int64(status)) }

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{requests: make(chan hookRequest, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			h.requests <- hookRequest{r.Header, string(body)}
		}
		if status := h.status.Load(); status != 0 {
			rw.WriteHeader(int(status))
		}
	}))
	t.Cleanup(server.Close)
	h.URL = server.URL
	return h
}

// next waits for the next request.
func (h *hook) next(t *testing.T) hookRequest {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	select {
	case r := <-h.requests:
		return r
	case <-ctx.Done():
		t.Fatal("no request came to the web hook")
		return hookRequest{}
	}
}

// visit follows a link as a browser does, without credentials; what is Godwit's own is
// asked for as an operator.
func visit(t *testing.T, link string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	if isOwn(req) {
		return do(t, req)
	}
	return do(t, withoutSignature(req))
}

// callTopics sends an operation of SNS as a form. The parameters are pairs of
// name and value.
func callTopics(t *testing.T, endpoint, operation string, parameters ...string) response {
	t.Helper()
	return do(t, newTopics(t, endpoint, operation, parameters...))
}

func newTopics(t *testing.T, endpoint, operation string, parameters ...string) *http.Request {
	t.Helper()
	form := url.Values{"Action": {operation}, "Version": {"2010-03-31"}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

// Ids, which differ from run to run, are written as ID.
var anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func withoutIDs(text string) string { return anID.ReplaceAllString(text, "ID") }

// without is a copy of a map that lacks the names.
func without(m map[string]string, names ...string) map[string]string {
	rest := maps.Clone(m)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// proxyTo passes requests on to a server.
func proxyTo(t *testing.T, target string) http.Handler {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
}
