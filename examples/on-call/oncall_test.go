// Package oncall_test is the example of README.md through the AWS SDK for Go: an alarm
// reaches a person by mail, text message and push message, or its dead-letter queues.
package oncall_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/built"
)

// patience bounds every wait for something that should be quick.
const patience = 2 * time.Minute

func init() { http.DefaultClient.Timeout = 5 * time.Minute } // a clock that is moved does all that is due

const (
	mail   = "ana@example.com"
	number = "+15555550100"
)

// onCall is a server with the topic, and Ana's three endpoints.
type onCall struct {
	address string
	topics  *sns.Client
	queues  *sqs.Client
	metrics *cloudwatch.Client
	topic   string
	phone   string            // the platform endpoint
	dead    map[string]string // dead-letter queues' URLs, by the way
}

func TestOnCall(t *testing.T) {
	w := startOnCall(t)
	w.subscribeAna(t)
	w.makeAlarm(t)

	w.fail(t)
	w.expect(t, "after a failure", `ALARM: "jobs-fail" in US East (N. Virginia)`, 1, 2)
	w.advance(t, "3m")
	w.expect(t, "once it is over", `OK: "jobs-fail" in US East (N. Virginia)`, 1, 3)

	w.post(t, "/_godwit/sms/receive", `{"from":"`+number+`","text":"STOP"}`)
	must(w.topics.SetEndpointAttributes(t.Context(), &sns.SetEndpointAttributesInput{EndpointArn: &w.phone, Attributes: map[string]string{"Enabled": "false"}}))(t)
	w.fail(t)
	w.expect(t, "with a phone that wants nothing", `ALARM: "jobs-fail" in US East (N. Virginia)`, 1, 3)
	for way, want := range map[string]string{"Mail": "", "Text": "jobs-fail is ALARM", "Push": "jobs-fail is ALARM"} {
		if got := w.deadLetter(t, way); got != want {
			t.Errorf("the dead letters of %s: %q, want %q", way, got, want)
		}
	}
}

// startOnCall starts a server on a virtual clock.
func startOnCall(t *testing.T) *onCall {
	t.Helper()
	binary, err := built.Server(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &onCall{address: freeAddress(t), dead: map[string]string{}}
	cmd := exec.Command(binary, "--listen", w.address, "--data", t.TempDir(), "--log-level", "warn", "--clock", "virtual")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Kill) // fails only if it has ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%s", said.String())
		}
	})
	tick, late := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		resp, err := http.Get("http://" + w.address + "/_godwit/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the server does not answer: %v", err)
		}
	}
	config := aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + w.address),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
	w.topics, w.queues, w.metrics = sns.NewFromConfig(config), sqs.NewFromConfig(config), cloudwatch.NewFromConfig(config)
	return w
}

// subscribeAna makes the topic and its subscriptions, each with its filter policy and its
// dead-letter queue.
func (w *onCall) subscribeAna(t *testing.T) {
	t.Helper()
	w.topic = *must(w.topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("On-Call")}))(t).TopicArn
	app := must(w.topics.CreatePlatformApplication(t.Context(), &sns.CreatePlatformApplicationInput{
		Name: aws.String("on-call"), Platform: aws.String("GCM"), Attributes: map[string]string{"PlatformCredential": "none"},
	}))(t)
	w.phone = *must(w.topics.CreatePlatformEndpoint(t.Context(), &sns.CreatePlatformEndpointInput{
		PlatformApplicationArn: app.PlatformApplicationArn, Token: aws.String("anas-phone"),
	}))(t).EndpointArn
	for _, s := range []struct{ way, protocol, endpoint, states string }{
		{"Mail", "email", mail, ""},
		{"Text", "sms", number, `["ALARM"]`},
		{"Push", "application", w.phone, `["ALARM","OK"]`},
	} {
		name := "OnCall-" + s.way + "-DLQ"
		w.dead[s.way] = *must(w.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name}))(t).QueueUrl
		attributes := map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:` + name + `"}`}
		if s.states != "" {
			attributes["FilterPolicyScope"], attributes["FilterPolicy"] = "MessageBody", `{"NewStateValue":`+s.states+`}`
		}
		must(w.topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &w.topic, Protocol: &s.protocol, Endpoint: &s.endpoint, Attributes: attributes}))(t)
	}
	w.advance(t, "1s")
	_, text := w.mail(t)
	link, err := url.Parse(regexp.MustCompile(`http://\S+`).FindString(text))
	if err != nil || link.Host == "" {
		t.Fatalf("no link in %q", text)
	}
	w.post(t, link.RequestURI(), "")
}

func (w *onCall) makeAlarm(t *testing.T) {
	t.Helper()
	must(w.metrics.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("jobs-fail"), Namespace: aws.String("Jobs"), MetricName: aws.String("Failed"), Statistic: types.StatisticSum,
		Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, TreatMissingData: aws.String("notBreaching"),
		AlarmActions: []string{w.topic}, OKActions: []string{w.topic},
	}))(t)
	w.advance(t, "2m")
}

// fail has a job fail, and two minutes pass.
func (w *onCall) fail(t *testing.T) {
	t.Helper()
	must(w.metrics.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("Jobs"), MetricData: []types.MetricDatum{{MetricName: aws.String("Failed"), Value: aws.Float64(1)}},
	}))(t)
	w.advance(t, "2m")
}

// expect compares what the outbox holds.
func (w *onCall) expect(t *testing.T, when, subject string, texts, pushes int) {
	t.Helper()
	if got, _ := w.mail(t); got != subject {
		t.Errorf("%s the latest mail is %q, want %q", when, got, subject)
	}
	var sent struct{ Texts, Pushes []json.RawMessage }
	w.get(t, "/_godwit/outbox/sms?to="+url.QueryEscape(number), &sent)
	w.get(t, "/_godwit/outbox/push", &sent)
	if len(sent.Texts) != texts || len(sent.Pushes) != pushes {
		t.Errorf("%s there are %d text messages and %d push messages, want %d and %d", when, len(sent.Texts), len(sent.Pushes), texts, pushes)
	}
}

// mail is the latest one to Ana.
func (w *onCall) mail(t *testing.T) (subject, text string) {
	t.Helper()
	var sent struct {
		Mails []struct{ Subject, Text string }
	}
	w.get(t, "/_godwit/outbox?to="+url.QueryEscape(mail), &sent)
	if len(sent.Mails) == 0 {
		t.Fatal("there is no mail")
	}
	return sent.Mails[0].Subject, sent.Mails[0].Text
}

// deadLetter takes what a dead-letter queue has; empty: nothing.
func (w *onCall) deadLetter(t *testing.T, way string) string {
	t.Helper()
	var all []string
	for _, m := range must(w.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(w.dead[way]), MaxNumberOfMessages: 10}))(t).Messages {
		var envelope struct{ Message string }
		var alarm struct{ AlarmName, NewStateValue string }
		if err := json.Unmarshal([]byte(*m.Body), &envelope); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(envelope.Message), &alarm); err != nil {
			t.Fatal(err)
		}
		all = append(all, alarm.AlarmName+" is "+alarm.NewStateValue)
	}
	return strings.Join(all, ", ")
}

func (w *onCall) advance(t *testing.T, duration string) {
	t.Helper()
	w.post(t, "/_godwit/clock", `{"advance":"`+duration+`"}`)
}

func (w *onCall) post(t *testing.T, path, body string) {
	t.Helper()
	resp, err := http.Post("http://"+w.address+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s %s %v", path, resp.Status, answer, err)
	}
}

func (w *onCall) get(t *testing.T, path string, v any) {
	t.Helper()
	resp, err := http.Get("http://" + w.address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %v", path, resp.Status, err)
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// freeAddress finds a port that nobody listens on, below those that the kernel gives to
// outgoing connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}
