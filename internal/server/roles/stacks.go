package roles

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
)

// Acting is who a service is in a role that it assumes for a resource, with invoke.ErrRole for
// one that it may not. Where nobody asks for permissions it may be any: nil is one that is not there.
func (s *Service) Acting(source arn.ARN, name string) (*caller.Caller, error) {
	role, err := s.assume(authorize.ServiceCaller(s.Principal), source, name)
	if role == nil {
		return nil, err
	}
	return sessionOf(role, s.Session), nil
}
