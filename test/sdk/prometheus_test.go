package sdk_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
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
	problems, err := promlint.New(strings.NewReader(r.Body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("/metrics: %v, %v", err, problems)
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
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, startOpen(t)+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		return do(t, req).Status
	}())
}

// metricNames are the names of metrics in an expression or a document.
var metricNames = regexp.MustCompile(`\b(?:up|(?:godwit|go|process)_[a-z0-9_]+)\b`)

// expression is one of the dashboard or of the alert rules, with the labels that are
// shown of its result.
type expression struct {
	text  string
	shown []string
}

var (
	shownLabels = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
	selectors   = regexp.MustCompile(`\b(up|(?:godwit|go|process)_[a-z0-9_]+)\{([^}]*)\}`)
	matchers    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	groupings   = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
)

// expressions finds those of a document, whatever surrounds them.
func expressions(document any) (all []expression) {
	switch v := document.(type) {
	case map[string]any:
		e := expression{}
		for _, key := range []string{"expr", "query", "definition"} {
			if text, ok := v[key].(string); ok && metricNames.MatchString(text) {
				e.text = text
			}
		}
		if e.text != "" {
			shown := fmt.Sprint(v["legendFormat"], v["annotations"])
			for _, found := range shownLabels.FindAllStringSubmatch(shown, -1) {
				e.shown = append(e.shown, found[1])
			}
			return []expression{e}
		}
		for _, value := range v {
			all = append(all, expressions(value)...)
		}
	case []any:
		for _, value := range v {
			all = append(all, expressions(value)...)
		}
	}
	return all
}

// check holds an expression against the labels that each metric has.
func (e expression) check(t *testing.T, known map[string]map[string]bool) {
	t.Helper()
	all := map[string]bool{}
	for _, name := range metricNames.FindAllString(e.text, -1) {
		if known[name] == nil {
			t.Errorf("there is no %s, of %s", name, e.text)
		}
		maps.Copy(all, known[name])
	}
	for _, found := range selectors.FindAllStringSubmatch(e.text, -1) {
		for _, m := range matchers.FindAllStringSubmatch(found[2], -1) {
			if !known[found[1]][m[1]] {
				t.Errorf("%s has no label %s, of %s", found[1], m[1], e.text)
			}
		}
	}
	result := all
	for i, found := range groupings.FindAllStringSubmatch(e.text, -1) {
		kept := map[string]bool{}
		for label := range strings.SplitSeq(found[1], ",") {
			if kept[strings.TrimSpace(label)] = true; !all[strings.TrimSpace(label)] {
				t.Errorf("nothing has the label %s, of %s", label, e.text)
			}
		}
		if i == 0 {
			result = kept
		}
	}
	for _, label := range e.shown {
		if !result[label] {
			t.Errorf("the label %s is shown, and is not in the result of %s", label, e.text)
		}
	}
}

// A queue that holds messages is told of after a restart, though nobody uses it: that is what
// GodwitQueueStalls is about.
func TestPrometheusAfterARestart(t *testing.T) {
	endpoint, restart := startDiskWith(t, func(c *config.Config) { c.Prometheus, c.PrometheusSeries = true, 1000 })
	queues := client(endpoint)
	for _, name := range []string{"stalled", "empty"} {
		createQueue(t, queues, name)
	}
	must(queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(endpoint + "/000000000000/stalled"), MessageBody: aws.String("x")}))(t)
	samples := scrape(t, restart())
	for queue, want := range map[string]string{"stalled": "1", "empty": ""} {
		name := `godwit_sqs_messages{account="000000000000",queue="` + queue + `",region="us-east-1",state="visible"}`
		if samples[name] != want {
			t.Errorf("%s is %q, want %q", name, samples[name], want)
		}
	}
}

// TestDeployedFiles: the dashboard and the alert rules can be read, and name
// metrics and labels that are there.
func TestDeployedFiles(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(collector.Close)
	s := startServer(t, withTestKeys, func(c *config.Config) {
		c.Prometheus, c.PrometheusSeries, c.Store, c.IngestListen = true, 1000, config.PebbleStore, "127.0.0.1:0"
		c.Traces = config.Traces{Endpoint: collector.URL, Ratio: 1}
	})
	endpoint := "http://" + s.Addr().String()
	traffic(t, endpoint)
	source := must(http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/_godwit/v1/sources", strings.NewReader(
		`{"name":"shop","target":"`+queueARN("work")+`","verification":{"kind":"api-key"},"secrets":["a key of some length"]}`)))(t)
	equal(t, "a source", http.StatusOK, do(t, source).Status)
	for key, want := range map[string]int{"a key of some length": http.StatusAccepted, "another key": http.StatusUnauthorized} {
		post := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.IngestAddr().String()+"/in/shop", strings.NewReader("a post")))(t)
		post.Header.Set("X-Api-Key", key)
		equal(t, key, want, do(t, post).Status)
	}
	scraped := map[string]bool{"instance": true, "job": true} // which Prometheus adds
	known := map[string]map[string]bool{"up": scraped}
	for sample := range scrape(t, endpoint) {
		name, labels, _ := strings.Cut(sample, "{")
		if known[name] == nil {
			known[name] = maps.Clone(scraped)
		}
		for _, m := range matchers.FindAllStringSubmatch(labels, -1) {
			known[name][m[1]] = true
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
	for name, least := range map[string]int{"grafana/godwit.json": 30, "prometheus/alerts.yml": 8} {
		unmarshal := json.Unmarshal
		if strings.HasSuffix(name, ".yml") {
			unmarshal = yaml.Unmarshal
		}
		found := expressions(read(name, unmarshal))
		if len(found) < least {
			t.Errorf("%d expressions in %s", len(found), name)
		}
		for _, e := range found {
			e.check(t, known)
		}
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
		if known[name] == nil && known[name+"_bucket"] == nil {
			t.Errorf("docs/monitoring.md names %s, which is not there", name)
		}
	}
}
