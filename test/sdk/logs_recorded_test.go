package sdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
)

// A group is named by its name or its ARN, but not by the form of the ARN that stands
// for its streams. What is wrong with an identifier is reported without quoting it.
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
		`{"logGroupTags":[]}`:              "Value '[]' at 'logGroupTags' failed to satisfy constraint: Member must have length greater than or equal to 1",
		`{"logGroupTags":[{}]}`:            "logGroupTags.1.member.key",
		`{"logGroupTags":[{"key":""}]}`:    "length greater than or equal to 1",
		`{"dataSources":[]}`:               "length greater than or equal to 1",
		`{"fieldIndexNames":[]}`:           "length greater than or equal to 1",
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

// One text is for names of groups and of streams that are too long.
func TestLongLogNames(t *testing.T) {
	endpoint := start(t)
	c := logsClient(endpoint)
	createGroup(t, c, "g", "s")
	name, long := aws.String("g"), aws.String(strings.Repeat("x", 513))
	for _, err := range []error{
		errorOf(c.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: long})),
		errorOf(c.DeleteLogGroup(t.Context(), &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: long})),
		errorOf(c.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: name, LogStreamName: long})),
		errorOf(c.GetLogEvents(t.Context(), &cloudwatchlogs.GetLogEventsInput{LogGroupName: name, LogStreamName: long})),
	} {
		refused(t, err, "InvalidParameterException", 400, "Invalid LogGroup or LogStream, both must have length less than or equal to 512.")
	}
}

// What is answered of features that are not built: lists with nothing in them, and
// refusals that need nothing of the feature.
func TestUnbuiltLogs(t *testing.T) {
	endpoint := start(t)
	createGroup(t, logsClient(endpoint), "g", "s")
	long := func(n int) string { return strings.Repeat("x", n) }
	tooLong := func(value, member string, n int) string {
		return fmt.Sprintf("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", value, member, n)
	}
	const (
		function   = `arn:aws:lambda:us-east-1:111111111111:function:f`
		transform  = `{"metricName":"m","metricNamespace":"n","metricValue":"1"}`
		shown      = `MetricTransformation(metricName=m, metricNamespace=n, metricValue=1, defaultValue=null, unit=null, dimensions=null)`
		denied     = "AccessDeniedException"
		unknown    = "UnknownOperationException"
		crossed    = "Cross-account lambda invocation passing is not allowed. You must use DestinationPolicies to create cross account lambda triggers."
		noFilter   = "The specified subscription filter does not exist."
		noDelivery = "Requested Delivery Destination does not exist in this account."
	)
	metricFilter := func(name, pattern, transforms string) string {
		return `{"logGroupName":"g","filterName":"` + name + `","filterPattern":"` + pattern + `","metricTransformations":[` + transforms + `]}`
	}
	subscription := func(group, destination, rest string) string {
		return `{"logGroupName":"` + group + `","filterName":"f","filterPattern":"","destinationArn":"` + destination + `"` + rest + `}`
	}
	for _, tt := range []struct{ operation, in, code, text string }{
		{"DescribeDestinations", `{}`, "", `{"destinations":[]}`},
		{"DescribeResourcePolicies", `{}`, "", `{"resourcePolicies":[]}`},
		{"DescribeQueries", `{}`, "", `{"queries":[]}`},
		{"DescribeQueries", `{"logGroupName":"g"}`, "", `{"queries":[]}`},
		{"DescribeSubscriptionFilters", `{"logGroupName":"g"}`, "", `{"subscriptionFilters":[]}`},
		{"DescribeMetricFilters", `{"logGroupName":"g"}`, "", `{"metricFilters":[]}`},
		{"DescribeMetricFilters", `{}`, "", `{"metricFilters":[]}`},
		{"DescribeDestinations", `{"nextToken":"none"}`, invalidParameter, "The specified nextToken is invalid."},
		{"DescribeResourcePolicies", `{"nextToken":"none"}`, invalidParameter, "The specified nextToken is invalid."},
		{"DescribeQueries", `{"logGroupName":"none"}`, noLogResource, noGroup},
		{"DescribeQueries", `{"maxResults":1000}`, "", `{"queries":[]}`},
		{"DescribeQueries", `{"maxResults":1001}`, invalidParameter, "1 validation error detected: Value '1001' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 1000"},
		{"DescribeQueries", `{"maxResults":0}`, invalidParameter, "1 validation error detected: Value '0' at 'maxResults' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"DescribeQueries", `{"nextToken":"x"}`, invalidParameter, "The specified nextToken is invalid."},
		{"DeleteSubscriptionFilter", `{"filterName":"` + long(513) + `","logGroupName":"g"}`, invalidParameter, tooLong(long(513), "filterName", 512)},
		{"DescribeSubscriptionFilters", `{"logGroupName":"none"}`, noLogResource, noGroup},
		{"DescribeSubscriptionFilters", `{}`, invalidParameter, "1 validation error detected: Value null at 'logGroupName' failed to satisfy constraint: Member must not be null"},
		{"DeleteSubscriptionFilter", `{"logGroupName":"none","filterName":"f"}`, noLogResource, noGroup},
		{"DeleteSubscriptionFilter", `{"logGroupName":"g","filterName":"f"}`, noLogResource, noFilter},
		{"PutSubscriptionFilter", subscription("g", function, ""), denied, crossed},
		{"PutSubscriptionFilter", subscription("none", function, ""), denied, crossed},
		{"PutSubscriptionFilter", subscription("g", "arn:aws:kinesis:us-east-1:000000000000:stream/s", ""), invalidParameter, "destinationArn for vendor kinesis cannot be used without roleArn"},
		{"PutSubscriptionFilter", subscription("none", "arn:aws:lambda:us-east-1:000000000000:function:f", ""), noLogResource, noGroup},
		{"PutSubscriptionFilter", subscription("g", "arn:aws:lambda:us-east-1:000000000000:function:f", ""), invalidParameter, unreachable},
		{"PutMetricFilter", metricFilter(long(513), "", transform), invalidParameter, tooLong(long(513), "filterName", 512)},
		{"PutMetricFilter", metricFilter("f", long(1025), transform), invalidParameter, tooLong(long(1025), "filterPattern", 1024)},
		{"PutMetricFilter", metricFilter("f", "", strings.Replace(transform, `"m"`, `"`+long(256)+`"`, 1)), invalidParameter, tooLong(long(256), "metricName", 255)},
		{"PutMetricFilter", metricFilter("f", "", transform+","+transform), invalidParameter, tooLong("["+shown+", "+shown+"]", "metricTransformations", 1)},
		{"PutMetricFilter", metricFilter("taken", " ", transform), "", ""},
		{"DescribeMetricFilters", `{"filterNamePrefix":"` + long(513) + `"}`, invalidParameter, tooLong(long(513), "filterNamePrefix", 512)},
		{"DescribeMetricFilters", `{"logGroupName":"none"}`, noLogResource, noGroup},
		{"DeleteMetricFilter", `{"filterName":"f","logGroupName":"` + long(513) + `"}`, invalidParameter, "Invalid LogGroup or LogStream, both must have length less than or equal to 512."},
		{"DeleteMetricFilter", `{"filterName":"` + long(513) + `","logGroupName":"g"}`, invalidParameter, tooLong(long(513), "filterName", 512)},
		{"DeleteMetricFilter", `{"filterName":"f","logGroupName":"g"}`, noLogResource, "The specified metric filter does not exist."},
		{"DeleteResourcePolicy", `{"policyName":"p"}`, noLogResource, "Policy with name [p] does not exist."},
		{"StartQuery", `{"logGroupName":"g","startTime":1,"endTime":2,"queryString":"fields @message"}`, unknown, "StartQuery is not built yet."},
		{"CancelExportTask", `{"taskId":"t"}`, noLogResource, "The specified export task does not exist."},
		{"CreateExportTask", `{"logGroupName":"g","from":1,"to":2,"destination":"b"}`, invalidParameter, "The given bucket does not exist. Please make sure the bucket is valid."},
		{"CreateExportTask", `{"logGroupName":"none","from":1,"to":2,"destination":"b"}`, noLogResource, noGroup},
		{"GetDeliveryDestination", `{"name":"d"}`, noLogResource, noDelivery},
		{"DeleteDeliveryDestination", `{"name":"d"}`, noLogResource, noDelivery},
		{"GetDeliverySource", `{"name":"d"}`, noLogResource, "Requested Delivery Source does not exist in this account."},
		{"PutDeliverySource", `{"name":"d","resourceArn":"arn:aws:s3:::b","logType":"ACCESS_LOGS"}`, noLogResource, "Cannot access provided service."},
	} {
		r := callLogs(t, endpoint, tt.operation, tt.in)
		if tt.code == "" {
			equal(t, tt.operation, "200 "+tt.text, fmt.Sprint(r.Status, " ", r.Body))
			continue
		}
		equal(t, tt.operation+" "+tt.in, map[string]any{"__type": tt.code, "message": tt.text}, decode(t, r.Body))
		equal(t, tt.operation, 400, r.Status)
	}
	r := callLogs(t, endpoint, "StartQuery", `{"logGroupName":"none","startTime":1,"endTime":2,"queryString":"fields @message"}`)
	equal(t, "StartQuery of no group", map[string]any{"__type": noLogResource, "message": "Log group 'none' does not exist for account ID '" + account +
		"' (Service: AWSLogs; Status Code: 400; Error Code: ResourceNotFoundException; Request ID: " + r.Header.Get("X-Amzn-Requestid") + "; Proxy: null)"}, decode(t, r.Body))

	c, ctx := logsClient(endpoint), t.Context() // the SDK understands them
	equal(t, "destinations", 0, len(must(c.DescribeDestinations(ctx, &cloudwatchlogs.DescribeDestinationsInput{}))(t).Destinations))
	must(c.DescribeResourcePolicies(ctx, &cloudwatchlogs.DescribeResourcePoliciesInput{}))(t)
	must(c.DescribeQueries(ctx, &cloudwatchlogs.DescribeQueriesInput{}))(t)
	must(c.DescribeMetricFilters(ctx, &cloudwatchlogs.DescribeMetricFiltersInput{}))(t)
	must(c.DescribeSubscriptionFilters(ctx, &cloudwatchlogs.DescribeSubscriptionFiltersInput{LogGroupName: new("g")}))(t)
	_, err := c.DeleteSubscriptionFilter(ctx, &cloudwatchlogs.DeleteSubscriptionFilterInput{LogGroupName: new("g"), FilterName: new("f")})
	wantLogsError(t, "DeleteSubscriptionFilter", err, noLogResource, noFilter)
}
