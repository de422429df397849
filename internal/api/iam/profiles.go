package iam

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

func (s *Service) profiles() []api.Operation {
	return []api.Operation{
		api.Op("CreateInstanceProfile", s.createProfile),
		api.Op("GetInstanceProfile", s.getProfile),
		api.Op("DeleteInstanceProfile", func(_ context.Context, call *api.Call, in *ProfileInput) (*Empty, error) {
			return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Profile, *in.InstanceProfileName) })
		}),
		api.Op("ListInstanceProfiles", func(_ context.Context, call *api.Call, in *ListInput) (*ProfilesOutput, error) {
			return s.listProfiles(call, in, func(a *iam.Account) ([]*iam.Entity, error) { return a.List(iam.Profile, api.Deref(in.PathPrefix)), nil })
		}),
		api.Op("ListInstanceProfilesForRole", func(_ context.Context, call *api.Call, in *RoleListInput) (*ProfilesOutput, error) {
			return s.listProfiles(call, &ListInput{nil, in.Marker, in.MaxItems}, func(a *iam.Account) ([]*iam.Entity, error) {
				r, err := a.Find(iam.Role, *in.RoleName)
				if err != nil {
					return nil, err
				}
				return a.ProfilesOf(r.ID), nil
			})
		}),
		api.Op("AddRoleToInstanceProfile", func(_ context.Context, call *api.Call, in *ProfileRoleInput) (*Empty, error) {
			return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.AddToProfile(*in.InstanceProfileName, *in.RoleName) })
		}),
		api.Op("RemoveRoleFromInstanceProfile", func(_ context.Context, call *api.Call, in *ProfileRoleInput) (*Empty, error) {
			return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error {
				return a.RemoveFromProfile(*in.InstanceProfileName, *in.RoleName)
			})
		}),
		api.Op("TagInstanceProfile", func(_ context.Context, call *api.Call, in *TagProfileInput) (*Empty, error) {
			return s.entities.Tag(call, iam.Profile, *in.InstanceProfileName, in.Tags)
		}),
		api.Op("UntagInstanceProfile", func(_ context.Context, call *api.Call, in *UntagProfileInput) (*Empty, error) {
			return s.entities.Untag(call, iam.Profile, *in.InstanceProfileName, in.TagKeys)
		}),
		api.Op("ListInstanceProfileTags", func(_ context.Context, call *api.Call, in *ProfileListInput) (*TagsOutput, error) {
			return s.entities.Tags(call, iam.Profile, *in.InstanceProfileName, in.Marker, in.MaxItems)
		}),
	}
}

// shownProfile is an instance profile in an answer; role is its role, nil if it has none.
func (s *Service) shownProfile(e, role *iam.Entity) InstanceProfile {
	p := InstanceProfile{Path: e.Path, InstanceProfileName: e.Name, InstanceProfileId: e.ID, Arn: e.ARN(), CreateDate: api.TimeOf(e.Created), Roles: []Role{}}
	if role != nil {
		p.Roles = append(p.Roles, s.listedRole(role))
	}
	if len(e.Tags) > 0 {
		p.Tags = entity.ShownTags(e.Tags)
	}
	return p
}

func (s *Service) createProfile(_ context.Context, call *api.Call, in *CreateInstanceProfileInput) (*ProfileOutput, error) {
	tags, err := entity.ReadTags(in.Tags)
	if err != nil {
		return nil, err
	}
	id := iam.NewID(iam.PrefixProfile, call.Account, identity.NewRandom())
	e, err := s.entities.Create(call.Account, &iam.Entity{Kind: iam.Profile, Path: entity.PathOf(in.Path), Name: *in.InstanceProfileName, ID: id, Tags: tags})
	if err != nil {
		return nil, err
	}
	p := s.shownProfile(e, nil)
	return &ProfileOutput{&p}, nil
}

func (s *Service) getProfile(_ context.Context, call *api.Call, in *ProfileInput) (*ProfileOutput, error) {
	var e, role *iam.Entity
	err := s.engine.Read(call.Account, func(a *iam.Account) (err error) {
		if e, err = a.Find(iam.Profile, *in.InstanceProfileName); err == nil {
			role = a.ByID(e.Profile)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	p := s.shownProfile(e, role)
	return &ProfileOutput{&p}, nil
}

func (s *Service) listProfiles(call *api.Call, in *ListInput, find func(a *iam.Account) ([]*iam.Entity, error)) (*ProfilesOutput, error) {
	var all []*iam.Entity
	roles := map[string]*iam.Entity{}
	err := s.engine.Read(call.Account, func(a *iam.Account) (err error) {
		all, err = find(a)
		for _, p := range all {
			if r := a.ByID(p.Profile); r != nil {
				roles[p.Profile] = r
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	cut, truncated, next, err := check.Page("profiles", all, entity.NameOf, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	out := &ProfilesOutput{InstanceProfiles: make([]InstanceProfile, 0, len(cut)), IsTruncated: truncated, Marker: next}
	for _, p := range cut {
		out.InstanceProfiles = append(out.InstanceProfiles, s.shownProfile(p, roles[p.Profile]))
	}
	return out, nil
}
