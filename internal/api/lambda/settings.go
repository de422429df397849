package lambda

import (
	"context"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function/bundle"
	"godwit.dev/godwit/internal/function/mapping"
)

// putFunctionConcurrency answers PutFunctionConcurrency.
func (s *Service) putFunctionConcurrency(ctx context.Context, call *api.Call, in *PutFunctionConcurrencyInput) (*Concurrency, error) {
	var c request.Constraints
	c.AtLeast("reservedConcurrentExecutions", in.ReservedConcurrentExecutions, 0)
	if err := c.Err(); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, nil, request.MaxShortName)
	if err != nil {
		return nil, err
	}
	if n.Qualifier != "" {
		return nil, request.Invalid("This operation is permitted on Lambda functions only. Aliases and versions do not support this operation. " +
			"Please specify either a function name or an unqualified function ARN.")
	}
	if err := s.engine.ReserveExecutions(ctx, n.Function, in.ReservedConcurrentExecutions); err != nil {
		return nil, err
	}
	return &Concurrency{ReservedConcurrentExecutions: in.ReservedConcurrentExecutions}, nil
}

// getFunctionConcurrency answers GetFunctionConcurrency.
func (s *Service) getFunctionConcurrency(ctx context.Context, call *api.Call, in *NameInput) (*Concurrency, error) {
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	info, err := s.engine.FunctionInfo(ctx, fn, "")
	return &Concurrency{ReservedConcurrentExecutions: info.Reserved}, err
}

// deleteFunctionConcurrency answers DeleteFunctionConcurrency.
func (s *Service) deleteFunctionConcurrency(ctx context.Context, call *api.Call, in *NameInput) (*Empty, error) {
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.ReserveExecutions(ctx, fn, nil)
}

// getFunctionCodeSigningConfig answers GetFunctionCodeSigningConfig: no function has one.
func (s *Service) getFunctionCodeSigningConfig(ctx context.Context, call *api.Call, in *NameInput) (*GetFunctionCodeSigningConfigOutput, error) {
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	if _, err := s.engine.FunctionInfo(ctx, fn, ""); err != nil {
		return nil, err
	}
	return &GetFunctionCodeSigningConfigOutput{}, nil
}

// getAccountSettings answers GetAccountSettings.
func (s *Service) getAccountSettings(_ context.Context, call *api.Call, _ *GetAccountSettingsInput) (*GetAccountSettingsOutput, error) {
	used := s.engine.FunctionUsage(call.Account, call.Region)
	return &GetAccountSettingsOutput{
		AccountLimit: &AccountLimit{
			TotalCodeSize: int(s.Limits.CodeBytes), CodeSizeUnzipped: bundle.MaxUnzipped, CodeSizeZipped: maxZip,
			ConcurrentExecutions: s.Limits.Executions, UnreservedConcurrentExecutions: s.Limits.Executions - used.Reserved,
		},
		AccountUsage: &AccountUsage{TotalCodeSize: int(used.CodeBytes), FunctionCount: used.Functions},
	}, nil
}

// parseTagged parses the ARN of a tagged resource: a function, or an event-source mapping.
func (s *Service) parseTagged(ctx context.Context, call *api.Call, text string) (arn.ARN, error) {
	var c request.Constraints
	c.Length("resource", &text, 1, request.MaxLongName)
	c.Pattern("resource", &text, taggablePattern)
	if err := c.Err(); err != nil {
		return arn.ARN{}, err
	}
	a, err := arn.Parse(text)
	if err != nil {
		return arn.ARN{}, request.Invalid("%s is no ARN", request.Shorten(text))
	}
	if mapping.Is(a) {
		return a, request.Owned(call, a)
	}
	if strings.HasPrefix(a.Resource, "capacity-provider:") {
		return arn.ARN{}, fault.Newf(fault.ResourceNotFound, "Capacity provider not found: %s", text)
	}
	_, qualifier, ok := a.SplitFunction()
	if !ok {
		return arn.ARN{}, request.Invalid("Only functions and event source mappings have tags, not %s", request.Shorten(text))
	}
	if qualifier != "" {
		return arn.ARN{}, request.Invalid("Tags on function aliases and versions are not supported. Please specify a function ARN.")
	}
	n, err := s.parse(ctx, call, text, nil, request.MaxLongName)
	return n.Function, err
}

// tagResource answers TagResource.
func (s *Service) tagResource(ctx context.Context, call *api.Call, in *TagResourceInput) (*Empty, error) {
	fn, err := s.parseTagged(ctx, call, in.Resource)
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, request.Invalid("An error occurred and the request cannot be processed.")
	}
	if err := request.CheckTags(in.Tags); err != nil {
		return nil, err
	}
	if mapping.Is(fn) {
		return nil, s.engine.TagMapping(ctx, fn, in.Tags, nil)
	}
	return nil, s.engine.TagFunction(ctx, fn, in.Tags, s.NewRevision())
}

// untagResource answers UntagResource.
func (s *Service) untagResource(ctx context.Context, call *api.Call, in *UntagResourceInput) (*Empty, error) {
	fn, err := s.parseTagged(ctx, call, in.Resource)
	if err != nil {
		return nil, err
	}
	if mapping.Is(fn) {
		return nil, s.engine.TagMapping(ctx, fn, nil, in.TagKeys)
	}
	return nil, s.engine.UntagFunction(ctx, fn, in.TagKeys, s.NewRevision())
}

// listTags answers ListTags.
func (s *Service) listTags(ctx context.Context, call *api.Call, in *ListTagsInput) (*ListTagsOutput, error) {
	fn, err := s.parseTagged(ctx, call, in.Resource)
	if err != nil {
		return nil, err
	}
	tags, err := s.tags(ctx, fn)
	if tags == nil {
		tags = map[string]string{}
	}
	return &ListTagsOutput{Tags: tags}, err
}

func (s *Service) tags(ctx context.Context, a arn.ARN) (map[string]string, error) {
	if mapping.Is(a) {
		m, err := s.engine.Mapping(ctx, a)
		if fault.KindOf(err) == fault.ResourceNotFound {
			err = mapping.ErrUntaggable.With(a)
		}
		return m.Tags, err
	}
	return s.engine.FunctionTags(ctx, a)
}
