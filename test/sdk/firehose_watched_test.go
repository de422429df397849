package sdk_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// hoseMetrics are the sums of a stream's metrics, with their units; of times their unit
// alone.
func hoseMetrics(t *testing.T, endpoint, name string) map[string]string {
	t.Helper()
	c, now := metricsClient(endpoint), serverTime(t, endpoint)
	all := map[string]string{}
	for _, m := range must(c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{
		Namespace: aws.String("AWS/Firehose"), Dimensions: []cwtypes.DimensionFilter{{Name: aws.String("DeliveryStreamName"), Value: &name}},
	}))(t).Metrics {
		equal(t, "dimensions of "+*m.MetricName, 1, len(m.Dimensions))
		sum, unit := 0.0, cwtypes.StandardUnit("")
		for _, p := range must(c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: m.Namespace, MetricName: m.MetricName, Dimensions: m.Dimensions, StartTime: aws.Time(now.Add(-24 * 3600e9)), EndTime: aws.Time(now.Add(3600e9)),
			Period: aws.Int32(86400), Statistics: []cwtypes.Statistic{cwtypes.StatisticSum},
		}))(t).Datapoints {
			sum, unit = sum+*p.Sum, p.Unit
		}
		all[*m.MetricName] = fmt.Sprint(sum, " ", unit)
		if strings.HasSuffix(*m.MetricName, ".Latency") || strings.HasSuffix(*m.MetricName, ".DataFreshness") {
			all[*m.MetricName] = string(unit)
		}
	}
	return all
}

// All metrics of streams, by AWS's names, units and the one dimension: of what clients and
// topics put, and of what is delivered.
func TestFirehoseMetrics(t *testing.T) {
	c, endpoint, _ := startHoses(t)
	topics := topicsClient(endpoint)
	makeHose(t, c, "orders")
	must(c.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: new("orders"), Record: &types.Record{Data: []byte("abc")}}))(t)
	putHose(t, c, "orders", "1", "2", "3")
	topic := createTopic(t, topics, "t")
	must(subscribeHose(t, topics, topic, "orders", map[string]string{"RawMessageDelivery": "true"}))(t)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("hello")}))(t)
	advance(t, endpoint, "0s")
	admin(t, endpoint+"/_godwit/faults", `{"arn":"`+hoseARN("orders")+`","fault":"throttled"}`)
	out := must(c.PutRecordBatch(t.Context(), &firehose.PutRecordBatchInput{DeliveryStreamName: new("orders"), Records: []types.Record{{Data: []byte("1")}, {Data: []byte("2")}}}))(t)
	equal(t, "records that failed", []any{int32(2), "ServiceUnavailableException", "Slow down."}, []any{*out.FailedPutCount, *out.RequestResponses[1].ErrorCode, *out.RequestResponses[1].ErrorMessage})
	_, err := c.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: new("orders"), Record: &types.Record{Data: []byte("abc")}})
	refused(t, err, "ServiceUnavailableException", http.StatusServiceUnavailable, "Slow down.")
	admin(t, endpoint+"/_godwit/faults", `{"arn":"`+hoseARN("orders")+`","fault":"none"}`)
	d := must(c.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: new("orders")}))(t).DeliveryStreamDescription
	must(c.UpdateDestination(t.Context(), &firehose.UpdateDestinationInput{
		DeliveryStreamName: new("orders"), CurrentDeliveryStreamVersionId: d.VersionId, DestinationId: d.Destinations[0].DestinationId, ExtendedS3DestinationUpdate: &types.ExtendedS3DestinationUpdate{Prefix: new("p/")},
	}))(t)
	advance(t, endpoint, "61s")
	equal(t, "a bucket's metrics", map[string]string{
		"IncomingRecords": "5 Count", "IncomingBytes": "11 Bytes", "IncomingPutRequests": "3 Count", "ThrottledRecords": "3 Count",
		"PutRecord.Requests": "3 Count", "PutRecord.Bytes": "8 Bytes", "PutRecord.Latency": "Milliseconds",
		"PutRecordBatch.Requests": "2 Count", "PutRecordBatch.Bytes": "3 Bytes", "PutRecordBatch.Records": "3 Count", "PutRecordBatch.Latency": "Milliseconds",
		"DescribeDeliveryStream.Requests": "1 Count", "DescribeDeliveryStream.Latency": "Milliseconds",
		"UpdateDeliveryStream.Requests": "1 Count", "UpdateDeliveryStream.Latency": "Milliseconds",
		"DeliveryToS3.Success": "1 Count", "DeliveryToS3.Records": "5 Count", "DeliveryToS3.Bytes": "11 Bytes", "DeliveryToS3.ObjectCount": "1 Count", "DeliveryToS3.DataFreshness": "Seconds",
	}, hoseMetrics(t, endpoint, "orders"))

	e := newHoseEndpoint(t)
	must(c.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: new("web"), HttpEndpointDestinationConfiguration: toEndpoint(e.URL)}))(t)
	e.answer(http.StatusServiceUnavailable)
	putHose(t, c, "web", "ab")
	advance(t, endpoint, "1s")
	e.answer(0)
	advance(t, endpoint, "10s")
	e.answer(http.StatusRequestEntityTooLarge) // which is not tried again
	putHose(t, c, "web", "cde", "f")
	advance(t, endpoint, "61s")
	equal(t, "an endpoint's metrics", map[string]string{
		"IncomingRecords": "3 Count", "IncomingBytes": "6 Bytes", "IncomingPutRequests": "2 Count",
		"PutRecordBatch.Requests": "2 Count", "PutRecordBatch.Bytes": "6 Bytes", "PutRecordBatch.Records": "3 Count", "PutRecordBatch.Latency": "Milliseconds",
		"DeliveryToHttpEndpoint.Success": "1 Count", "DeliveryToHttpEndpoint.Records": "1 Count", "DeliveryToHttpEndpoint.Bytes": "2 Bytes", "DeliveryToHttpEndpoint.DataFreshness": "Seconds",
		"DeliveryToHttpEndpoint.ProcessedRecords": "4 Count", "DeliveryToHttpEndpoint.ProcessedBytes": "8 Bytes",
		"BackupToS3.Success": "1 Count", "BackupToS3.Records": "2 Count", "BackupToS3.Bytes": "4 Bytes", "BackupToS3.DataFreshness": "Seconds",
	}, hoseMetrics(t, endpoint, "web"))
	equal(t, "requests", 3, len(e.got()))
}

// logged are the messages of a log stream, as JSON.
func logged(t *testing.T, endpoint, group, stream string) (all []map[string]any) {
	t.Helper()
	out := must(logsClient(endpoint).FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group, LogStreamNames: []string{stream}}))(t)
	for _, event := range out.Events {
		all = append(all, decode(t, *event.Message))
	}
	return all
}

// Each failure is an event of the log group that the destination names, and none of another
// one.
func TestFirehoseErrorLog(t *testing.T) {
	c, endpoint, _ := startHoses(t)
	e := newHoseEndpoint(t)
	for _, name := range []string{"/hoses/web", "/hoses/bucket"} {
		must(logsClient(endpoint).CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name}))(t)
		must(logsClient(endpoint).CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &name, LogStreamName: new("failures")}))(t)
	}
	to := toEndpoint(e.URL)
	to.CloudWatchLoggingOptions = &types.CloudWatchLoggingOptions{Enabled: new(true), LogGroupName: new("/hoses/web"), LogStreamName: new("failures")}
	to.S3Configuration.CloudWatchLoggingOptions = &types.CloudWatchLoggingOptions{Enabled: new(true), LogGroupName: new("/hoses/bucket"), LogStreamName: new("failures")}
	must(c.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: new("web"), HttpEndpointDestinationConfiguration: to}))(t)
	putHose(t, c, "web", "fine")
	advance(t, endpoint, "2s")
	equal(t, "events of successes", 0, len(logged(t, endpoint, "/hoses/web", "failures")))
	e.answer(http.StatusForbidden)
	putHose(t, c, "web", "one")
	advance(t, endpoint, "2s")
	events := logged(t, endpoint, "/hoses/web", "failures")
	id := e.got()[1].id
	if len(events) == 0 {
		t.Fatal("there are no events")
	}
	message := events[0]["message"].(string)
	delete(events[0], "message")
	equal(t, "an event", map[string]any{
		"deliveryStreamARN": hoseARN("web"), "destination": e.URL, "deliveryStreamVersionId": 1.0, "errorCode": "HttpEndpoint.DestinationException",
	}, events[0])
	equal(t, "that it says what the endpoint said", true, strings.HasPrefix(message, "The following response was received from the endpoint destination. 403: ") && strings.Contains(message, id))
	equal(t, "events of the bucket", 0, len(logged(t, endpoint, "/hoses/bucket", "failures")))
	// Once logging is off nothing is reported any more.
	d := must(c.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: new("web")}))(t).DeliveryStreamDescription
	must(c.UpdateDestination(t.Context(), &firehose.UpdateDestinationInput{
		DeliveryStreamName: new("web"), CurrentDeliveryStreamVersionId: d.VersionId, DestinationId: d.Destinations[0].DestinationId,
		HttpEndpointDestinationUpdate: &types.HttpEndpointDestinationUpdate{CloudWatchLoggingOptions: &types.CloudWatchLoggingOptions{Enabled: new(false)}},
	}))(t)
	before := len(logged(t, endpoint, "/hoses/web", "failures"))
	advance(t, endpoint, "10m")
	equal(t, "events after that", before, len(logged(t, endpoint, "/hoses/web", "failures")))
}

// The delivery status log of a topic reports its streams.
func TestFirehoseDeliveryStatus(t *testing.T) {
	dir := t.TempDir()
	endpoint := startWith(t, func(c *config.Config) { c.FirehoseDirectory, c.Enforce = dir, false })
	c, topics := firehoseAs(endpoint, account), topicsClient(endpoint)
	topic := createTopic(t, topics, "orders")
	makeHose(t, c, "s")
	must(subscribeHose(t, topics, topic, "s", nil))(t)
	role := feedbackRole(t, endpoint)
	setTopic(t, topics, topic, "FirehoseSuccessFeedbackRoleArn", role)
	setTopic(t, topics, topic, "FirehoseFailureFeedbackRoleArn", role)
	const group = "sns/us-east-1/000000000000/orders"
	publish := func(group string) map[string]any {
		t.Helper()
		id := *must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("m")}))(t).MessageId
		advance(t, endpoint, "1s")
		out := must(logsClient(endpoint).FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group}))(t)
		for _, event := range out.Events {
			if entry := decode(t, *event.Message); entry["notification"].(map[string]any)["messageId"] == id {
				return entry
			}
		}
		t.Fatalf("nothing is logged of %s in %s", id, group)
		return nil
	}
	entry := publish(group)
	delivery := entry["delivery"].(map[string]any)
	equal(t, "a success", []any{"SUCCESS", hoseARN("s"), 200.0, 1.0}, []any{entry["status"], delivery["destination"], delivery["statusCode"], delivery["attempts"]})
	var response map[string]any
	if err := json.Unmarshal([]byte(delivery["providerResponse"].(string)), &response); err != nil || response["firehoseRequestId"] == "" {
		t.Errorf("%v, %v", delivery["providerResponse"], err)
	}
	must(c.DeleteDeliveryStream(t.Context(), &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: new("s")}))(t)
	entry = publish(group + "/Failure")
	delivery = entry["delivery"].(map[string]any)
	equal(t, "a failure", []any{"FAILURE", hoseARN("s"), 400.0, 1.0}, []any{entry["status"], delivery["destination"], delivery["statusCode"], delivery["attempts"]})
	equal(t, "that it says why", true, strings.Contains(delivery["providerResponse"].(string), "ResourceNotFoundException"))
}

// A throttled stream is tried again as endpoints of customers are, 50 times over six hours,
// one that is out of order by AWS's schedule. What waits can be held, and tried now.
func TestFirehoseLadders(t *testing.T) {
	c, endpoint, dir := startHoses(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, topics, "t")
	dead := createQueue(t, queues, "dead")
	makeHose(t, c, "s", func(d *types.ExtendedS3DestinationConfiguration) { d.BufferingHints.IntervalInSeconds = new(int32(0)) })
	subscription := must(subscribeHose(t, topics, topic, "s", map[string]string{"RawMessageDelivery": "true", "RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`}))(t)
	fault := func(name string) {
		t.Helper()
		admin(t, endpoint+"/_godwit/faults", `{"arn":"`+hoseARN("s")+`","fault":"`+name+`"}`)
	}
	var id string
	publish := func(text string) {
		t.Helper()
		id = *must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &text}))(t).MessageId
	}
	latest := func() map[string]any {
		t.Helper()
		for _, d := range deliveriesOf(t, endpoint, subscription) {
			if d["messageId"] == id {
				return d
			}
		}
		t.Fatalf("there is no delivery of %s", id)
		return nil
	}
	fault("throttled")
	publish("throttled")
	advance(t, endpoint, "24089s") // the ladder takes 24,089.6 s
	equal(t, "the state", any("pending"), latest()["state"])
	advance(t, endpoint, "1s")
	equal(t, "the end", []any{"dead-letter", 51.0}, []any{latest()["state"], latest()["attempt"]})
	equal(t, "the dead letter", "throttled", *takeMessage(t, queues, dead).Body)

	// What was tried in vain for other reasons before does not use up the retries of the throttled.
	fault("unavailable")
	publish("first unavailable")
	advance(t, endpoint, "1199s")
	equal(t, "attempts", any(73.0), latest()["attempt"])
	fault("throttled")
	advance(t, endpoint, "24000s")
	equal(t, "the state", any("pending"), latest()["state"])
	advance(t, endpoint, "200s")
	equal(t, "the end", any("dead-letter"), latest()["state"])
	takeMessage(t, queues, dead)

	fault("unavailable")
	publish("unavailable")
	// 3 retries at once, 2 after a second each, 10 that take 47.7 s, and then one every 20 s.
	advance(t, endpoint, "599s")
	equal(t, "the schedule", []any{"pending", 43.0}, []any{latest()["state"], latest()["attempt"]})
	fault("none")
	equal(t, "pausing", http.StatusOK, post(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+subscription+`"}`).Status)
	advance(t, endpoint, "1h")
	equal(t, "objects while it is paused", 0, len(objects(t, dir)))
	equal(t, "resuming", http.StatusOK, post(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+subscription+`"}`).Status)
	equal(t, "the answer to a retry", http.StatusOK, post(t, endpoint+"/_godwit/deliveries/retry", `{"subscription":"`+subscription+`","all":true}`).Status)
	advance(t, endpoint, "1s")
	_, text := only(t, objects(t, dir), "bucket/")
	equal(t, "what came in the end", "unavailable\n", text)
	equal(t, "other dead letters", 0, len(must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead}))(t).Messages))
}

// putRaw puts what is not said by the SDK.
func putRaw(t *testing.T, endpoint, operation, body string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "Firehose_20150804."+operation)
	return do(t, req)
}

// Records that cannot be read, or are too large, are refused with all that came with them.
func TestFirehoseAttacks(t *testing.T) {
	c, endpoint, dir := startHoses(t)
	makeHose(t, c, "s")
	records := slices.Repeat([]string{`{"Data":"` + base64.StdEncoding.EncodeToString([]byte("x")) + `"}`}, 500)
	for what, last := range map[string]string{
		"no base64": `{"Data":"!!!!"}`, "cut off": `{"Data":"eA"}`, "URL's base64": `{"Data":"__-_"}`, "a number": `{"Data":7}`, "a list": `{"Data":[1]}`, "another member": `{"Dat":"eA=="}`,
		"null": `{"Data":null}`, "nothing": `{}`, "no record": `null`, "no JSON": `{"Data":"eA=="`, "NUL": "{\"Data\":\"\x00\"}", "deep": strings.Repeat("[", 100_000),
		"twice, the latter wrong": `{"Data":"eA==","Data":"!"}`,
	} {
		r := putRaw(t, endpoint, "PutRecordBatch", `{"DeliveryStreamName":"s","Records":[`+strings.Join(append(records[:499:499], last), ",")+`]}`)
		if r.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %.200s", what, r.Status, r.Body)
		}
	}
	giant := strings.Repeat("A", 9<<20)
	if r := putRaw(t, endpoint, "PutRecord", `{"DeliveryStreamName":"s","Record":{"Data":"`+giant+`"}}`); r.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("9 MiB: %d %.200s", r.Status, r.Body)
	}
	for _, name := range []string{"../s", "s/../s", "s\x00", ".", "..", "S", "s ", "ſ"} {
		text, _ := json.Marshal(name) // a string
		if r := putRaw(t, endpoint, "PutRecord", `{"DeliveryStreamName":`+string(text)+`,"Record":{"Data":"eA=="}}`); r.Status != http.StatusBadRequest {
			t.Errorf("%q: %d %.200s", name, r.Status, r.Body)
		}
	}
	advance(t, endpoint, "1h")
	equal(t, "objects", 0, len(objects(t, dir)))
	// What a destination may be called leads nowhere else.
	for i, prefix := range []string{"../../../", "/etc/", "a/../../../b/", "..", "!{timestamp:'../../'yyyy}/", ".partial/", "%2E%2E/", strings.Repeat("../", 300), "\x01\x7f\u202e/"} {
		name := fmt.Sprint("hostile", i)
		makeHose(t, c, name, func(d *types.ExtendedS3DestinationConfiguration) {
			d.BucketARN, d.Prefix, d.ErrorOutputPrefix = new("arn:aws:s3:::"+[]string{"..", ".", ".partial", "b"}[i%4]), &prefix, new("e")
		})
		putHose(t, c, name, name+"\n")
	}
	advance(t, endpoint, "1h")
	all := objects(t, dir)
	equal(t, "objects of hostile names", 9, len(all))
	for name := range all {
		if strings.HasPrefix(name, ".partial") {
			t.Errorf("%q is where files are written", name)
		}
	}
}

// The settings of a destination that cannot be sent, or depend on the machine, are refused.
func TestFirehoseUnusableSettings(t *testing.T) {
	c, _, _ := startHoses(t)
	for what, change := range map[string]func(in *firehose.CreateDeliveryStreamInput){
		"a key with a line feed": func(in *firehose.CreateDeliveryStreamInput) {
			in.HttpEndpointDestinationConfiguration.EndpointConfiguration.AccessKey = new("a\nX-Evil: 1")
		},
		"a key with a control character": func(in *firehose.CreateDeliveryStreamInput) {
			in.HttpEndpointDestinationConfiguration.EndpointConfiguration.AccessKey = new("a\x01")
		},
		"a user": func(in *firehose.CreateDeliveryStreamInput) {
			in.HttpEndpointDestinationConfiguration.EndpointConfiguration.Url = new("https://a:b@example.com")
		},
		"a file": func(in *firehose.CreateDeliveryStreamInput) {
			in.HttpEndpointDestinationConfiguration.EndpointConfiguration.Url = new("file:///etc/passwd")
		},
		"the machine's time zone": func(in *firehose.CreateDeliveryStreamInput) {
			in.HttpEndpointDestinationConfiguration, in.ExtendedS3DestinationConfiguration = nil, toBucket(func(d *types.ExtendedS3DestinationConfiguration) { d.CustomTimeZone = new("Local") })
		},
		"retries of partitions": func(in *firehose.CreateDeliveryStreamInput) {
			in.HttpEndpointDestinationConfiguration, in.ExtendedS3DestinationConfiguration = nil, toBucket(func(d *types.ExtendedS3DestinationConfiguration) {
				d.DynamicPartitioningConfiguration = &types.DynamicPartitioningConfiguration{Enabled: new(false), RetryOptions: &types.RetryOptions{DurationInSeconds: new(int32(7201))}}
			})
		},
	} {
		in := &firehose.CreateDeliveryStreamInput{DeliveryStreamName: new("s"), HttpEndpointDestinationConfiguration: toEndpoint("https://example.com")}
		change(in)
		if _, err := c.CreateDeliveryStream(t.Context(), in); err == nil {
			t.Errorf("%s is taken", what)
		} else if strings.Contains(err.Error(), "X-Evil") {
			t.Errorf("%s is shown: %v", what, err)
		}
	}
}
