package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
)

// logsClient is a CloudWatch Logs client of account 000000000000.
func logsClient(endpoint string) *cloudwatchlogs.Client {
	return logsClientOf(endpoint, region, "test")
}

func logsClientOf(endpoint, region, accessKey string) *cloudwatchlogs.Client {
	return cloudwatchlogs.New(cloudwatchlogs.Options{
		BaseEndpoint:     aws.String(endpoint),
		Region:           region,
		Credentials:      credentials.NewStaticCredentialsProvider(accessKey, secretOf(accessKey), ""),
		RetryMaxAttempts: 1,
		HTTPClient:       eager,
	})
}

// serverNow is the server's clock, in epoch milliseconds.
func serverNow(t *testing.T, endpoint string) int64 {
	t.Helper()
	out := decode(t, post(t, endpoint+"/_godwit/clock", `{"advance":"0s"}`).Body)
	now, err := time.Parse(time.RFC3339Nano, out["now"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return now.UnixMilli()
}

const logGroupARN = "arn:aws:logs:" + region + ":" + account + ":log-group:"

func createGroup(t *testing.T, c *cloudwatchlogs.Client, name string, streams ...string) {
	t.Helper()
	must(c.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name}))(t)
	for i := range streams {
		must(c.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &name, LogStreamName: &streams[i]}))(t)
	}
}

// logEvents are events a second apart, of which the last is at a moment.
func logEvents(last int64, messages ...string) (all []types.InputLogEvent) {
	for i := range messages {
		all = append(all, types.InputLogEvent{Timestamp: new(last - int64(len(messages)-1-i)*1000), Message: &messages[i]})
	}
	return all
}

func putLogs(t *testing.T, c *cloudwatchlogs.Client, group, stream string, events []types.InputLogEvent) *cloudwatchlogs.PutLogEventsOutput {
	t.Helper()
	return must(c.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: events}))(t)
}

// callLogs sends an operation of CloudWatch Logs, written by hand.
func callLogs(t *testing.T, endpoint, operation, body string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "Logs_20140328."+operation)
	return do(t, req)
}

// TestLogGroups is the life of a group, field by field.
func TestLogGroups(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := serverNow(t, endpoint)
	must(c.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{
		LogGroupName: new("/app/a"), Tags: map[string]string{"team": "x"}, LogGroupClass: types.LogGroupClassInfrequentAccess,
		DeletionProtectionEnabled: new(true),
	}))(t)
	createGroup(t, c, "/app/b", "s")
	createGroup(t, c, "other")
	createGroup(t, logsClientOf(endpoint, region, "111111111111"), "/app/of-another")
	createGroup(t, logsClientOf(endpoint, "eu-west-1", "test"), "/app/elsewhere")
	must(c.PutRetentionPolicy(ctx, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: new("/app/a"), RetentionInDays: new(int32(7))}))(t)
	putLogs(t, c, "/app/b", "s", logEvents(now, "12345", "1"))

	a := types.LogGroup{
		LogGroupName: new("/app/a"), CreationTime: &now, RetentionInDays: new(int32(7)), MetricFilterCount: new(int32(0)),
		Arn: new(logGroupARN + "/app/a:*"), LogGroupArn: new(logGroupARN + "/app/a"), StoredBytes: new(int64(0)),
		LogGroupClass: types.LogGroupClassInfrequentAccess, DeletionProtectionEnabled: new(true),
	}
	b := types.LogGroup{
		LogGroupName: new("/app/b"), CreationTime: &now, MetricFilterCount: new(int32(0)),
		Arn: new(logGroupARN + "/app/b:*"), LogGroupArn: new(logGroupARN + "/app/b"), StoredBytes: new(int64(6 + 2*26)),
		LogGroupClass: types.LogGroupClassStandard, DeletionProtectionEnabled: new(false),
	}
	out := must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: new("/app/")}))(t)
	equal(t, "by prefix", &cloudwatchlogs.DescribeLogGroupsOutput{LogGroups: []types.LogGroup{a, b}}, out)
	out = must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePattern: new("p/a")}))(t)
	brief := a
	brief.StoredBytes, brief.DeletionProtectionEnabled = nil, nil
	equal(t, "by a part of the name", []types.LogGroup{brief}, out.LogGroups)
	if out.NextToken == nil {
		t.Error("by a part of the name: no token beside the last one")
	}
	out = must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePattern: new("p/a"), NextToken: out.NextToken}))(t)
	equal(t, "behind it", &cloudwatchlogs.DescribeLogGroupsOutput{LogGroups: []types.LogGroup{}}, out)
	out = must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupClass: types.LogGroupClassInfrequentAccess}))(t)
	equal(t, "by class", []types.LogGroup{a}, out.LogGroups)
	out = must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupIdentifiers: []string{*b.LogGroupArn, "/app/a", "none", "/app", "/app/b"}}))(t)
	equal(t, "by name and ARN", []types.LogGroup{a, b}, out.LogGroups)

	var names []string
	pages := cloudwatchlogs.NewDescribeLogGroupsPaginator(c, &cloudwatchlogs.DescribeLogGroupsInput{Limit: new(int32(1))})
	for n := 0; pages.HasMorePages(); n++ {
		page := must(pages.NextPage(ctx))(t)
		for _, g := range page.LogGroups {
			names = append(names, *g.LogGroupName)
		}
		if n > 3 {
			t.Fatal("no end")
		}
	}
	equal(t, "in pages", []string{"/app/a", "/app/b", "other"}, names)

	summary := func(g types.LogGroup) types.LogGroupSummary {
		return types.LogGroupSummary{LogGroupName: g.LogGroupName, LogGroupArn: g.LogGroupArn, LogGroupClass: g.LogGroupClass}
	}
	other := types.LogGroupSummary{LogGroupName: new("other"), LogGroupArn: new(logGroupARN + "other"), LogGroupClass: types.LogGroupClassStandard}
	for _, tt := range []struct {
		what string
		in   cloudwatchlogs.ListLogGroupsInput
		want []types.LogGroupSummary
	}{
		{"all", cloudwatchlogs.ListLogGroupsInput{}, []types.LogGroupSummary{summary(a), summary(b), other}},
		{"a part", cloudwatchlogs.ListLogGroupsInput{LogGroupNamePattern: new("pp/")}, []types.LogGroupSummary{summary(a), summary(b)}},
		{"two parts", cloudwatchlogs.ListLogGroupsInput{LogGroupNamePattern: new("p/b|^oth")}, []types.LogGroupSummary{summary(b), other}},
		{"a beginning", cloudwatchlogs.ListLogGroupsInput{LogGroupNamePattern: new("^app|^/app/a")}, []types.LogGroupSummary{summary(a)}},
		{"none", cloudwatchlogs.ListLogGroupsInput{LogGroupNamePattern: new("no-such-group")}, []types.LogGroupSummary{}},
		{"class", cloudwatchlogs.ListLogGroupsInput{LogGroupClass: types.LogGroupClassStandard, Limit: new(int32(1000))}, []types.LogGroupSummary{summary(b), other}},
		{"tag", cloudwatchlogs.ListLogGroupsInput{LogGroupTags: []types.TagFilter{{Key: new("team")}}}, []types.LogGroupSummary{summary(a)}},
		{"value", cloudwatchlogs.ListLogGroupsInput{LogGroupTags: []types.TagFilter{{Key: new("team"), Values: []string{"y", "X*"}}}}, []types.LogGroupSummary{summary(a)}},
		{"another value", cloudwatchlogs.ListLogGroupsInput{LogGroupTags: []types.TagFilter{{Key: new("team"), Values: []string{"!x"}}}}, []types.LogGroupSummary{}},
		{"no account of ours", cloudwatchlogs.ListLogGroupsInput{IncludeLinkedAccounts: new(true), AccountIdentifiers: []string{"111111111111"}}, []types.LogGroupSummary{}},
		{"field index", cloudwatchlogs.ListLogGroupsInput{FieldIndexNames: []string{"f"}}, []types.LogGroupSummary{}},
		{"data source", cloudwatchlogs.ListLogGroupsInput{DataSources: []types.DataSourceFilter{{Name: new("s")}}}, []types.LogGroupSummary{}},
	} {
		equal(t, "ListLogGroups: "+tt.what, &cloudwatchlogs.ListLogGroupsOutput{LogGroups: tt.want}, must(c.ListLogGroups(ctx, &tt.in))(t))
	}
	names = nil
	for in, n := (&cloudwatchlogs.ListLogGroupsInput{Limit: new(int32(2))}), 0; n < 2; n++ {
		page := must(c.ListLogGroups(ctx, in))(t)
		for _, g := range page.LogGroups {
			names = append(names, *g.LogGroupName)
		}
		equal(t, "ListLogGroups: there is more", n == 0, page.NextToken != nil)
		in.NextToken = page.NextToken
	}
	equal(t, "ListLogGroups in pages", []string{"/app/a", "/app/b", "other"}, names)
	r := callLogs(t, endpoint, "ListLogGroups", `{"logGroupNamePattern":"no-such-group"}`)
	equal(t, "on the wire", `200 {"logGroups":[]}`, fmt.Sprint(r.Status, " ", r.Body))

	must(c.DeleteRetentionPolicy(ctx, &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: new("/app/a")}))(t)
	_, err := c.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: new("/app/a")})
	wantLogsError(t, "a protected group", err, "ValidationException", "")
	must(c.PutLogGroupDeletionProtection(ctx, &cloudwatchlogs.PutLogGroupDeletionProtectionInput{
		LogGroupIdentifier: a.LogGroupArn, DeletionProtectionEnabled: new(false),
	}))(t)
	a.RetentionInDays, a.DeletionProtectionEnabled = nil, new(false)
	out = must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: new("/app/a")}))(t)
	equal(t, "changed", []types.LogGroup{a}, out.LogGroups)
	must(c.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: new("/app/a")}))(t)
	out = must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{}))(t)
	equal(t, "those left", 2, len(out.LogGroups))
}

// TestLogTags: tags come and go by ARN and by name.
func TestLogTags(t *testing.T) {
	c, ctx := logsClient(start(t)), t.Context()
	name, resource := new("/app"), new(logGroupARN+"/app")
	createGroup(t, c, *name)
	tags := func() map[string]string {
		t.Helper()
		byARN := must(c.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: resource}))(t)
		byName := must(c.ListTagsLogGroup(ctx, &cloudwatchlogs.ListTagsLogGroupInput{LogGroupName: name}))(t) //nolint:staticcheck // clients still use it
		equal(t, "by name as by ARN", byARN.Tags, byName.Tags)
		return byARN.Tags
	}
	equal(t, "none", map[string]string{}, tags())
	must(c.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: resource, Tags: map[string]string{"a": "1", "b": ""}}))(t)
	must(c.TagLogGroup(ctx, &cloudwatchlogs.TagLogGroupInput{LogGroupName: name, Tags: map[string]string{"a": "2", "c": "3"}}))(t) //nolint:staticcheck // clients still use it
	equal(t, "added", map[string]string{"a": "2", "b": "", "c": "3"}, tags())
	must(c.UntagResource(ctx, &cloudwatchlogs.UntagResourceInput{ResourceArn: resource, TagKeys: []string{"a", "x"}}))(t)
	must(c.UntagLogGroup(ctx, &cloudwatchlogs.UntagLogGroupInput{LogGroupName: name, Tags: []string{"b"}}))(t) //nolint:staticcheck // clients still use it
	equal(t, "removed", map[string]string{"c": "3"}, tags())
}

// TestLogStreams is the life of streams, field by field.
func TestLogStreams(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := serverNow(t, endpoint)
	createGroup(t, c, "/app", "b", "a/1", "a/2")
	out := putLogs(t, c, "/app", "a/2", logEvents(now-1000, "x", "y"))
	if len(aws.ToString(out.NextSequenceToken)) != 56 || out.RejectedLogEventsInfo != nil {
		t.Errorf("PutLogEvents: %+v", out)
	}
	putLogs(t, c, "/app", "b", logEvents(now, "z"))
	stream := func(name string, times ...int64) types.LogStream {
		s := types.LogStream{LogStreamName: &name, CreationTime: &now, Arn: new(logGroupARN + "/app:log-stream:" + name), StoredBytes: new(int64(0))} //nolint:staticcheck // AWS answers it all the same
		if len(times) > 0 {
			s.FirstEventTimestamp, s.LastEventTimestamp, s.LastIngestionTime = &times[0], &times[1], &now
			s.UploadSequenceToken = new(fmt.Sprintf("%056d", now))
		}
		return s
	}
	a1, a2, b := stream("a/1"), stream("a/2", now-2000, now-1000), stream("b", now, now)
	list := func(in cloudwatchlogs.DescribeLogStreamsInput) (all []types.LogStream) {
		t.Helper()
		if in.LogGroupIdentifier == nil {
			in.LogGroupName = new("/app")
		}
		in.Limit = new(int32(2))
		pages := cloudwatchlogs.NewDescribeLogStreamsPaginator(c, &in)
		for pages.HasMorePages() && len(all) < 10 {
			all = append(all, must(pages.NextPage(ctx))(t).LogStreams...)
		}
		return all
	}
	equal(t, "by name", []types.LogStream{a1, a2, b}, list(cloudwatchlogs.DescribeLogStreamsInput{}))
	equal(t, "down", []types.LogStream{b, a2, a1}, list(cloudwatchlogs.DescribeLogStreamsInput{Descending: new(true)}))
	equal(t, "by prefix", []types.LogStream{a1, a2}, list(cloudwatchlogs.DescribeLogStreamsInput{LogStreamNamePrefix: new("a/")}))
	equal(t, "by time", []types.LogStream{b, a2, a1}, list(cloudwatchlogs.DescribeLogStreamsInput{OrderBy: types.OrderByLastEventTime, Descending: new(true)}))
	equal(t, "of an ARN", []types.LogStream{a1, a2, b}, list(cloudwatchlogs.DescribeLogStreamsInput{LogGroupIdentifier: new(logGroupARN + "/app")}))
	must(c.DeleteLogStream(ctx, &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: new("/app"), LogStreamName: new("b")}))(t)
	equal(t, "one less", []types.LogStream{a1, a2}, list(cloudwatchlogs.DescribeLogStreamsInput{}))
	found := must(c.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: new("/app")}))(t)
	equal(t, "its events are gone", 2, len(found.Events))
}

// TestLogEvents reads what was put: a stream in both directions, a group by
// patterns.
func TestLogEvents(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := serverNow(t, endpoint)
	createGroup(t, c, "/app", "a", "b")
	putLogs(t, c, "/app", "a", logEvents(now, "one", "two \"quoted\" ⚡", `{"level":"ERROR","n":3}`))
	putLogs(t, c, "/app", "b", logEvents(now-500, "ERROR four", "five"))

	out := must(c.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupName: new("/app"), LogStreamName: new("a"), Limit: new(int32(2))}))(t)
	equal(t, "the latest", []types.OutputLogEvent{
		{Timestamp: new(now - 1000), Message: new("two \"quoted\" ⚡"), IngestionTime: &now},
		{Timestamp: new(now), Message: new(`{"level":"ERROR","n":3}`), IngestionTime: &now},
	}, out.Events)
	if !strings.HasPrefix(*out.NextForwardToken, "f/") || !strings.HasPrefix(*out.NextBackwardToken, "b/") ||
		len(*out.NextForwardToken) != 58 || len(*out.NextBackwardToken) != 58 {
		t.Errorf("tokens %s %s", *out.NextForwardToken, *out.NextBackwardToken)
	}
	out2 := must(c.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupIdentifier: new(logGroupARN + "/app"), LogStreamName: new("a"), NextToken: out.NextBackwardToken}))(t)
	equal(t, "what is before", "one", *out2.Events[0].Message)
	out = must(c.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupName: new("/app"), LogStreamName: new("a"), NextToken: out.NextForwardToken, StartFromHead: new(true)}))(t)
	equal(t, "nothing behind", 0, len(out.Events))

	var messages []string
	pages := cloudwatchlogs.NewGetLogEventsPaginator(c, &cloudwatchlogs.GetLogEventsInput{
		LogGroupName: new("/app"), LogStreamName: new("a"), StartFromHead: new(true), Limit: new(int32(1)), StartTime: new(now - 1000), EndTime: new(now),
	}, func(o *cloudwatchlogs.GetLogEventsPaginatorOptions) { o.StopOnDuplicateToken = true })
	for pages.HasMorePages() {
		for _, e := range must(pages.NextPage(ctx))(t).Events {
			messages = append(messages, *e.Message)
		}
	}
	equal(t, "from the start on and before the end", []string{"two \"quoted\" ⚡"}, messages)

	filter := func(in cloudwatchlogs.FilterLogEventsInput) (messages []string) {
		t.Helper()
		in.LogGroupName = new("/app")
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(c, &in)
		for pages.HasMorePages() && len(messages) < 10 {
			page := must(pages.NextPage(ctx))(t)
			equal(t, "streams searched", []types.SearchedLogStream{}, page.SearchedLogStreams)
			for _, e := range page.Events {
				if len(*e.EventId) != 56 || *e.IngestionTime != now {
					t.Errorf("event %+v", e)
				}
				messages = append(messages, *e.LogStreamName+": "+*e.Message)
			}
		}
		return messages
	}
	all := []string{"a: one", "b: ERROR four", "a: two \"quoted\" ⚡", "b: five", `a: {"level":"ERROR","n":3}`}
	equal(t, "all, by time", all, filter(cloudwatchlogs.FilterLogEventsInput{}))
	equal(t, "one by one", all, filter(cloudwatchlogs.FilterLogEventsInput{Limit: new(int32(1))}))
	equal(t, "of a stream", []string{"b: ERROR four", "b: five"}, filter(cloudwatchlogs.FilterLogEventsInput{LogStreamNames: []string{"b"}}))
	equal(t, "of a prefix", []string{"b: ERROR four", "b: five"}, filter(cloudwatchlogs.FilterLogEventsInput{LogStreamNamePrefix: new("b"), Limit: new(int32(1))}))
	equal(t, "of a time", all[1:4], filter(cloudwatchlogs.FilterLogEventsInput{StartTime: new(now - 1500), EndTime: new(now - 500)}))
	equal(t, "with a term", []string{all[1], all[4]}, filter(cloudwatchlogs.FilterLogEventsInput{FilterPattern: new("ERROR")}))
	equal(t, "with a selector", all[4:], filter(cloudwatchlogs.FilterLogEventsInput{FilterPattern: new(`{ $.level = "ERR*" && $.n > 2 }`)}))
	equal(t, "with fields", all[1:2], filter(cloudwatchlogs.FilterLogEventsInput{FilterPattern: new(`[w1=ERROR, w2]`)}))
	equal(t, "without", []string{all[0], all[2], all[3]}, filter(cloudwatchlogs.FilterLogEventsInput{FilterPattern: new("-ERROR")}))

	rejected := putLogs(t, c, "/app", "a", []types.InputLogEvent{
		{Timestamp: new(now - 15*86_400_000), Message: new("old")}, {Timestamp: &now, Message: new("six")}, {Timestamp: new(now + 3*3_600_000), Message: new("new")},
	})
	equal(t, "rejected", &types.RejectedLogEventsInfo{TooOldLogEventEndIndex: new(int32(1)), TooNewLogEventStartIndex: new(int32(2))}, rejected.RejectedLogEventsInfo)
	must(c.PutRetentionPolicy(ctx, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: new("/app"), RetentionInDays: new(int32(1))}))(t)
	rejected = putLogs(t, c, "/app", "a", logEvents(now-3*86_400_000, "expired"))
	equal(t, "rejected", &types.RejectedLogEventsInfo{ExpiredLogEventEndIndex: new(int32(1))}, rejected.RejectedLogEventsInfo)

	advance(t, endpoint, "26h")
	equal(t, "after the retention", 0, len(filter(cloudwatchlogs.FilterLogEventsInput{})))
	groups := must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{}))(t)
	equal(t, "nothing is kept", int64(0), *groups.LogGroups[0].StoredBytes)
}

// TestLogsWire: the protocol is JSON 1.1, and Query is none of it.
func TestLogsWire(t *testing.T) {
	endpoint := start(t)
	r := callLogs(t, endpoint, "DeleteLogGroup", `{"logGroupName":"g"}`)
	equal(t, "status", http.StatusBadRequest, r.Status)
	equal(t, "type", "application/x-amz-json-1.1", r.Header.Get("Content-Type"))
	equal(t, "Query's error", "", r.Header.Get("X-Amzn-Query-Error"))
	equal(t, "body", `{"__type":"ResourceNotFoundException","message":"The specified log group does not exist."}`, r.Body)
	r = callQuery(t, endpoint, "CreateLogGroup", "Version", "2014-03-28", "logGroupName", "g")
	equal(t, "Query", http.StatusBadRequest, r.Status)
}
