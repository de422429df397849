package cloudwatch

import (
	"context"
	"regexp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// Dashboards are not built. What AWS refuses before it keeps one is refused likewise.

var dashboardName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// PutDashboardInput is the input of PutDashboard, as far as it is looked at.
type PutDashboardInput struct {
	DashboardName *string `wire:"required"`
	DashboardBody *string
}

// PutDashboardOutput is the output of PutDashboard.
type PutDashboardOutput struct{}

// putDashboard refuses PutDashboard.
func (s *Service) putDashboard(_ context.Context, call *api.Call, in *PutDashboardInput) (*PutDashboardOutput, error) {
	if !dashboardName.MatchString(*in.DashboardName) { // AWS's text ends so
		return nil, invalid("The value for field DashboardName contains invalid characters. It can only contain alphanumerics, dash (-) and underscore (_).\n")
	}
	return nil, fault.Newf(fault.InvalidAction, "%s is not built yet.", call.Operation)
}
