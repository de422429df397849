// Package attack_test attacks a whole server over HTTP as a stranger would, who
// knows its protocols and keeps to nothing else.
package attack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/test/output"
)

// world is a server under attack. It may be stopped and started again.
type world struct {
	t        *testing.T
	settings config.Config
	server   *server.Server
	http     *http.Client
	log      output.Buffer // what is logged as an error
}

// hang is how long no request may take.
const hang = time.Minute

func newWorld(t *testing.T, change func(*config.Config)) *world {
	w := &world{t: t, http: &http.Client{
		Timeout: hang, Transport: &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	w.settings = config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.VirtualClock, Data: t.TempDir(), Region: "us-east-1", Account: "000000000000",
		AllowPrivateEndpoints: true, Metrics: true, JitterSeed: 1, Retry429: true, EndpointConcurrency: 50, DeliveryConcurrency: 500, Prometheus: true,
		PrometheusSeries: 100, LambdaConcurrency: 1000, LambdaIdle: time.Second,
	}
	if change != nil {
		change(&w.settings)
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *world) start() {
	w.t.Helper()
	w.server = server.New(w.settings, slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelError})), nil)
	if err := w.server.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.settings.Listen = w.server.Addr().String() // where it is after a restart: queue URLs are texts in messages and tags
}

func (w *world) stop() {
	if w.server == nil {
		return
	}
	w.http.CloseIdleConnections()
	if err := w.server.Stop(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.server = nil
}

func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

func (w *world) url() string { return "http://" + w.server.Addr().String() }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (w *world) do(method, path string, header http.Header, body []byte) (answer, error) {
	u, err := url.Parse(w.url() + path)
	if err != nil {
		return answer{}, errUnsendable
	}
	req := &http.Request{Method: method, URL: u, Host: u.Host, Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
	if len(body) == 0 {
		req.Body = nil
	}
	resp, err := w.http.Do(req.WithContext(w.t.Context()))
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, got}, err
}

var errUnsendable = fmt.Errorf("no client sends this")

// rpc makes a call in JSON that must succeed.
func (w *world) rpc(target, operation, body string) []byte {
	w.t.Helper()
	return w.must("POST", "/", http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {target + "." + operation}}, body)
}

// query makes a call of SNS that must succeed.
func (w *world) query(action string, pairs ...string) []byte {
	w.t.Helper()
	f := url.Values{"Action": {action}, "Version": {"2010-03-31"}}
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return w.must("POST", "/", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, f.Encode())
}

func (w *world) must(method, path string, header http.Header, body string) []byte {
	w.t.Helper()
	a, err := w.do(method, path, header, []byte(body))
	if err != nil || a.status >= 300 {
		w.t.Fatalf("%s %s %s: %d %s %v", method, path, body, a.status, a.body, err)
	}
	return a.body
}

// populate makes one thing of each kind.
func (w *world) populate() {
	w.t.Helper()
	for _, name := range []string{"dead", "name"} {
		w.rpc("AmazonSQS", "CreateQueue", `{"QueueName":"`+name+`"}`)
	}
	w.rpc("AmazonSQS", "CreateQueue", `{"QueueName":"name.fifo","Attributes":{"FifoQueue":"true"}}`)
	w.rpc("AmazonSQS", "SendMessage", `{"QueueUrl":"`+w.url()+`/000000000000/name","MessageBody":"first"}`)
	w.query("CreateTopic", "Name", "name")
	w.query("CreateTopic", "Name", "name.fifo", "Attributes.entry.1.key", "FifoTopic", "Attributes.entry.1.value", "true")
	w.rpc("AmazonSQS", "SetQueueAttributes", `{"QueueUrl":"`+w.url()+`/000000000000/name","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead\",\"maxReceiveCount\":3}"}}`)
	w.query("Subscribe", "TopicArn", "arn:aws:sns:us-east-1:000000000000:name", "Protocol", "sqs", "Endpoint", "arn:aws:sqs:us-east-1:000000000000:name")
	zip, _ := json.Marshal(handlerZip())
	w.must("POST", "/2015-03-31/functions", http.Header{"Content-Type": {"application/json"}},
		`{"FunctionName":"name","Runtime":"provided.al2023","Handler":"bootstrap","Role":"arn:aws:iam::000000000000:role/r","Code":{"ZipFile":`+string(zip)+`},"Timeout":1}`)
	w.must("POST", "/2018-10-31/layers/name/versions", http.Header{"Content-Type": {"application/json"}}, `{"Content":{"ZipFile":`+string(zip)+`}}`)
	w.rpc("GraniteServiceVersion20100801", "PutMetricAlarm", `{"AlarmName":"name","MetricName":"Errors","Namespace":"Own","Statistic":"Sum","Period":60,"EvaluationPeriods":1,"Threshold":1,"ComparisonOperator":"GreaterThanThreshold"}`)
	w.rpc("GraniteServiceVersion20100801", "PutMetricData", `{"Namespace":"Own","MetricData":[{"MetricName":"Errors","Value":1}]}`)
	w.rpc("Logs_20140328", "CreateLogGroup", `{"logGroupName":"name"}`)
	w.rpc("Logs_20140328", "CreateLogStream", `{"logGroupName":"name","logStreamName":"name"}`)
}

var element = regexp.MustCompile(`<(\w+)>([^<]*)</`)

// texts are those of an answer in XML by the names of their elements, or of one in
// JSON by the names of their members.
func texts(body []byte) map[string][]string {
	found := map[string][]string{}
	harvest(body, func(name, value string) { found[name] = append(found[name], value) })
	if bytes.HasPrefix(body, []byte("<")) {
		for _, m := range element.FindAllSubmatch(body, -1) {
			var text string
			if xml.Unmarshal([]byte("<a>"+string(m[2])+"</a>"), &text) == nil {
				found[string(m[1])] = append(found[string(m[1])], text)
			}
		}
	}
	return found
}

// rest ends what moves messages by itself, so that two snapshots can be compared:
// message move tasks, and mappings from queues to functions.
func (w *world) rest() {
	w.t.Helper()
	for _, queue := range w.pages(func(token string) []byte {
		return w.rpc("AmazonSQS", "ListQueues", `{"MaxResults":1000`+next("NextToken", token)+`}`)
	}, "NextToken", "QueueUrls") {
		arn := "arn:aws:sqs:us-east-1:000000000000:" + queue[strings.LastIndexByte(queue, '/')+1:]
		for _, handle := range texts(w.rpc("AmazonSQS", "ListMessageMoveTasks", `{"SourceArn":"`+arn+`","MaxResults":1}`))["TaskHandle"] { // only a running one has any
			w.rpc("AmazonSQS", "CancelMessageMoveTask", `{"TaskHandle":`+string(appendJSON(nil, handle))+`}`)
		}
	}
	const mappings = "/2015-03-31/event-source-mappings/"
	for _, id := range w.pages(func(token string) []byte {
		return w.must("GET", mappings+"?Marker="+url.QueryEscape(token), http.Header{}, "")
	}, "NextMarker", "UUID") {
		w.must("DELETE", mappings+id, http.Header{}, "")
	}
}

// snapshot is what the lists and the descriptions of everything say. A list that names
// what cannot be described fails the test.
func (w *world) snapshot() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	note := func(what string, body []byte) []byte {
		text := string(body)
		if i := strings.Index(text, "<ResponseMetadata>"); i >= 0 {
			text = text[:i]
		}
		all[what] = sumCounts(functionOutput.ReplaceAllString(text, "$1"))
		return body
	}
	quoted := func(s string) string { return string(appendJSON(nil, s)) }
	sqs := func(operation, body string) []byte {
		return note("sqs "+operation+body, w.rpc("AmazonSQS", operation, body))
	}
	for _, queue := range w.pages(func(token string) []byte {
		return sqs("ListQueues", `{"MaxResults":1000`+next("NextToken", token)+`}`)
	}, "NextToken", "QueueUrls") {
		sqs("GetQueueAttributes", `{"AttributeNames":["All"],"QueueUrl":`+quoted(queue)+`}`)
		sqs("ListQueueTags", `{"QueueUrl":`+quoted(queue)+`}`)
		sqs("GetQueueUrl", `{"QueueName":`+quoted(queue[strings.LastIndexByte(queue, '/')+1:])+`}`)
	}
	sns := func(action string, pairs ...string) []byte {
		return note("sns "+action+fmt.Sprint(pairs), w.query(action, pairs...))
	}
	var byTopic []string
	for _, topic := range w.pages(func(token string) []byte { return sns("ListTopics", "NextToken", token) }, "NextToken", "TopicArn") {
		sns("GetTopicAttributes", "TopicArn", topic)
		sns("ListTagsForResource", "ResourceArn", topic)
		byTopic = append(byTopic, w.pages(func(token string) []byte {
			return sns("ListSubscriptionsByTopic", "TopicArn", topic, "NextToken", token)
		}, "NextToken", "SubscriptionArn")...)
	}
	subscriptions := w.pages(func(token string) []byte { return sns("ListSubscriptions", "NextToken", token) }, "NextToken", "SubscriptionArn")
	slices.Sort(byTopic)
	slices.Sort(subscriptions)
	if !slices.Equal(byTopic, subscriptions) {
		w.t.Errorf("by topic there are the subscriptions %q, in all %q", byTopic, subscriptions)
	}
	for _, subscription := range subscriptions {
		if strings.HasPrefix(subscription, "arn:") { // else it is not confirmed
			sns("GetSubscriptionAttributes", "SubscriptionArn", subscription)
		}
	}
	get := func(path string) []byte { return note("lambda "+path, w.must("GET", path, http.Header{}, "")) }
	const functions = "/2015-03-31/functions/"
	for _, name := range w.pages(func(token string) []byte { return get(functions + "?Marker=" + url.QueryEscape(token)) }, "NextMarker", "FunctionName") {
		get(functions + name + "/configuration")
		get(functions + name + "/versions")
		get(functions + name + "/aliases")
		get("/2021-10-31/functions/" + name + "/urls")
	}
	for _, name := range w.pages(func(token string) []byte { return get("/2018-10-31/layers?Marker=" + url.QueryEscape(token)) }, "NextMarker", "LayerName") {
		get("/2018-10-31/layers/" + name + "/versions")
	}
	for _, id := range w.pages(func(token string) []byte {
		return get("/2015-03-31/event-source-mappings/?Marker=" + url.QueryEscape(token))
	}, "NextMarker", "UUID") {
		get("/2015-03-31/event-source-mappings/" + id)
	}
	cloudwatch := func(operation, body string) []byte {
		return note("cloudwatch "+operation+body, w.rpc("GraniteServiceVersion20100801", operation, body))
	}
	for _, alarm := range w.pages(func(token string) []byte {
		return cloudwatch("DescribeAlarms", `{`+strings.TrimPrefix(next("NextToken", token), ",")+`}`)
	}, "NextToken", "AlarmArn") {
		cloudwatch("ListTagsForResource", `{"ResourceARN":`+quoted(alarm)+`}`)
	}
	logs := func(operation, body string) []byte {
		return note("logs "+operation+body, w.rpc("Logs_20140328", operation, body))
	}
	for _, group := range w.pages(func(token string) []byte {
		return logs("DescribeLogGroups", `{"limit":50`+next("nextToken", token)+`}`)
	}, "nextToken", "logGroupName") {
		if strings.HasPrefix(group, "/aws/lambda/") {
			continue // a function that runs again after the start continues writing
		}
		w.pages(func(token string) []byte {
			return logs("DescribeLogStreams", `{"limit":50,"logGroupName":`+quoted(group)+next("nextToken", token)+`}`)
		}, "nextToken", "logStreamName")
		logs("ListTagsLogGroup", `{"logGroupName":`+quoted(group)+`}`)
	}
	return all
}

var count = regexp.MustCompile(`"ApproximateNumberOfMessages(?:Delayed|NotVisible)?":"(\d+)",`)

// functionOutput is how much functions have written.
var functionOutput = regexp.MustCompile(`("logGroupName":"/aws/lambda/[^{}]*)"storedBytes":\d+,`)

// sumCounts puts a queue's messages together: a start takes the virtual clock back to the
// machine's time, and what is delayed by one is visible by the other.
func sumCounts(text string) string {
	sum := 0
	for _, m := range count.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return fmt.Sprintf("%s (%d messages)", count.ReplaceAllString(text, ""), sum)
}

// next is a member for the token of the next page.
func next(name, token string) string {
	if token == "" {
		return ""
	}
	return `,"` + name + `":` + string(appendJSON(nil, token))
}

// pages reads a list to its end.
func (w *world) pages(list func(token string) []byte, tokenName, name string) (all []string) {
	w.t.Helper()
	token := ""
	for range 1000 {
		found := texts(list(token))
		all = append(all, found[name]...)
		tokens := found[tokenName]
		if len(tokens) == 0 || tokens[0] == "" {
			return all
		}
		token = tokens[0]
	}
	w.t.Errorf("the list of %s has no end", name)
	return all
}

// compare fails the test where two snapshots differ.
func compare(t *testing.T, before, after map[string]string) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(before)) {
		if after[what] != before[what] {
			t.Errorf("after a restart %s says\n%s\nbefore\n%s", what, after[what], before[what])
		}
	}
	for what := range after {
		if _, ok := before[what]; !ok {
			t.Errorf("after a restart there is %s", what)
		}
	}
}
