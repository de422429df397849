package logs

import (
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
)

func TestSubscriptionFilters(t *testing.T) {
	put := func(name, rest string) step {
		return step{"PutSubscriptionFilter", `{"logGroupName":"g","filterName":"` + name + `","filterPattern":"","destinationArn":"arn:aws:firehose:us-east-1:000000000000:deliverystream/d"` + rest + `}`, ok, ""}
	}
	refused := func(s step, want string) step {
		s.kind, s.want = fault.InvalidParameter, want
		return s
	}
	const role = `,"roleArn":"arn:aws:iam::000000000000:role/r"`
	described := func(rest, want string) step {
		return step{"DescribeSubscriptionFilters", `{"logGroupName":"g"` + rest + `}`, ok, want}
	}
	a := newAsker(t)
	a.run([]step{
		{"CreateLogGroup", `{"logGroupName":"g"}`, ok, ""},
		refused(put("a:b", role), "regular expression pattern: [^:*]*"),
		refused(put("a", role+`,"distribution":"Even"`), "distribution"),
		refused(put("a", role+`,"applyOnTransformedLogs":true`), "not built"),
		refused(put("a", role+`,"fieldSelectionCriteria":"x"`), "not built"),
		refused(put("a", role+`,"emitSystemFields":["@aws.account"]`), "not built"),
		refused(put("a", `,"roleArn":"`+strings.Repeat("r", 2049)+`"`), "'roleArn' failed to satisfy constraint: Member must have length less than or equal to 2048"),
		refused(put("a", ""), "destinationArn for vendor firehose cannot be used without roleArn"),
		put("ab", role), put("ac", role+`,"distribution":"Random"`), put("ab", role+`,"applyOnTransformedLogs":false`),
		{"PutSubscriptionFilter", put("ad", role).in, fault.LimitExceeded, "Resource limit exceeded."},
		described(`,"limit":1`, fmt.Sprintf(`"filterName":"ab","logGroupName":"g","filterPattern":"","destinationArn":"arn:aws:firehose:us-east-1:000000000000:deliverystream/d","roleArn":"arn:aws:iam::000000000000:role/r","distribution":"ByLogStream","applyOnTransformedLogs":false,"creationTime":%d}],"nextToken":"`, now.UnixMilli())),
		described(`,"nextToken":"`+listToken("DescribeSubscriptionFilters", "ab")+`"`, `"filterName":"ac"`),
		described(`,"filterNamePrefix":"ac"`, `{"subscriptionFilters":[{"filterName":"ac"`),
		described(`,"filterNamePrefix":"b"`, `{"subscriptionFilters":[]`),
		refused(described(`,"limit":51`, ""), "limit"),
		refused(described(`,"nextToken":"x"`, ""), "nextToken"),
		{"DeleteSubscriptionFilter", `{"logGroupName":"g","filterName":"ab"}`, ok, ""},
		{"DeleteSubscriptionFilter", `{"logGroupName":"g","filterName":"ab"}`, fault.ResourceNotFound, ""},
		{"DeleteSubscriptionFilter", `{"logGroupName":"none","filterName":"ab"}`, fault.ResourceNotFound, ""},
	})
	if a.destinations.asked != 3 {
		t.Errorf("%d destinations were asked, want those of the filters that were put: a delivery stream gets a record by it", a.destinations.asked)
	}
}
