package sdk_test

import (
	"net/http"
	"strings"
	"testing"
)

// A request that lacks several members is told of each of them, in every protocol.
func TestSeveralMissing(t *testing.T) {
	endpoint := start(t)
	said := func(members ...string) string {
		all := make([]string, len(members))
		for i, member := range members {
			all[i] = "Value null at '" + member + "' failed to satisfy constraint: Member must not be null"
		}
		return "validation errors detected: " + strings.Join(all, "; ")
	}
	if r := callTopics(t, endpoint, "CreatePlatformApplication"); r.Status != 400 || !strings.Contains(r.Body, "<Code>ValidationError</Code><Message>3 "+said("name", "platform", "attributes")+"</Message>") {
		t.Errorf("SNS: %d %s", r.Status, r.Body)
	}
	state := "2 " + said("stateValue", "stateReason")
	if r := callMetricsQuery(t, endpoint, "SetAlarmState", "AlarmName", "a"); r.Status != 400 || !strings.Contains(r.Body, "<Message>"+state+"</Message>") {
		t.Errorf("CloudWatch as a form: %d %s", r.Status, r.Body)
	}
	equal(t, "CloudWatch in JSON", `{"__type":"com.amazon.coral.validate#ValidationException","message":"`+state+`"}`,
		callMetricsJSON(t, endpoint, "SetAlarmState", `{"AlarmName":"a"}`).Body)
	status, out := callMetricsCBOR(t, endpoint, "SetAlarmState", map[string]any{"AlarmName": "a"})
	equal(t, "CloudWatch in CBOR", 400, status)
	equal(t, "CloudWatch in CBOR", map[string]any{"__type": "com.amazon.coral.validate#ValidationException", "message": state}, out)
	status, answer := lambdaJSON(t, endpoint, http.MethodPost, "/2015-03-31/functions", `{"FunctionName":"f"}`)
	equal(t, "Lambda", 400, status)
	equal(t, "Lambda", any("2 "+said("role", "code")), answer["message"])
}

// An empty text is not a member that is missing: what is wrong with it is said, where AWS is
// known to do so.
func TestEmptyMembers(t *testing.T) {
	endpoint := start(t)
	said := func(member, pattern string) string {
		return "2 validation errors detected: Value '' at '" + member + "' failed to satisfy constraint: Member must have length greater than or equal to 1; " +
			"Value '' at '" + member + "' failed to satisfy constraint: Member must satisfy regular expression pattern: " + pattern
	}
	for operation, in := range map[string]string{
		"CreateLogGroup": `{"logGroupName":""}`, "DescribeLogStreams": `{"logGroupName":""}`, "FilterLogEvents": `{"logGroupName":""}`,
		"PutLogEvents": `{"logGroupName":"","logStreamName":"s","logEvents":[]}`,
	} {
		equal(t, operation, any(said("logGroupName", `[\.\-_/#A-Za-z0-9]+`)), decode(t, callLogs(t, endpoint, operation, in).Body)["message"])
	}
	equal(t, "a stream", any("1 validation error detected: Value '' at 'logStreamName' failed to satisfy constraint: Member must have length greater than or equal to 1"),
		decode(t, callLogs(t, endpoint, "CreateLogStream", `{"logGroupName":"g","logStreamName":""}`).Body)["message"])
	for operation, in := range map[string]string{
		"PutSubscriptionFilter": `{"logGroupName":"g","filterName":"","filterPattern":"","destinationArn":"a"}`,
		"PutMetricFilter":       `{"logGroupName":"g","filterName":"","filterPattern":"","metricTransformations":[]}`,
		"DeleteMetricFilter":    `{"logGroupName":"g","filterName":""}`, "DeleteSubscriptionFilter": `{"logGroupName":"g","filterName":""}`,
		"CancelExportTask": `{"taskId":""}`, "CreateExportTask": `{"logGroupName":"g","destination":"","from":1,"to":2}`,
		"GetDeliverySource": `{"name":""}`, "GetDeliveryDestination": `{"name":""}`, "PutDeliverySource": `{"name":"s","resourceArn":"a","logType":""}`,
	} {
		message, _ := decode(t, callLogs(t, endpoint, operation, in).Body)["message"].(string)
		if !strings.HasPrefix(message, "1 validation error detected: Value '' at '") || !strings.HasSuffix(message, "' failed to satisfy constraint: Member must have length greater than or equal to 1") {
			t.Errorf("%s: %s", operation, message)
		}
	}
	equal(t, "a task", any("1 validation error detected: Value null at 'taskId' failed to satisfy constraint: Member must not be null"),
		decode(t, callLogs(t, endpoint, "CancelExportTask", `{}`).Body)["message"])
	status, answer := lambdaJSON(t, endpoint, http.MethodPost, "/2015-03-31/functions",
		`{"FunctionName":"","Role":"arn:aws:iam::000000000000:role/r","Code":{"ZipFile":"AA=="}}`)
	equal(t, "Lambda", 400, status)
	equal(t, "Lambda", any(said("functionName",
		`(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?`)), answer["message"])
}
