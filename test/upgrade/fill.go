package upgrade

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Ahead is by how much the clock of a directory is ahead of the machine's when it is
// made: a server that opens it stands where the directory does, so that nothing in it
// ever expires. A clock that moves by itself would be refused.
const Ahead = "18000d"

// hook is where a web hook is confirmed, and where nobody listens any more afterwards.
const hook = "127.77.0.9:48999"

// filler calls a server, and ends at the first refusal.
type filler struct {
	Server
	err error
}

func (f *filler) take(a Answer, err error) Object {
	if f.err == nil && err == nil && a.Status >= http.StatusMultipleChoices {
		err = fmt.Errorf("%.300s: %d %v", a.Call, a.Status, a.Body)
	}
	if f.err == nil {
		f.err = err
	}
	body, _ := a.Body.(map[string]any)
	return body
}

func (f *filler) sqs(operation string, in Object) Object { return f.take(f.json("sqs", operation, in)) }

// raw calls SQS, and answers what it says with receipt handles.
func (f *filler) raw(operation string, in Object, out any) {
	body, err := json.Marshal(in)
	if err == nil && f.err == nil {
		var req *http.Request
		if req, err = http.NewRequest(http.MethodPost, f.Base+"/", bytes.NewReader(body)); err == nil {
			req.Header.Set("Content-Type", "application/x-amz-json-1.0")
			req.Header.Set("X-Amz-Target", targets["sqs"]+operation)
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				err = json.NewDecoder(resp.Body).Decode(out)
				resp.Body.Close()
			}
		}
	}
	if f.err == nil {
		f.err = err
	}
}

func (f *filler) queue(name string, attributes Object, tags Object) {
	f.sqs("CreateQueue", Object{"QueueName": name, "Attributes": attributes, "tags": tags})
}

func (f *filler) send(queue string, in Object) {
	in["QueueUrl"] = f.queueURL(queue)
	f.sqs("SendMessage", in)
}

// receive receives, and deletes the first of what it gets.
func (f *filler) receive(queue string, most, visibility, remove int) {
	var out struct {
		Messages []struct{ ReceiptHandle string }
	}
	f.raw("ReceiveMessage", Object{"QueueUrl": f.queueURL(queue), "MaxNumberOfMessages": most, "VisibilityTimeout": visibility}, &out)
	for _, m := range out.Messages[:min(remove, len(out.Messages))] {
		f.sqs("DeleteMessage", Object{"QueueUrl": f.queueURL(queue), "ReceiptHandle": m.ReceiptHandle})
	}
}

func (f *filler) topic(name string, pairs ...string) {
	f.take(f.sns("CreateTopic", append([]string{"Name", name}, pairs...)...))
}

func (f *filler) subscribe(topic, protocol, endpoint string, attributes ...string) string {
	pairs := []string{"TopicArn", topicARN(topic), "Protocol", protocol, "Endpoint", endpoint, "ReturnSubscriptionArn", "true"}
	for i := 0; i+1 < len(attributes); i += 2 {
		entry := fmt.Sprintf("Attributes.entry.%d.", i/2+1)
		pairs = append(pairs, entry+"key", attributes[i], entry+"value", attributes[i+1])
	}
	return find(f.take(f.sns("Subscribe", pairs...)), "SubscriptionArn")
}

// find is the first text of a name in a tree.
func find(v any, name string) string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if list, ok := value.([]any); ok && key == name && len(list) > 0 {
				text, _ := list[0].(string)
				return text
			}
			if text := find(value, name); text != "" {
				return text
			}
		}
	case []any:
		for _, value := range v {
			if text := find(value, name); text != "" {
				return text
			}
		}
	}
	return ""
}

func (f *filler) advance(d string) { f.take(f.admin(http.MethodPost, "clock", Object{"advance": d})) }

// Fill makes the first part of a directory, by a server with a virtual clock at its
// beginning.
func Fill(s Server) error {
	f := &filler{Server: s}
	f.advance(Ahead)
	f.fillQueues()
	f.fillTopics()
	f.fillFunctions()
	f.fillMonitoring()
	f.advance("3m")
	return f.err
}

// long is a body that the store keeps apart from its key.
func long(i int) string { return strings.Repeat(fmt.Sprintf("message %d, long enough; ", i), 60) }

func (f *filler) fillQueues() {
	f.queue("standard", Object{"VisibilityTimeout": "60", "ReceiveMessageWaitTimeSeconds": "0", "MessageRetentionPeriod": "1209600"}, Object{"team": "orders", "empty": ""})
	for i := range 60 {
		in := Object{"MessageBody": fmt.Sprintf("message %d é 漢 \U0001F9ED", i)}
		if i%3 == 0 {
			in["MessageBody"] = long(i)
		}
		if i%5 == 0 {
			in["MessageAttributes"] = Object{
				"text": Object{"DataType": "String.kind", "StringValue": fmt.Sprint("a", i)}, "number": Object{"DataType": "Number", "StringValue": "-1.5e3"},
				"bytes": Object{"DataType": "Binary", "BinaryValue": "AP8B"},
			}
			in["MessageSystemAttributes"] = Object{"AWSTraceHeader": Object{"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}}
		}
		if i%10 == 9 {
			in["DelaySeconds"] = 600 + i
		}
		f.send("standard", in)
	}
	f.receive("standard", 10, 300, 3) // seven are in flight
	f.receive("standard", 5, 0, 0)    // five come back
	f.queue("delayed", Object{"DelaySeconds": "900"}, nil)
	for i := range 5 {
		f.send("delayed", Object{"MessageBody": fmt.Sprint("late ", i)})
	}
	for _, name := range []string{"orders.fifo", "dead.fifo"} {
		f.queue(name, Object{"FifoQueue": "true", "ContentBasedDeduplication": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}, nil)
	}
	f.sqs("SetQueueAttributes", Object{"QueueUrl": f.queueURL("orders.fifo"), "Attributes": Object{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead.fifo") + `","maxReceiveCount":"1"}`,
	}})
	for i := range 24 {
		f.send("orders.fifo", Object{"MessageBody": fmt.Sprint("order ", i), "MessageGroupId": fmt.Sprint("g", i%4)})
	}
	f.receive("orders.fifo", 1, 200, 1)
	f.receive("orders.fifo", 3, 0, 0)   // three die at the next receive
	f.receive("orders.fifo", 2, 200, 0) // two are in flight
	f.queue("dead", Object{"RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["` + queueARN("source") + `"]}`}, nil)
	f.queue("source", Object{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":"1"}`}, nil)
	for i := range 8 {
		f.send("source", Object{"MessageBody": fmt.Sprint("poison ", i)})
	}
	f.receive("source", 5, 0, 0)
	f.receive("source", 5, 0, 0) // five are dead
	f.queue("purged", nil, nil)
	f.send("purged", Object{"MessageBody": "gone"})
	f.sqs("PurgeQueue", Object{"QueueUrl": f.queueURL("purged")})
	f.queue("deleted", nil, nil)
	f.send("deleted", Object{"MessageBody": "gone"})
	f.sqs("DeleteQueue", Object{"QueueUrl": f.queueURL("deleted")})
	f.queue("fair", nil, nil)
	for i := range 12 {
		f.send("fair", Object{"MessageBody": fmt.Sprint("tenant's ", i), "MessageGroupId": fmt.Sprint("tenant-", i%3)})
	}
	f.sqs("AddPermission", Object{"QueueUrl": f.queueURL("delayed"), "Label": "partner", "AWSAccountIds": []string{"111122223333"}, "Actions": []string{"SendMessage"}})
	f.queue("inbox", nil, nil)
	f.queue("raw", nil, nil)
	f.queue("topic.fifo", Object{"FifoQueue": "true"}, nil)
}

func (f *filler) fillTopics() {
	f.topic("news", "Attributes.entry.1.key", "DisplayName", "Attributes.entry.1.value", "News",
		"Tags.member.1.Key", "team", "Tags.member.1.Value", "news")
	f.take(f.sns("SetTopicAttributes", "TopicArn", topicARN("news"), "AttributeName", "DeliveryPolicy",
		"AttributeValue", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":60,"maxDelayTarget":600,"numRetries":40,"backoffFunction":"exponential"}}}`))
	f.take(f.sns("AddPermission", "TopicArn", topicARN("news"), "Label", "partner", "AWSAccountId.member.1", "111122223333", "ActionName.member.1", "Publish"))
	f.topic("ledger.fifo", "Attributes.entry.1.key", "FifoTopic", "Attributes.entry.1.value", "true",
		"Attributes.entry.2.key", "ContentBasedDeduplication", "Attributes.entry.2.value", "true",
		"Attributes.entry.3.key", "ArchivePolicy", "Attributes.entry.3.value", `{"MessageRetentionPeriod":"30"}`)
	f.subscribe("news", "sqs", queueARN("inbox"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	f.subscribe("news", "sqs", queueARN("raw"), "RawMessageDelivery", "true",
		"FilterPolicy", `{"kind":[{"anything-but":["noise"]}],"size":[{"numeric":[">=",3]}],"$or":[{"a":["x"]},{"b":[{"prefix":"y"}]}]}`)
	f.subscribe("news", "sqs", queueARN("fair"), "FilterPolicyScope", "MessageBody", "FilterPolicy", `{"deep":{"er":["yes"]}}`)
	f.subscribe("ledger.fifo", "sqs", queueARN("topic.fifo"))
	f.subscribe("news", "http", "http://127.77.0.9:1/never-confirmed")
	f.confirmHook(f.subscribe("news", "http", "http://"+hook+"/hook"))
	gone := f.subscribe("news", "sqs", queueARN("standard"))
	f.take(f.sns("Unsubscribe", "SubscriptionArn", gone))
	f.topic("doomed")
	f.take(f.sns("DeleteTopic", "TopicArn", topicARN("doomed")))
	for i := range 10 {
		f.take(f.sns("Publish", "TopicArn", topicARN("news"), "Message", fmt.Sprintf(`{"deep":{"er":["%s"]},"n":%d}`, []string{"yes", "no"}[i%2], i), "Subject", fmt.Sprint("No. ", i),
			"MessageAttributes.entry.1.Name", "kind", "MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", []string{"noise", "signal"}[i/5],
			"MessageAttributes.entry.2.Name", "size", "MessageAttributes.entry.2.Value.DataType", "Number", "MessageAttributes.entry.2.Value.StringValue", fmt.Sprint(i),
			"MessageAttributes.entry.3.Name", "b", "MessageAttributes.entry.3.Value.DataType", "String", "MessageAttributes.entry.3.Value.StringValue", "yes"))
		f.take(f.sns("Publish", "TopicArn", topicARN("ledger.fifo"), "Message", fmt.Sprint("entry ", i), "MessageGroupId", fmt.Sprint("g", i%2)))
	}
}

// confirmHook confirms the subscription of a web hook that goes away thereafter.
func (f *filler) confirmHook(string) {
	l, err := net.Listen("tcp", hook)
	if err != nil {
		f.take(Answer{}, err)
		return
	}
	defer l.Close()
	links := make(chan string, 1)
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var in struct{ SubscribeURL string }
			if body, err := io.ReadAll(r.Body); err == nil && json.Unmarshal(body, &in) == nil && in.SubscribeURL != "" {
				select {
				case links <- in.SubscribeURL:
				default:
				}
			}
		}))
	}()
	f.advance("2m") // the first attempt found nobody
	select {
	case link := <-links:
		u, err := url.Parse(link)
		if err == nil {
			f.take(f.sns("ConfirmSubscription", "TopicArn", u.Query().Get("TopicArn"), "Token", u.Query().Get("Token")))
		}
	case <-time.After(time.Minute):
		f.take(Answer{}, fmt.Errorf("no SubscriptionConfirmation came to %s", hook))
	}
}

// code is a function's zip, which nobody runs.
func code(text string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "bootstrap"}
	h.SetMode(0o755)
	out, _ := w.CreateHeader(h)
	_, _ = io.WriteString(out, "#!/bin/sh\n# "+text+"\nexit 1\n")
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func (f *filler) fillFunctions() {
	const functions, role = "/2015-03-31/functions", "arn:aws:iam::" + Account + ":role/r"
	f.take(f.lambda(http.MethodPost, functions, Object{
		"FunctionName": "worker", "Runtime": "provided.al2023", "Handler": "x", "Role": role, "Code": Object{"ZipFile": code("one")}, "MemorySize": 256, "Timeout": 9,
		"Environment": Object{"Variables": Object{"LEVEL": "3"}}, "Description": "Works", "Tags": Object{"team": "orders"}, "EphemeralStorage": Object{"Size": 600},
	}))
	f.take(f.lambda(http.MethodPost, functions+"/worker/versions", Object{"Description": "the first"}))
	f.take(f.lambda(http.MethodPut, functions+"/worker/code", Object{"ZipFile": code("two")}))
	f.take(f.lambda(http.MethodPost, functions+"/worker/versions", Object{}))
	f.take(f.lambda(http.MethodPost, functions+"/worker/aliases", Object{
		"Name": "live", "FunctionVersion": "2", "RoutingConfig": Object{"AdditionalVersionWeights": Object{"1": 0.25}},
	}))
	f.take(f.lambda(http.MethodPost, functions+"/worker/policy", Object{
		"StatementId": "sns", "Action": "lambda:InvokeFunction", "Principal": "sns.amazonaws.com", "SourceArn": topicARN("news"),
	}))
	f.take(f.lambda(http.MethodPut, "/2017-10-31/functions/worker/concurrency", Object{"ReservedConcurrentExecutions": 7}))
	f.take(f.lambda(http.MethodPut, "/2019-09-25/functions/worker/event-invoke-config", Object{
		"MaximumRetryAttempts": 1, "MaximumEventAgeInSeconds": 3600, "DestinationConfig": Object{"OnFailure": Object{"Destination": queueARN("dead")}},
	}))
	// Nobody listens at this one: what it is sent waits.
	f.take(f.lambda(http.MethodPost, functions, Object{
		"FunctionName": "away", "PackageType": "Image", "Role": role, "Code": Object{"ImageUri": "http://127.77.0.9:1/"}, "Timeout": 3,
	}))
	for i := range 3 {
		f.take(f.lambda(http.MethodPost, functions+"/away/invocations", Object{"n": i}, "X-Amz-Invocation-Type", "Event"))
	}
	f.queue("work", Object{"VisibilityTimeout": "60"}, nil)
	f.take(f.lambda(http.MethodPost, "/2015-03-31/event-source-mappings", Object{
		"FunctionName": "worker", "EventSourceArn": queueARN("work"), "BatchSize": 7, "Enabled": true, "FunctionResponseTypes": []string{"ReportBatchItemFailures"},
		"FilterCriteria": Object{"Filters": []Object{{"Pattern": `{"body":{"a":[1]}}`}}}, "ScalingConfig": Object{"MaximumConcurrency": 2},
	}))
	f.take(f.lambda(http.MethodPost, "/2015-03-31/event-source-mappings", Object{
		"FunctionName": "worker:live", "EventSourceArn": queueARN("standard"), "Enabled": false, "MaximumBatchingWindowInSeconds": 3, "BatchSize": 100,
	}))
}

func (f *filler) fillMonitoring() {
	put := func(in Object) { f.take(f.json("monitoring", "PutMetricData", in)) }
	for i := range 4 {
		put(Object{"Namespace": "shop", "MetricData": []Object{
			{"MetricName": "orders", "Value": 10 * i, "Unit": "Count", "Dimensions": []Object{{"Name": "shop", "Value": fmt.Sprint(i % 2)}}},
			{"MetricName": "latency", "Values": []float64{1, 5, 250}, "Counts": []float64{3, 2, 1}, "Unit": "Milliseconds", "StorageResolution": 1},
			{"MetricName": "sums", "StatisticValues": Object{"SampleCount": 4, "Sum": 10, "Minimum": 1, "Maximum": 4}},
		}})
		f.advance("1m")
	}
	f.take(f.json("monitoring", "PutMetricAlarm", Object{
		"AlarmName": "not empty", "Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible", "Statistic": "Maximum", "Period": 60,
		"Dimensions": []Object{{"Name": "QueueName", "Value": "standard"}}, "EvaluationPeriods": 1, "Threshold": 0, "ComparisonOperator": "GreaterThanThreshold",
		"AlarmActions": []string{topicARN("news")}, "AlarmDescription": "Something waits", "Tags": []Object{{"Key": "team", "Value": "orders"}},
	}))
	f.take(f.json("monitoring", "PutMetricAlarm", Object{
		"AlarmName": "slow", "Namespace": "shop", "MetricName": "latency", "ExtendedStatistic": "p90", "Period": 60, "TreatMissingData": "ignore",
		"EvaluationPeriods": 3, "DatapointsToAlarm": 2, "Threshold": 100, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "ActionsEnabled": false,
	}))
	f.take(f.json("monitoring", "SetAlarmState", Object{"AlarmName": "slow", "StateValue": "OK", "StateReason": "by hand"}))
	logs := func(operation string, in Object) { f.take(f.json("logs", operation, in)) }
	logs("CreateLogGroup", Object{"logGroupName": "/app/web", "tags": Object{"team": "web"}})
	logs("PutRetentionPolicy", Object{"logGroupName": "/app/web", "retentionInDays": 3653})
	logs("CreateLogGroup", Object{"logGroupName": "/app/empty"})
	now := f.now()
	for i := range 3 {
		stream := fmt.Sprint("stream ", i)
		logs("CreateLogStream", Object{"logGroupName": "/app/web", "logStreamName": stream})
		var events []Object
		for n := range 40 {
			events = append(events, Object{"timestamp": now.Add(time.Duration(n) * time.Second).UnixMilli(), "message": fmt.Sprintf(`{"n":%d,"level":"%s"}`, n, []string{"info", "error"}[n%2])})
		}
		logs("PutLogEvents", Object{"logGroupName": "/app/web", "logStreamName": stream, "logEvents": events})
	}
}

// now is where the server's clock stands.
func (f *filler) now() time.Time {
	at, _ := f.take(f.admin(http.MethodPost, "clock", Object{"advance": "0s"}))["now"].(string)
	now, err := time.Parse(time.RFC3339Nano, at)
	if err != nil && f.err == nil {
		f.err = err
	}
	return now
}

// Add makes the second part, by a server that was started again on the first: what the
// store has in tables since then has successors in its log, and this is what waits, is
// delayed or in flight when the server is killed.
func Add(s Server) error {
	f := &filler{Server: s}
	f.receive("standard", 4, 1000, 1)
	f.receive("orders.fifo", 2, 1000, 0)
	f.send("standard", Object{"MessageBody": long(1000)})
	f.send("standard", Object{"MessageBody": "in ten minutes", "DelaySeconds": 600})
	f.send("delayed", Object{"MessageBody": "in a quarter of an hour"})
	f.send("orders.fifo", Object{"MessageBody": "order 24", "MessageGroupId": "g9"})
	f.sqs("TagQueue", Object{"QueueUrl": f.queueURL("standard"), "Tags": Object{"later": "yes"}})
	f.take(f.admin(http.MethodPost, "faults", Object{"arn": queueARN("inbox"), "fault": "unavailable"}))
	for i := range 3 {
		f.take(f.sns("Publish", "TopicArn", topicARN("news"), "Message", fmt.Sprint("after the restart ", i)))
	}
	f.take(f.lambda(http.MethodPost, "/2015-03-31/functions/away/invocations", Object{"n": "last"}, "X-Amz-Invocation-Type", "Event"))
	f.take(f.json("monitoring", "PutMetricData", Object{"Namespace": "shop", "MetricData": []Object{{"MetricName": "orders", "Value": 1}}}))
	f.take(f.json("logs", "PutLogEvents", Object{"logGroupName": "/app/web", "logStreamName": "stream 0", "logEvents": []Object{
		{"timestamp": f.now().UnixMilli(), "message": "after the restart"},
	}}))
	f.advance("1m30s")
	f.sqs("StartMessageMoveTask", Object{"SourceArn": queueARN("dead"), "MaxNumberOfMessagesPerSecond": 1})
	f.advance("1500ms")
	return f.err
}
