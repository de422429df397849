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
