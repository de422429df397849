package upgrade

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// asker asks a server, and keeps the answers.
type asker struct {
	Server
	answers []Answer
	since   int64    // ms: what is sent later has ids that the server draws again
	drawn   []string // of these, those of messages that were sent by the asker
	err     error
}

func (k *asker) ask(a Answer, err error) Answer {
	k.err = cmp.Or(k.err, err)
	a.Call = k.normalize("", a.Call).(string)
	text, err := json.Marshal(a.Body)
	for i, id := range k.drawn {
		text = bytes.ReplaceAll(text, []byte(id), fmt.Append(nil, "drawn ", i))
	}
	if err == nil {
		err = json.Unmarshal(text, &a.Body)
	}
	k.err = cmp.Or(k.err, err)
	k.answers = append(k.answers, a)
	return a
}

// send sends a message, whose id is not that which another server would have drawn.
func (k *asker) send(queue, group, body string) {
	a, err := k.json("sqs", "SendMessage", Object{"QueueUrl": k.queueURL(queue), "MessageBody": body, "MessageGroupId": group})
	if o, ok := a.Body.(map[string]any); ok {
		k.drawn = append(k.drawn, fmt.Sprint(o["MessageId"]))
	}
	k.ask(a, err)
}

// Ask asks for all that can be asked about without changing anything.
func Ask(s Server) ([]Answer, error) {
	k := &asker{Server: s}
	k.askQueues()
	k.askTopics()
	k.askFunctions()
	k.askMonitoring()
	return k.answers, k.err
}

// each calls f with what a list in an answer holds under a name.
func each(a Answer, list, name string, f func(value string)) {
	body, _ := a.Body.(map[string]any)
	values, _ := body[list].([]any)
	for _, v := range values {
		if o, ok := v.(map[string]any); ok {
			v = o[name]
		}
		f(fmt.Sprint(v))
	}
}

var queues = []string{
	"standard", "delayed", "orders.fifo", "dead.fifo", "dead", "source", "purged", "fair", "inbox", "raw", "topic.fifo", "work",
}

func (k *asker) askQueues() {
	k.ask(k.json("sqs", "ListQueues", Object{}))
	for _, name := range queues {
		at := Object{"QueueUrl": k.queueURL(name)}
		k.ask(k.json("sqs", "GetQueueAttributes", Object{"QueueUrl": k.queueURL(name), "AttributeNames": []string{"All"}}))
		k.ask(k.json("sqs", "ListQueueTags", at))
		k.ask(k.json("sqs", "ListDeadLetterSourceQueues", at))
		k.ask(k.admin(http.MethodGet, "queue?queue="+queueARN(name), nil))
	}
	k.ask(k.json("sqs", "ListMessageMoveTasks", Object{"SourceArn": queueARN("dead"), "MaxResults": 10}))
}

func (k *asker) askTopics() {
	k.ask(k.sns("ListTopics"))
	for _, name := range []string{"news", "ledger.fifo", "doomed"} {
		k.ask(k.sns("GetTopicAttributes", "TopicArn", topicARN(name)))
		k.ask(k.sns("ListTagsForResource", "ResourceArn", topicARN(name)))
	}
	for _, arn := range k.subscriptions() {
		k.ask(k.sns("GetSubscriptionAttributes", "SubscriptionArn", arn))
		for _, path := range []string{"backlog", "deliveries"} {
			k.ask(k.admin(http.MethodGet, path+"?subscription="+url.QueryEscape(arn), nil))
		}
	}
}

// subscriptions are the ARNs of those that are confirmed.
func (k *asker) subscriptions() (all []string) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if list, ok := v["SubscriptionArn"].([]any); ok && list[0] != "PendingConfirmation" {
				all = append(all, fmt.Sprint(list[0]))
				return
			}
			for _, value := range v {
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		}
	}
	walk(k.ask(k.sns("ListSubscriptions")).Body)
	slices.Sort(all)
	return all
}

func (k *asker) askFunctions() {
	const functions = "/2015-03-31/functions"
	k.ask(k.lambda(http.MethodGet, functions, nil))
	k.ask(k.lambda(http.MethodGet, "/2016-08-19/account-settings", nil))
	for _, name := range []string{"worker", "away"} {
		for _, path := range []string{"", "/versions", "/aliases", "/policy"} {
			k.ask(k.lambda(http.MethodGet, functions+"/"+name+path, nil))
		}
		k.ask(k.lambda(http.MethodGet, "/2019-09-30/functions/"+name+"/concurrency", nil))
		k.ask(k.lambda(http.MethodGet, "/2019-09-25/functions/"+name+"/event-invoke-config/list", nil))
		k.ask(k.lambda(http.MethodGet, "/2017-03-31/tags/arn:aws:lambda:"+Region+":"+Account+":function:"+name, nil))
		k.ask(k.admin(http.MethodGet, "events?function=arn:aws:lambda:"+Region+":"+Account+":function:"+name, nil))
	}
	k.ask(k.lambda(http.MethodGet, functions+"/worker?Qualifier=1", nil))
	k.askCode("worker")
	k.ask(k.lambda(http.MethodGet, "/2015-03-31/event-source-mappings", nil))
}

// askCode asks for a function's zip, by the link that GetFunction gives.
func (k *asker) askCode(name string) {
	resp, err := http.Get(k.Base + "/2015-03-31/functions/" + name)
	var out struct{ Code struct{ Location string } }
	if err == nil {
		err = json.NewDecoder(resp.Body).Decode(&out)
		resp.Body.Close()
	}
	if err != nil {
		k.err = cmp.Or(k.err, err)
		return
	}
	k.ask(k.call("the code of "+name, http.MethodGet, strings.TrimPrefix(out.Code.Location, k.Base), nil, nil))
}

func (k *asker) askMonitoring() {
	ask := func(operation string, in Object) Answer { return k.ask(k.json("monitoring", operation, in)) }
	ask("ListMetrics", Object{})
	ask("DescribeAlarms", Object{})
	ask("DescribeAlarmHistory", Object{})
	ask("ListTagsForResource", Object{"ResourceARN": "arn:aws:cloudwatch:" + Region + ":" + Account + ":alarm:not empty"})
	f := filler{Server: k.Server}
	end := f.now().Unix()
	k.err = cmp.Or(k.err, f.err)
	var all []Object
	for _, m := range []struct{ namespace, metric, stat, name, value string }{
		{"shop", "orders", "Sum", "shop", "0"},
		{"shop", "orders", "Sum", "", ""},
		{"shop", "latency", "p90", "", ""},
		{"shop", "sums", "Maximum", "", ""},
		{"AWS/SQS", "NumberOfMessagesSent", "Sum", "QueueName", "standard"},
		{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", "QueueName", "standard"},
		{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", "QueueName", "purged"},
		{"AWS/SNS", "NumberOfMessagesPublished", "Sum", "TopicName", "news"},
		{"AWS/Lambda", "Invocations", "Sum", "FunctionName", "away"},
	} {
		metric := Object{"Namespace": m.namespace, "MetricName": m.metric}
		if m.name != "" {
			metric["Dimensions"] = []Object{{"Name": m.name, "Value": m.value}}
		}
		all = append(all, Object{"Id": fmt.Sprint("q", len(all)), "MetricStat": Object{"Metric": metric, "Period": 60, "Stat": m.stat}})
	}
	ask("GetMetricData", Object{"StartTime": end - 6*3600, "EndTime": end + 60, "ScanBy": "TimestampAscending", "MetricDataQueries": all})
	logs := func(operation string, in Object) Answer { return k.ask(k.json("logs", operation, in)) }
	each(logs("DescribeLogGroups", Object{}), "logGroups", "logGroupName", func(group string) {
		logs("ListTagsLogGroup", Object{"logGroupName": group})
		each(logs("DescribeLogStreams", Object{"logGroupName": group}), "logStreams", "logStreamName", func(stream string) {
			logs("GetLogEvents", Object{"logGroupName": group, "logStreamName": stream, "startFromHead": true})
		})
	})
	logs("FilterLogEvents", Object{"logGroupName": "/app/web", "filterPattern": `{$.level = "error" && $.n > 30}`})
}

// Use moves the clock to where everything that waited is due, and takes what there is.
func Use(s Server) ([]Answer, error) {
	k := &asker{Server: s}
	f := filler{Server: s}
	k.since = f.now().UnixMilli()
	k.err = cmp.Or(k.err, f.err)
	// An alarm would publish, with ids of its own.
	k.ask(k.json("monitoring", "DisableAlarmActions", Object{"AlarmNames": []string{"not empty"}}))
	for _, queue := range queues { // now
		k.receive(queue)
	}
	k.advance("20m")
	for _, queue := range queues {
		k.receive(queue)
	}
	k.advance("12h")
	// Ids of deduplication are forgotten, numbers and the order of groups are not.
	for _, body := range []string{"order 1", "order 24"} {
		k.send("orders.fifo", "g9", body)
	}
	for _, queue := range queues {
		k.receive(queue)
		k.ask(k.json("sqs", "GetQueueAttributes", Object{"QueueUrl": k.queueURL(queue), "AttributeNames": []string{"All"}}))
	}
	return k.answers, k.err
}

// receive keeps all that a queue gives, as one answer. Deliveries under way at once come
// to a standard queue in any order.
func (k *asker) receive(queue string) {
	all := Answer{Call: "receive " + queue}
	var messages []any
	for {
		a, err := k.json("sqs", "ReceiveMessage", Object{
			"QueueUrl": k.queueURL(queue), "MaxNumberOfMessages": 10, "VisibilityTimeout": 40_000,
			"MessageSystemAttributeNames": []string{"All"}, "MessageAttributeNames": []string{"All"},
		})
		k.err = cmp.Or(k.err, err)
		all.Status = a.Status
		body, _ := a.Body.(map[string]any)
		some, _ := body["Messages"].([]any)
		if len(some) == 0 {
			break
		}
		messages = append(messages, some...)
		k.advance("0s") // waits until dead letters have been moved, which what follows in their groups waits for
	}
	for _, v := range messages {
		m, _ := v.(map[string]any)
		attributes, _ := m["Attributes"].(map[string]any)
		sent, _ := attributes["SentTimestamp"].(string)
		if at, _ := strconv.ParseInt(sent, 10, 64); at > k.since && !slices.Contains(k.drawn, fmt.Sprint(m["MessageId"])) {
			m["MessageId"] = "drawn"
			delete(m, "MD5OfBody") // links in it have the server's address
		}
	}
	if !strings.HasSuffix(queue, ".fifo") {
		slices.SortFunc(messages, func(a, b any) int { return cmp.Compare(sortKey(a), sortKey(b)) })
	}
	all.Body = messages
	k.ask(all, nil)
	k.advance("0s") // waits until dead letters have been moved
}

// sortKey orders messages by when they were sent, and what they say.
func sortKey(v any) string {
	m, _ := v.(map[string]any)
	attributes, _ := m["Attributes"].(map[string]any)
	return fmt.Sprint(attributes["SentTimestamp"], m["Body"])
}

func (k *asker) advance(d string) {
	f := filler{Server: k.Server}
	f.advance(d)
	k.err = cmp.Or(k.err, f.err)
}
