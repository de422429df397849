package sdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
)

// A group is named by its name or its ARN, but not by the form of the ARN that stands
// for its streams. What is wrong with an identifier is told without quoting it.
func TestLogGroupIdentifiers(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	createGroup(t, c, "/app", "s")
	for _, id := range []string{"/app", logGroupARN + "/app"} {
		equal(t, id, 1, len(must(c.DescribeLogStreams(ctx, &cloudwatchlogs.DescribeLogStreamsInput{LogGroupIdentifier: &id}))(t).LogStreams))
		must(c.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupIdentifier: &id, LogStreamName: new("s")}))(t)
	}
	const text = `1 validation error detected: Value at 'logGroupIdentifier' failed to satisfy constraint: Member must satisfy regular expression pattern: [\w#+=/:,.@-]*`
	id := new(logGroupARN + "/app:*")
	wantLogsError(t, "DescribeLogStreams", outcome(c.DescribeLogStreams(ctx, &cloudwatchlogs.DescribeLogStreamsInput{LogGroupIdentifier: id})), invalidParameter, text)
	wantLogsError(t, "GetLogEvents", outcome(c.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupIdentifier: id, LogStreamName: new("s")})), invalidParameter, text)
	wantLogsError(t, "FilterLogEvents", outcome(c.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupIdentifier: id})), invalidParameter, text)
}

// ListLogGroups refuses what it cannot read.
func TestListLogGroupsErrors(t *testing.T) {
	endpoint := start(t)
	for in, want := range map[string]string{
		`{"logGroupNamePattern":"ab"}`:     "length greater than or equal to 3",
		`{"logGroupNamePattern":"a b c"}`:  "regular expression pattern",
		`{"logGroupNamePattern":"abc|de"}`: "regular expression pattern",
		`{"limit":0}`:                      "greater than or equal to 1",
		`{"limit":1001}`:                   "less than or equal to 1000",
		`{"logGroupClass":"COLD"}`:         "enum value set",
		`{"logGroupTags":[]}`:              "length between 1 and 5",
		`{"logGroupTags":[{}]}`:            "logGroupTags.1.member.key",
		`{"logGroupTags":[{"key":""}]}`:    "length between 1 and 128",
		`{"dataSources":[]}`:               "length between 1 and 5",
		`{"fieldIndexNames":[]}`:           "length between 1 and 20",
		`{"accountIdentifiers":["1"]}`:     "accountIdentifiers",
		`{"nextToken":"none of ours"}`:     "nextToken",
		`{"logGroupTags":[{"key":"k","values":["1","2","3","4","5","6"]}]}`: "less than or equal to 5",
	} {
		r := callLogs(t, endpoint, "ListLogGroups", in)
		body := decode(t, r.Body)
		equal(t, in, "400 "+invalidParameter, fmt.Sprint(r.Status, " ", body["__type"]))
		if text, _ := body["message"].(string); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", in, text, want)
		}
	}
}
