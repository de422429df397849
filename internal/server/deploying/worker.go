// Package deploying takes the steps of stacks: it calls the server's own operations within the
// process, as whoever deploys, so that permissions, limits and the audit are those of any request.
//
// Every step may be taken twice. What is made has the name that the step brings, or is found
// again by what it is.
package deploying

import (
	"context"
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/server/deploying/functions"
	"godwit.dev/godwit/internal/server/deploying/identities"
	"godwit.dev/godwit/internal/server/deploying/messaging"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// Worker implements stacks.Worker.
type Worker struct{ step.Options }

var _ stacks.Worker = (*Worker)(nil)

// handlers are those of all types of resources.
var handlers = func() map[string]step.Handler {
	all := map[string]step.Handler{
		"AWS::CloudWatch::Alarm":                   {Create: createAlarm, Update: updateAlarm, Delete: deleteAlarm},
		"AWS::CloudWatch::CompositeAlarm":          {Create: createAlarm, Update: updateAlarm, Delete: deleteAlarm},
		"AWS::Logs::LogGroup":                      {Create: createLogGroup, Update: updateLogGroup, Delete: deleteLogGroup},
		"AWS::Logs::LogStream":                     {Create: createLogStream, Update: step.Keep, Delete: deleteLogStream},
		"AWS::Logs::MetricFilter":                  {Create: createMetricFilter, Update: updateMetricFilter, Delete: deleteMetricFilter},
		"AWS::Logs::SubscriptionFilter":            {Create: createSubscriptionFilter, Update: updateSubscriptionFilter, Delete: deleteSubscriptionFilter},
		"AWS::CloudFormation::Stack":               {Create: createNested, Update: updateNested, Delete: deleteNested},
		"AWS::CDK::Metadata":                       {Create: step.Keep, Update: step.Keep, Delete: nothing},
		"AWS::SSM::Parameter":                      {Create: putParameter, Update: putParameter, Delete: deleteParameter},
		"AWS::CloudFormation::WaitConditionHandle": {Create: step.Keep, Update: step.Keep, Delete: nothing},
		"AWS::KMS::Key":                            {Create: createKey, Update: updateKey, Delete: deleteKey},
		"AWS::KMS::Alias":                          {Create: createKeyAlias, Update: updateKeyAlias, Delete: deleteKeyAlias},
	}
	for _, of := range []map[string]step.Handler{functions.Handlers, identities.Handlers, messaging.Handlers} {
		maps.Copy(all, of)
	}
	return all
}()

// How often and how long a step is put off that cannot be taken now.
const (
	maxTries = 20
	maxWait  = 5 * time.Second

	maxLook = 500 * time.Millisecond // how often it is looked at a nested stack, at least
)

// Do implements stacks.Worker.
func (v *Worker) Do(ctx context.Context, t *stacks.Task) (o stack.Outcome, later time.Duration) {
	h, ok := handlers[t.Target.Type]
	if !ok { // a later version has begun it
		return stack.Outcome{Physical: t.Target.Physical, Reason: "Unrecognized resource type: " + t.Target.Type}, 0
	}
	if t.Action == stack.Cleanup { // in nobody's name: it ends what was done
		return o, cleanUpNested(ctx, &v.Options, t)
	}
	w, err := step.Begin(&v.Options, t)
	var is step.Made
	switch {
	case err == nil:
		switch t.Action {
		case stack.Create:
			is, err = h.Create(ctx, w)
		case stack.Update:
			is, err = h.Update(ctx, w)
		case stack.Delete:
			err = h.Delete(ctx, w)
		case stack.Cleanup: // above
		}
	case t.Action == stack.Create && t.Again && t.Target.Type == "AWS::IAM::Policy":
		is.Physical = t.Target.Physical // an earlier process may have given it
	}
	if err == step.ErrUnderWay { //nolint:errorlint // it is not wrapped
		return o, min(10*time.Millisecond<<min(t.Try, 8), maxLook)
	}
	if err != nil && t.Try < maxTries && step.Passes(err) {
		return o, min(50*time.Millisecond<<min(t.Try, 8), maxWait)
	}
	o = stack.Outcome{Physical: is.Physical, Attributes: is.Attributes}
	if err != nil {
		o.Reason = w.Reason(err)
	}
	if err != nil && o.Physical == "" && t.Action == stack.Create && t.Resumed {
		o.Physical = v.perhaps(t)
	}
	return o, 0
}

// named are the types whose resources are called, as stacks know them, by their names.
var named = []string{
	"AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group", "AWS::IAM::InstanceProfile", "AWS::Lambda::Function", "AWS::Lambda::Permission",
	"AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm", "AWS::Logs::LogGroup", "AWS::Logs::LogStream", "AWS::Logs::MetricFilter", "AWS::Logs::SubscriptionFilter", "AWS::KinesisFirehose::DeliveryStream",
}

// perhaps is what an earlier process may have made in a step that fails now, as who acts may not do it any
// more: nobody else gives anything a name that was derived for the resource, and the stack would leave
// behind what it does not know of.
func (v *Worker) perhaps(t *stacks.Task) string {
	of, ok := resource.Find(t.Target.Type)
	if !ok || of.Named(t.Target.Properties) != "" {
		return ""
	}
	name := t.Target.Physical
	switch of.Name {
	case "AWS::SQS::Queue":
		return v.URL + "/" + t.Account + "/" + name
	case "AWS::SNS::Topic":
		return arn.ARN{Service: "sns", Region: t.Region, Account: t.Account, Resource: name}.String()
	case stack.Type:
		if nested, err := v.Stacks.Get(t.Account, t.Region, name); err == nil && nested.Parent == t.Stack {
			return nested.ID
		}
	}
	if slices.Contains(named, of.Name) {
		return name
	}
	return ""
}
