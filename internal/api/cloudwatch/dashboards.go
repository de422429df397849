package cloudwatch

import (
	"context"
	"regexp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// Dashboards are not implemented. Requests that AWS refuses by validation get the same
// errors.

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
