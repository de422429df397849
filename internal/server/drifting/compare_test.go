package drifting

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

const (
	account = "111122223333"
	region  = "eu-west-1"
)

type answers map[string]any // by operation: an answer, or an error, or a func(in any) (any, error)

func (a answers) reader(seen func(call *api.Call)) *Reader {
	return &Reader{Options{URL: "http://godwit.example", Within: func(_ context.Context, call *api.Call, in any) (any, error) {
		if seen != nil {
			seen(call)
		}
		switch is := a[call.Operation].(type) {
		case nil:
			return nil, errors.New("the test does not answer " + call.Operation)
		case error:
			return nil, is
		case func(in any) (any, error):
			return is(in)
		default:
			return is, nil
		}
	}}}
}

func reads(kind, physical string, properties map[string]any) *stacks.Reading {
	return &stacks.Reading{
		Resource: stack.Resource{Version: stack.Version{Physical: physical, Type: kind, Properties: properties}},
		Account:  account, Region: region,
	}
}

// differences are the paths at which a comparison has found something, and how it differs.
func differences(d stack.Drift) map[string]string {
	found := map[string]string{}
	for _, one := range d.Differences {
		text, err := json.Marshal([]any{one.Kind, one.Actual})
		if err != nil {
			panic(err)
		}
		found[one.Path] = string(text)
	}
	return found
}

// What a service refuses says what is known of the resource.
func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		answer any
		want   stack.Drift
	}{
		"in sync":        {"AWS::SQS::Queue", &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"DelaySeconds": "5"}}, stack.Drift{Status: stack.InSync}},
		"changed":        {"AWS::SQS::Queue", &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"DelaySeconds": "6"}}, stack.Drift{Status: stack.Modified}},
		"gone":           {"AWS::SQS::Queue", fault.New(fault.QueueDoesNotExist, ""), stack.Drift{Status: stack.Deleted}},
		"refused":        {"AWS::SQS::Queue", fault.New(fault.AccessDenied, "you may not"), stack.Drift{Status: stack.Unknown, Reason: "you may not"}},
		"not answered":   {"AWS::SQS::Queue", errors.New("secret"), stack.Drift{Status: stack.Unknown, Reason: "Internal error"}},
		"never compared": {"AWS::CDK::Metadata", nil, stack.Drift{Status: stack.NotChecked}},
	} {
		t.Run(name, func(t *testing.T) {
			got := answers{"GetQueueAttributes": c.answer}.reader(nil).Compare(t.Context(), reads(c.kind, "u/jobs", map[string]any{"DelaySeconds": "5"}))
			if d := cmp.Diff(c.want, got, cmpopts.IgnoreFields(stack.Drift{}, "Expected", "Actual", "Differences")); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if (len(got.Differences) > 0) != (c.want.Status == stack.Modified) {
				t.Errorf("differences %v", got.Differences)
			}
		})
	}
}

// Services are asked as who asks for the comparison, or as the account's root.
func TestWhoAsks(t *testing.T) {
	who := &caller.Caller{Account: account}
	for _, by := range []*caller.Caller{nil, who} {
		asked := 0
		at := reads("AWS::SQS::Queue", "u/jobs", nil)
		at.By = by
		answers{"GetQueueAttributes": &sqs.GetQueueAttributesOutput{}}.reader(func(call *api.Call) {
			asked++
			if by != nil && call.Caller != by {
				t.Errorf("%+v asks", call.Caller)
			}
			if by == nil {
				if d := cmp.Diff(authorize.RootOf(account), call.Caller); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			}
			if call.Account != account || call.Region != region || call.Via != authorize.CloudFormation || call.RemoteAddr != authorize.CloudFormation {
				t.Errorf("%+v", call)
			}
		}).Compare(t.Context(), at)
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	}
}

// A queue is compared in what its template says, and its documents by what they mean.
func TestQueue(t *testing.T) {
	const document = `{"deadLetterTargetArn":"arn:d","maxReceiveCount":3}`
	redrive := map[string]any{"deadLetterTargetArn": "arn:d", "maxReceiveCount": json.Number("3")}
	tag := func(key, value string) any { return map[string]any{"Key": key, "Value": value} }
	for name, c := range map[string]struct {
		properties map[string]any
		has        map[string]string
		tags       map[string]string
		want       map[string]string
	}{
		"what the template leaves out": {map[string]any{}, map[string]string{"DelaySeconds": "7", "RedrivePolicy": document}, nil, map[string]string{}},
		"the same document":            {map[string]any{"RedrivePolicy": redrive}, map[string]string{"RedrivePolicy": document}, nil, map[string]string{}},
		"another document": {
			map[string]any{"RedrivePolicy": redrive},
			map[string]string{"RedrivePolicy": strings.Replace(document, "3", "4", 1)},
			nil,
			map[string]string{"/RedrivePolicy/maxReceiveCount": `["NOT_EQUAL","4"]`},
		},
		"no document any more": {map[string]any{"RedrivePolicy": redrive}, map[string]string{}, nil, map[string]string{"/RedrivePolicy": `["REMOVE","null"]`}},
		"a value taken away":   {map[string]any{"KmsMasterKeyId": "alias/k"}, map[string]string{}, nil, map[string]string{"/KmsMasterKeyId": `["REMOVE","null"]`}},
		"tags in another order, and AWS's own": {
			map[string]any{"Tags": []any{tag("b", "2"), tag("a", "1")}}, nil, map[string]string{"a": "1", "b": "2", "aws:cloudformation:stack-name": "s"}, map[string]string{},
		},
		"a tag taken away": {
			map[string]any{"Tags": []any{tag("a", "1")}}, nil, map[string]string{"aws:cloudformation:stack-name": "s"}, map[string]string{"/Tags": `["REMOVE","null"]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := answers{
				"GetQueueAttributes": &sqs.GetQueueAttributesOutput{Attributes: c.has}, "ListQueueTags": &sqs.ListQueueTagsOutput{Tags: c.tags},
			}.reader(nil).Compare(t.Context(), reads("AWS::SQS::Queue", "u/jobs", c.properties))
			if d := cmp.Diff(c.want, differences(got)); d != "" {
				t.Errorf("%s, -want +got:\n%s", got.Reason, d)
			}
		})
	}
}

// A policy of several queues is in sync where all have it, and gone where none has one.
func TestPolicyOfSeveralQueues(t *testing.T) {
	const same, other = `{"Version":"2012-10-17"}`, `{"Version":"2008-10-17"}`
	for name, c := range map[string]struct {
		a, b string // policies; "gone": the queue is
		want stack.DriftStatus
		path string
	}{
		"both have it":        {same, same, stack.InSync, ""},
		"one has another":     {same, other, stack.Modified, "/PolicyDocument/Version"},
		"the other one has":   {other, same, stack.Modified, "/PolicyDocument/Version"},
		"one has none":        {same, "", stack.Modified, "/PolicyDocument"},
		"one is gone":         {"gone", same, stack.Modified, "/PolicyDocument"},
		"none has one":        {"", "", stack.Deleted, ""},
		"both queues are":     {"gone", "gone", stack.Deleted, ""},
		"one may not be read": {same, "denied", stack.Unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			has := map[string]string{"u/a": c.a, "u/b": c.b}
			got := answers{"GetQueueAttributes": func(in any) (any, error) {
				switch policy := has[in.(*sqs.GetQueueAttributesInput).QueueUrl]; policy {
				case "gone":
					return nil, fault.New(fault.QueueDoesNotExist, "")
				case "denied":
					return nil, fault.New(fault.AccessDenied, "no")
				default:
					return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"Policy": policy}}, nil
				}
			}}.reader(nil).Compare(t.Context(), reads("AWS::SQS::QueuePolicy", "policy-1", map[string]any{
				"Queues": []any{"u/a", "u/b"}, "PolicyDocument": map[string]any{"Version": "2012-10-17"},
			}))
			if got.Status != c.want {
				t.Errorf("%s: %s", got.Status, got.Reason)
			}
			found := differences(got)
			if _, ok := found[c.path]; c.path != "" && (!ok || len(found) != 1) || c.path == "" && len(found) > 0 {
				t.Errorf("differs in %v", found)
			}
		})
	}
}

// Of a topic's subscriptions those of the template are looked for, on every page; what others
// have subscribed is none of the stack's.
func TestSubscriptionsOfATopic(t *testing.T) {
	subscription := func(protocol, endpoint string) any { return map[string]any{"Protocol": protocol, "Endpoint": endpoint} }
	pages := map[string]*sns.ListSubscriptionsByTopicOutput{
		"":       {Subscriptions: []sns.Subscription{{Protocol: "sqs", Endpoint: "arn:a"}, {Protocol: "sqs", Endpoint: "arn:of-others"}}, NextToken: "second"},
		"second": {Subscriptions: []sns.Subscription{{Protocol: "https", Endpoint: "https://b"}}},
	}
	a := answers{"GetTopicAttributes": &sns.GetTopicAttributesOutput{}, "ListSubscriptionsByTopic": func(in any) (any, error) {
		token := ""
		if next := in.(*sns.ListSubscriptionsByTopicInput).NextToken; next != nil {
			token = *next
		}
		return pages[token], nil
	}}
	compare := func(want ...any) stack.Drift {
		return a.reader(nil).Compare(t.Context(), reads("AWS::SNS::Topic", "arn:t", map[string]any{"Subscription": want}))
	}
	if got := compare(subscription("sqs", "arn:a"), subscription("https", "https://b")); got.Status != stack.InSync {
		t.Errorf("%s: %v %s", got.Status, differences(got), got.Reason)
	}
	if got := compare(subscription("sqs", "arn:a"), subscription("lambda", "arn:a")); got.Status != stack.Modified || len(got.Differences) != 1 {
		t.Errorf("%s: %v %s", got.Status, differences(got), got.Reason)
	}
}

// A subscription that waits to be confirmed cannot be asked for, and one in another region is
// asked for there.
func TestSubscription(t *testing.T) {
	for physical, want := range map[string]string{
		"PendingConfirmation": "", "arn:aws:sns:eu-west-1:111122223333:t:1": "eu-west-1", "arn:aws:sns:us-east-1:111122223333:t:1": "us-east-1",
	} {
		asked := ""
		got := answers{"GetSubscriptionAttributes": &sns.GetSubscriptionAttributesOutput{Attributes: map[string]string{"RawMessageDelivery": "true"}}}.
			reader(func(call *api.Call) { asked = call.Region }).
			Compare(t.Context(), reads("AWS::SNS::Subscription", physical, map[string]any{"RawMessageDelivery": "true"}))
		if asked != want || got.Status != stack.InSync {
			t.Errorf("%s: asked in %q, %s %s", physical, asked, got.Status, got.Reason)
		}
	}
}

func TestPruned(t *testing.T) {
	for in, want := range map[string]string{
		`""`: `null`, `[]`: `null`, `[null,""]`: `null`, `{"a":{"b":[]}}`: `null`, `false`: `false`, `0`: `0`,
		`{"a":["",{"b":"x","c":null}],"d":""}`: `{"a":[{"b":"x"}]}`,
	} {
		got, err := json.Marshal(pruned(parsed(in)))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}
