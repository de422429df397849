package lambda

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
)

// parse is request.Read, but fails with AccessDenied for another account's function whose
// policy does not allow the operation.
func (s *Service) parse(ctx context.Context, call *api.Call, text string, qualifier *string, limit int) (request.Named, error) {
	n, err := request.Read(call, text, qualifier, limit)
	if err != nil {
		return request.Named{}, err
	}
	return n, s.admit(ctx, call, n.ARN())
}

// parseWhole is parse for operations on a function as a whole, whose name must have no
// qualifier.
func (s *Service) parseWhole(ctx context.Context, call *api.Call, text string) (arn.ARN, error) {
	n, err := s.parse(ctx, call, text, nil, request.MaxShortName)
	if err == nil && n.Qualifier != "" {
		return arn.ARN{}, request.Invalid("This operation does not support versioned or aliased function names: %s", request.Shorten(text))
	}
	return n.Function, err
}

// parseNew is parseWhole for a new function, whose name may be MaxName characters long.
func (s *Service) parseNew(ctx context.Context, call *api.Call, text string) (arn.ARN, error) {
	if err := request.CheckNew(text); err != nil {
		return arn.ARN{}, err
	}
	fn, err := s.parseWhole(ctx, call, text)
	if err != nil {
		return arn.ARN{}, err
	}
	var c request.Constraints
	name := fn.FunctionName()
	c.Length("functionName", &name, 1, request.MaxName)
	if err := c.Err(); err != nil {
		return arn.ARN{}, request.Invalid("%s", err)
	}
	return fn, nil
}

// admit refuses operations of another account that the function's policy does not allow. It
// fails with AccessDenied.
func (s *Service) admit(ctx context.Context, call *api.Call, fn arn.ARN) error {
	err := request.Owned(call, fn)
	if err != nil && request.Shared(call.Operation) && s.engine.AdmitsCaller(ctx, fn, call.Account, request.ActionOf(call.Operation), call.RemoteAddr) {
		return nil
	}
	return err
}
