package sns

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/topic/protect"
)

// PutDataProtectionPolicyInput is the request of PutDataProtectionPolicy.
type PutDataProtectionPolicyInput struct {
	ResourceArn          string  `wire:"required"`
	DataProtectionPolicy *string `wire:"required"`
}

// PutDataProtectionPolicyOutput is the empty answer of PutDataProtectionPolicy.
type PutDataProtectionPolicyOutput struct{}

// GetDataProtectionPolicyInput is the request of GetDataProtectionPolicy.
type GetDataProtectionPolicyInput struct {
	ResourceArn string `wire:"required"`
}

// GetDataProtectionPolicyOutput is the answer of GetDataProtectionPolicy.
type GetDataProtectionPolicyOutput struct {
	DataProtectionPolicy string
}

// dataProtection parses a policy; nil: there is none.
func dataProtection(text string) (*protect.Policy, error) {
	if text == "" {
		return nil, nil
	}
	return protect.Parse(text)
}

// putDataProtectionPolicy answers PutDataProtectionPolicy. An empty policy removes the
// topic's.
func (s *Service) putDataProtectionPolicy(ctx context.Context, call *api.Call, in *PutDataProtectionPolicyInput) (*PutDataProtectionPolicyOutput, error) {
	t, err := parseTopic(call, "ResourceArn", in.ResourceArn)
	if err != nil {
		return nil, err
	}
	policy, err := dataProtection(api.Deref(in.DataProtectionPolicy))
	if err != nil {
		return nil, err
	}
	return &PutDataProtectionPolicyOutput{}, s.engine.SetDataProtection(ctx, t, policy)
}

// getDataProtectionPolicy answers GetDataProtectionPolicy, with the document as it was put.
func (s *Service) getDataProtectionPolicy(ctx context.Context, call *api.Call, in *GetDataProtectionPolicyInput) (*GetDataProtectionPolicyOutput, error) {
	t, err := parseTopic(call, "ResourceArn", in.ResourceArn)
	if err != nil {
		return nil, err
	}
	text, err := s.engine.DataProtection(ctx, t)
	if err != nil {
		return nil, err
	}
	return &GetDataProtectionPolicyOutput{DataProtectionPolicy: text}, nil
}
