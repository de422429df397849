package lambda

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
)

// Destination receives the records of asynchronous invocations that ended.
type Destination struct{ Destination *string }

// DestinationConfig has the destinations for success and for failure.
type DestinationConfig struct {
	OnSuccess *Destination
	OnFailure *Destination
}

// EventInvokeConfigInput is the request of PutFunctionEventInvokeConfig and of
// UpdateFunctionEventInvokeConfig.
type EventInvokeConfigInput struct {
	FunctionName             string  `wire:"required,uri"`
	Qualifier                *string `wire:"query=Qualifier"`
	MaximumRetryAttempts     *int
	MaximumEventAgeInSeconds *int
	DestinationConfig        *DestinationConfig
}

// FunctionEventInvokeConfig is the configuration of asynchronous invocations in an answer.
type FunctionEventInvokeConfig struct {
	LastModified             *api.Time
	FunctionArn              string
	MaximumRetryAttempts     *int
	MaximumEventAgeInSeconds *int
	DestinationConfig        *DestinationConfig
}

// ListFunctionEventInvokeConfigsInput is the request of
// ListFunctionEventInvokeConfigs.
type ListFunctionEventInvokeConfigsInput struct {
	FunctionName string  `wire:"required,uri"`
	Marker       *string `wire:"query=Marker"`
	MaxItems     *int    `wire:"query=MaxItems"`
}

// ListFunctionEventInvokeConfigsOutput is the answer of ListFunctionEventInvokeConfigs.
type ListFunctionEventInvokeConfigsOutput struct {
	FunctionEventInvokeConfigs []FunctionEventInvokeConfig
	NextMarker                 string
}

// EventInvoker has the engine's methods for the configuration of asynchronous invocations.
type EventInvoker interface {
	SetEventInvoke(ctx context.Context, cmd function.SetEventInvoke) (function.EventInvoke, error)
	ShowEventInvoke(ctx context.Context, fn arn.ARN, qualifier string) (function.EventInvoke, error)
	DeleteEventInvoke(ctx context.Context, fn arn.ARN, qualifier string) error
	// EventInvokes returns up to limit configurations, ordered by qualifier, from the first
	// one greater than after.
	EventInvokes(ctx context.Context, fn arn.ARN, after string, limit int) ([]function.QualifiedEventInvoke, bool, error)
}

// eventInvokeOperations are the operations on the configuration of asynchronous invocations.
func (s *Service) eventInvokeOperations() []api.Operation {
	const path = "/2019-09-25/functions/{FunctionName}/event-invoke-config"
	return []api.Operation{
		api.Op("PutFunctionEventInvokeConfig", s.putFunctionEventInvokeConfig).At("PUT "+path, 200),
		api.Op("UpdateFunctionEventInvokeConfig", s.updateFunctionEventInvokeConfig).At("POST "+path, 200),
		api.Op("GetFunctionEventInvokeConfig", s.getFunctionEventInvokeConfig).At("GET "+path, 200),
		api.Op("DeleteFunctionEventInvokeConfig", s.deleteFunctionEventInvokeConfig).At("DELETE "+path, 204),
		api.Op("ListFunctionEventInvokeConfigs", s.listFunctionEventInvokeConfigs).At("GET "+path+"/list", 200),
	}
}

// destinationPattern is the model's pattern of a destination.
var destinationPattern = request.Compile(`$|kafka://([^.]([a-zA-Z0-9\-_.]{0,248}))|arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1})?:(\d{12})?:(.*)`)

// maxDestination bounds the length of a destination, in characters.
const maxDestination = 350

// putFunctionEventInvokeConfig answers PutFunctionEventInvokeConfig.
func (s *Service) putFunctionEventInvokeConfig(ctx context.Context, call *api.Call, in *EventInvokeConfigInput) (*FunctionEventInvokeConfig, error) {
	return s.setEventInvoke(ctx, call, in, false)
}

// updateFunctionEventInvokeConfig answers UpdateFunctionEventInvokeConfig.
func (s *Service) updateFunctionEventInvokeConfig(ctx context.Context, call *api.Call, in *EventInvokeConfigInput) (*FunctionEventInvokeConfig, error) {
	return s.setEventInvoke(ctx, call, in, true)
}

func (s *Service) setEventInvoke(ctx context.Context, call *api.Call, in *EventInvokeConfigInput, merge bool) (*FunctionEventInvokeConfig, error) {
	change := function.EventInvokeChange{
		Retries: in.MaximumRetryAttempts, MaxAgeS: in.MaximumEventAgeInSeconds, Destinations: in.DestinationConfig != nil,
	}
	if d := in.DestinationConfig; d != nil {
		change.OnSuccess, change.OnFailure = destination(d.OnSuccess), destination(d.OnFailure)
	}
	var c request.Constraints
	c.Between("maximumRetryAttempts", in.MaximumRetryAttempts, 0, function.MaxRetries)
	c.Between("maximumEventAgeInSeconds", in.MaximumEventAgeInSeconds, int(function.MinEventAge.Seconds()), int(function.MaxEventAge.Seconds()))
	for member, given := range map[string]*string{
		"destinationConfig.onSuccess.destination": change.OnSuccess, "destinationConfig.onFailure.destination": change.OnFailure,
	} {
		c.Length(member, given, 0, maxDestination)
		c.Pattern(member, given, destinationPattern)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxShortName)
	if err != nil {
		return nil, err
	}
	set, err := s.engine.SetEventInvoke(ctx, function.SetEventInvoke{
		Function: n.Function, Qualifier: n.Qualifier, Change: change, Merge: merge,
	})
	if err != nil {
		return nil, err
	}
	return shownEventInvoke(n, &set), nil
}

func destination(d *Destination) *string {
	if d == nil {
		return nil
	}
	return d.Destination
}

// shownEventInvoke converts a configuration of asynchronous invocations for an answer.
func shownEventInvoke(n request.Named, c *function.EventInvoke) *FunctionEventInvokeConfig {
	if n.Qualifier == "" {
		n.Qualifier = function.Latest
	}
	shown := func(a arn.ARN) *Destination {
		if a.IsZero() {
			return &Destination{}
		}
		return &Destination{Destination: new(a.String())}
	}
	return &FunctionEventInvokeConfig{
		LastModified: new(api.TimeOf(c.Modified)), FunctionArn: n.ARN().String(),
		MaximumRetryAttempts: c.Retries, MaximumEventAgeInSeconds: c.MaxAgeS,
		DestinationConfig: &DestinationConfig{OnSuccess: shown(c.OnSuccess), OnFailure: shown(c.OnFailure)},
	}
}

// getFunctionEventInvokeConfig answers GetFunctionEventInvokeConfig.
func (s *Service) getFunctionEventInvokeConfig(ctx context.Context, call *api.Call, in *FunctionInput) (*FunctionEventInvokeConfig, error) {
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxShortName)
	if err != nil {
		return nil, err
	}
	set, err := s.engine.ShowEventInvoke(ctx, n.Function, n.Qualifier)
	if err != nil {
		return nil, err
	}
	return shownEventInvoke(n, &set), nil
}

// deleteFunctionEventInvokeConfig answers DeleteFunctionEventInvokeConfig.
func (s *Service) deleteFunctionEventInvokeConfig(ctx context.Context, call *api.Call, in *FunctionInput) (*Empty, error) {
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxShortName)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.DeleteEventInvoke(ctx, n.Function, n.Qualifier)
}

// listFunctionEventInvokeConfigs answers ListFunctionEventInvokeConfigs.
func (s *Service) listFunctionEventInvokeConfigs(ctx context.Context, call *api.Call, in *ListFunctionEventInvokeConfigsInput) (*ListFunctionEventInvokeConfigsOutput, error) {
	var c request.Constraints
	c.Between("maxItems", in.MaxItems, 1, pageSize)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	list := "event-invoke-configs " + fn.String()
	after, err := request.ReadMarker(list, in.Marker)
	if err != nil {
		return nil, err
	}
	limit := pageSize
	if in.MaxItems != nil {
		limit = *in.MaxItems
	}
	page, more, err := s.engine.EventInvokes(ctx, fn, after, limit)
	if err != nil {
		return nil, err
	}
	out := &ListFunctionEventInvokeConfigsOutput{FunctionEventInvokeConfigs: make([]FunctionEventInvokeConfig, 0, len(page))}
	for i := range page {
		out.FunctionEventInvokeConfigs = append(out.FunctionEventInvokeConfigs, *shownEventInvoke(request.Named{Function: fn, Qualifier: page[i].Qualifier}, &page[i].EventInvoke))
	}
	if more {
		out.NextMarker = api.NextToken(list, page[len(page)-1].Qualifier)
	}
	return out, nil
}
