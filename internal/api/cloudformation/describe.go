package cloudformation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// pageSize is AWS's page size.
const pageSize = 100

// page is api.Page with AWS's page size.
func page[T any](list string, items []T, position func(i int) string, token *string) (cut []T, next string, err error) {
	return pageOf(list, items, position, token, pageSize)
}

// pageOf is page with another page size.
func pageOf[T any](list string, items []T, position func(i int) string, token *string, limit int) (cut []T, next string, err error) {
	cut, next, ok := api.Page(list, items, position, token, limit)
	if !ok {
		return nil, "", invalid("Invalid NextToken")
	}
	return cut, next, nil
}

// byAge are the positions of stacks, the latest first.
func byAge(all []stack.Stack) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%016x %s", math.MaxInt64-all[i].Created, all[i].ID) }
}

func optional(at int64) *api.Time {
	if at == 0 {
		return nil
	}
	t := api.Time(at)
	return &t
}

const hidden = "****"

func shownParameters(all []stack.Parameter) []Parameter {
	shown := []Parameter{}
	for _, p := range all {
		one := Parameter{ParameterKey: &p.Key, ParameterValue: &p.Value}
		if p.Resolved != "" {
			one.ResolvedValue = &p.Resolved
		}
		if p.NoEcho {
			secret := hidden
			one.ParameterValue = &secret
			if one.ResolvedValue != nil {
				one.ResolvedValue = &secret
			}
		}
		shown = append(shown, one)
	}
	return shown
}

func shownTags(all []stack.Tag) []Tag {
	shown := []Tag{}
	for _, t := range all {
		shown = append(shown, Tag{t.Key, t.Value})
	}
	return shown
}

func shownStack(s *stack.Stack) Stack {
	shown := Stack{
		StackId: s.ID, StackName: s.Name, Description: s.Input.Description, Parameters: shownParameters(s.Input.Parameters),
		CreationTime: api.Time(s.Created), LastUpdatedTime: optional(s.Updated), DeletionTime: optional(s.Deleted), ParentId: s.Parent, RootId: s.Root,
		StackStatus: string(s.Status), StackStatusReason: s.Reason, DisableRollback: s.OnFailure == stack.OnFailureNothing,
		NotificationARNs: append([]string{}, s.Input.Notifications...), Capabilities: s.Input.Capabilities,
		RoleARN: s.Input.Role, Tags: shownTags(s.Input.Tags), EnableTerminationProtection: s.Protected, DriftInformation: driftOf(s),
	}
	if s.Timeout > 0 {
		minutes := int(s.Timeout / time.Minute.Milliseconds())
		shown.TimeoutInMinutes = &minutes
	}
	for _, o := range s.Outputs {
		shown.Outputs = append(shown.Outputs, Output{o.Key, &o.Value, o.Description, o.Export})
	}
	return shown
}

func (s *Service) describeStacks(_ context.Context, call *api.Call, in *DescribeStacksInput) (*DescribeStacksOutput, error) {
	out := &DescribeStacksOutput{Stacks: []Stack{}}
	if name := api.Deref(in.StackName); name != "" {
		v, err := s.Engine.Get(call.Account, call.Region, name)
		if err != nil {
			return nil, err
		}
		out.Stacks = append(out.Stacks, shownStack(&v.Stack))
		return out, nil
	}
	all := slices.DeleteFunc(s.Engine.List(call.Account, call.Region), func(s stack.Stack) bool { return s.Status == stack.DeleteComplete })
	cut, next, err := page("DescribeStacks", all, byAge(all), in.NextToken)
	if err != nil {
		return nil, err
	}
	out.NextToken = next
	for i := range cut {
		out.Stacks = append(out.Stacks, shownStack(&cut[i]))
	}
	return out, nil
}

func (s *Service) listStacks(_ context.Context, call *api.Call, in *ListStacksInput) (*ListStacksOutput, error) {
	all := s.Engine.List(call.Account, call.Region)
	if len(in.StackStatusFilter) > 0 {
		all = slices.DeleteFunc(all, func(s stack.Stack) bool { return !slices.Contains(in.StackStatusFilter, string(s.Status)) })
	}
	cut, next, err := page("ListStacks", all, byAge(all), in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListStacksOutput{StackSummaries: []StackSummary{}, NextToken: next}
	for i := range cut {
		s := &cut[i]
		out.StackSummaries = append(out.StackSummaries, StackSummary{
			StackId: s.ID, StackName: s.Name, TemplateDescription: s.Input.Description, CreationTime: api.Time(s.Created),
			LastUpdatedTime: optional(s.Updated), DeletionTime: optional(s.Deleted), StackStatus: string(s.Status), StackStatusReason: s.Reason,
			DriftInformation: driftOf(s), ParentId: s.Parent, RootId: s.Root,
		})
	}
	return out, nil
}

// eventID is a unique, stable id of an event.
func eventID(s *stack.Stack, e *stack.Event) string {
	if e.Type == stack.Type && e.Physical == s.ID {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", s.ID, e.Number))
		return uuid.UUID(sum[:16]).String()
	}
	return e.Logical + "-" + string(e.Status) + "-" + time.UnixMilli(e.At).UTC().Format(clock.ISO8601)
}

func (s *Service) describeStackEvents(_ context.Context, call *api.Call, in *DescribeStackEventsInput) (*DescribeStackEventsOutput, error) {
	after, ok := api.ReadToken("DescribeStackEvents", in.NextToken)
	before, err := strconv.ParseUint("0"+after, 10, 64)
	if !ok || err != nil {
		return nil, invalid("Invalid NextToken")
	}
	events, of, err := s.Engine.Events(call.Account, call.Region, in.StackName, before, pageSize)
	if err != nil {
		return nil, bracketed(err, in.StackName)
	}
	out := &DescribeStackEventsOutput{StackEvents: []StackEvent{}}
	for i := range events {
		e := &events[i]
		out.StackEvents = append(out.StackEvents, StackEvent{
			StackId: of.ID, StackName: of.Name, EventId: eventID(&of, e), LogicalResourceId: e.Logical, PhysicalResourceId: e.Physical,
			ResourceType: e.Type, Timestamp: api.Time(e.At), ResourceStatus: string(e.Status), ResourceStatusReason: e.Reason,
			ResourceProperties: e.Properties, ClientRequestToken: e.Token,
		})
	}
	if len(events) == pageSize && events[pageSize-1].Number > 1 {
		out.NextToken = api.NextToken("DescribeStackEvents", strconv.FormatUint(events[pageSize-1].Number, 10))
	}
	return out, nil
}

func (s *Service) describeStackResource(_ context.Context, call *api.Call, in *DescribeStackResourceInput) (*DescribeStackResourceOutput, error) {
	v, err := s.Engine.Get(call.Account, call.Region, in.StackName)
	if err != nil {
		return nil, err
	}
	for i := range v.Resources {
		r := &v.Resources[i]
		if r.Logical == in.LogicalResourceId {
			return &DescribeStackResourceOutput{StackResourceDetail{
				StackName: v.Name, StackId: v.ID, LogicalResourceId: r.Logical, PhysicalResourceId: r.Physical, ResourceType: r.Type,
				LastUpdatedTimestamp: api.Time(r.Changed), ResourceStatus: string(r.Status), ResourceStatusReason: r.Reason, Metadata: cmp.Or(api.Deref(r.Metadata), "{}"),
				DriftInformation: resourceDriftOf(r),
			}}, nil
		}
	}
	return nil, invalid("Resource %s does not exist for stack %s", in.LogicalResourceId, v.Name)
}

func (s *Service) describeStackResources(_ context.Context, call *api.Call, in *DescribeStackResourcesInput) (*DescribeStackResourcesOutput, error) {
	name, physical := api.Deref(in.StackName), api.Deref(in.PhysicalResourceId)
	if name == "" && physical == "" {
		return nil, invalid("You must specify either StackName or PhysicalResourceId")
	}
	if name != "" && physical != "" {
		return nil, invalid("You must specify either StackName or PhysicalResourceId, but not both")
	}
	var v stacks.View
	var err error
	if name != "" {
		v, err = s.Engine.Get(call.Account, call.Region, name)
	} else {
		v, err = s.owner(call, physical)
	}
	if err != nil {
		return nil, err
	}
	out := &DescribeStackResourcesOutput{StackResources: []StackResource{}}
	for i := range v.Resources {
		r := &v.Resources[i]
		if in.LogicalResourceId != nil && *in.LogicalResourceId != r.Logical {
			continue
		}
		if len(out.StackResources) == pageSize {
			break
		}
		out.StackResources = append(out.StackResources, StackResource{
			StackName: v.Name, StackId: v.ID, LogicalResourceId: r.Logical, PhysicalResourceId: r.Physical, ResourceType: r.Type,
			Timestamp: api.Time(r.Changed), ResourceStatus: string(r.Status), ResourceStatusReason: r.Reason, DriftInformation: resourceDriftOf(r),
		})
	}
	return out, nil
}

// owner is the stack of a resource.
func (s *Service) owner(call *api.Call, physical string) (stacks.View, error) {
	for _, one := range s.Engine.List(call.Account, call.Region) {
		v, err := s.Engine.Get(call.Account, call.Region, one.ID)
		if err == nil && slices.ContainsFunc(v.Resources, func(r stack.Resource) bool { return r.Physical == physical && r.Exists() }) {
			return v, nil
		}
	}
	return stacks.View{}, invalid("Stack for %s does not exist", physical)
}

func (s *Service) listStackResources(_ context.Context, call *api.Call, in *ListStackResourcesInput) (*ListStackResourcesOutput, error) {
	v, err := s.Engine.Get(call.Account, call.Region, in.StackName)
	if err != nil {
		return nil, err
	}
	cut, next, err := page("ListStackResources", v.Resources, func(i int) string { return v.Resources[i].Logical }, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListStackResourcesOutput{StackResourceSummaries: []StackResourceSummary{}, NextToken: next}
	for i := range cut {
		r := &cut[i]
		out.StackResourceSummaries = append(out.StackResourceSummaries, StackResourceSummary{
			LogicalResourceId: r.Logical, PhysicalResourceId: r.Physical, ResourceType: r.Type, LastUpdatedTimestamp: api.Time(r.Changed),
			ResourceStatus: string(r.Status), ResourceStatusReason: r.Reason, DriftInformation: resourceDriftOf(r),
		})
	}
	return out, nil
}

func (s *Service) listExports(_ context.Context, call *api.Call, in *ListExportsInput) (*ListExportsOutput, error) {
	all, owners := s.Engine.Exports(call.Account, call.Region)
	cut, next, err := page("ListExports", all, func(i int) string { return all[i].Export }, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListExportsOutput{Exports: []Export{}, NextToken: next}
	for _, o := range cut {
		out.Exports = append(out.Exports, Export{owners[o.Export], o.Export, &o.Value})
	}
	return out, nil
}

func (s *Service) listImports(_ context.Context, call *api.Call, in *ListImportsInput) (*ListImportsOutput, error) {
	names := s.Engine.Importers(call.Account, call.Region, in.ExportName)
	if len(names) == 0 {
		return nil, invalid("Export '%s' is not imported by any stack.", in.ExportName)
	}
	cut, next, err := page("ListImports", names, func(i int) string { return names[i] }, in.NextToken)
	return &ListImportsOutput{Imports: cut, NextToken: next}, err
}
