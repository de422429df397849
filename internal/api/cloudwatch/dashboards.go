package cloudwatch

import (
	"context"
	"regexp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// Dashboards are not implemented. Requests that AWS refuses by validation get the same
// errors, and the list of them is empty: programs that take stock of an account stop if it
// fails.

var dashboardName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// PutDashboardInput is the input of PutDashboard, as far as it is validated.
type PutDashboardInput struct {
	DashboardName *string `wire:"required"`
	DashboardBody *string
}

// PutDashboardOutput is the output of PutDashboard.
type PutDashboardOutput struct{}

// putDashboard refuses PutDashboard.
func (s *Service) putDashboard(_ context.Context, call *api.Call, in *PutDashboardInput) (*PutDashboardOutput, error) {
	if !dashboardName.MatchString(*in.DashboardName) { // AWS's message ends in a line break
		return nil, invalid("The value for field DashboardName contains invalid characters. It can only contain alphanumerics, dash (-) and underscore (_).\n")
	}
	return nil, fault.Newf(fault.InvalidAction, "%s is not built yet.", call.Operation)
}

// ListDashboardsInput is the input of ListDashboards.
type ListDashboardsInput struct {
	DashboardNamePrefix *string
	NextToken           *string
}

// ListDashboardsOutput is the output of ListDashboards.
type ListDashboardsOutput struct {
	DashboardEntries []struct{}
}

// listDashboards answers ListDashboards.
func (s *Service) listDashboards(_ context.Context, _ *api.Call, in *ListDashboardsInput) (*ListDashboardsOutput, error) {
	if _, ok := readToken("ListDashboards", in.NextToken); !ok {
		return nil, invalid("Request parameter NextToken is invalid")
	}
	return &ListDashboardsOutput{DashboardEntries: []struct{}{}}, nil
}
