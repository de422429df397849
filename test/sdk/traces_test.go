package sdk_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// span is one as a collector gets it. Source: opentelemetry-proto, trace/v1.
type span struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string
	Kind         int
	Start        string `json:"startTimeUnixNano"`
	End          string `json:"endTimeUnixNano"`
	Attributes   []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	Links []struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	Status struct {
		Code    int
		Message string
	}
}

func (s *span) attribute(name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// collector takes traces by OTLP over HTTP.
type collector struct {
	URL string

	mu       sync.Mutex
	spans    []span
	services map[string]bool
	bodies   []string
	header   http.Header
}

func newCollector(t *testing.T) *collector {
	c := &collector{services: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes json.RawMessage }
				SchemaURL  string `json:"schemaUrl"`
				ScopeSpans []struct{ Spans []span }
			}
		}
		if err != nil || json.Unmarshal(body, &got) != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.header, c.bodies = r.Header, append(c.bodies, string(body))
		for _, of := range got.ResourceSpans {
			c.services[string(of.Resource.Attributes)+of.SchemaURL] = true
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
		io.WriteString(w, `{}`)
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// named are the spans of a name, in the order in which they ended.
func (c *collector) named(t *testing.T, name string, n int) (all []span) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			all = append(all, s)
		}
	}
	if len(all) != n {
		t.Fatalf("%d spans are called %s, want %d", len(all), name, n)
	}
	return all
}

// follows checks that a span is of a trace of its own, which is linked to that of another.
func follows(t *testing.T, s, of *span) {
	t.Helper()
	if len(s.Links) != 1 || s.Links[0].TraceID != of.TraceID || s.Links[0].SpanID != of.SpanID {
		t.Errorf("%s has links %v, want one to %s %s", s.Name, s.Links, of.TraceID, of.SpanID)
	}
	if s.ParentSpanID != "" || s.TraceID == of.TraceID {
		t.Errorf("%s is nested in what it follows from", s.Name)
	}
}

// TestTraces: a collector can tell the whole story of a publish, over a restart.
func TestTraces(t *testing.T) {
	const (
		traceID, caller = "5759e988bd862e3fe1be46a994272793", "53995c3f42cd8ad8"
		secret          = "hunter2"
	)
	c := newCollector(t)
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("Authorization: Bearer "+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint, restart := startDiskWith(t, func(s *config.Config) {
		s.Traces = config.Traces{Endpoint: c.URL, HeadersFile: headers} // only what belongs to a caller's trace
		s.FunctionIsolation = isolation()
	})
	topics, queues, functions := topicsClient(endpoint), client(endpoint), functionsClient(endpoint)
	topic := createTopic(t, topics, "orders")
	queue := createQueue(t, queues, "q")
	dead := createQueue(t, queues, "dead")
	createQueue(t, queues, "fed")

	f := newHook(t) // a function that runs elsewhere
	for _, name := range []string{"told", "fed-function"} {
		createFar(t, endpoint, functions, name, &far{Server: &httptest.Server{URL: f.URL}}, "")
	}
	allowTopic(t, functions, "told", topic)
	mapped(t, functions, "fed", "fed-function", nil)

	good, bad := newHook(t), newHook(t)
	confirmedHook(t, topics, topic, good)
	confirmedHook(t, topics, topic, bad, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	subscribe(t, topics, topic, "sqs", queueARN("q"))
	subscribe(t, topics, topic, "sqs", queueARN("fed"))
	subscribe(t, topics, topic, "lambda", functionARN("told"))

	// Nobody's trace: nothing is recorded of it, as the ratio is 0.
	good.answer(http.StatusOK)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("untraced")}))(t)
	if h := good.next(t).Header; h.Get("Traceparent") != "" || h.Get("X-Amzn-Trace-Id") != "" {
		t.Errorf("what is not traced has %v", h)
	}
	bad.next(t)
	f.next(t)
	f.next(t)
	if m := takeMessage(t, queues, queue); m.Attributes["AWSTraceHeader"] != "" {
		t.Errorf("what is not traced has %v", m.Attributes)
	}

	good.answer(http.StatusInternalServerError)
	bad.answer(http.StatusBadRequest)
	req := newTopics(t, endpoint, "Publish", "TopicArn", topic, "Message", secret)
	req.Header.Set("Traceparent", "00-"+traceID+"-"+caller+"-01")
	equal(t, "Publish", http.StatusOK, do(t, req).Status)

	told := []http.Header{good.next(t).Header, bad.next(t).Header}
	ran := []http.Header{f.next(t).Header, f.next(t).Header}
	message := takeMessage(t, queues, queue)
	advance(t, endpoint, "0s")
	endpoint = restart()
	advance(t, endpoint, "20s")
	told = append(told, good.next(t).Header)
	good.answer(http.StatusOK)
	advance(t, endpoint, "20s")
	told = append(told, good.next(t).Header)
	letter := takeMessage(t, client(endpoint), dead)
	restart() // has told all that ended before

	publish := c.named(t, "send orders", 1)[0]
	equal(t, "the publish", []any{traceID, caller, 2, "sns/Publish", "aws.sns", "orders", "200"}, []any{
		publish.TraceID, publish.ParentSpanID, publish.Kind, publish.attribute("rpc.method"), publish.attribute("messaging.system"),
		publish.attribute("messaging.destination.name"), publish.attribute("http.response.status_code"),
	})
	carried := "Root=1-" + traceID[:8] + "-" + traceID[8:] + ";Parent=" + publish.SpanID + ";Sampled=1"
	equal(t, "what the queue's message carries", carried, message.Attributes["AWSTraceHeader"])
	equal(t, "what the dead letter carries", carried, letter.Attributes["AWSTraceHeader"])

	parents := map[string]bool{}
	for _, h := range told {
		parents[h.Get("Traceparent")] = true
	}
	attempts := map[string][]string{}
	for _, s := range c.named(t, "deliver orders", 5) {
		follows(t, &s, &publish)
		at := s.attribute("messaging.destination.subscription.name")
		attempts[at] = append(attempts[at], s.attribute("godwit.attempt")+" "+s.attribute("http.response.status_code")+" "+s.attribute("error.type"))
		if host := s.attribute("server.address"); host != "" {
			if !parents["00-"+s.TraceID+"-"+s.SpanID+"-01"] {
				t.Errorf("the web hook was not told of span %s, but of %v", s.SpanID, parents)
			}
			if strings.Contains(host, "/") {
				t.Errorf("an address is told: %s", host)
			}
		}
	}
	story := map[string]bool{}
	for _, each := range attempts {
		story[strings.Join(each, ", ")] = true
	}
	equal(t, "the attempts", map[string]bool{
		"1 500 server-error, 2 500 server-error, 3 200 ": true, "1 400 client-error": true, "1 202 ": true,
	}, story)

	handed := c.named(t, "dead-letter orders", 1)[0]
	follows(t, &handed, &publish)
	equal(t, "whom it is handed to", "dead", handed.attribute("godwit.dead_letter_queue"))

	runs := map[string]bool{}
	for _, h := range ran {
		runs[h.Get("Traceparent")] = true
	}
	for parent, function := range map[string]string{"process told": "told", "process fed": "fed-function"} {
		above := c.named(t, parent, 1)[0]
		follows(t, &above, &publish)
		run := c.named(t, "invoke "+function, 1)[0]
		if run.ParentSpanID != above.SpanID || run.TraceID != above.TraceID || !runs["00-"+run.TraceID+"-"+run.SpanID+"-01"] {
			t.Errorf("%s is below %s, and the function was told %v; want it below %s", run.Name, run.ParentSpanID, runs, above.SpanID)
		}
		equal(t, "its function", function, run.attribute("faas.invoked_name"))
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	equal(t, "all spans", 11, len(c.spans)) // and none of what is in nobody's trace
	if len(c.services) != 1 {
		t.Errorf("spans of %v", c.services)
	}
	equal(t, "the collector's header", "Bearer "+secret, c.header.Get("Authorization"))
	for _, body := range c.bodies {
		if strings.Contains(body, secret) {
			t.Error("a span has the message, or a secret")
		}
	}
}

// TestTracedReceive: with a ratio of 1 every request begins a trace, and a receive is linked
// to the sends of what it gives out.
func TestTracedReceive(t *testing.T) {
	c := newCollector(t)
	endpoint, restart := startDiskWith(t, func(s *config.Config) { s.Traces = config.Traces{Endpoint: c.URL, Ratio: 1} })
	queues := client(endpoint)
	queue := createQueue(t, queues, "q")
	sent := must(queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: new("hello")}))(t)
	endpoint = restart()
	queues = client(endpoint)
	got := takeMessage(t, queues, createQueue(t, queues, "q"))
	_, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: new(endpoint + "/" + account + "/none"), ReceiptHandle: got.ReceiptHandle})
	if err == nil {
		t.Error("a queue that is not there has a message")
	}
	restart()
	send, receive := c.named(t, "send q", 1)[0], c.named(t, "receive q", 1)[0]
	follows(t, &receive, &send)
	equal(t, "what is told of it", []string{*sent.MessageId, "1", "5", "receive", "ReceiveMessage"}, []string{
		send.attribute("messaging.message.id"), receive.attribute("messaging.batch.message_count"), send.attribute("messaging.message.body.size"),
		receive.attribute("messaging.operation.type"), receive.attribute("messaging.operation.name"),
	})
	c.named(t, "settle q", 1)
	failed := c.named(t, "settle none", 1)[0]
	if failed.attribute("error.type") == "" || failed.Status.Code != 0 {
		t.Errorf("a mistake of the caller's is %+v", failed)
	}
	c.named(t, "sqs/CreateQueue", 2)
}
