package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// asker asks the service, over a real store of log groups.
type asker struct {
	*apitest.Asker
	destinations *reachable
}

// reachable are destinations of which all can be reached.
type reachable struct{ asked int }

func (r *reachable) Reach(context.Context, arn.ARN, *subscription.Filter) error {
	r.asked++
	return nil
}

func newAsker(t *testing.T) asker {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(now), Logger: slog.New(slog.DiscardHandler)})
	groups := logs.New(k, logs.Options{})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	to := &reachable{}
	return asker{apitest.New(t, New(groups, to).Operations(), func(operation string) *api.Call {
		return &api.Call{Region: "us-east-1", Account: "000000000000", AccessKey: "test", Operation: operation, Time: now}
	}), to}
}

// step is one request, and what its answer or its refusal's text must have in it.
type step struct {
	operation, in string
	kind          fault.Kind // ok: it is not refused
	want          string
}

func (a asker) run(steps []step) {
	a.T.Helper()
	for _, s := range steps {
		a.Check(s.operation, s.in, s.kind, s.want)
	}
}

const ok = apitest.Answered

func long(n int) string { return strings.Repeat("x", n) }

func TestGroups(t *testing.T) {
	tags := `"k10":"v"`
	for i := 11; i < 61; i++ { // 51
		tags += fmt.Sprintf(`,"k%d":"v"`, i)
	}
	newAsker(t).run([]step{
		{"CreateLogGroup", `{"logGroupName":"g","tags":{"a":"1"}}`, ok, `{}`},
		{"CreateLogGroup", `{"logGroupName":"g"}`, fault.ResourceAlreadyExists, "already exists"},
		{"CreateLogGroup", `{"logGroupName":""}`, fault.InvalidParameter, "greater than or equal to 1"},
		{"CreateLogGroup", `{"logGroupName":"` + long(512) + `"}`, ok, `{}`},
		{"CreateLogGroup", `{"logGroupName":"` + long(513) + `"}`, fault.InvalidParameter, "less than or equal to 512"},
		{"CreateLogGroup", `{"logGroupName":"a b"}`, fault.InvalidParameter, "regular expression pattern"},
		{"CreateLogGroup", `{"logGroupName":"aws/mine"}`, fault.InvalidParameter, "reserved for AWS"},
		{"CreateLogGroup", `{"logGroupName":"h","kmsKeyId":"k"}`, fault.InvalidParameter, "KMS"},
		{"CreateLogGroup", `{"logGroupName":"h","logGroupClass":"COLD"}`, fault.InvalidParameter, "enum value set"},
		{"DescribeLogGroups", `{"logGroupNamePrefix":"g"}`, ok, `"arn":"arn:aws:logs:us-east-1:000000000000:log-group:g:*"`},
		{"DescribeLogGroups", `{"logGroupNamePrefix":"g","logGroupNamePattern":"g"}`, fault.InvalidParameter, "mutually exclusive"},
		{"DescribeLogGroups", `{"limit":0}`, fault.InvalidParameter, "limit"},
		{"DescribeLogGroups", `{"limit":51}`, fault.InvalidParameter, "limit"},
		{"DescribeLogGroups", `{"nextToken":"none of ours"}`, fault.InvalidParameter, "oken"},
		{"PutRetentionPolicy", `{"logGroupName":"g","retentionInDays":7}`, ok, `{}`},
		{"PutRetentionPolicy", `{"logGroupName":"g","retentionInDays":8}`, fault.InvalidParameter, "[1, 3, 5, 7, 14,"},
		{"DescribeLogGroups", `{"logGroupNamePrefix":"g"}`, ok, `"retentionInDays":7`},
		{"DeleteRetentionPolicy", `{"logGroupName":"g"}`, ok, `{}`},
		{"PutRetentionPolicy", `{"logGroupName":"none","retentionInDays":7}`, fault.ResourceNotFound, "does not exist"},
		{"ListTagsLogGroup", `{"logGroupName":"g"}`, ok, `{"tags":{"a":"1"}}`},
		{"TagLogGroup", `{"logGroupName":"g","tags":{"b":"2"}}`, ok, `{}`},
		{"UntagLogGroup", `{"logGroupName":"g","tags":["a"]}`, ok, `{}`},
		{"CreateLogGroup", `{"logGroupName":"i","tags":{` + tags + `}}`, fault.InvalidParameter, "Value '{k10=v, k11=v, k12=v"},
		{"TagResource", `{"resourceArn":"arn:aws:logs:us-east-1:000000000000:log-group:g","tags":{` + tags + `}}`, fault.TooManyTags, ""},
		{"TagLogGroup", `{"logGroupName":"g","tags":{` + tags[:strings.LastIndexByte(tags, ',')] + `}}`, fault.InvalidParameter, "A resource can have no more than 50 tags."},
		{"DescribeLogGroups", `{"logGroupIdentifiers":[]}`, fault.InvalidParameter, "Value '[]' at 'logGroupIdentifiers' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"ListLogGroups", `{"dataSources":[{"name":"a"},{},{},{},{},{"type":"t"}]}`, fault.InvalidParameter, "Value '[DataSourceFilter(name=a, type=null), DataSourceFilter(name=null, type=null), "},
		{"ListLogGroups", `{"logGroupTags":[{"key":"k","values":["1","2","3","4","5","6"]}]}`, fault.InvalidParameter, "Value '[1, 2, 3, 4, 5, 6]' at 'logGroupTags.1.member.values' failed to satisfy constraint: Member must have length less than or equal to 5"},
		{"FilterLogEvents", `{"logGroupName":"g","logStreamNames":[]}`, fault.InvalidParameter, "Value '[]' at 'logStreamNames' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"FilterLogEvents", `{"logGroupName":"g","logStreamNames":["s"` + strings.Repeat(`,"s"`, 100) + `]}`, fault.InvalidParameter, "Value '[s, s, "},
		{"UntagLogGroup", `{"logGroupName":"g","tags":[]}`, fault.InvalidParameter, "greater than or equal to 1"},
		{"ListTagsForResource", `{"resourceArn":"arn:aws:logs:us-east-1:000000000000:log-group:g"}`, ok, `{"tags":{"b":"2"}}`},
		{"PutLogGroupDeletionProtection", `{"logGroupIdentifier":"g","deletionProtectionEnabled":true}`, ok, `{}`},
		{"DeleteLogGroup", `{"logGroupName":"g"}`, fault.ValidationFailed, "rotection"},
		{"PutLogGroupDeletionProtection", `{"logGroupIdentifier":"g","deletionProtectionEnabled":false}`, ok, `{}`},
		{"DeleteLogGroup", `{"logGroupName":"g"}`, ok, `{}`},
		{"DeleteLogGroup", `{"logGroupName":"g"}`, fault.ResourceNotFound, "does not exist"},
	})
}

func TestPages(t *testing.T) {
	a := newAsker(t)
	for _, name := range []string{"a", "b", "c"} {
		a.run([]step{{"CreateLogGroup", `{"logGroupName":"` + name + `"}`, ok, `{}`}})
	}
	var names []string
	for token := ""; ; {
		in := `{"limit":2}`
		if token != "" {
			in = `{"limit":2,"nextToken":"` + token + `"}`
		}
		text, err := a.Ask("DescribeLogGroups", in)
		if err != nil {
			t.Fatal(err)
		}
		var out DescribeLogGroupsOutput
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		if len(out.LogGroups) > 2 {
			t.Errorf("%d groups", len(out.LogGroups))
		}
		for _, g := range out.LogGroups {
			names = append(names, g.LogGroupName)
		}
		if token = out.NextToken; token == "" {
			break
		}
		// The token is of this list, and of no other.
		a.run([]step{{"DescribeLogGroups", `{"logGroupNamePrefix":"a","nextToken":"` + token + `"}`, fault.InvalidParameter, "oken"}})
	}
	if got := strings.Join(names, ""); got != "abc" {
		t.Errorf("the pages have %s", got)
	}
}

func TestEvents(t *testing.T) {
	put := func(events string) string {
		return `{"logGroupName":"g","logStreamName":"s","logEvents":[` + events + `]}`
	}
	const at = "1767225600000" // now
	newAsker(t).run([]step{
		{"CreateLogStream", `{"logGroupName":"g","logStreamName":"s"}`, fault.ResourceNotFound, "log group"},
		{"CreateLogGroup", `{"logGroupName":"g"}`, ok, `{}`},
		{"PutLogEvents", put(`{"timestamp":` + at + `,"message":"m"}`), fault.ResourceNotFound, "log stream"},
		{
			"CreateLogStream", `{"logGroupName":"","logStreamName":"s"}`, fault.InvalidParameter,
			"2 validation errors detected: Value '' at 'logGroupName' failed to satisfy constraint: Member must have length greater than or equal to 1; " +
				`Value '' at 'logGroupName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\.\-_/#A-Za-z0-9]+`,
		},
		{"CreateLogStream", `{"logGroupName":"g","logStreamName":""}`, fault.InvalidParameter, "1 validation error detected: Value '' at 'logStreamName' failed to satisfy constraint: Member must have length"},
		{"CreateLogStream", `{"logGroupName":"g","logStreamName":"a:b"}`, fault.InvalidParameter, "[^:*]*"},
		{"CreateLogStream", `{"logGroupName":"g","logStreamName":"s"}`, ok, `{}`},
		{"CreateLogStream", `{"logGroupName":"g","logStreamName":"s"}`, fault.ResourceAlreadyExists, "already exists"},
		{"PutLogEvents", put(``), fault.InvalidParameter, "greater than or equal to 1"},
		{"PutLogEvents", put(`{"message":"m"}`), fault.InvalidParameter, "logEvents.1.member.timestamp"},
		{"PutLogEvents", put(`{"timestamp":` + at + `}`), fault.InvalidParameter, "logEvents.1.member.message"},
		{"PutLogEvents", put(`{"timestamp":` + at + `,"message":""}`), fault.InvalidParameter, "logEvents.1.member.message"},
		{
			"PutLogEvents", put(`{"timestamp":` + at + `,"message":""},{"timestamp":-1,"message":"m"},{"message":""}`), fault.InvalidParameter,
			"4 validation errors detected: Value '' at 'logEvents.1.member.message' failed to satisfy constraint: Member must have length greater than or equal to 1; " +
				"Value '-1' at 'logEvents.2.member.timestamp' failed to satisfy constraint: Member must have value greater than or equal to 0; Value null at 'logEvents.3.member.timestamp'",
		},
		{"PutLogEvents", put(strings.TrimSuffix(strings.Repeat(`{"message":""},`, 100), ",")), fault.InvalidParameter, "32 validation errors detected: "},
		{"PutLogEvents", put(`{"timestamp":-1,"message":"m"}`), fault.InvalidParameter, "timestamp"},
		{"PutLogEvents", put(`{"timestamp":` + at + `,"message":"m"},{"timestamp":1767225599999,"message":"m"}`), fault.InvalidParameter, "chronological order"},
		{"PutLogEvents", put(`{"timestamp":` + at + `,"message":"` + long(maxEventBytes-eventOverhead+1) + `"}`), fault.InvalidParameter, "Log event too large"},
		{"PutLogEvents", put(strings.TrimSuffix(strings.Repeat(`{"timestamp":`+at+`,"message":"m"},`, maxBatch+1), ",")), fault.InvalidParameter, "less than or equal to 10000"},
		{"PutLogEvents", put(strings.TrimSuffix(strings.Repeat(`{"timestamp":`+at+`,"message":"`+long(200_000)+`"},`, 6), ",")), fault.InvalidParameter, "Upload too large"},
		{"PutLogEvents", put(`{"timestamp":1,"message":"old"},{"timestamp":` + at + `,"message":"one ERROR"},{"timestamp":` + at + `,"message":"two"}`), ok, `"tooOldLogEventEndIndex":1`},
		{"GetLogEvents", `{"logGroupName":"g","logStreamName":"s","startFromHead":true}`, ok, `"message":"one ERROR"`},
		{"GetLogEvents", `{"logGroupName":"g","logStreamName":"s","startTime":2,"endTime":1}`, fault.InvalidParameter, "must not be later"},
		{"GetLogEvents", `{"logGroupName":"g","logStreamName":"s","limit":10001}`, fault.InvalidParameter, "10000"},
		{"GetLogEvents", `{"logGroupName":"g","logGroupIdentifier":"g","logStreamName":"s"}`, fault.ValidationFailed, "mutually exclusive"},
		{"GetLogEvents", `{"logGroupName":"g","logStreamName":"s","nextToken":"none of ours"}`, fault.InvalidParameter, "oken"},
		{"FilterLogEvents", `{"logGroupName":"g","filterPattern":"ERROR"}`, ok, `"message":"one ERROR"`},
		{"FilterLogEvents", `{"logGroupName":"g","filterPattern":"WARN"}`, ok, `"events":[]`},
		{"FilterLogEvents", `{"logGroupName":"g","filterPattern":"{ $.a = "}`, fault.InvalidParameter, ""},
		{"FilterLogEvents", `{"logGroupName":"g","logStreamNames":["s"],"logStreamNamePrefix":"s"}`, fault.InvalidParameter, "mutually exclusive"},
		{"FilterLogEvents", `{"logGroupName":"none"}`, fault.ResourceNotFound, "log group"},
		{"DescribeLogStreams", `{"logGroupName":"g"}`, ok, `"logStreamName":"s"`},
		{"DescribeLogStreams", `{"logGroupName":"g","orderBy":"LastEventTime","logStreamNamePrefix":"s"}`, fault.InvalidParameter, "Cannot order by LastEventTime"},
		{"DescribeLogStreams", `{"logGroupName":"g","orderBy":"Size"}`, fault.InvalidParameter, "enum value set"},
		{"DeleteLogStream", `{"logGroupName":"g","logStreamName":"s"}`, ok, `{}`},
		{"GetLogEvents", `{"logGroupName":"g","logStreamName":"s"}`, fault.ResourceNotFound, "log stream"},
	})
}
