// Package drifting compares resources of stacks with what their services answer now: it calls
// the server's own operations within the process, as who asks for the comparison.
package drifting

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// Options are what a Reader needs.
type Options struct {
	// Within carries out an operation as package wire does.
	Within func(ctx context.Context, call *api.Call, in any) (any, error)
	// URL is what queues' URLs begin with.
	URL string
}

// Reader implements stacks.Reader.
type Reader struct{ Options }

var _ stacks.Reader = (*Reader)(nil)

// reading is a comparison under way. What a service does not tell is taken for what the
// template asks for.
type reading struct {
	*stacks.Reading

	reader *Reader
	actual map[string]any
}

var readers = map[string]func(ctx context.Context, r *reading) error{
	"AWS::SQS::Queue":                     queue,
	"AWS::SQS::QueuePolicy":               queuePolicy,
	"AWS::SQS::QueueInlinePolicy":         queuePolicy,
	"AWS::SNS::Topic":                     topic,
	"AWS::SNS::TopicPolicy":               topicPolicy,
	"AWS::SNS::TopicInlinePolicy":         topicPolicy,
	"AWS::SNS::Subscription":              subscription,
	"AWS::CloudWatch::Alarm":              alarm,
	"AWS::CloudWatch::CompositeAlarm":     compositeAlarm,
	"AWS::Logs::LogGroup":                 logGroup,
	"AWS::Logs::LogStream":                logStream,
	"AWS::Logs::MetricFilter":             metricFilter,
	"AWS::Logs::SubscriptionFilter":       subscriptionFilter,
	"AWS::IAM::Role":                      role,
	"AWS::IAM::User":                      user,
	"AWS::IAM::Group":                     group,
	"AWS::IAM::Policy":                    inlinePolicy,
	"AWS::IAM::ManagedPolicy":             managedPolicy,
	"AWS::IAM::InstanceProfile":           instanceProfile,
	"AWS::Lambda::Function":               function,
	"AWS::Lambda::Permission":             permission,
	"AWS::Lambda::EventSourceMapping":     mapping,
	"AWS::Lambda::EventInvokeConfig":      eventInvoke,
	"AWS::Lambda::Url":                    functionURL,
	"AWS::Lambda::LayerVersion":           layer,
	"AWS::Lambda::LayerVersionPermission": layerPermission,
	"AWS::Lambda::Version":                functionVersion,
	"AWS::Lambda::Alias":                  functionAlias,
	"AWS::IAM::AccessKey":                 accessKey,
	"AWS::KMS::Key":                       key,
	"AWS::KMS::Alias":                     keyAlias,
}

// Compare implements stacks.Reader.
func (v *Reader) Compare(ctx context.Context, at *stacks.Reading) stack.Drift {
	read, ok := readers[at.Type]
	if !ok {
		return stack.Drift{Status: stack.NotChecked}
	}
	r := &reading{Reading: at, reader: v, actual: maps.Clone(at.Properties)}
	if r.actual == nil {
		r.actual = map[string]any{}
	}
	switch err := read(ctx, r); {
	case err == nil:
		return at.Compared(r.actual)
	case stacks.IsGone(err):
		return stack.Drift{Status: stack.Deleted, Expected: at.Properties}
	case fault.KindOf(err) == fault.Internal:
		return stack.Drift{Status: stack.Unknown, Expected: at.Properties, Reason: "Internal error"}
	default:
		return stack.Drift{Status: stack.Unknown, Expected: at.Properties, Reason: refusal.Text(err)}
	}
}

// ask calls an operation, whose answer is an *Out.
func ask[Out any](ctx context.Context, r *reading, service, operation, region string, in any) (*Out, error) {
	by := r.By
	if by == nil {
		by = authorize.RootOf(r.Account)
	}
	out, err := r.reader.Within(ctx, &api.Call{
		Service: service, Operation: operation, Protocol: "query", Region: region, Account: r.Account, Caller: by,
		RemoteAddr: authorize.CloudFormation, Host: r.reader.URL, Within: api.Within{Via: authorize.CloudFormation},
	}, in)
	if err != nil {
		return nil, err
	}
	return out.(*Out), nil
}

// errGone says that there is nothing by the name of a resource any more.
var errGone = fault.New(fault.NotFound, "The resource does not exist.")

// set sets properties from texts, as attributes have them. One that is empty is not there.
func (r *reading) set(names []string, from map[string]string) {
	for _, name := range names {
		r.put(name, from[name])
	}
}

// put sets a property to a text that a service answers.
func (r *reading) put(name, value string) {
	if value == "" && r.Properties[name] != "" {
		delete(r.actual, name)
		return
	}
	r.actual[name] = value
}

// document sets a property to the JSON of a text.
func (r *reading) document(name, text string) {
	if text == "" {
		delete(r.actual, name)
		return
	}
	r.actual[name] = parsed(text)
}

func parsed(text string) any {
	var value any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return text
	}
	return value
}

// members sets properties from the members of an answer that are called as they are. Those
// that the answer does not have, or has empty, are gone.
func (r *reading) members(answer any, names ...string) {
	text, err := json.Marshal(answer)
	if err != nil {
		return
	}
	has, _ := parsed(string(text)).(map[string]any)
	for _, name := range names {
		if value := pruned(has[name]); value != nil {
			r.actual[name] = value
		} else if want, ok := r.Properties[name]; ok && pruned(want) != nil {
			delete(r.actual, name)
		}
	}
}

// pruned is a value without what is null or empty in it; nil: nothing is left.
func pruned(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return nil
		}
	case []any:
		var all []any
		for _, item := range v {
			if item = pruned(item); item != nil {
				all = append(all, item)
			}
		}
		if all == nil {
			return nil
		}
		return all
	case map[string]any:
		left := map[string]any{}
		for name, member := range v {
			if member = pruned(member); member != nil {
				left[name] = member
			}
		}
		if len(left) == 0 {
			return nil
		}
		return left
	}
	return value
}

// tagged sets the property of tags, without those that AWS keeps for itself.
func (r *reading) tagged(tags map[string]string) {
	var all []any
	for key, value := range tags {
		if !strings.HasPrefix(key, "aws:") {
			all = append(all, map[string]any{"Key": key, "Value": value})
		}
	}
	if all == nil {
		delete(r.actual, "Tags")
	} else if r.actual["Tags"] = all; r.Properties["Tags"] == nil {
		delete(r.actual, "Tags")
	}
}

// text is a property as a text.
func (r *reading) text(name string) string {
	s, _ := resource.Scalar(r.Properties[name])
	return s
}

// list are the texts of a property that is a list of them.
func (r *reading) list(name string) (texts []string) {
	items, _ := r.Properties[name].([]any)
	for _, item := range items {
		if s, ok := resource.Scalar(item); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// texts sets a property to a list of texts.
func (r *reading) texts(name string, all []string) {
	if len(all) == 0 {
		delete(r.actual, name)
		return
	}
	list := make([]any, 0, len(all))
	for _, s := range all {
		list = append(list, s)
	}
	r.actual[name] = list
}
