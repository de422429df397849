package roles

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/monitor/logs"
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
	return func(topic arn.ARN, name string, group arn.ARN, stream string) (none authorize.LogRights) {
		role, err := s.assume(sns, topic, name)
		if err != nil {
			return none
		}
		return s.logRights(sessionOf(role, statusSession), group, stream)
	}
}

// logRights are what the policies of a session let it do to a log stream. They outlive the call
// that writes first, whose end must not be taken for a denial: hence no context of a caller.
func (s *Sessions) logRights(session *caller.Caller, group arn.ARN, stream string) authorize.LogRights {
	a := authorize.Authorizer{Identities: s.Identities, Resources: withoutResources{}}
	may := func(action, stream string) bool {
		need := authorize.Need{Action: action, Resource: authorize.LogStream(group, stream), Account: group.Account}
		result, err := a.Decide(context.Background(), &need, &authorize.Context{Caller: session, Region: group.Region, Now: s.Clock.Now().UnixMilli()})
		return err == nil && result.Allowed()
	}
	return authorize.LogRights{
		CreateGroup: may("logs:CreateLogGroup", ""), CreateStream: may("logs:CreateLogStream", ""), Put: may("logs:PutLogEvents", stream),
	}
}

// ServiceLogs has a service write logs as roles may.
type ServiceLogs struct {
	*logs.Logs

	Service *Service
}

// Put writes a line with a role, for the sake of a resource, or leaves it out where the role
// may not. It does not block, and keeps the line.
func (l ServiceLogs) Put(source arn.ARN, name string, group arn.ARN, stream string, at time.Time, line []byte) {
	s := l.Service
	as := authorize.AllLogRights
	if s.Strict {
		role, err := s.assume(authorize.ServiceCaller(s.Principal), source, name)
		if err != nil {
			return
		}
		as = s.logRights(sessionOf(role, s.Session), group, stream)
	}
	if as.Put {
		l.LogAs(group, stream, at, line, as)
	}
}

// FunctionLogs has functions write their logs as their roles may.
type FunctionLogs struct {
	*logs.Logs

	Sessions *Sessions
}

var _ invoke.Log = FunctionLogs{}

// Rights implements invoke.Log. Where nobody asks for permissions every function may write.
func (l FunctionLogs) Rights(t *function.Target, group arn.ARN, stream string) (none authorize.LogRights) {
	if !l.Sessions.Strict {
		return authorize.AllLogRights
	}
	role, err := l.Sessions.assume(lambda, t.Function, t.Role)
	if err != nil {
		return none
	}
	return l.Sessions.logRights(sessionOf(role, t.Name), group, stream)
}

// Put implements invoke.Log.
func (l FunctionLogs) Put(group arn.ARN, stream string, at time.Time, line []byte, as authorize.LogRights) {
	l.LogAs(group, stream, at, line, as)
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
			return nil // it is not there, as its own account is answered
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
