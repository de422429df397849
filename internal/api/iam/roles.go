package iam

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

func (s *Service) roles() []api.Operation {
	return []api.Operation{
		api.Op("CreateRole", s.createRole),
		api.Op("GetRole", s.getRole),
		api.Op("UpdateRole", s.updateRole).WithResult(),
		api.Op("UpdateRoleDescription", s.updateRoleDescription),
		api.Op("UpdateAssumeRolePolicy", s.updateAssumeRolePolicy),
		api.Op("DeleteRole", s.deleteRole),
		api.Op("ListRoles", s.listRoles),
		api.Op("TagRole", s.tagRole),
		api.Op("UntagRole", s.untagRole),
		api.Op("ListRoleTags", s.listRoleTags),
	}
}

const defaultSession = 3_600 // of a role, in seconds

func (s *Service) shownRole(e *iam.Entity) *Role {
	r := s.listedRole(e)
	r.PermissionsBoundary = shownBoundary(e)
	if len(e.Tags) > 0 {
		r.Tags = entity.ShownTags(e.Tags)
	}
	r.RoleLastUsed = &RoleLastUsed{}
	if use, ok := s.engine.LastUse(e.ID); ok {
		at := api.TimeOf(use.At)
		r.RoleLastUsed.LastUsedDate, r.RoleLastUsed.Region = &at, use.Region
	}
	return &r
}

func (s *Service) listedRole(e *iam.Entity) Role {
	most := e.Role.MaxSession
	return Role{
		Path: e.Path, RoleName: e.Name, RoleId: e.ID, Arn: e.ARN(), CreateDate: api.TimeOf(e.Created),
		AssumeRolePolicyDocument: encoded(s.engine.ShowPolicy(e.Role.Trust)), Description: e.Description, MaxSessionDuration: &most,
	}
}

// checkDocument refuses an invalid policy document.
func checkDocument(form iam.Form, document string) error {
	if err := iam.CheckDocument(form, document); err != nil {
		return err
	}
	return identity.CheckPolicy(form, document)
}

// readTrust validates a trust policy, and replaces its principals by their unique ids.
func (s *Service) readTrust(document string) (bound string, err error) {
	if err := checkDocument(iam.Trust, document); err != nil {
		return "", err
	}
	if err := iam.CheckTrustSize(document); err != nil {
		return "", err
	}
	bound, unknown := s.engine.BindPolicy(document)
	if unknown != "" {
		return "", fault.Newf(fault.MalformedPolicyDocument, `Invalid principal in policy: "AWS":"%s"`, unknown)
	}
	return bound, nil
}

func (s *Service) createRole(_ context.Context, call *api.Call, in *CreateRoleInput) (*RoleOutput, error) {
	if err := checkBoundary(in.PermissionsBoundary); err != nil {
		return nil, err
	}
	tags, err := entity.ReadTags(in.Tags)
	if err != nil {
		return nil, err
	}
	bound, err := s.readTrust(*in.AssumeRolePolicyDocument)
	if err != nil {
		return nil, err
	}
	part := &iam.RolePart{Trust: bound, MaxSession: defaultSession}
	if in.MaxSessionDuration != nil {
		part.MaxSession = *in.MaxSessionDuration
	}
	id := iam.NewID(iam.PrefixRole, call.Account, identity.NewRandom())
	e, err := s.entities.Create(call.Account, &iam.Entity{
		Kind: iam.Role, Path: entity.PathOf(in.Path), Name: *in.RoleName, ID: id, Description: api.Deref(in.Description), Tags: tags,
		Boundary: api.Deref(in.PermissionsBoundary), Role: part,
	})
	if err != nil {
		return nil, err
	}
	r := s.shownRole(e)
	r.RoleLastUsed = nil // the role is new
	return &RoleOutput{r}, nil
}

func (s *Service) getRole(_ context.Context, call *api.Call, in *RoleInput) (*RoleOutput, error) {
	e, err := s.entities.Find(call.Account, iam.Role, *in.RoleName)
	if err != nil {
		return nil, err
	}
	return &RoleOutput{s.shownRole(e)}, nil
}

func (s *Service) updateRole(_ context.Context, call *api.Call, in *UpdateRoleInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error {
		return a.Describe(*in.RoleName, in.Description, in.MaxSessionDuration)
	})
}

func (s *Service) updateRoleDescription(ctx context.Context, call *api.Call, in *UpdateRoleDescriptionInput) (*RoleOutput, error) {
	if _, err := s.updateRole(ctx, call, &UpdateRoleInput{in.RoleName, in.Description, nil}); err != nil {
		return nil, err
	}
	return s.getRole(ctx, call, &RoleInput{in.RoleName})
}

func (s *Service) updateAssumeRolePolicy(_ context.Context, call *api.Call, in *UpdateAssumeRolePolicyInput) (*Empty, error) {
	bound, err := s.readTrust(*in.PolicyDocument)
	if err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.SetTrust(*in.RoleName, bound) })
}

func (s *Service) deleteRole(_ context.Context, call *api.Call, in *RoleInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Role, *in.RoleName) })
}

func (s *Service) listRoles(_ context.Context, call *api.Call, in *ListInput) (*ListRolesOutput, error) {
	all, err := s.entities.List(call, iam.Role, in.PathPrefix)
	if err != nil {
		return nil, err
	}
	cut, truncated, next, err := check.Page("roles", all, entity.NameOf, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	out := &ListRolesOutput{Roles: make([]Role, 0, len(cut)), IsTruncated: truncated, Marker: next}
	for _, e := range cut {
		out.Roles = append(out.Roles, s.listedRole(e))
	}
	return out, nil
}

func (s *Service) tagRole(_ context.Context, call *api.Call, in *TagRoleInput) (*Empty, error) {
	return s.entities.Tag(call, iam.Role, *in.RoleName, in.Tags)
}

func (s *Service) untagRole(_ context.Context, call *api.Call, in *UntagRoleInput) (*Empty, error) {
	return s.entities.Untag(call, iam.Role, *in.RoleName, in.TagKeys)
}

func (s *Service) listRoleTags(_ context.Context, call *api.Call, in *RoleListInput) (*TagsOutput, error) {
	return s.entities.Tags(call, iam.Role, *in.RoleName, in.Marker, in.MaxItems)
}
