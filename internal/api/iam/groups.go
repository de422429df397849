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

func (s *Service) groups() []api.Operation {
	return []api.Operation{
		api.Op("CreateGroup", s.createGroup),
		api.Op("GetGroup", s.getGroup),
		api.Op("UpdateGroup", s.updateGroup),
		api.Op("DeleteGroup", s.deleteGroup),
		api.Op("ListGroups", s.listGroups),
		api.Op("ListGroupsForUser", s.listGroupsForUser),
		api.Op("AddUserToGroup", s.addUserToGroup),
		api.Op("RemoveUserFromGroup", s.removeUserFromGroup),
	}
}

func shownGroup(e *iam.Entity) Group {
	return Group{Path: e.Path, GroupName: e.Name, GroupId: e.ID, Arn: e.ARN(), CreateDate: api.TimeOf(e.Created)}
}

func (s *Service) createGroup(_ context.Context, call *api.Call, in *CreateGroupInput) (*GroupOutput, error) {
	id := iam.NewID(iam.PrefixGroup, call.Account, identity.NewRandom())
	e, err := s.entities.Create(call.Account, &iam.Entity{Kind: iam.Group, Path: entity.PathOf(in.Path), Name: *in.GroupName, ID: id})
	if err != nil {
		return nil, err
	}
	g := shownGroup(e)
	return &GroupOutput{&g}, nil
}

func (s *Service) getGroup(_ context.Context, call *api.Call, in *GroupListInput) (*GetGroupOutput, error) {
	var g *iam.Entity
	var members []*iam.Entity
	err := s.engine.Read(call.Account, func(a *iam.Account) (err error) {
		if g, err = a.Find(iam.Group, *in.GroupName); err == nil {
			members = a.Members(g.ID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	cut, truncated, next, err := check.Page("members", members, entity.NameOf, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	group := shownGroup(g)
	out := &GetGroupOutput{Group: &group, Users: make([]User, 0, len(cut)), IsTruncated: truncated, Marker: next}
	for _, u := range cut {
		out.Users = append(out.Users, listedUser(u))
	}
	return out, nil
}

func (s *Service) updateGroup(_ context.Context, call *api.Call, in *UpdateGroupInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error {
		return a.Rename(iam.Group, *in.GroupName, api.Deref(in.NewGroupName), api.Deref(in.NewPath))
	})
}

func (s *Service) deleteGroup(_ context.Context, call *api.Call, in *GroupInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Group, *in.GroupName) })
}

func groupsOutput(all []*iam.Entity, marker *string, limit *int) (*GroupsOutput, error) {
	cut, truncated, next, err := check.Page("groups", all, entity.NameOf, marker, limit)
	if err != nil {
		return nil, err
	}
	out := &GroupsOutput{Groups: make([]Group, 0, len(cut)), IsTruncated: truncated, Marker: next}
	for _, e := range cut {
		out.Groups = append(out.Groups, shownGroup(e))
	}
	return out, nil
}

func (s *Service) listGroups(_ context.Context, call *api.Call, in *ListInput) (*GroupsOutput, error) {
	all, err := s.entities.List(call, iam.Group, in.PathPrefix)
	if err != nil {
		return nil, err
	}
	return groupsOutput(all, in.Marker, in.MaxItems)
}

func (s *Service) listGroupsForUser(_ context.Context, call *api.Call, in *UserListInput) (*GroupsOutput, error) {
	var all []*iam.Entity
	err := s.engine.Read(call.Account, func(a *iam.Account) error {
		u, err := a.Find(iam.User, *in.UserName)
		if err == nil {
			all = a.GroupsOf(u)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return groupsOutput(all, in.Marker, in.MaxItems)
}

func (s *Service) addUserToGroup(_ context.Context, call *api.Call, in *MemberInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.AddToGroup(*in.GroupName, *in.UserName) })
}

func (s *Service) removeUserFromGroup(_ context.Context, call *api.Call, in *MemberInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.RemoveFromGroup(*in.GroupName, *in.UserName) })
}
