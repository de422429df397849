package cloudformation

import (
	"context"
	"encoding/json"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// DetectStackDriftInput is the request of DetectStackDrift.
type DetectStackDriftInput struct {
	StackName          string `wire:"required"`
	LogicalResourceIds []string
}

// DetectStackDriftOutput is the answer of DetectStackDrift.
type DetectStackDriftOutput struct{ StackDriftDetectionId string }

// DescribeStackDriftDetectionStatusInput is the request of DescribeStackDriftDetectionStatus.
type DescribeStackDriftDetectionStatusInput struct {
	StackDriftDetectionId string `wire:"required"`
}

// DescribeStackDriftDetectionStatusOutput is the answer of DescribeStackDriftDetectionStatus.
type DescribeStackDriftDetectionStatusOutput struct {
	StackId, StackDriftDetectionId string
	StackDriftStatus               string
	DetectionStatus                string
	DetectionStatusReason          string
	DriftedStackResourceCount      *int
	Timestamp                      api.Time
}

// DetectStackResourceDriftInput is the request of DetectStackResourceDrift.
type DetectStackResourceDriftInput struct {
	StackName         string `wire:"required"`
	LogicalResourceId string `wire:"required"`
}

// DetectStackResourceDriftOutput is the answer of DetectStackResourceDrift.
type DetectStackResourceDriftOutput struct{ StackResourceDrift StackResourceDrift }

// DescribeStackResourceDriftsInput is the request of DescribeStackResourceDrifts.
type DescribeStackResourceDriftsInput struct {
	StackName                       string `wire:"required"`
	StackResourceDriftStatusFilters []string
	NextToken                       *string
	MaxResults                      *int
}

// DescribeStackResourceDriftsOutput is the answer of DescribeStackResourceDrifts.
type DescribeStackResourceDriftsOutput struct {
	StackResourceDrifts []StackResourceDrift
	NextToken           string
}

// StackResourceDrift compares a resource with its template.
type StackResourceDrift struct {
	StackId, LogicalResourceId, PhysicalResourceId string
	ResourceType                                   string
	ExpectedProperties, ActualProperties           string
	PropertyDifferences                            []PropertyDifference
	StackResourceDriftStatus                       string
	DriftStatusReason                              string
	Timestamp                                      api.Time
}

// PropertyDifference is a property that differs from the template.
type PropertyDifference struct{ PropertyPath, ExpectedValue, ActualValue, DifferenceType string }

// driftOf is the drift of a stack as last detected.
func driftOf(s *stack.Stack) DriftInformation {
	if s.Drift == "" {
		return DriftInformation{StackDriftStatus: string(stack.NotChecked), LastCheckTimestamp: optional(s.DriftAt)}
	}
	return DriftInformation{StackDriftStatus: string(s.Drift), LastCheckTimestamp: optional(s.DriftAt)}
}

// resourceDriftOf is the drift of a resource as last detected.
func resourceDriftOf(r *stack.Resource) ResourceDriftInformation {
	if r.Drift == nil {
		return ResourceDriftInformation{StackResourceDriftStatus: string(stack.NotChecked)}
	}
	return ResourceDriftInformation{StackResourceDriftStatus: string(r.Drift.Status), LastCheckTimestamp: optional(r.Drift.At)}
}

func shownDrift(s *stack.Stack, r *stack.Resource) StackResourceDrift {
	shown := StackResourceDrift{
		StackId: s.ID, LogicalResourceId: r.Logical, PhysicalResourceId: r.Physical, ResourceType: r.Type,
		StackResourceDriftStatus: string(r.Drift.Status), DriftStatusReason: r.Drift.Reason, Timestamp: api.Time(r.Drift.At),
	}
	if r.Drift.Status == stack.NotChecked {
		return shown
	}
	shown.PropertyDifferences = []PropertyDifference{}
	masked := func(properties map[string]any) map[string]any {
		all, _ := stack.Masked(s, properties).(map[string]any)
		return all
	}
	text := func(value string) string {
		all, _ := stack.Masked(s, value).(string)
		return all
	}
	shown.DriftStatusReason = text(r.Drift.Reason)
	shown.ExpectedProperties = propertiesText(masked(r.Drift.Expected))
	if r.Drift.Status == stack.InSync || r.Drift.Status == stack.Modified {
		shown.ActualProperties = propertiesText(masked(r.Drift.Actual))
	}
	for _, d := range r.Drift.Differences {
		shown.PropertyDifferences = append(shown.PropertyDifferences, PropertyDifference{d.Path, text(d.Expected), text(d.Actual), d.Kind})
	}
	return shown
}

func propertiesText(properties map[string]any) string {
	if properties == nil {
		return "{}"
	}
	text, _ := json.Marshal(properties) //nolint:errchkjson // it has been read from JSON
	return string(text)
}

func (s *Service) detectStackDrift(ctx context.Context, call *api.Call, in *DetectStackDriftInput) (*DetectStackDriftOutput, error) {
	v, err := s.Engine.Get(call.Account, call.Region, in.StackName)
	if err != nil {
		return nil, bracketed(err, in.StackName)
	}
	for _, id := range in.LogicalResourceIds {
		if !slices.ContainsFunc(v.Resources, func(r stack.Resource) bool { return r.Logical == id && r.Exists() }) {
			return nil, stacks.ErrNoResource.With(id, v.Name)
		}
	}
	d := stack.Detection{ID: s.NewID(), By: call.Caller.WithoutKey(), Only: in.LogicalResourceIds}
	_, err = s.Engine.Detect(ctx, call.Account, call.Region, in.StackName, d)
	return &DetectStackDriftOutput{d.ID}, bracketed(err, in.StackName)
}

func (s *Service) describeStackDriftDetectionStatus(_ context.Context, call *api.Call, in *DescribeStackDriftDetectionStatusInput) (*DescribeStackDriftDetectionStatusOutput, error) {
	d, of, err := s.Engine.Detection(call.Account, call.Region, in.StackDriftDetectionId)
	if err != nil {
		return nil, err
	}
	out := &DescribeStackDriftDetectionStatusOutput{
		StackId: of, StackDriftDetectionId: d.ID, DetectionStatus: "DETECTION_IN_PROGRESS", Timestamp: api.Time(d.Began),
	}
	if d.Ended == 0 {
		return out, nil
	}
	out.StackDriftStatus, out.DetectionStatus, out.DetectionStatusReason = string(d.Status), "DETECTION_COMPLETE", d.Failure
	out.DriftedStackResourceCount = &d.Drifted
	if d.Failure != "" {
		out.DetectionStatus = "DETECTION_FAILED"
	}
	return out, nil
}

func (s *Service) detectStackResourceDrift(ctx context.Context, call *api.Call, in *DetectStackResourceDriftInput) (*DetectStackResourceDriftOutput, error) {
	r, of, err := s.Engine.DetectOne(ctx, call.Account, call.Region, in.StackName, in.LogicalResourceId, call.Caller.WithoutKey())
	if err != nil {
		return nil, bracketed(err, in.StackName)
	}
	return &DetectStackResourceDriftOutput{shownDrift(&of, &r)}, nil
}

func (s *Service) describeStackResourceDrifts(_ context.Context, call *api.Call, in *DescribeStackResourceDriftsInput) (*DescribeStackResourceDriftsOutput, error) {
	most := pageSize
	if in.MaxResults != nil {
		most = *in.MaxResults
	}
	v, err := s.Engine.Get(call.Account, call.Region, in.StackName)
	if err != nil {
		return nil, bracketed(err, in.StackName)
	}
	checked := slices.DeleteFunc(v.Resources, func(r stack.Resource) bool {
		return r.Drift == nil || !r.Exists() || len(in.StackResourceDriftStatusFilters) > 0 && !slices.Contains(in.StackResourceDriftStatusFilters, string(r.Drift.Status))
	})
	cut, next, err := pageOf("DescribeStackResourceDrifts", checked, func(i int) string { return checked[i].Logical }, in.NextToken, most)
	if err != nil {
		return nil, err
	}
	out := &DescribeStackResourceDriftsOutput{StackResourceDrifts: []StackResourceDrift{}, NextToken: next}
	for i := range cut {
		out.StackResourceDrifts = append(out.StackResourceDrifts, shownDrift(&v.Stack, &cut[i]))
	}
	return out, nil
}
