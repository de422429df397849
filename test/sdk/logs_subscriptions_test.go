package sdk_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	fhtypes "github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"godwit.dev/godwit/internal/config"
)

// handed is what a subscription filter hands over.
type handed struct {
	MessageType         string        `json:"messageType"`
	Owner               string        `json:"owner"`
	LogGroup            string        `json:"logGroup"`
	LogStream           string        `json:"logStream"`
	SubscriptionFilters []string      `json:"subscriptionFilters"`
	LogEvents           []handedEvent `json:"logEvents"`
}

type handedEvent struct {
	ID        string `json:"id"`
	Timestamp int64  `json:"timestamp"`
	Message   string `json:"message"`
}

// unzip reads compressed messages that follow each other.
func unzip(t *testing.T, body []byte) (all []handed) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(plain); ; {
		var m handed
		err := d.Decode(&m)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
}

// handedTo are the messages that a function was invoked with since it was last asked.
func handedTo(t *testing.T, f *far) (all []handed) {
	t.Helper()
	for _, payload := range f.ran() {
		var event struct {
			AWSLogs struct {
				Data string `json:"data"`
			} `json:"awslogs"`
		}
		if err := json.Unmarshal([]byte(payload), &event); err != nil {
			t.Fatalf("%v: %.200s", err, payload)
		}
		body, err := base64.StdEncoding.DecodeString(event.AWSLogs.Data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, unzip(t, body)...)
	}
	return all
}

// handedLines are the messages of events, as "filter stream: message message".
func handedLines(all []handed) (lines []string) {
	for _, m := range all {
		line := m.SubscriptionFilters[0] + " " + m.LogStream + ":"
		for _, e := range m.LogEvents {
			line += " " + e.Message
		}
		lines = append(lines, line)
	}
	return lines
}

// allowLogs lets CloudWatch Logs invoke a function for a group.
func allowLogs(t *testing.T, c *lambda.Client, name, group string) {
	t.Helper()
	in := permission(name, "logs", "logs.amazonaws.com")
	in.SourceArn, in.SourceAccount = aws.String(logGroupARN+group+":*"), aws.String(account)
	must(c.AddPermission(t.Context(), in))(t)
}

func subscriptionInput(group, name, pattern, destination string) *cloudwatchlogs.PutSubscriptionFilterInput {
	return &cloudwatchlogs.PutSubscriptionFilterInput{LogGroupName: &group, FilterName: &name, FilterPattern: &pattern, DestinationArn: &destination}
}

const unreachable = "Could not execute the lambda function. Make sure you have given CloudWatch Logs permission to execute your function."

// The events of a group that match go to a function, in the form that AWS documents, and what was put before a
// restart after it.
func TestSubscriptionFilterToFunction(t *testing.T) {
	endpoint, restart := startDisk(t)
	c, functions, ctx := logsClient(endpoint), functionsClient(endpoint), t.Context()
	f := startFar(t)
	createFar(t, endpoint, functions, "f", f, "")
	createGroup(t, c, "/app", "s", "t")
	in := subscriptionInput("/app", "errors", "ERROR", functionARN("f"))
	_, err := c.PutSubscriptionFilter(ctx, in)
	wantLogsError(t, "without permission", err, invalidParameter, unreachable)
	allowLogs(t, functions, "f", "/app")
	must(c.PutSubscriptionFilter(ctx, in))(t)
	advance(t, endpoint, "0s")
	equal(t, "what a new filter hands over", 0, len(f.ran()))

	now := serverNow(t, endpoint)
	putLogs(t, c, "/app", "s", logEvents(now, "fine", "ERROR <1>", "ERROR 2"))
	putLogs(t, c, "/app", "t", logEvents(now, "fine"))
	advance(t, endpoint, "0s")
	found := must(c.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("/app"), FilterPattern: aws.String("ERROR")}))(t).Events
	equal(t, "handed over", []handed{{"DATA_MESSAGE", account, "/app", "s", []string{"errors"}, []handedEvent{
		{*found[0].EventId, now - 1000, "ERROR <1>"}, {*found[1].EventId, now, "ERROR 2"},
	}}}, handedTo(t, f))

	shown := must(c.DescribeSubscriptionFilters(ctx, &cloudwatchlogs.DescribeSubscriptionFiltersInput{LogGroupName: aws.String("/app")}))(t).SubscriptionFilters
	equal(t, "shown", []types.SubscriptionFilter{{
		FilterName: aws.String("errors"), LogGroupName: aws.String("/app"), FilterPattern: aws.String("ERROR"), DestinationArn: aws.String(functionARN("f")),
		Distribution: types.DistributionByLogStream, CreationTime: shown[0].CreationTime,
	}}, shown)
	must(c.PutSubscriptionFilter(ctx, subscriptionInput("/app", "all", "", functionARN("f"))))(t)
	_, err = c.PutSubscriptionFilter(ctx, subscriptionInput("/app", "third", "", functionARN("f")))
	wantLogsError(t, "a third", err, "LimitExceededException", "Resource limit exceeded.")
	must(c.PutSubscriptionFilter(ctx, subscriptionInput("/app", "errors", "WARN", functionARN("f"))))(t)
	putLogs(t, c, "/app", "s", logEvents(now, "ERROR 3", "WARN 4"))
	advance(t, endpoint, "0s")
	equal(t, "of two filters", []string{"all s: ERROR 3 WARN 4", "errors s: WARN 4"}, slices.Sorted(slices.Values(handedLines(handedTo(t, f)))))

	endpoint = restart()
	c = logsClient(endpoint)
	putLogs(t, c, "/app", "s", logEvents(now, "WARN 5"))
	advance(t, endpoint, "0s")
	equal(t, "after a restart", []string{"all s: WARN 5", "errors s: WARN 5"}, slices.Sorted(slices.Values(handedLines(handedTo(t, f)))))
	must(c.DeleteSubscriptionFilter(ctx, &cloudwatchlogs.DeleteSubscriptionFilterInput{LogGroupName: aws.String("/app"), FilterName: aws.String("all")}))(t)
	putLogs(t, c, "/app", "s", logEvents(now, "WARN 6"))
	advance(t, endpoint, "0s")
	equal(t, "after a deletion", []string{"errors s: WARN 6"}, handedLines(handedTo(t, f)))
	must(c.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: aws.String("/app")}))(t)
	createGroup(t, c, "/app", "s")
	putLogs(t, c, "/app", "s", logEvents(now, "WARN 7"))
	advance(t, endpoint, "0s")
	equal(t, "of another group of the name", 0, len(f.ran()))
}

// What a function cannot take now it gets later, and what it must not have it never gets: both are counted.
func TestSubscriptionFilterRetries(t *testing.T) {
	endpoint := start(t)
	c, functions, ctx := logsClient(endpoint), functionsClient(endpoint), t.Context()
	f := startFar(t)
	createFar(t, endpoint, functions, "f", f, "")
	createGroup(t, c, "/app", "s")
	allowLogs(t, functions, "f", "/app")
	must(c.PutSubscriptionFilter(ctx, subscriptionInput("/app", "all", "", functionARN("f"))))(t)
	from := nextMinute(t, endpoint)
	fault := func(name string) {
		t.Helper()
		admin(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("f")+`","fault":"`+name+`"}`)
	}
	fault("unavailable")
	now := serverNow(t, endpoint)
	putLogs(t, c, "/app", "s", logEvents(now, "1", "2"))
	advance(t, endpoint, "0s")
	equal(t, "while it is unavailable", 0, len(f.ran()))
	fault("none")
	putLogs(t, c, "/app", "s", logEvents(now, "3"))
	advance(t, endpoint, "1s")
	equal(t, "afterwards", []string{"all s: 1 2", "all s: 3"}, handedLines(handedTo(t, f)))

	must(functions.RemovePermission(ctx, &lambda.RemovePermissionInput{FunctionName: aws.String("f"), StatementId: aws.String("logs")}))(t)
	putLogs(t, c, "/app", "s", logEvents(now, "4"))
	advance(t, endpoint, "0s")
	allowLogs(t, functions, "f", "/app")
	putLogs(t, c, "/app", "s", logEvents(now, "5"))
	advance(t, endpoint, "0s")
	equal(t, "with permission again", []string{"all s: 5"}, handedLines(handedTo(t, f)))

	sum := func(metric string) float64 {
		t.Helper()
		out := must(metricsClient(endpoint).GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("AWS/Logs"), MetricName: &metric, StartTime: &from, EndTime: aws.Time(from.Add(time.Minute)), Period: aws.Int32(60),
			Statistics: []cwtypes.Statistic{cwtypes.StatisticSum}, Dimensions: []cwtypes.Dimension{
				{Name: aws.String("LogGroupName"), Value: aws.String("/app")}, {Name: aws.String("DestinationType"), Value: aws.String("Lambda")}, {Name: aws.String("FilterName"), Value: aws.String("all")},
			},
		}))(t)
		if len(out.Datapoints) == 0 {
			return 0
		}
		return *out.Datapoints[0].Sum
	}
	equal(t, "ForwardedLogEvents", 4.0, sum("ForwardedLogEvents"))
	equal(t, "DeliveryErrors", 3.0, sum("DeliveryErrors"))
	if sum("ForwardedBytes") < 100 {
		t.Error("no bytes are counted")
	}
}

// Events go to a delivery stream as records, behind the one that asks whether there is one.
func TestSubscriptionFilterToStream(t *testing.T) {
	hoses, endpoint, dir := startHoses(t)
	c, ctx := logsClient(endpoint), t.Context()
	createGroup(t, c, "/app", "s")
	in := subscriptionInput("/app", "all", "", hoseARN("h"))
	_, err := c.PutSubscriptionFilter(ctx, in)
	wantLogsError(t, "without a role", err, invalidParameter, "destinationArn for vendor firehose cannot be used without roleArn")
	in.RoleArn = hoseRole
	_, err = c.PutSubscriptionFilter(ctx, in)
	wantLogsError(t, "without a stream", err, invalidParameter, "Could not deliver test message to specified Firehose stream. Check if the given Firehose stream is in ACTIVE state.")
	makeHose(t, hoses, "h", func(d *fhtypes.ExtendedS3DestinationConfiguration) { d.Prefix = aws.String("h/") })
	must(c.PutSubscriptionFilter(ctx, in))(t)
	asked := serverNow(t, endpoint)
	large := strings.Repeat("x", 200_000)
	putLogs(t, c, "/app", "s", logEvents(asked, "1", large, large, large))
	putLogs(t, c, "/app", "s", logEvents(asked, large, large, large, "2"))
	advance(t, endpoint, "60s")
	_, text := only(t, objects(t, dir), "bucket/h/")
	all := unzip(t, []byte(text))
	equal(t, "the first", handed{"CONTROL_MESSAGE", "CloudwatchLogs", "", "", []string{}, []handedEvent{{"", all[0].LogEvents[0].Timestamp, "CWL CONTROL MESSAGE: Checking health of destination Firehose."}}}, all[0])
	events := 0
	for _, m := range all[1:] {
		events += len(m.LogEvents)
	}
	equal(t, "events", 8, events)
	last := all[len(all)-1].LogEvents
	equal(t, "the last", "2", last[len(last)-1].Message)
}

// Groups of a name in other accounts and regions are others, and what they have goes to functions and streams of
// theirs alone.
func TestSubscriptionFiltersOfOthers(t *testing.T) {
	endpoint := start(t)
	c, functions, ctx := logsClient(endpoint), functionsClient(endpoint), t.Context()
	f := startFar(t)
	createFar(t, endpoint, functions, "f", f, "")
	must(functions.AddPermission(ctx, permission("f", "logs", "logs."+region+".amazonaws.com")))(t)
	createGroup(t, c, "/app", "s")
	must(c.PutSubscriptionFilter(ctx, subscriptionInput("/app", "all", "", functionARN("f"))))(t)
	far := logsClientOf(endpoint, "eu-west-1", "test")
	createGroup(t, far, "/app", "s")
	_, err := far.PutSubscriptionFilter(ctx, subscriptionInput("/app", "all", "", functionARN("f")))
	wantLogsError(t, "of another region", err, invalidParameter, unreachable)
	now := serverNow(t, endpoint)
	putLogs(t, far, "/app", "s", logEvents(now, "far"))
	putLogs(t, c, "/app", "s", logEvents(now, "near"))
	advance(t, endpoint, "0s")
	equal(t, "handed over", []string{"all s: near"}, handedLines(handedTo(t, f)))
	for destination, text := range map[string]string{
		"arn:aws:kinesis:" + region + ":" + account + ":stream/s":   "destinationArn for vendor kinesis cannot be used without roleArn",
		"arn:aws:logs:" + region + ":" + account + ":destination:d": "Logical destinations are not built yet: a subscription filter hands over to a Lambda function or a Firehose stream.",
		queueARN("q"):              "PutSubscriptionFilter operation cannot work with destinationArn for vendor sqs",
		functionARN("g"):           unreachable,
		functionARN("f") + ":live": unreachable,
	} {
		_, err := c.PutSubscriptionFilter(ctx, subscriptionInput("/app", "other", "", destination))
		wantLogsError(t, destination, err, invalidParameter, text)
	}
	in := subscriptionInput("/app", "other", "", functionARN("f"))
	in.RoleArn = hoseRole
	_, err = c.PutSubscriptionFilter(ctx, in)
	wantLogsError(t, "with a role", err, invalidParameter, "destinationArn for vendor lambda cannot be used with roleArn")
	_, err = c.PutSubscriptionFilter(ctx, subscriptionInput("/app", "other", "{", functionARN("f")))
	wantLogsError(t, "without a pattern", err, invalidParameter, "")
}

// Records are put as the filter's role, which has to trust CloudWatch Logs for the group and may put them, and
// which its maker has to be allowed to pass.
func TestSubscriptionFilterRoles(t *testing.T) {
	dir := t.TempDir()
	endpoint := startWith(t, func(c *config.Config) { c.FirehoseDirectory = dir })
	c, identities, ctx := logsClient(endpoint), iamClient(endpoint), t.Context()
	trust := func(service, source string) *string {
		return new(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["firehose.amazonaws.com"]},"Action":"sts:AssumeRole"},` +
			`{"Effect":"Allow","Principal":{"Service":"` + service + `"},"Action":"sts:AssumeRole","Condition":{"StringLike":{"aws:SourceArn":"` + source + `"},"StringEquals":{"aws:SourceAccount":"` + account + `"}}}]}`)
	}
	source := logGroupARN + "/app"
	must(identities.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("hose"), AssumeRolePolicyDocument: trust("sns.amazonaws.com", source)}))(t)
	makeHose(t, firehoseAs(endpoint, account), "h")
	createGroup(t, c, "/app", "s")
	in := subscriptionInput("/app", "all", "", hoseARN("h"))
	in.RoleArn = hoseRole
	put := func(what, text string) {
		t.Helper()
		_, err := c.PutSubscriptionFilter(ctx, in)
		if text == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		wantLogsError(t, what, err, invalidParameter, text)
	}
	const undelivered = "Could not deliver test message to specified Firehose stream. Check if the given Firehose stream is in ACTIVE state."
	put("a role that trusts another service", undelivered)
	trusting := func(source string) {
		t.Helper()
		must(identities.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: new("hose"), PolicyDocument: trust("logs.amazonaws.com", source)}))(t)
	}
	trusting(source)
	put("a role that may nothing", undelivered)
	must(identities.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: new("hose"), PolicyName: new("p"), PolicyDocument: new(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"firehose:PutRecord","Resource":"` + hoseARN("h") + `"}]}`)}))(t)
	trusting(source + "2")
	put("a role for another group", undelivered)
	trusting(source)
	put("a role that may", "")

	eve := makeUser(t, endpoint, "eve", `{"Effect":"Allow","Action":"logs:*","Resource":"*"}`)
	asEve := cloudwatchlogs.New(cloudwatchlogs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: eve, RetryMaxAttempts: 1, HTTPClient: eager})
	_, err := asEve.PutSubscriptionFilter(ctx, in)
	wantLogsError(t, "who may not pass the role", err, "AccessDeniedException", "User: arn:aws:iam::"+account+":user/eve is not authorized to perform: iam:PassRole on resource: "+*hoseRole+" because no identity-based policy allows the iam:PassRole action")
}
