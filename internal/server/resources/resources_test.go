package resources_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/resources"
)

// start runs a server of an account and a region.
func start(t *testing.T, account, region string, change ...func(*config.Config)) (*resources.Server, aws.Config) {
	t.Helper()
	cfg := configured(t, account, region)
	for _, f := range change {
		f(&cfg)
	}
	s := server.New(cfg, logger(t), nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	endpoint := "http://" + s.Addr().String()
	return &resources.Server{Endpoint: endpoint, Region: region, Key: account, Secret: "x", HTTP: http.DefaultClient},
		aws.Config{Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider(account, "x", "")}
}

func configured(t *testing.T, account, region string) config.Config {
	t.Helper()
	return config.Config{
		Listen: "127.0.0.1:0", Store: config.MemoryStore, Clock: config.SystemClock, Data: t.TempDir(), Region: region, Account: account, AllowPrivateEndpoints: true,
		JitterSeed: 1, EndpointConcurrency: 50, DeliveryConcurrency: 500, MaxAlarms: 100, FunctionIsolation: config.IsolationNone, FunctionNetwork: "none",
	}
}

func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

const file = `
Account: "000000000000"
Region: us-east-1
Queues:
  - QueueName: orders
    Attributes:
      VisibilityTimeout: 60
      RedrivePolicy: {deadLetterTargetArn: "arn:aws:sqs:us-east-1:000000000000:dead", maxReceiveCount: 3}
      Policy:
        Version: "2012-10-17"
        Statement:
          Effect: Allow
          Principal: {Service: sns.amazonaws.com}
          Action: "sqs:SendMessage"
          Resource: "arn:aws:sqs:us-east-1:000000000000:orders"
          Condition: {StringEquals: {"aws:SourceAccount": "000000000000"}}
    Tags: {team: a, draft: ""}
  - QueueName: dead
  - QueueName: row.fifo
    Attributes: {FifoQueue: true, ContentBasedDeduplication: true}
Topics:
  - Name: orders
    Attributes: {DisplayName: Orders}
    Tags: {team: a}
  - Name: row.fifo
    Attributes: {FifoTopic: true}
Subscriptions:
  - TopicArn: orders
    Protocol: sqs
    Endpoint: arn:aws:sqs:us-east-1:000000000000:orders
    Attributes: {RawMessageDelivery: true, FilterPolicy: {status: [confirmed]}}
Alarms:
  - AlarmName: backlog
    Namespace: AWS/SQS
    MetricName: ApproximateNumberOfMessagesVisible
    Dimensions: [{Name: QueueName, Value: orders}]
    Statistic: Maximum
    Period: 60
    EvaluationPeriods: 1
    Threshold: 100
    ComparisonOperator: GreaterThanThreshold
    AlarmActions: ["arn:aws:sns:us-east-1:000000000000:orders"]
    Tags: [{Key: team, Value: a}, {Key: draft, Value: ""}]
`

func read(t *testing.T, text string) *resources.Set {
	t.Helper()
	s, err := resources.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apply applies a set, of which nothing may be refused, and says how many changes there were.
func apply(t *testing.T, to *resources.Server, set *resources.Set, dry bool) (n int, text string) {
	t.Helper()
	var b bytes.Buffer
	changes, err := (&resources.Applying{To: to, Dry: dry, Out: &b}).Run(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Refused != nil {
			t.Error(c)
		}
	}
	return len(changes), b.String()
}

func export(t *testing.T, from *resources.Server) string {
	t.Helper()
	set, missed, err := from.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(missed) > 0 {
		t.Errorf("not exported: %v", missed)
	}
	var b bytes.Buffer
	if err := set.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A file is applied once, and then nothing differs; a dry run says as much and changes
// nothing. What a server exports is applied to another account and region, where the ARNs are
// its own, and exported from there it is the same again.
func TestApplyExportMove(t *testing.T) {
	one, clients := start(t, "000000000000", "us-east-1")
	set := read(t, file)
	would, text := apply(t, one, set, true)
	if did, lines := apply(t, one, set, false); did != would || did < 12 {
		t.Errorf("a dry run has %d changes:\n%sand a run %d:\n%s", would, text, did, lines)
	}
	if again, text := apply(t, one, set, false); again != 0 {
		t.Errorf("a second time there are changes:\n%s", text)
	}
	q, err := sqs.NewFromConfig(clients).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(*clients.BaseEndpoint + "/000000000000/orders"), AttributeNames: []types.QueueAttributeName{"VisibilityTimeout", "RedrivePolicy"},
	})
	if err != nil || q.Attributes["VisibilityTimeout"] != "60" || !strings.Contains(q.Attributes["RedrivePolicy"], ":dead") {
		t.Errorf("the queue has %v, %v", q, err)
	}
	subs, err := sns.NewFromConfig(clients).ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{})
	if err != nil || len(subs.Subscriptions) != 1 {
		t.Errorf("there are subscriptions %v, %v", subs, err)
	}

	exported := export(t, one)
	if n, text := apply(t, one, read(t, exported), true); n != 0 {
		t.Errorf("what was exported differs:\n%s", text)
	}
	two, _ := start(t, "123456789012", "eu-west-1")
	apply(t, two, read(t, exported), false)
	if n, text := apply(t, two, read(t, exported), true); n != 0 {
		t.Errorf("elsewhere, a second time:\n%s", text)
	}
	moved := export(t, two)
	if strings.Contains(moved, "000000000000") || strings.Contains(moved, "us-east-1") {
		t.Errorf("it names the other account or region:\n%s", moved)
	}
	if back := strings.NewReplacer("123456789012", "000000000000", "eu-west-1", "us-east-1").Replace(moved); back != exported {
		t.Errorf("exported there:\n%s\nand here:\n%s", back, exported)
	}
}

// What is different is changed and told, attribute by attribute; what a file does not name is
// left alone; what a server refuses is reported, and the rest is done.
func TestDifferences(t *testing.T) {
	to, _ := start(t, "000000000000", "us-east-1")
	apply(t, to, read(t, file), false)
	changed := strings.NewReplacer("VisibilityTimeout: 60", "VisibilityTimeout: 90", "Threshold: 100", "Threshold: 200", "status: [confirmed]", "status: [paid]").Replace(file)
	n, text := apply(t, to, read(t, changed), false)
	for _, line := range []string{"~ queue orders VisibilityTimeout: 60 → 90\n", "~ alarm backlog Threshold: 100 → 200\n", `FilterPolicy: {"status":["confirmed"]} → {"status":["paid"]}`} {
		if !strings.Contains(text, line) {
			t.Errorf("it does not say %q", line)
		}
	}
	if n != 3 {
		t.Errorf("%d changes:\n%s", n, text)
	}
	if n, text := apply(t, to, read(t, "Queues: [{QueueName: orders}]"), false); n != 0 {
		t.Errorf("what is not named is changed:\n%s", text)
	}
	var b bytes.Buffer
	changes, err := (&resources.Applying{To: to, Out: &b}).Run(t.Context(), read(t, `
Queues:
  - {QueueName: "not a name"}
  - {QueueName: good, Attributes: {VisibilityTimeout: 1000000}}
  - {QueueName: better}
`))
	if err != nil || len(changes) != 4 || strings.Count(b.String(), "! queue") != 2 || !strings.Contains(b.String(), "+ queue better\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A password in an endpoint is shown by no server: an export says so, and its asterisks are
// never put in its place. A file that has it differs from nothing once it is applied, and what is
// printed does not have it.
func TestPasswordsOfEndpoints(t *testing.T) {
	tokens := make(chan string, 8)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var in struct{ Token string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		tokens <- in.Token
	}))
	defer hook.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	to, clients := start(t, "000000000000", "us-east-1", func(c *config.Config) { c.EndpointCA = ca })
	topics := sns.NewFromConfig(clients)
	confirm := func() {
		t.Helper()
		if _, err := topics.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: aws.String("arn:aws:sns:us-east-1:000000000000:orders"), Token: aws.String(<-tokens)}); err != nil {
			t.Fatal(err)
		}
	}
	address := strings.TrimPrefix(hook.URL, "https://")
	of := func(credentials, attributes string) *resources.Set {
		return read(t, "Topics: [{Name: orders}]\nSubscriptions: [{TopicArn: orders, Protocol: https, Endpoint: \"https://"+credentials+"@"+address+"\", Attributes: {"+attributes+"}}]")
	}
	if n, text := apply(t, to, of("anna:secret", "RawMessageDelivery: true"), false); n != 2 || strings.Contains(text, "secret") {
		t.Errorf("the first time:\n%s", text)
	}
	confirm()
	if n, text := apply(t, to, of("anna:secret", "RawMessageDelivery: true"), false); n != 0 {
		t.Errorf("a second time:\n%s", text)
	}
	file := written(t, to, "user and password of the endpoint https://****:****@"+address+": they are never shown")
	if n, text := apply(t, to, read(t, strings.Replace(file, "RawMessageDelivery: \"true\"", "RawMessageDelivery: \"false\"", 1)), false); n != 1 {
		t.Errorf("an attribute of what was exported:\n%s", text)
	}
	if n, text := apply(t, to, of("anna:other", ""), false); n != 1 || strings.Contains(text, "other") {
		t.Errorf("another password:\n%s", text)
	}
	subs, err := topics.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{})
	if err != nil || len(subs.Subscriptions) != 2 {
		t.Errorf("there are subscriptions %v, %v", subs, err)
	}
	empty, _ := start(t, "000000000000", "us-east-1")
	for _, dry := range []bool{true, false} {
		var b bytes.Buffer
		if _, err := (&resources.Applying{To: empty, Dry: dry, Out: &b}).Run(t.Context(), read(t, file)); err != nil || !strings.Contains(b.String(), "! subscription of https https://****") {
			t.Errorf("to another server: %v\n%s", err, b.String())
		}
	}
}

// Members of an alarm that a file does not name stay as they are, unless what it names excludes
// them.
func TestAlarmMembers(t *testing.T) {
	to, _ := start(t, "000000000000", "us-east-1")
	apply(t, to, read(t, strings.Replace(file, "    Threshold: 100", "    Threshold: 100\n    TreatMissingData: breaching\n    DatapointsToAlarm: 1\n    AlarmDescription: too much", 1)), false)
	for _, members := range []string{"Threshold: 200, OKActions: []", "ExtendedStatistic: p90", "Tags: [{Key: team, Value: b}]", "Statistic: Average, EvaluationPeriods: 2"} {
		set := read(t, "Alarms: [{AlarmName: backlog, "+members+"}]")
		if n, text := apply(t, to, set, false); n == 0 {
			t.Errorf("%s: no change:\n%s", members, text)
		}
		if n, text := apply(t, to, set, false); n != 0 {
			t.Errorf("%s, a second time:\n%s", members, text)
		}
	}
	exported := export(t, to)
	for _, line := range []string{"TreatMissingData: breaching", "AlarmDescription: too much", "Threshold: 200", "Statistic: Average", "EvaluationPeriods: 2", "Value: b", "Key: draft", "us-east-1:000000000000:orders", "Period: 60"} {
		if !strings.Contains(exported, line) {
			t.Errorf("%s is missing of\n%s", line, exported)
		}
	}
	if strings.Contains(exported, "ExtendedStatistic") {
		t.Errorf("there are two statistics:\n%s", exported)
	}
}

// An alarm on Metrics is the same with what a query has by default and without it, and goes to
// another server; it takes the place of one on a metric, and the other way round.
func TestAlarmQueries(t *testing.T) {
	to, _ := start(t, "000000000000", "us-east-1")
	const rest = "EvaluationPeriods: 1, Threshold: 1, ComparisonOperator: GreaterThanThreshold"
	const m1 = "{Id: m1, MetricStat: {Metric: {Namespace: n, MetricName: m}, Period: 60, Stat: Sum}, ReturnData: false}"
	for _, members := range []string{
		"Metrics: [{Id: e1, Expression: m1*2}, " + m1 + "]",
		"Namespace: n, MetricName: m, Period: 60, Statistic: Sum",
		"Metrics: [{Id: e1, Expression: m1*3, Label: thrice, ReturnData: true}, " + m1 + "]",
	} {
		set := read(t, "Alarms: [{AlarmName: rate, "+rest+", "+members+"}]")
		if n, text := apply(t, to, set, false); n == 0 {
			t.Errorf("%s: no change:\n%s", members, text)
		}
		if n, text := apply(t, to, set, false); n != 0 {
			t.Errorf("%s, a second time:\n%s", members, text)
		}
	}
	exported := export(t, to)
	for _, line := range []string{"Expression: m1*3", "Label: thrice", "MetricName: m\n"} {
		if !strings.Contains(exported, line) {
			t.Errorf("%s is missing of\n%s", line, exported)
		}
	}
	other, _ := start(t, "000000000000", "us-east-1")
	apply(t, other, read(t, exported), false)
	if got := export(t, other); got != exported {
		t.Errorf("another server has\n%s\nwant\n%s", got, exported)
	}
}

// Composite alarms are made after those that they depend on, in whatever order a file has them.
func TestCompositeAlarms(t *testing.T) {
	to, _ := start(t, "000000000000", "us-east-1")
	const text = `
Account: "111122223333"
Region: eu-west-1
Alarms:
  - {AlarmName: all, AlarmRule: 'ALARM(some) OR ALARM("arn:aws:cloudwatch:eu-west-1:111122223333:alarm:backlog")'}
  - {AlarmName: some, AlarmRule: OK(backlog), AlarmDescription: calm, ActionsSuppressor: quiet, ActionsSuppressorWaitPeriod: 60, ActionsSuppressorExtensionPeriod: 0, Tags: [{Key: team, Value: a}]}
  - {AlarmName: backlog, Namespace: n, MetricName: m, Period: 60, Statistic: Sum, EvaluationPeriods: 1, Threshold: 1, ComparisonOperator: GreaterThanThreshold}
  - {AlarmName: quiet, AlarmRule: "FALSE"}
`
	if n, text := apply(t, to, read(t, text), false); n != 4 {
		t.Errorf("%d changes:\n%s", n, text)
	}
	if n, text := apply(t, to, read(t, text), false); n != 0 {
		t.Errorf("a second time:\n%s", text)
	}
	exported := export(t, to)
	for _, line := range []string{"AlarmRule: ALARM(some) OR ALARM(\"arn:aws:cloudwatch:us-east-1:000000000000:alarm:backlog\")", "ActionsSuppressor: quiet", "ActionsSuppressorWaitPeriod: 60", "ActionsSuppressorExtensionPeriod: 0", "Key: team"} {
		if !strings.Contains(exported, line) {
			t.Errorf("%s is missing of\n%s", line, exported)
		}
	}
	other, _ := start(t, "000000000000", "us-east-1")
	apply(t, other, read(t, exported), false)
	if got := export(t, other); got != exported {
		t.Errorf("another server has\n%s\nwant\n%s", got, exported)
	}
	if n, text := apply(t, to, read(t, "Alarms: [{AlarmName: all, AlarmRule: ALARM(quiet)}]"), false); n != 1 || !strings.Contains(text, "~ alarm all AlarmRule: ") {
		t.Errorf("%d changes:\n%s", n, text)
	}
}

// Attributes of which one allows the other are set in the order that the server takes, on the
// way there and back.
func TestDependentAttributes(t *testing.T) {
	to, _ := start(t, "000000000000", "us-east-1")
	for _, attributes := range [][2]string{
		{"DeduplicationScope: messageGroup, FifoThroughputLimit: perMessageGroupId", "FilterPolicyScope: MessageBody, FilterPolicy: {order: {state: [paid]}}"},
		{"DeduplicationScope: queue, FifoThroughputLimit: perQueue", "FilterPolicyScope: MessageAttributes, FilterPolicy: {state: [paid]}"},
		{"DeduplicationScope: messageGroup, FifoThroughputLimit: perMessageGroupId", "FilterPolicyScope: MessageBody, FilterPolicy: {order: {state: [paid]}}"},
	} {
		set := read(t, `
Queues: [{QueueName: row.fifo, Attributes: {FifoQueue: true, `+attributes[0]+`}}, {QueueName: q}]
Topics: [{Name: orders}]
Subscriptions: [{TopicArn: orders, Protocol: sqs, Endpoint: "arn:aws:sqs:us-east-1:000000000000:q", Attributes: {`+attributes[1]+`}}]
`)
		apply(t, to, set, false)
		if n, text := apply(t, to, set, false); n != 0 {
			t.Errorf("a second time:\n%s", text)
		}
	}
}

// What a file says that nobody knows is refused, with its place.
func TestReadRefuses(t *testing.T) {
	for _, text := range []string{
		"Queue: []", "Queues: [{Name: a}]", "Queues: [{QueueName: a, Attribute: {}}]", "Queues: [{}]", "Topics: [{}]",
		"Subscriptions: [{TopicArn: a}]", "Alarms: [{Namespace: a}]", "Queues: [{QueueName: a, Attributes: [1]}]", "{",
		"Sources: [{target: a}]", "Sources: [{name: a, owner: b}]", "Sources: [{name: a, secrets: b}]", "Sources: [{name: a, secrets: [{env: B, c: d}]}]",
	} {
		if _, err := resources.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	if _, err := resources.Read(strings.NewReader("Topics: []\nQueue: []\n")); err == nil || err.Error() != `line 2: there is no "Queue"` {
		t.Errorf("what is said of it: %v", err)
	}
	if _, err := resources.Read(strings.NewReader("")); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

// A server that cannot be asked, or that is none, is an error and no change.
func TestNoServer(t *testing.T) {
	for _, answer := range []string{"", "<html>", "{}"} {
		s := &resources.Server{Endpoint: "http://127.0.0.1:1", Region: "us-east-1", HTTP: answering(answer)}
		if changes, err := (&resources.Applying{To: s, Out: io.Discard}).Run(t.Context(), read(t, file)); err == nil || len(changes) > 0 {
			t.Errorf("%q: %v, %v", answer, changes, err)
		}
	}
}

type answering string

func (a answering) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// A server that has only some of the actions is exported as far as it tells, and what it does
// not tell is listed. One that tells nothing is an error.
func TestExportOfPart(t *testing.T) {
	whole, _ := start(t, "000000000000", "us-east-1")
	apply(t, whole, read(t, file), false)
	for _, c := range []struct {
		refused             []string
		missed              []string
		queues, topics      int
		subscriptions       int
		subscribed, visible string // an attribute of a subscription, and of the first queue
	}{
		{[]string{"GetTopicAttributes", "GetCallerIdentity"}, []string{"attributes of topic orders: GetTopicAttributes: ", "attributes of topic row.fifo: "}, 3, 2, 1, "true", "30"},
		{[]string{"ListTopics", "ListSubscriptions"}, []string{"topics and subscriptions: ListTopics: "}, 3, 0, 0, "", "30"},
		{[]string{"ListQueues"}, []string{"queues: ListQueues: "}, 0, 2, 1, "true", ""},
		{[]string{"ListSubscriptions", "GetQueueAttributes"}, []string{"attributes of queue dead: ", "attributes of queue orders: ", "attributes of queue row.fifo: ", "subscriptions: "}, 3, 2, 0, "", ""},
		{[]string{"GetSubscriptionAttributes", "ListQueueTags"}, []string{"tags of queue dead: ", "tags of queue orders: ", "tags of queue row.fifo: ", "attributes of the subscription of arn:"}, 3, 2, 1, "", "30"},
		{[]string{"DescribeAlarms"}, []string{"alarms: "}, 3, 2, 1, "true", "30"},
	} {
		part := *whole
		part.HTTP = refusing(c.refused)
		set, missed, err := part.Export(t.Context())
		if err != nil {
			t.Errorf("%v: %v", c.refused, err)
			continue
		}
		if len(missed) != len(c.missed) {
			t.Errorf("%v: missed are %q", c.refused, missed)
			continue
		}
		for i, line := range missed {
			if !strings.HasPrefix(line, c.missed[i]) {
				t.Errorf("%v: it says %q, want %q", c.refused, line, c.missed[i])
			}
		}
		if len(set.Queues) != c.queues || len(set.Topics) != c.topics || len(set.Subscriptions) != c.subscriptions {
			t.Errorf("%v: it has %+v", c.refused, set)
			continue
		}
		if c.queues > 0 && set.Queues[0].Attributes["VisibilityTimeout"] != c.visible || c.subscriptions > 0 && set.Subscriptions[0].Attributes["RawMessageDelivery"] != c.subscribed {
			t.Errorf("%v: it has %+v", c.refused, set)
		}
	}
	nothing := *whole
	nothing.HTTP = refusing{"ListQueues", "ListTopics"}
	if set, _, err := nothing.Export(t.Context()); err == nil {
		t.Errorf("of nothing it exports %+v", set)
	}
}

// The tags that AWS gives to what its stacks make are not exported: no server takes them.
func TestReservedTags(t *testing.T) {
	from, _ := start(t, "000000000000", "us-east-1")
	apply(t, from, read(t, file), false)
	from.HTTP = stacked{}
	exported := export(t, from)
	if strings.Contains(exported, "aws:cloudformation") || strings.Contains(exported, "team") {
		t.Errorf("exported is\n%s", exported)
	}
	to, _ := start(t, "000000000000", "us-east-1")
	apply(t, to, read(t, exported), false)
}

// Files of earlier versions have such tags. They are left out, which is told, and all else is there.
func TestReservedTagsOfAFile(t *testing.T) {
	const reserved = "aws:cloudformation:stack-name"
	text := strings.NewReplacer("{team: a, draft: \"\"}", "{AWS:x: b, "+reserved+": s, team: a, draft: \"\"}", "Tags: {team: a}", "Tags: {"+reserved+": s}",
		"{Key: team, Value: a}", "{Key: "+reserved+", Value: s}").Replace(file)
	for _, alone := range []bool{false, true} {
		if alone {
			text = strings.ReplaceAll(text, ", {Key: draft, Value: \"\"}", "")
		}
		to, _ := start(t, "000000000000", "us-east-1")
		set := read(t, text)
		_, told := apply(t, to, set, false)
		for _, want := range []string{"queue orders tag AWS:x", "queue orders tag " + reserved, "topic orders tag " + reserved, "alarm backlog tag " + reserved} {
			if strings.Count(told, "- "+want+": left out") != 1 {
				t.Errorf("%q is not told once in\n%s", want, told)
			}
		}
		if exported := export(t, to); strings.Contains(exported, reserved) || !strings.Contains(exported, "team: a") || strings.Contains(exported, "Key: draft") == alone {
			t.Errorf("it has\n%s", exported)
		}
		if n, told := apply(t, to, set, false); n > 0 {
			t.Errorf("%d differ a second time:\n%s", n, told)
		}
		if len(set.Queues[0].Tags) != 4 {
			t.Error("the set has changed")
		}
	}
}

// stacked answers as if what is tagged with a team had been made by a stack.
type stacked struct{}

func (stacked) Do(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	text = bytes.ReplaceAll(text, []byte("<Key>team<"), []byte("<Key>aws:cloudformation:stack-name<"))
	text = bytes.ReplaceAll(text, []byte(`"team"`), []byte(`"aws:cloudformation:stack-name"`))
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, err
}

// refusing are actions that a server does not have.
type refusing []string

func (actions refusing) Do(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	for _, action := range actions {
		if strings.Contains(string(text), "Action="+action+"&") || strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+action) {
			return &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader("no such action"))}, nil
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return http.DefaultClient.Do(r)
}

const sourcesFile = `
Account: "000000000000"
Region: us-east-1
Queues:
  - QueueName: posts
Sources:
  - name: shop
    target: arn:aws:sqs:us-east-1:000000000000:posts
    verification: {kind: api-key}
    secrets: [{env: SHOP_KEY}]
    limits: {perSecond: 50}
    mapping: {attributes: {event: "header:X-Event"}}
  - name: news
    target: arn:aws:sqs:us-east-1:000000000000:posts
    verification: {kind: basic}
    secrets: ["anna:a password of some length"]
    paused: true
`

// Sources come with their targets, to another account's ARNs too; what a file does not name of
// one stays, its secrets too.
func TestSources(t *testing.T) {
	to, _ := start(t, "111122223333", "eu-west-1")
	set := read(t, sourcesFile)
	_, err := (&resources.Applying{To: to, Dry: true, Out: io.Discard}).Run(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	changes, err := (&resources.Applying{To: to, Out: &b}).Run(t.Context(), set)
	if err != nil || !strings.Contains(b.String(), "SHOP_KEY is not set") || strings.Contains(b.String(), "password") {
		t.Errorf("without the variable: %v, %v\n%s", changes, err, b.String())
	}
	t.Setenv("SHOP_KEY", "a key of sixteen bytes or more")
	if n, text := apply(t, to, set, false); n != 1 || !strings.Contains(text, "+ source shop") || strings.Contains(text, "a key of") {
		t.Errorf("with it: %s", text)
	}
	if n, text := apply(t, to, set, false); n != 0 {
		t.Errorf("again: %s", text)
	}
	file := written(t, to, "secrets of source news: they are never shown", "secrets of source shop: they are never shown")
	for _, want := range []string{"target: arn:aws:sqs:eu-west-1:111122223333:posts", "perSecond: 50", "event: header:X-Event", "paused: true", "kind: basic"} {
		if !strings.Contains(file, want) {
			t.Errorf("%s is missing of\n%s", want, file)
		}
	}
	if n, text := apply(t, to, read(t, file), false); n != 0 {
		t.Errorf("what was exported: %s", text)
	}
	// Members that are not named stay, and so do the secrets.
	n, text := apply(t, to, read(t, "Sources: [{name: news, paused: false}, {name: shop, limits: {bytes: 1000}}]"), false)
	if n != 2 || !strings.Contains(text, "~ source news paused") || !strings.Contains(text, `{"bytes":1000,"perSecond":50}`) {
		t.Errorf("changed: %s", text)
	}
	now := written(t, to, "secrets of source news: they are never shown", "secrets of source shop: they are never shown")
	if strings.Contains(now, "paused") || !strings.Contains(now, "event: header:X-Event") || !strings.Contains(now, "bytes: 1000") {
		t.Errorf("it is now\n%s", now)
	}
	n, text = apply(t, to, read(t, "Sources: [{name: shop, secrets: [{env: SHOP_KEY}, another key of some bytes]}]"), true)
	if n != 1 || !strings.Contains(text, "number of secrets: 1 → 2") {
		t.Errorf("another secret: %s", text)
	}
}

// A server that answers operators at an address of their own has its sources there: without that
// address, an export says that they are missing.
func TestOperatorsElsewhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	apart := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	to, _ := start(t, "000000000000", "us-east-1", func(c *config.Config) { c.AdminListen = apart })
	t.Setenv("SHOP_KEY", "a key of sixteen bytes or more")
	set := read(t, sourcesFile)
	const refused = "ListSources: Forbidden This is answered at the address of --admin-listen only."
	if _, err := (&resources.Applying{To: to, Out: io.Discard}).Run(t.Context(), set); err == nil || err.Error() != refused {
		t.Errorf("at the wrong address: %v", err)
	}
	if file := written(t, to, "sources: "+refused); strings.Contains(file, "Sources:") {
		t.Errorf("from there, it is\n%s", file)
	}
	to.OperatorEndpoint = "http://" + apart
	if n, text := apply(t, to, set, false); n != 2 {
		t.Errorf("there are changes:\n%s", text)
	}
	if file := written(t, to, "secrets of source news: they are never shown", "secrets of source shop: they are never shown"); !strings.Contains(file, "name: shop") {
		t.Errorf("it is\n%s", file)
	}
}

// The sources of --resources are made at the start of a server that answers operators at an address
// of their own, too.
func TestResourcesWithOperatorsElsewhere(t *testing.T) {
	t.Setenv("SHOP_KEY", "a key of sixteen bytes or more")
	cfg := configured(t, "000000000000", "us-east-1")
	cfg.AdminListen, cfg.Resources = "127.0.0.1:0", filepath.Join(t.TempDir(), "resources.yaml")
	if err := os.WriteFile(cfg.Resources, []byte(sourcesFile), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	banner := writer(stop)
	if err := server.Run(ctx, cfg, logger(t), banner, clock.System.Now()); err != nil {
		t.Error(err)
	}
	if ctx.Err() == nil {
		t.Error("it has not started")
	}
}

// writer calls a function for what is written.
type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

// written is what a server exports, of which so much is missed.
func written(t *testing.T, from *resources.Server, missed ...string) string {
	t.Helper()
	set, left, err := from.Export(t.Context())
	if err != nil || !slices.Equal(left, missed) {
		t.Fatalf("not exported: %q, %v", left, err)
	}
	var b bytes.Buffer
	if err := set.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
