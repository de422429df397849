package deploying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

const (
	account  = "111122223333"
	region   = "eu-west-1"
	endpoint = "http://godwit.example:4566"
	queueURL = endpoint + "/" + account + "/jobs"
	stackARN = "arn:aws:cloudformation:" + region + ":" + account + ":stack/s/1"
)

// A nested stack has its tags always in the same order: another one would be a change.
func TestTagsOfNestedStack(t *testing.T) {
	var of []any
	for _, key := range []string{"c", "a", "d", "b", "f", "e"} {
		of = append(of, map[string]any{"Key": key, "Value": "v"})
	}
	var keys []string
	for _, tag := range nestedTags(of) {
		keys = append(keys, tag.Key)
	}
	if !slices.IsSorted(keys) {
		t.Errorf("%q", keys)
	}
}

// What was there before a step is not taken for its own, though the step is taken again: the process may
// have ended, or the operation been put off, before anything was made.
func TestTakenAgain(t *testing.T) {
	const began = 1_700_000_000_000
	description := "another"
	exists := fault.New(fault.ResourceConflict, "it exists")
	for kind, c := range map[string]struct {
		properties map[string]any
		answers    func(at int64) map[string]any
	}{
		"AWS::SNS::Topic": {map[string]any{"TopicName": "jobs"}, func(int64) map[string]any {
			return map[string]any{"CreateTopic": &sns.CreateTopicOutput{}}
		}},
		"AWS::CloudWatch::Alarm": {map[string]any{"AlarmName": "jobs"}, func(at int64) map[string]any {
			return map[string]any{
				"DescribeAlarms": &cloudwatch.DescribeAlarmsOutput{MetricAlarms: []cloudwatch.MetricAlarm{{AlarmConfigurationUpdatedTimestamp: new(api.Time(at))}}},
				"PutMetricAlarm": &cloudwatch.PutMetricAlarmOutput{},
			}
		}},
		"AWS::Lambda::Alias": {map[string]any{"FunctionName": "f", "Name": "live", "FunctionVersion": "1"}, func(at int64) map[string]any {
			alias := &lambda.AliasConfiguration{AliasArn: "jobs", FunctionVersion: "1"}
			if at < began {
				alias.Description = &description
			}
			return map[string]any{"CreateAlias": exists, "GetAlias": alias, "UpdateAlias": alias}
		}},
	} {
		for at, own := range map[int64]bool{began - 60_000: false, began + 5: true} {
			f := &fake{answers: c.answers(at)}
			w := f.worker()
			w.TopicCreated = func(context.Context, arn.ARN) (time.Time, error) { return time.UnixMilli(at), nil }
			todo := task(stack.Create, kind, "jobs", c.properties)
			todo.Again, todo.Began = true, began
			o, _ := w.Do(t.Context(), todo)
			if taken := strings.Contains(o.Reason, "AlreadyExists"); taken == own || (o.Physical != "") != own {
				t.Errorf("%s made at %d: %+v", kind, at, o)
			}
		}
	}
}

// What an earlier process may have made stays known though the step is refused now, so that the stack
// deletes it; not what has a name that others give, too.
func TestPerhapsMade(t *testing.T) {
	denied := fault.New(fault.AccessDenied, "not any more")
	for kind, want := range map[string]string{"AWS::SQS::Queue": queueURL, "AWS::SNS::Topic": "arn:aws:sns:" + region + ":" + account + ":jobs", "AWS::IAM::Role": "jobs", "AWS::KMS::Key": ""} {
		for _, resumed := range []bool{false, true} {
			f := &fake{answers: map[string]any{"CreateQueue": denied, "CreateTopic": denied, "CreateRole": denied, "CreateKey": denied}}
			todo := task(stack.Create, kind, "jobs", nil)
			todo.Again, todo.Resumed = true, resumed
			want := map[bool]string{true: want}[resumed]
			if o, _ := f.worker().Do(t.Context(), todo); o.Physical != want || o.Reason == "" {
				t.Errorf("%s, resumed %t: %+v, want %q", kind, resumed, o, want)
			}
		}
	}
	f := &fake{answers: map[string]any{"CreateRole": denied}}
	todo := task(stack.Create, "AWS::IAM::Role", "jobs", map[string]any{"RoleName": "jobs"})
	todo.Again, todo.Resumed = true, true
	if o, _ := f.worker().Do(t.Context(), todo); o.Physical != "" {
		t.Errorf("a role that may be another's: %+v", o)
	}
}

// fake answers operations, and notes what it was asked.
type fake struct {
	answers map[string]any // by operation: an answer, or an error
	calls   []*api.Call
	asked   []string // each operation with what it was given, without what is empty

	described string // what the service says of a refusal
}

func (f *fake) within(_ context.Context, call *api.Call, in any) (any, error) {
	call.RequestID = "request-1"
	call.Describe = func(error) (code, message string, senderFault bool) { return "", f.described, true }
	f.calls = append(f.calls, call)
	f.asked = append(f.asked, call.Operation+" "+given(in))
	switch a := f.answers[call.Operation].(type) {
	case error:
		return nil, a
	case func(in any) (any, error):
		return a(in)
	case nil:
		return nil, fmt.Errorf("the test does not answer %s", call.Operation)
	default:
		return a, nil
	}
}

// given is an input as JSON, without what is empty in it.
func given(in any) string {
	var members map[string]any
	text, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		panic(err)
	}
	for name, value := range members {
		if value == nil || value == "" {
			delete(members, name)
		}
	}
	text, _ = json.Marshal(members) // of what was JSON
	return string(text)
}

func (f *fake) worker() *Worker {
	return &Worker{step.Options{Within: f.within, URL: endpoint, Beside: func(*stacks.Task, ...string) []map[string]any { return nil }}}
}

func task(action stack.Action, kind, physical string, properties map[string]any) *stacks.Task {
	return &stacks.Task{
		Step:  stack.Step{Action: action, Token: "token-1", Target: stack.Version{Type: kind, Physical: physical, Properties: properties}},
		Stack: stackARN, Account: account, Region: region,
	}
}

func TestEveryTypeOfResourcesIsTaken(t *testing.T) {
	for kind, h := range handlers {
		if h.Create == nil || h.Update == nil || h.Delete == nil {
			t.Errorf("%s lacks a handler", kind)
		}
	}
	f := new(fake)
	o, later := f.worker().Do(t.Context(), task(stack.Delete, "AWS::Later::Thing", "it", nil))
	if o.Physical != "it" || o.Reason != "Unrecognized resource type: AWS::Later::Thing" || later != 0 || f.asked != nil {
		t.Errorf("of a type of a later version: %+v, later %s, asked %v", o, later, f.asked)
	}
}

// What is asked is asked as the stack's account, in its region, and by CloudFormation.
func TestWhoAsks(t *testing.T) {
	deployer, role := &caller.Caller{Account: account}, &caller.Caller{Account: account}
	for name, c := range map[string]struct {
		by   *caller.Caller
		role string
		want *caller.Caller
		via  string
	}{
		"the account's root": {via: authorize.CloudFormation},
		"who deploys":        {by: deployer, want: deployer, via: authorize.CloudFormation},
		"a role":             {by: deployer, role: "arn:aws:iam::" + account + ":role/deploys", want: role},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: map[string]any{"DeleteQueue": &sqs.DeleteQueueOutput{}}}
			w := f.worker()
			w.Acting = func(of arn.ARN, as string) (*caller.Caller, error) {
				if of.String() != stackARN || as != c.role {
					t.Errorf("asked for %s in %s", as, of)
				}
				return role, nil
			}
			todo := task(stack.Delete, "AWS::SQS::Queue", queueURL, nil)
			todo.By, todo.Role = c.by, c.role
			if o, later := w.Do(t.Context(), todo); o.Reason != "" || later != 0 {
				t.Fatalf("%+v, later %s", o, later)
			}
			call := f.calls[0]
			if c.want != nil && call.Caller != c.want {
				t.Errorf("%+v asks", call.Caller)
			}
			if c.want == nil {
				if d := cmp.Diff(authorize.RootOf(account), call.Caller); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			}
			if call.Service != "sqs" || call.Account != account || call.Region != region || call.Via != c.via ||
				call.RemoteAddr != authorize.CloudFormation || call.Host != "https://godwit.example:4566" {
				t.Errorf("%+v", call)
			}
		})
	}
}

func TestRoleThatCannotBeAssumed(t *testing.T) {
	f := new(fake)
	w := f.worker()
	w.Acting = func(arn.ARN, string) (*caller.Caller, error) { return nil, fault.New(fault.NoSuchEntity, "") }
	todo := task(stack.Create, "AWS::SQS::Queue", "jobs", nil)
	todo.Role = "arn:aws:iam::111122223333:role/gone"
	o, _ := w.Do(t.Context(), todo)
	if !strings.Contains(o.Reason, "Role "+todo.Role+" is invalid or cannot be assumed") || !strings.Contains(o.Reason, "HandlerErrorCode: AccessDenied") || f.asked != nil {
		t.Errorf("%+v, asked %v", o, f.asked)
	}
}

// TestPutOff: what is refused for now is tried again, later each time, and not for ever.
func TestPutOff(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Throttled, fault.Unavailable, fault.QueueDeletedRecently, fault.Conflict, fault.ResourceInUse} {
		f := &fake{answers: map[string]any{"CreateQueue": fault.New(kind, "not now")}}
		for try, want := range map[int]time.Duration{
			0: 50 * time.Millisecond, 1: 100 * time.Millisecond, 5: 1600 * time.Millisecond, 7: 5 * time.Second, 19: 5 * time.Second, 20: 0,
		} {
			todo := task(stack.Create, "AWS::SQS::Queue", "jobs", nil)
			todo.Try = try
			o, later := f.worker().Do(t.Context(), todo)
			if later != want || (o.Reason != "") != (want == 0) {
				t.Errorf("%v, try %d: later %s, %+v; want %s", kind, try, later, o, want)
			}
		}
	}
	f := &fake{answers: map[string]any{"CreateQueue": fault.New(fault.AccessDenied, "never")}}
	if o, later := f.worker().Do(t.Context(), task(stack.Create, "AWS::SQS::Queue", "jobs", nil)); later != 0 || o.Reason == "" {
		t.Errorf("what will be refused again is put off by %s: %+v", later, o)
	}
}

// TestReasons: what an event says of a refusal has AWS's code of handlers, and the request.
func TestReasons(t *testing.T) {
	const sign = "(Service: Sqs, Status Code: %d, Request ID: request-1)\" (RequestToken: token-1, HandlerErrorCode: %s)"
	for kind, want := range map[fault.Kind]struct {
		status int
		code   string
	}{
		fault.AccessDenied:      {403, "AccessDenied"},
		fault.KMSAccessDenied:   {403, "AccessDenied"},
		fault.QueueDoesNotExist: {404, "NotFound"},
		fault.QueueNameExists:   {409, "AlreadyExists"},
		fault.LimitExceeded:     {400, "ServiceLimitExceeded"},
		fault.Throttled:         {400, "Throttling"},
		fault.Internal:          {500, "GeneralServiceException"},
		fault.InvalidParameter:  {400, "InvalidRequest"},
	} {
		f := &fake{answers: map[string]any{"CreateQueue": fault.New(kind, "because")}, described: "as SQS says"}
		todo := task(stack.Create, "AWS::SQS::Queue", "jobs", nil)
		todo.Try = maxTries
		o, _ := f.worker().Do(t.Context(), todo)
		if end := fmt.Sprintf(sign, want.status, want.code); !strings.HasPrefix(o.Reason, `Resource handler returned message: "as SQS says (Service: `) || !strings.HasSuffix(o.Reason, end) {
			t.Errorf("%v: %s\nwant the end %s", kind, o.Reason, end)
		}
		if o.Physical != "" {
			t.Errorf("%v: %q is there, and was not made", kind, o.Physical)
		}
	}
}

// What failed in the server is not told.
func TestReasonOfAFaultInTheServer(t *testing.T) {
	f := &fake{answers: map[string]any{"CreateQueue": errors.New("secret")}}
	o, _ := f.worker().Do(t.Context(), task(stack.Create, "AWS::SQS::Queue", "jobs", nil))
	if !strings.Contains(o.Reason, `"Internal error (Service: Sqs, Status Code: 500`) || strings.Contains(o.Reason, "secret") {
		t.Error(o.Reason)
	}
}

func TestCreateQueue(t *testing.T) {
	f := &fake{answers: map[string]any{"CreateQueue": &sqs.CreateQueueOutput{QueueUrl: step.Secure(endpoint) + "/" + account + "/jobs"}}}
	o, later := f.worker().Do(t.Context(), task(stack.Create, "AWS::SQS::Queue", "jobs", map[string]any{
		"FifoQueue": false, "DelaySeconds": json.Number("5"), "RedrivePolicy": map[string]any{"maxReceiveCount": json.Number("3")},
		"Tags": []any{map[string]any{"Key": "team", "Value": "a"}},
	}))
	want := stack.Outcome{Physical: queueURL, Attributes: map[string]any{
		"Arn": "arn:aws:sqs:" + region + ":" + account + ":jobs", "QueueName": "jobs", "QueueUrl": queueURL,
	}}
	if d := cmp.Diff(want, o); d != "" || later != 0 {
		t.Errorf("later %s, -want +got:\n%s", later, d)
	}
	asked := []string{`CreateQueue {"Attributes":{"DelaySeconds":"5","RedrivePolicy":"{\"maxReceiveCount\":3}"},"QueueName":"jobs","tags":{"team":"a"}}`}
	if d := cmp.Diff(asked, f.asked); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A queue that has the name which a template gives is somebody else's, unless this step has
// made it before the process ended.
func TestCreateQueueThatIsThere(t *testing.T) {
	const began = 1_700_000_000_500
	for name, c := range map[string]struct {
		again   bool
		created string // epoch seconds
		taken   bool
	}{
		"before the first try":   {false, "1700000001", true},
		"made by the step":       {true, "1700000000", false},
		"older than the step":    {true, "1699999999", true},
		"made later by the step": {true, "1700000060", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: map[string]any{
				"GetQueueUrl":        &sqs.GetQueueUrlOutput{QueueUrl: queueURL},
				"GetQueueAttributes": &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"CreatedTimestamp": c.created}},
				"CreateQueue":        &sqs.CreateQueueOutput{QueueUrl: queueURL},
			}}
			todo := task(stack.Create, "AWS::SQS::Queue", "jobs", map[string]any{"QueueName": "jobs"})
			todo.Again, todo.Began = c.again, began
			o, _ := f.worker().Do(t.Context(), todo)
			made := slices.ContainsFunc(f.asked, func(a string) bool { return strings.HasPrefix(a, "CreateQueue") })
			if made == c.taken || strings.Contains(o.Reason, "already exists") != c.taken || strings.Contains(o.Reason, "HandlerErrorCode: AlreadyExists") != c.taken {
				t.Errorf("%+v; asked %v", o, f.asked)
			}
		})
	}
}

// An update asks for what has changed, and for the default of what the template has no more.
func TestUpdateQueue(t *testing.T) {
	tag := func(key, value string) any { return map[string]any{"Key": key, "Value": value} }
	for name, c := range map[string]struct {
		was, now map[string]any
		asked    []string
	}{
		"nothing": {map[string]any{"DelaySeconds": "5", "Tags": []any{tag("stays", "1")}}, map[string]any{"DelaySeconds": "5", "Tags": []any{tag("stays", "1")}}, nil},
		"a value": {
			map[string]any{"DelaySeconds": "5", "VisibilityTimeout": "9"},
			map[string]any{"DelaySeconds": "6", "VisibilityTimeout": "9"},
			[]string{`SetQueueAttributes {"Attributes":{"DelaySeconds":"6"},"QueueUrl":"` + queueURL + `"}`},
		},
		"a value that is left out": {
			map[string]any{"VisibilityTimeout": "9", "RedrivePolicy": map[string]any{"maxReceiveCount": "3"}},
			map[string]any{},
			[]string{`SetQueueAttributes {"Attributes":{"RedrivePolicy":"","VisibilityTimeout":"30"},"QueueUrl":"` + queueURL + `"}`},
		},
		"what only FIFO queues have": {map[string]any{"ContentBasedDeduplication": true}, map[string]any{}, nil},
		"of a FIFO queue": {
			map[string]any{"FifoQueue": true, "ContentBasedDeduplication": true},
			map[string]any{"FifoQueue": true},
			[]string{`SetQueueAttributes {"Attributes":{"ContentBasedDeduplication":"false"},"QueueUrl":"` + queueURL + `"}`},
		},
		"tags": {
			map[string]any{"Tags": []any{tag("stays", "1"), tag("changes", "1"), tag("goes", "1")}},
			map[string]any{"Tags": []any{tag("stays", "1"), tag("changes", "2"), tag("comes", "")}},
			[]string{
				`UntagQueue {"QueueUrl":"` + queueURL + `","TagKeys":["goes"]}`,
				`TagQueue {"QueueUrl":"` + queueURL + `","Tags":{"changes":"2","comes":""}}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: map[string]any{
				"SetQueueAttributes": &sqs.SetQueueAttributesOutput{}, "UntagQueue": &sqs.UntagQueueOutput{}, "TagQueue": &sqs.TagQueueOutput{},
			}}
			todo := task(stack.Update, "AWS::SQS::Queue", queueURL, c.now)
			todo.Now = c.was
			if o, later := f.worker().Do(t.Context(), todo); o.Physical != queueURL || o.Reason != "" || later != 0 {
				t.Errorf("%+v, later %s", o, later)
			}
			if d := cmp.Diff(c.asked, f.asked); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// An update that fails leaves the resource that there is.
func TestUpdateThatFails(t *testing.T) {
	f := &fake{answers: map[string]any{"SetQueueAttributes": fault.New(fault.InvalidParameter, "no")}}
	o, _ := f.worker().Do(t.Context(), task(stack.Update, "AWS::SQS::Queue", queueURL, map[string]any{"DelaySeconds": "-1"}))
	if o.Physical != queueURL || o.Reason == "" {
		t.Errorf("%+v", o)
	}
}

// A policy goes from the queues that the template does not name any more, and what is gone
// has none.
func TestQueuePolicies(t *testing.T) {
	f := &fake{answers: map[string]any{"SetQueueAttributes": func(in any) (any, error) {
		if strings.HasSuffix(in.(*sqs.SetQueueAttributesInput).QueueUrl, "/gone") {
			return nil, fault.New(fault.QueueDoesNotExist, "")
		}
		return &sqs.SetQueueAttributesOutput{}, nil
	}}}
	todo := task(stack.Update, "AWS::SQS::QueuePolicy", "policy-1", map[string]any{"Queues": []any{"u/a", "u/b"}, "PolicyDocument": map[string]any{"Version": "2012-10-17"}})
	todo.Now = map[string]any{"Queues": []any{"u/b", "u/c", "u/gone"}}
	if o, _ := f.worker().Do(t.Context(), todo); o.Reason != "" || o.Physical != "policy-1" {
		t.Errorf("%+v", o)
	}
	const document = `{"Attributes":{"Policy":"{\"Version\":\"2012-10-17\"}"},"QueueUrl":"u/`
	none := func(of string) string {
		return `SetQueueAttributes {"Attributes":{"Policy":""},"QueueUrl":"u/` + of + `"}`
	}
	want := []string{"SetQueueAttributes " + document + `a"}`, "SetQueueAttributes " + document + `b"}`, none("c"), none("gone")}
	if d := cmp.Diff(want, f.asked); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	f.asked, todo.Action = nil, stack.Delete
	if o, _ := f.worker().Do(t.Context(), todo); o.Reason != "" {
		t.Errorf("%+v", o)
	}
	if d := cmp.Diff([]string{none("a"), none("b"), none("b"), none("c"), none("gone")}, f.asked); d != "" {
		t.Errorf("deleted, -want +got:\n%s", d)
	}
}

// What is to be deleted and is not there is deleted.
func TestDeleteWhatIsGone(t *testing.T) {
	for kind, operation := range map[string]string{
		"AWS::SQS::Queue": "DeleteQueue", "AWS::Lambda::Alias": "DeleteAlias", "AWS::Lambda::Version": "DeleteFunction",
	} {
		for _, refusal := range []fault.Kind{fault.QueueDoesNotExist, fault.ResourceNotFound, fault.NotFound, fault.NoSuchEntity} {
			f := &fake{answers: map[string]any{operation: fault.New(refusal, "")}}
			if o, later := f.worker().Do(t.Context(), task(stack.Delete, kind, "it", map[string]any{})); o.Reason != "" || later != 0 || len(f.asked) != 1 {
				t.Errorf("%s, %v: %+v, later %s, asked %v", kind, refusal, o, later, f.asked)
			}
		}
		f := &fake{answers: map[string]any{operation: fault.New(fault.AccessDenied, "")}}
		if o, _ := f.worker().Do(t.Context(), task(stack.Delete, kind, "it", map[string]any{})); o.Reason == "" {
			t.Errorf("%s: a deletion that is refused has succeeded", kind)
		}
	}
}

// A version waits for its function, has the step's token as its revision, and is none of this
// stack's if another one was published before.
func TestCreateVersion(t *testing.T) {
	version := func(token string) *lambda.FunctionConfiguration {
		return lambda.WithToken(&lambda.FunctionConfiguration{FunctionArn: "arn:aws:lambda:eu-west-1:111122223333:function:f:7", Version: "7"}, token)
	}
	for name, c := range map[string]struct {
		published any
		later     bool
		reason    string
	}{
		"made":                  {version("token-1"), false, ""},
		"function is not ready": {function.ErrPending, true, ""},
		"nothing has changed":   {version("another"), false, "A version for this Lambda function exists ( 7 )."},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: map[string]any{"PublishVersion": c.published}}
			o, later := f.worker().Do(t.Context(), task(stack.Create, "AWS::Lambda::Version", "v", map[string]any{"FunctionName": "f"}))
			if (later > 0) != c.later || !strings.Contains(o.Reason, c.reason) || (o.Reason == "") != (c.reason == "") {
				t.Fatalf("%+v, later %s", o, later)
			}
			if last := f.calls[len(f.calls)-1]; last.Operation != "PublishVersion" || last.Once != "token-1" {
				t.Errorf("asked %s once by %q", last.Operation, last.Once)
			}
			if name == "made" && (o.Physical != version("").FunctionArn || o.Attributes["Version"] != "7") {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestPropertiesThatNoInputHas(t *testing.T) {
	f := &fake{}
	o, _ := f.worker().Do(t.Context(), task(stack.Create, "AWS::Lambda::Version", "v", map[string]any{"FunctionName": "f", "Description": map[string]any{"a": "b"}}))
	if !strings.Contains(o.Reason, "Model validation failed (") || !strings.Contains(o.Reason, "HandlerErrorCode: InvalidRequest") || len(f.asked) != 0 {
		t.Errorf("%+v, asked %v", o, f.asked)
	}
}
