package sdk_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/test/checklist"
)

// unanswered are members of Logs' answers that never come, by the beginnings of their paths.
var unanswered = map[string]string{
	"DescribeLogGroups.logGroups.kmsKeyId":                                   "kmsKeyId is refused",
	"DescribeLogGroups.logGroups.dataProtectionStatus":                       "there are no data protection policies",
	"DescribeLogGroups.logGroups.inheritedProperties":                        "nothing is inherited: there are no policies of accounts",
	"DescribeLogGroups.logGroups.bearerTokenAuthenticationEnabled":           "there is no authentication by bearer tokens",
	"PutLogEvents.rejectedEntityInfo":                                        "entities are ignored",
	"FilterLogEvents.searchedLogStreams.":                                    "AWS leaves the list empty",
	"DescribeDestinations.destinations.":                                     "there are none",
	"DescribeDestinations.nextToken":                                         "there are none",
	"DescribeMetricFilters.metricFilters.":                                   "there are none",
	"DescribeMetricFilters.nextToken":                                        "there are none",
	"DescribeQueries.queries.":                                               "there are none",
	"DescribeQueries.nextToken":                                              "there are none",
	"DescribeResourcePolicies.resourcePolicies.":                             "there are none",
	"DescribeResourcePolicies.nextToken":                                     "there are none",
	"DescribeSubscriptionFilters.subscriptionFilters.fieldSelectionCriteria": "not built",
	"DescribeSubscriptionFilters.subscriptionFilters.emitSystemFields":       "not built",
}

// refusing are the operations of features that are not built, which refuse what AWS would
// refuse and never succeed.
var refusing = []string{
	"CancelExportTask", "CreateExportTask", "DeleteDeliveryDestination", "DeleteMetricFilter", "DeleteResourcePolicy",
	"GetDeliveryDestination", "GetDeliverySource", "PutDeliverySource", "PutMetricFilter", "StartQuery",
}

// TestLogsOutputShapes holds the answers of Logs against the shapes of AWS's model: every
// member is one of the model, of its type, and every one of the model is answered.
func TestLogsOutputShapes(t *testing.T) {
	hoses, endpoint, _ := startHoses(t)
	shapes := must(checklist.Shapes("logs"))(t)
	seen := map[string]bool{}
	called := map[string]bool{}
	call := func(operation, body string) {
		t.Helper()
		called[operation] = true
		r := callLogs(t, endpoint, operation, body)
		if r.Status != 200 {
			t.Fatalf("%s %s: %d %s", operation, body, r.Status, r.Body)
		}
		output := shapes[operation].Output
		if len(output.Members) == 0 {
			if r.Body != "" {
				t.Errorf("%s answers %q and has no answer", operation, r.Body)
			}
			return
		}
		for _, wrong := range output.Walk(operation, any(decode(t, r.Body)), func(path string, there bool) { seen[path] = seen[path] || there }) {
			t.Errorf("%s %s: %s", operation, body, wrong)
		}
	}
	now := serverNow(t, endpoint)
	call("CreateLogGroup", `{"logGroupName":"/w/a","tags":{"k":"v"},"logGroupClass":"INFREQUENT_ACCESS","deletionProtectionEnabled":true}`)
	call("CreateLogGroup", `{"logGroupName":"/w/b"}`)
	call("PutRetentionPolicy", `{"logGroupName":"/w/a","retentionInDays":7}`)
	for _, stream := range []string{"s", "t"} {
		call("CreateLogStream", `{"logGroupName":"/w/a","logStreamName":"`+stream+`"}`)
	}
	put := func(times ...int64) {
		var events []string
		for _, at := range times {
			events = append(events, fmt.Sprintf(`{"timestamp":%d,"message":"m"}`, at))
		}
		call("PutLogEvents", `{"logGroupName":"/w/a","logStreamName":"s","logEvents":[`+strings.Join(events, ",")+`]}`)
	}
	const day = 86_400_000
	put(now-20*day, now-1, now, now+day)
	put(now - 10*day) // expired
	for _, in := range []string{`{}`, `{"limit":1}`, `{"logGroupNamePattern":"/w/"}`} {
		call("DescribeLogGroups", in)
	}
	call("ListLogGroups", `{"limit":1}`)
	call("DescribeLogStreams", `{"logGroupName":"/w/a","limit":1}`)
	call("DescribeLogStreams", `{"logGroupName":"/w/a","orderBy":"LastEventTime"}`)
	call("GetLogEvents", `{"logGroupName":"/w/a","logStreamName":"s"}`)
	call("GetLogEvents", `{"logGroupName":"/w/a","logStreamName":"t"}`)
	call("FilterLogEvents", `{"logGroupName":"/w/a","limit":1}`)
	resource := `"resourceArn":"` + logGroupARN + `/w/a"`
	call("TagResource", `{`+resource+`,"tags":{"l":""}}`)
	call("TagLogGroup", `{"logGroupName":"/w/a","tags":{"m":""}}`)
	call("ListTagsForResource", `{`+resource+`}`)
	call("ListTagsLogGroup", `{"logGroupName":"/w/b"}`)
	call("UntagResource", `{`+resource+`,"tagKeys":["l"]}`)
	call("UntagLogGroup", `{"logGroupName":"/w/a","tags":["m"]}`)
	for _, operation := range []string{"DescribeDestinations", "DescribeMetricFilters", "DescribeResourcePolicies"} {
		call(operation, `{}`)
	}
	call("DescribeQueries", `{}`)
	makeHose(t, hoses, "h")
	for _, name := range []string{"a", "b"} {
		call("PutSubscriptionFilter", `{"logGroupName":"/w/a","filterName":"`+name+`","filterPattern":"","destinationArn":"`+hoseARN("h")+`","roleArn":"`+*hoseRole+`"}`)
	}
	call("DescribeSubscriptionFilters", `{"logGroupName":"/w/a","limit":1}`)
	call("DeleteSubscriptionFilter", `{"logGroupName":"/w/a","filterName":"b"}`)
	call("DeleteRetentionPolicy", `{"logGroupName":"/w/a"}`)
	call("PutLogGroupDeletionProtection", `{"logGroupIdentifier":"/w/a","deletionProtectionEnabled":false}`)
	call("DeleteLogStream", `{"logGroupName":"/w/a","logStreamName":"t"}`)
	call("DeleteLogGroup", `{"logGroupName":"/w/a"}`)

	useful := map[string]bool{}
	for _, operation := range slices.Sorted(maps.Keys(shapes)) {
		if slices.Contains(refusing, operation) {
			continue
		}
		if !called[operation] {
			t.Errorf("%s is not called", operation)
		}
		for _, path := range shapes[operation].Output.Paths(operation) {
			exempt := false
			for beginning := range unanswered {
				if strings.HasPrefix(path, beginning) {
					exempt, useful[beginning] = true, true
				}
			}
			if exempt == seen[path] {
				t.Errorf("%s: answered: %v, exempt: %v", path, seen[path], exempt)
			}
		}
	}
	for beginning := range unanswered {
		if !useful[beginning] {
			t.Errorf("%s is exempt and no member", beginning)
		}
	}
}

// TestLogsInputForms gives every enum its values, and others, and every boolean its forms.
func TestLogsInputForms(t *testing.T) {
	hoses, endpoint, _ := startHoses(t)
	makeHose(t, hoses, "h")
	shapes := must(checklist.Shapes("logs"))(t)
	createGroup(t, logsClient(endpoint), "/w/a", "s")
	n := 0
	// Requests that are right but for the member that is tried.
	right := func(operation string) map[string]any {
		n++
		switch operation {
		case "CreateLogGroup":
			return map[string]any{"logGroupName": fmt.Sprint("/w/new-", n)}
		case "PutLogGroupDeletionProtection":
			return map[string]any{"logGroupIdentifier": "/w/a"}
		case "DescribeLogStreams", "FilterLogEvents":
			return map[string]any{"logGroupName": "/w/a"}
		case "GetLogEvents":
			return map[string]any{"logGroupName": "/w/a", "logStreamName": "s"}
		case "PutSubscriptionFilter":
			return map[string]any{"logGroupName": "/w/a", "filterName": "f", "filterPattern": "", "destinationArn": hoseARN("h"), "roleArn": *hoseRole}
		default:
			return map[string]any{}
		}
	}
	try := func(operation, member string, value any) response {
		t.Helper()
		in := right(operation)
		in[member] = value
		body := must(json.Marshal(in))(t)
		return callLogs(t, endpoint, operation, string(body))
	}
	enums, booleans := 0, 0
	for _, operation := range slices.Sorted(maps.Keys(shapes)) {
		input := shapes[operation].Input
		if slices.Contains(refusing, operation) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(input.Members)) {
			what := operation + "." + name
			switch member := input.Members[name]; {
			case len(member.Enum) > 0:
				enums++
				for _, value := range member.Enum {
					refused := operation == "CreateLogGroup" && value == "DELIVERY" // see docs/compatibility.md
					if r := try(operation, name, value); (r.Status != 200) != refused {
						t.Errorf("%s %s: %d %s", what, value, r.Status, r.Body)
					}
					for _, other := range []string{strings.ToLower(value), value + " ", value[1:]} {
						r := try(operation, name, other)
						if r.Status != 400 || !strings.Contains(r.Body, "InvalidParameterException") || !strings.Contains(r.Body, "enum value set") {
							t.Errorf("%s %q: %d %s", what, other, r.Status, r.Body)
						}
					}
				}
				for _, value := range []any{1, true, []string{}, map[string]string{}} {
					if r := try(operation, name, value); r.Status != 400 || !strings.Contains(r.Body, "SerializationException") {
						t.Errorf("%s %v: %d %s", what, value, r.Status, r.Body)
					}
				}
			case member.Type == "boolean":
				booleans++
				for _, value := range []any{true, false} {
					refused := name == "applyOnTransformedLogs" && value == true // see docs/compatibility.md
					if r := try(operation, name, value); (r.Status != 200) != refused {
						t.Errorf("%s %v: %d %s", what, value, r.Status, r.Body)
					}
				}
				for _, value := range []any{"yes", []string{}, map[string]string{}} {
					if r := try(operation, name, value); r.Status != 400 || !strings.Contains(r.Body, "SerializationException") {
						t.Errorf("%s %v: %d %s", what, value, r.Status, r.Body)
					}
				}
			}
		}
	}
	if enums < 4 || booleans < 6 {
		t.Errorf("%d enums and %d booleans: the test looks at nothing", enums, booleans)
	}
}
