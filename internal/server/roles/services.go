package roles

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/policy"
)

// sns is who assumes the roles of topics' delivery status logs.
var sns = authorize.ServiceCaller("sns.amazonaws.com")

// statusSession names the sessions that SNS writes delivery status logs in.
const statusSession = "SNSDeliveryStatus"

// DeliveryStatus asks what SNS may write with the role that a topic names; nil where nobody
// asks. Source: the SNS developer guide, on the permissions of that role.
func (s *Sessions) DeliveryStatus() deliver.LogRights {
	if !s.Strict {
		return nil
	}
	a := &authorize.Authorizer{Identities: s.Identities, Resources: withoutResources{}}
	return func(topic arn.ARN, name string, group arn.ARN, stream string) (r authorize.LogRights) {
		role, err := s.assume(sns, topic, name)
		if err != nil {
			return r
		}
		session := sessionOf(role, statusSession)
		may := func(action, stream string) bool {
			need := authorize.Need{Action: action, Resource: authorize.LogStream(group, stream), Account: group.Account}
			result, err := a.Decide(context.Background(), &need, &authorize.Context{Caller: session, Region: group.Region, Now: s.Clock.Now().UnixMilli()})
			return err == nil && result.Allowed()
		}
		return authorize.LogRights{
			CreateGroup: may("logs:CreateLogGroup", ""), CreateStream: may("logs:CreateLogStream", ""), Put: may("logs:PutLogEvents", stream),
		}
	}
}

// withoutResources are resources without policies and tags, as log groups are.
type withoutResources struct{}

func (withoutResources) PolicyOf(context.Context, arn.ARN) *policy.Policy  { return nil }
func (withoutResources) TagsOf(context.Context, arn.ARN) map[string]string { return nil }

// cloudWatch is who publishes for alarms.
var cloudWatch = authorize.ServiceCaller("cloudwatch.amazonaws.com")

// Alarms asks a topic's policy whether CloudWatch may publish for an alarm, with
// AccessDenied; nil where nobody asks.
func (s *Sessions) Alarms(a *authorize.Authorizer) func(ctx context.Context, alarm, topic arn.ARN) error {
	if !s.Strict {
		return nil
	}
	return func(ctx context.Context, alarm, topic arn.ARN) error {
		if alarm.Account == topic.Account && a.Resources.PolicyOf(ctx, topic) == nil {
			return nil // it is not there, which its own account is told
		}
		need := authorize.Need{Action: "sns:Publish", Resource: topic.String(), Account: topic.Account, Shared: true}
		result, err := a.Decide(ctx, &need, &authorize.Context{
			Caller: cloudWatch, Region: topic.Region, Now: s.Clock.Now().UnixMilli(), Source: alarm.String(), Owner: alarm.Account,
		})
		if err != nil {
			return err
		}
		if !result.Allowed() {
			return fault.Newf(fault.AccessDenied, "Resource: %s is not authorized to perform: SNS:Publish on resource: %s", alarm, topic)
		}
		return nil
	}
}
