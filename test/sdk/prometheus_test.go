package sdk_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.yaml.in/yaml/v3"

	"godwit.dev/godwit/internal/config"
)

// scrape is what Prometheus reads: the samples, by their names with labels.
func scrape(t *testing.T, endpoint string) map[string]string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := do(t, req)
	if r.Status != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
		t.Fatalf("/metrics: %d %s", r.Status, r.Header.Get("Content-Type"))
	}
	samples := map[string]string{}
	for line := range strings.Lines(r.Body) {
		if at := strings.LastIndexByte(strings.TrimSpace(line), ' '); at > 0 && line[0] != '#' {
			samples[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	return samples
}

// startCounting is start with /metrics and a store on the disk.
func startCounting(t *testing.T) string {
	return startWith(t, func(c *config.Config) { c.Prometheus, c.PrometheusSeries, c.Store = true, 1000, config.PebbleStore })
}

// traffic makes one of everything that is counted.
func traffic(t *testing.T, endpoint string) {
	t.Helper()
	queues, topics := client(endpoint), topicsClient(endpoint)
	topic := createTopic(t, topics, "orders")
	url := createQueue(t, queues, "work")
	createQueue(t, queues, "dlq")
	subscribe(t, topics, topic, "sqs", queueARN("work"))
	subscribe(t, topics, topic, "sqs", queueARN("none"), "FilterPolicy", `{"a":["x"]}`)
	h, _ := subscribeFickle(t, endpoint, topic, queueARN("dlq"))
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("hello")}))(t)
	advance(t, endpoint, "0s")
	h.failing.Store(true)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("hello")}))(t)
	advance(t, endpoint, "10m")
	for range 2 {
		takeMessage(t, queues, url)
	}
	must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}))(t)
	_, _ = queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: new("nobody")})
	must(queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("12345")}))(t)
	functions, far := functionsClient(endpoint), startFar(t)
	createFar(t, endpoint, functions, "f", far, "")
	must(functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: new("f")}))(t)
	far.fail(1)
	invokeAsync(t, functions, "f", `{}`)
	advance(t, endpoint, "2m")
	must(functions.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: new("f"), ReservedConcurrentExecutions: new(int32(0))}))(t)
	if _, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: new("f")}); err == nil {
		t.Error("a function without concurrency runs")
	}
	invokeAsync(t, functions, "f", `{}`) // which drops it at once
	advance(t, endpoint, "0s")
}

// TestPrometheus: what happened is counted, under the names that the
// documentation gives.
func TestPrometheus(t *testing.T) {
	endpoint := startCounting(t)
	traffic(t, endpoint)
	samples := scrape(t, endpoint)
	const ofQueue = `{account="000000000000",queue="work",region="us-east-1"}`
	const ofTopic = `account="000000000000",`
	const at = `,region="us-east-1",topic="orders"`
	for name, want := range map[string]string{
		"godwit_sqs_messages_sent_total" + ofQueue:                                                                    "3",
		"godwit_sqs_messages_received_total" + ofQueue:                                                                "2",
		"godwit_sqs_messages_deleted_total" + ofQueue:                                                                 "2",
		"godwit_sqs_empty_receives_total" + ofQueue:                                                                   "1",
		`godwit_sqs_messages{account="000000000000",queue="work",region="us-east-1",state="visible"}`:                 "1",
		`godwit_sns_messages_published_total{account="000000000000"` + at + "}":                                       "2",
		`godwit_sns_published_bytes_total{account="000000000000"` + at + "}":                                          "10",
		`godwit_sns_notifications_filtered_out_total{account="000000000000"` + at + "}":                               "2",
		"godwit_sns_deliveries_total{" + ofTopic + `outcome="delivered",protocol="sqs"` + at + "}":                    "2",
		"godwit_sns_deliveries_total{" + ofTopic + `outcome="dead-letter",protocol="http"` + at + "}":                 "1",
		"godwit_sns_delivery_attempts_total{" + ofTopic + `outcome="success",protocol="http"` + at + "}":              "1",
		`godwit_requests_total{code="",operation="SendMessage",service="sqs"}`:                                        "1",
		`godwit_requests_total{code="AWS.SimpleQueueService.NonExistentQueue",operation="GetQueueUrl",service="sqs"}`: "1",
		`godwit_request_duration_seconds_count{operation="Publish",service="sns"}`:                                    "2",
		`godwit_lambda_invocations_total{account="000000000000",function="f",region="us-east-1"}`:                     "3",
		`godwit_lambda_errors_total{account="000000000000",function="f",region="us-east-1"}`:                          "1",
		`godwit_lambda_throttles_total{account="000000000000",function="f",region="us-east-1"}`:                       "1",
		`godwit_lambda_duration_seconds_count{account="000000000000",function="f",region="us-east-1"}`:                "3",
		`godwit_lambda_running{account="000000000000",function="f",region="us-east-1"}`:                               "0",
		`godwit_lambda_async_events_received_total{account="000000000000",function="f",region="us-east-1"}`:           "2",
		`godwit_lambda_async_events_dropped_total{account="000000000000",function="f",region="us-east-1"}`:            "1",
		`godwit_lambda_async_event_age_seconds_count{account="000000000000",function="f",region="us-east-1"}`:         "2",
		`godwit_lambda_async_events{account="000000000000",function="f",region="us-east-1",state="waiting"}`:          "0",
		"godwit_disk_low": "0",
	} {
		if samples[name] != want {
			t.Errorf("%s is %q, want %s", name, samples[name], want)
		}
	}
	if t.Failed() {
		for _, name := range slices.Sorted(maps.Keys(samples)) {
			if strings.HasPrefix(name, "godwit_s") || strings.HasPrefix(name, "godwit_l") || strings.HasPrefix(name, "godwit_requests") {
				t.Log(name, samples[name])
			}
		}
	}
	must(topicsClient(endpoint).DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: aws.String(topicARN("orders"))}))(t)
	must(client(endpoint).DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(endpoint + "/" + account + "/work")}))(t)
	must(functionsClient(endpoint).DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("f")}))(t)
	for name := range scrape(t, endpoint) {
		for _, gone := range []string{`queue="work"`, `topic="orders"`, `function="f"`} {
			if strings.Contains(name, gone) {
				t.Errorf("what is deleted is told of: %s", name)
			}
		}
	}
	equal(t, "without the setting, nothing is there", http.StatusBadRequest, func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, start(t)+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		return do(t, req).Status
	}())
}

// metricNames are the names of metrics in an expression or a document.
var metricNames = regexp.MustCompile(`\b(?:godwit|go|process)_[a-z0-9_]+\b`)

// TestDeployedFiles: the dashboard and the alert rules can be read, and name
// metrics that are there.
func TestDeployedFiles(t *testing.T) {
	endpoint := startCounting(t)
	traffic(t, endpoint)
	known := map[string]bool{}
	for name := range scrape(t, endpoint) {
		name, _, _ = strings.Cut(name, "{")
		known[name] = true
	}
	var expressions []string
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if text, ok := value.(string); ok && slices.Contains([]string{"expr", "query", "definition"}, key) {
					expressions = append(expressions, text)
				}
				collect(value)
			}
		case []any:
			for _, value := range v {
				collect(value)
			}
		}
	}
	read := func(name string, unmarshal func([]byte, any) error) any {
		t.Helper()
		document, err := os.ReadFile("../../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := unmarshal(document, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	collect(read("grafana/godwit.json", json.Unmarshal))
	if len(expressions) < 30 {
		t.Errorf("%d expressions in the dashboard", len(expressions))
	}
	rules := read("prometheus/alerts.yml", yaml.Unmarshal)
	before := len(expressions)
	collect(rules)
	if len(expressions)-before < 8 {
		t.Errorf("%d alert rules", len(expressions)-before)
	}
	for _, e := range expressions {
		for _, name := range metricNames.FindAllString(e, -1) {
			if !known[name] {
				t.Errorf("there is no %s, of %s", name, e)
			}
		}
	}
	settings := read("godwit.yaml", yaml.Unmarshal)
	if len(settings.(map[string]any)) < 5 {
		t.Errorf("settings %v", settings)
	}
	guide, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range known {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "godwit_") && !strings.Contains(string(guide), base) {
			t.Errorf("docs/monitoring.md does not say what %s is", base)
		}
	}
	for _, name := range metricNames.FindAllString(string(guide), -1) {
		if !known[name] && !known[name+"_bucket"] {
			t.Errorf("docs/monitoring.md names %s, which is not there", name)
		}
	}
}
