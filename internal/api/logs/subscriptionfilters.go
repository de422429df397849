package logs

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
)

// Destinations tell whether a subscription filter can hand over to its destination.
type Destinations interface {
	Reach(ctx context.Context, group arn.ARN, f *subscription.Filter) error
}

// DescribeSubscriptionFiltersInput is the request of DescribeSubscriptionFilters.
type DescribeSubscriptionFiltersInput struct {
	LogGroupName     string  `json:"logGroupName" wire:"required"`
	FilterNamePrefix *string `json:"filterNamePrefix"`
	NextToken        *string `json:"nextToken"`
	Limit            *int    `json:"limit"`
}

// SubscriptionFiltersOutput is the answer of DescribeSubscriptionFilters.
type SubscriptionFiltersOutput struct {
	SubscriptionFilters []SubscriptionFilter `json:"subscriptionFilters"`
	NextToken           string               `json:"nextToken"`
}

// SubscriptionFilter is a filter of a group.
type SubscriptionFilter struct {
	FilterName             string  `json:"filterName"`
	LogGroupName           string  `json:"logGroupName"`
	FilterPattern          *string `json:"filterPattern"`
	DestinationArn         string  `json:"destinationArn"`
	RoleArn                string  `json:"roleArn"`
	Distribution           string  `json:"distribution"`
	ApplyOnTransformedLogs bool    `json:"applyOnTransformedLogs"`
	CreationTime           int64   `json:"creationTime"`
}

// FilterInput is a request with a filter of a group.
type FilterInput struct {
	LogGroupName string `json:"logGroupName" wire:"required"`
	FilterName   string `json:"filterName" wire:"required"`
}

// PutSubscriptionFilterInput is the request of PutSubscriptionFilter.
type PutSubscriptionFilterInput struct {
	LogGroupName           string   `json:"logGroupName" wire:"required"`
	FilterName             string   `json:"filterName" wire:"required"`
	FilterPattern          *string  `json:"filterPattern" wire:"required"`
	DestinationArn         string   `json:"destinationArn" wire:"required"`
	RoleArn                *string  `json:"roleArn"`
	Distribution           *string  `json:"distribution"`
	ApplyOnTransformedLogs *bool    `json:"applyOnTransformedLogs"`
	FieldSelectionCriteria *string  `json:"fieldSelectionCriteria"`
	EmitSystemFields       []string `json:"emitSystemFields"`
}

// maxRole is the length of the longest role, in characters, which no ARN exceeds.
const maxRole = 2048

// byLogStream is how events are distributed unless it is given. To functions and delivery streams it makes no
// difference.
const byLogStream = "ByLogStream"

// subscribing requires PutSubscriptionFilter, and iam:PassRole for the role.
func subscribing(call *api.Call, in *PutSubscriptionFilterInput) ([]authorize.Need, error) {
	g, err := group(call, in.LogGroupName)
	needs := inGroup("PutSubscriptionFilter", g, "")
	if err != nil || in.RoleArn == nil {
		return needs, err
	}
	return append(needs, api.Passing(*in.RoleArn, "logs.amazonaws.com")), nil
}

// putSubscriptionFilter answers PutSubscriptionFilter.
func (s *Service) putSubscriptionFilter(ctx context.Context, call *api.Call, in *PutSubscriptionFilterInput) (*Empty, error) {
	if err := checkSubscription(call, in); err != nil {
		return nil, err
	}
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	others, err := s.store.Subscriptions(a)
	if err != nil {
		return nil, err
	}
	f := subscription.Filter{
		Name: in.FilterName, Pattern: *in.FilterPattern, Destination: in.DestinationArn, Role: api.Deref(in.RoleArn), Distribution: api.Deref(in.Distribution),
	}
	if err := f.Check(); err != nil {
		return nil, invalid("%s", err)
	}
	named := func(other subscription.Filter) bool { return other.Name == f.Name }
	if len(others) >= logs.MaxSubscriptions && !slices.ContainsFunc(others, named) {
		return nil, logs.ErrTooManySubscriptions // before a delivery stream gets a record by what is refused
	}
	if err := s.reach(ctx, a, &f); err != nil {
		return nil, err
	}
	return nil, s.store.PutSubscription(a, f)
}

var filterName = regexp.MustCompile(`^[^:*]*$`)

// checkSubscription validates a filter, but for its pattern.
func checkSubscription(call *api.Call, in *PutSubscriptionFilterInput) error {
	err := cmp.Or(
		checkFilterName(in.FilterName), short("filterPattern", api.Deref(in.FilterPattern), maxFilterPattern), short("roleArn", api.Deref(in.RoleArn), maxRole),
		text("filterName", in.FilterName, 1, maxFilterName, filterName, `[^:*]*`), oneOf("distribution", in.Distribution, byLogStream, "Random"),
	)
	if err != nil {
		return err
	}
	to, err := arn.Parse(in.DestinationArn)
	if err != nil {
		return invalid("Invalid ARN: %s", in.DestinationArn)
	}
	switch {
	case to.Service == "lambda" && to.Account != call.Account:
		return fault.New(fault.AccessDenied,
			"Cross-account lambda invocation passing is not allowed. You must use DestinationPolicies to create cross account lambda triggers.")
	case to.Service == "lambda" && in.RoleArn != nil:
		return invalid("destinationArn for vendor lambda cannot be used with roleArn")
	case (to.Service == "kinesis" || to.Service == "firehose") && api.Deref(in.RoleArn) == "":
		return invalid("destinationArn for vendor %s cannot be used without roleArn", to.Service)
	case to.Service == "kinesis":
		return invalid("Kinesis data streams are not built yet: a subscription filter hands over to a Lambda function or a Firehose stream.")
	case to.Service == "logs":
		return invalid("Logical destinations are not built yet: a subscription filter hands over to a Lambda function or a Firehose stream.")
	case to.Service != "lambda" && to.Service != "firehose":
		return invalid("PutSubscriptionFilter operation cannot work with destinationArn for vendor %s", to.Service)
	case is(in.ApplyOnTransformedLogs), in.FieldSelectionCriteria != nil, len(in.EmitSystemFields) > 0:
		return invalid("Transformed logs, and criteria and fields of the system, are not built yet.")
	}
	return nil
}

// reach refuses a destination that does not take events of the group. As with AWS, the text does not say why.
func (s *Service) reach(ctx context.Context, group arn.ARN, f *subscription.Filter) error {
	to, _ := arn.Parse(f.Destination) // it was parsed before
	if to.Region == group.Region && to.Account == group.Account && s.destinations.Reach(ctx, group, f) == nil {
		return nil
	}
	if to.Service == "lambda" {
		return invalid("Could not execute the lambda function. Make sure you have given CloudWatch Logs permission to execute your function.")
	}
	return invalid("Could not deliver test message to specified Firehose stream. Check if the given Firehose stream is in ACTIVE state.")
}

// describeSubscriptionFilters answers DescribeSubscriptionFilters, by name.
func (s *Service) describeSubscriptionFilters(_ context.Context, call *api.Call, in *DescribeSubscriptionFiltersInput) (*SubscriptionFiltersOutput, error) {
	if in.FilterNamePrefix != nil {
		if err := short("filterNamePrefix", *in.FilterNamePrefix, maxFilterName); err != nil {
			return nil, err
		}
	}
	const list = "DescribeSubscriptionFilters"
	most, err := limit(in.Limit, maxListed)
	if err != nil {
		return nil, err
	}
	after, err := readListToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	all, err := s.store.Subscriptions(a)
	if err != nil {
		return nil, err
	}
	out := &SubscriptionFiltersOutput{SubscriptionFilters: []SubscriptionFilter{}}
	for i := range all {
		f := &all[i]
		switch {
		case f.Name <= after && after != "", !strings.HasPrefix(f.Name, api.Deref(in.FilterNamePrefix)):
			continue
		case len(out.SubscriptionFilters) == most:
			out.NextToken = listToken(list, out.SubscriptionFilters[most-1].FilterName)
			return out, nil
		}
		out.SubscriptionFilters = append(out.SubscriptionFilters, SubscriptionFilter{
			FilterName: f.Name, LogGroupName: in.LogGroupName, FilterPattern: &f.Pattern, DestinationArn: f.Destination, RoleArn: f.Role,
			Distribution: cmp.Or(f.Distribution, byLogStream), CreationTime: f.Created,
		})
	}
	return out, nil
}

// deleteSubscriptionFilter answers DeleteSubscriptionFilter.
func (s *Service) deleteSubscriptionFilter(_ context.Context, call *api.Call, in *FilterInput) (*Empty, error) {
	if err := checkFilterName(in.FilterName); err != nil {
		return nil, err
	}
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	return nil, s.store.DeleteSubscription(a, in.FilterName)
}

func checkFilterName(name string) error {
	if name == "" {
		return length("filterName", name, 1, maxFilterName)
	}
	return short("filterName", name, maxFilterName)
}
