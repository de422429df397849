package cloudformation

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/stack"
)

// SetStackPolicyInput is the request of SetStackPolicy.
type SetStackPolicyInput struct {
	StackName                       string `wire:"required"`
	StackPolicyBody, StackPolicyURL *string
}

// SetStackPolicyOutput is the empty answer of SetStackPolicy.
type SetStackPolicyOutput struct{}

// GetStackPolicyInput is the request of GetStackPolicy.
type GetStackPolicyInput struct {
	StackName string `wire:"required"`
}

// GetStackPolicyOutput is the answer of GetStackPolicy.
type GetStackPolicyOutput struct{ StackPolicyBody string }

// policy reads the stack policy of a request; empty: there is none.
func (s *Service) policy(ctx context.Context, body, url *string) (string, error) {
	var text string
	switch {
	case body != nil && url != nil:
		return "", invalid("You cannot specify both StackPolicyURL and StackPolicyBody")
	case body == nil && url == nil:
		return "", nil
	case url != nil:
		fetched, err := s.fetch(ctx, *url, "StackPolicyURL", stack.MaxPolicy)
		if err != nil {
			return "", err
		}
		text = string(fetched)
	default:
		text = *body
	}
	if _, err := stack.ParsePolicy(text); err != nil {
		return "", err
	}
	return text, nil
}

func (s *Service) setStackPolicy(ctx context.Context, call *api.Call, in *SetStackPolicyInput) (*SetStackPolicyOutput, error) {
	text, err := s.policy(ctx, in.StackPolicyBody, in.StackPolicyURL)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, invalid("You must specify either StackPolicyURL or StackPolicyBody")
	}
	return nil, bracketed(s.Engine.SetPolicy(ctx, call.Account, call.Region, in.StackName, text), in.StackName)
}

func (s *Service) getStackPolicy(_ context.Context, call *api.Call, in *GetStackPolicyInput) (*GetStackPolicyOutput, error) {
	v, err := s.Engine.Get(call.Account, call.Region, in.StackName)
	if err != nil {
		return nil, bracketed(err, in.StackName)
	}
	return &GetStackPolicyOutput{v.Policy}, nil
}
