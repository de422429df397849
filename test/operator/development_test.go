package operator_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

type reading struct {
	Clock string
	Now   time.Time
	Next  *time.Time
	Ran   int
}

func TestClock(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	body := "late"
	must(w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, DelaySeconds: 600}))(t)
	before := get[reading](w, "clock")
	equal(t, "kind", "virtual", before.Clock)
	for _, path := range []string{"clock", "faults", "cluster"} {
		w.refused(http.StatusBadRequest, http.MethodGet, path, "x=1")
	}
	moved := post[reading](w, "clock", `{"advance":"1h"}`)
	equal(t, "now", before.Now.Add(time.Hour), moved.Now)
	equal(t, "now, read again", moved.Now, get[reading](w, "clock").Now)
	equal(t, "due", 1, get[queueView](w, "queue", "arn", queueARN("orders")).Visible)
	for _, body := range []string{`{}`, `{"advance":"soon"}`, `{"advance":"-1h"}`} {
		w.refused(http.StatusBadRequest, http.MethodPost, "clock", body)
	}

	system := startWith(t, func(c *config.Config) { c.Clock = config.SystemClock })
	got := get[reading](system, "clock")
	if got.Clock != "system" || got.Next != nil {
		t.Errorf("the system clock reads %+v", got)
	}
	system.refused(http.StatusConflict, http.MethodPost, "clock", `{"advance":"1h"}`)
}

type faultView struct{ ARN, Fault string }

// Who misspells what is to fail is told that there is no such thing, and the fault is in force once there
// is: what tests begin with may be created later.
func TestFaultsOfNothing(t *testing.T) {
	w := start(t)
	w.queue("orders", nil)
	type answer struct {
		faultView
		Note *string
	}
	for _, path := range []string{"faults", "/_godwit/faults"} {
		set := func(arn, fault string) (note string) {
			var said answer
			body := `{"arn":"` + arn + `","fault":"` + fault + `"}`
			if path == "faults" {
				said = post[answer](w, path, body)
			} else if err := json.Unmarshal([]byte(w.fetch(http.MethodPost, w.endpoint+path, body, http.StatusOK)), &said); err != nil {
				t.Fatal(err)
			}
			if said.Note == nil {
				return ""
			}
			return *said.Note
		}
		const none, absent = "it had no fault of its own", "there is no such resource: the fault is in force once there is"
		lambda, of := "arn:aws:lambda:"+region+":"+account+":", ":"+region+":"+account+":"
		for arn, want := range map[string]string{
			queueARN("orders"): "", queueARN("order"): absent, "arn:aws:sqs" + of + "*": "", "arn:aws:sns" + of + "direct/sms": "",
			"arn:aws:sns" + of + "app/APNS/shop": absent, lambda + "function:f": absent, "arn:aws:firehose" + of + "deliverystream/s": absent,
		} {
			if got := set(arn, "none"); got != none {
				t.Errorf("%s: %s: the end of none: %q", path, arn, got)
			}
			for _, fault := range []string{"throttled", "unavailable"} { // which there is already, then
				if got := set(arn, fault); got != want {
					t.Errorf("%s: %s of %s: %q, want %q", path, fault, arn, got, want)
				}
			}
			if got := set(arn, "none"); got != "" {
				t.Errorf("%s: %s: its end: %q", path, arn, got)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	set := func(arn, fault string) { post[faultView](w, "faults", `{"arn":"`+arn+`","fault":"`+fault+`"}`) }
	list := func() string { return fmt.Sprint(get[struct{ Faults []faultView }](w, "faults").Faults) }
	equal(t, "none", "[]", list())
	all := "arn:aws:sns:" + region + ":" + account + ":*"
	set(all, "internal")
	set(queueARN("orders"), "throttled")
	equal(t, "in force", fmt.Sprintf("[{%s internal} {%s throttled}]", all, queueARN("orders")), list())
	body := "x"
	if _, err := w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err == nil {
		t.Error("a queue that is throttled takes messages")
	}
	set(queueARN("orders"), "none")
	set(all, "none")
	equal(t, "none any more", "[]", list())
	w.send(url, body)
	for _, body := range []string{`{"arn":"x","fault":"none"}`, `{"arn":"` + queueARN("orders") + `","fault":"denied"}`, `{"arn":"` + queueARN("orders") + `","fault":"slow"}`} {
		w.refused(http.StatusBadRequest, http.MethodPost, "faults", body)
	}
}

// A reset deletes what there is of an account in a region, which has to be named, and nothing
// else; also what fails on purpose.
func TestReset(t *testing.T) {
	w := start(t)
	w.send(w.queue("orders", nil), "x")
	for i := range 3 {
		w.queue(fmt.Sprint("other-", i), nil)
	}
	topic := w.topic("orders")
	w.subscribe(topic, "sqs", queueARN("orders"), nil)
	far := sqs.NewFromConfig(w.config, func(o *sqs.Options) { o.Region = "eu-west-1" })
	must(far.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("far")}))(t)
	must(cloudwatch.NewFromConfig(w.config).PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("late"), MetricName: aws.String("m"), Namespace: aws.String("n"), Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1),
		Threshold: aws.Float64(1), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, Statistic: types.StatisticSum,
	}))(t)
	must(cloudwatchlogs.NewFromConfig(w.config).CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("g"), DeletionProtectionEnabled: aws.Bool(true)}))(t)
	must(w.topics.CreatePlatformApplication(t.Context(), &sns.CreatePlatformApplicationInput{Name: aws.String("app"), Platform: aws.String("ADM"), Attributes: map[string]string{"PlatformCredential": "secret", "PlatformPrincipal": "id"}}))(t)
	w.function("work")
	lambdas := lambda.NewFromConfig(w.config)
	version := func() string {
		t.Helper()
		return aws.ToString(must(lambdas.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: aws.String("work")}))(t).Version)
	}
	version()
	must(lambdas.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("work")}))(t)
	w.function("work")
	equal(t, "its version", "2", version())
	must(lambdas.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{EventSourceArn: aws.String(queueARN("other-1")), FunctionName: aws.String("work")}))(t)
	stacks := cloudformation.NewFromConfig(w.config)
	must(stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("shop"), TemplateBody: aws.String(`{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"of-a-stack"}}}}`)}))(t)
	waiter := cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, time.Second
	})
	if err := waiter.Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String("shop")}, time.Minute); err != nil {
		t.Fatal(err)
	}
	var libraries bytes.Buffer
	content := zip.NewWriter(&libraries)
	must(content.Create("python/lib.py"))(t)
	if err := content.Close(); err != nil {
		t.Fatal(err)
	}
	must(lambdas.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
		LayerName: aws.String("libraries"), Content: &lambdatypes.LayerVersionContentInput{ZipFile: libraries.Bytes()},
	}))(t)
	w.advance("10m")
	w.put("in", topic, byHub)
	post[faultView](w, "faults", `{"arn":"`+queueARN("orders")+`","fault":"unavailable"}`)

	w.refused(http.StatusBadRequest, http.MethodPost, "reset", `{}`)
	got := w.call(http.MethodPost, "reset", "", `{"account":"`+account+`"}`, http.StatusOK)
	equal(t, "deleted", `{"stacks":1,"sources":1,"queues":5,"topics":1,"functions":1,"layers":1,"mappings":1,"applications":1,"streams":0,"alarms":1,"logGroups":1,"faults":1}`, strings.TrimSpace(got))
	left := get[queuePage](w, "queues")
	equal(t, "left", "0 1", fmt.Sprint(len(left.Queues), " ", left.Total))
	equal(t, "elsewhere", 1, len(get[queuePage](w, "queues", "region", "eu-west-1").Queues))
	again := w.call(http.MethodPost, "reset", "", `{"account":"`+account+`"}`, http.StatusOK)
	equal(t, "stacks", 0, len(must(stacks.ListStacks(t.Context(), &cloudformation.ListStacksInput{}))(t).StackSummaries))
	if !strings.Contains(again, `"stacks":0,"sources":0,"queues":0,"topics":0,"functions":0`) {
		t.Errorf("again: %s", again)
	}
	w.function("work")
	equal(t, "its version", "1", version())
	w.send(w.queue("orders", nil), "y")
	equal(t, "made anew", 1, get[queueView](w, "queue", "arn", queueARN("orders")).Messages)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.endpoint+"/_localstack/state/reset", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://elsewhere.example")
	if resp := must(http.DefaultClient.Do(req))(t); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a web page from elsewhere may reset the server: %s", resp.Status)
	}
	equal(t, "as other tools ask", http.StatusOK, first(w.ask(http.MethodPost, w.endpoint+"/_localstack/state/reset", "")))
	equal(t, "empty", 0, len(get[queuePage](w, "queues").Queues))
}

// function makes a function that is never invoked.
func (w *world) function(name string) {
	w.t.Helper()
	must(lambda.NewFromConfig(w.config).CreateFunction(w.t.Context(), &lambda.CreateFunctionInput{
		FunctionName: &name, Role: aws.String("arn:aws:iam::" + account + ":role/r"), PackageType: "Image", Code: &lambdatypes.FunctionCode{ImageUri: aws.String("http://127.0.0.1:1")},
	}))(w.t)
}

// Production neither fails on purpose nor deletes everything, and its clock is the machine's.
func TestNotInProduction(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Production, c.Enforce, c.Clock, c.Root = true, true, config.SystemClock, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.signs = &root
	w.queue("orders", nil)
	w.refused(http.StatusForbidden, http.MethodPost, "faults", `{"arn":"`+queueARN("orders")+`","fault":"throttled"}`)
	w.refused(http.StatusForbidden, http.MethodPost, "reset", `{"account":"`+account+`"}`)
	w.refused(http.StatusConflict, http.MethodPost, "clock", `{"advance":"1s"}`)
	equal(t, "queues", 1, len(get[queuePage](w, "queues").Queues))
}

// A single server is a cluster of one node.
func TestCluster(t *testing.T) {
	w := start(t)
	got := get[struct {
		Nodes []struct {
			Name, URL, State string
			PID              int
		}
		Cells []struct{ Owner string }
	}](w, "cluster")
	if len(got.Nodes) != 1 || len(got.Cells) != 1 || got.Nodes[0].State != "serving" || got.Nodes[0].PID == 0 || got.Cells[0].Owner != got.Nodes[0].Name || got.Nodes[0].URL != w.endpoint {
		t.Errorf("%+v", got)
	}
}

// Every path that the API replaces still answers, says that it goes, and names what comes
// instead, which is there.
func TestReplacedPaths(t *testing.T) {
	w := start(t)
	w.queue("orders", nil)
	sub := w.subscribe(w.topic("orders"), "sqs", queueARN("orders"), nil)
	w.function("work")
	on := `{"subscription":"` + sub + `"`
	for _, old := range []struct{ method, path, input, successor string }{
		{http.MethodGet, "clock", "", "clock"},
		{http.MethodPost, "clock", `{"advance":"1s"}`, "clock"},
		{http.MethodGet, "faults", "", "faults"},
		{http.MethodPost, "faults", `{"arn":"` + queueARN("orders") + `","fault":"none"}`, "faults"},
		{http.MethodGet, "deliveries", "subscription=" + url.QueryEscape(sub), "deliveries"},
		{http.MethodGet, "queue", "queue=" + url.QueryEscape(queueARN("orders")), "queue"},
		{http.MethodGet, "backlog", "subscription=" + url.QueryEscape(sub), "subscription"},
		{http.MethodGet, "events", "function=arn:aws:lambda:" + region + ":" + account + ":function:work", "function"},
		{http.MethodPost, "subscriptions/pause", on + "}", "subscription/pause"},
		{http.MethodPost, "subscriptions/resume", on + "}", "subscription/resume"},
		{http.MethodPost, "deliveries/retry", on + `,"all":true}`, "delivery/retry"},
		{http.MethodPost, "deliveries/drop", on + `,"all":true}`, "delivery/drop"},
	} {
		link, body := w.endpoint+"/_godwit/"+old.path, old.input
		if old.method == http.MethodGet {
			link, body = link+"?"+old.input, ""
		}
		req, err := http.NewRequestWithContext(t.Context(), old.method, link, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp := must(http.DefaultClient.Do(req))(t)
		text := must(io.ReadAll(resp.Body))(t)
		_ = resp.Body.Close()
		what := old.method + " " + old.path
		equal(t, what, http.StatusOK, resp.StatusCode)
		if since := resp.Header.Get("Deprecation"); !strings.HasPrefix(since, "@") {
			t.Errorf("%s: Deprecation: %q: %s", what, since, text)
		}
		equal(t, what, "</_godwit/v1/"+old.successor+`>; rel="successor-version", </_godwit/v1/openapi.json>; rel="service-desc"`, resp.Header.Get("Link"))
		document(w).operation(t, old.method, prefix+old.successor)
	}
	if resp := must(http.Get(w.endpoint + prefix + "overview"))(t); resp.Header.Get("Deprecation") != "" { //nolint:noctx // of a test's own server
		t.Error("what replaces them is said to go as well")
	}
}
