package iam

import (
	"context"
	"crypto/sha256"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

func (s *Service) users() []api.Operation {
	return []api.Operation{
		api.Op("CreateUser", s.createUser),
		api.Op("GetUser", s.getUser),
		api.Op("UpdateUser", s.updateUser),
		api.Op("DeleteUser", s.deleteUser),
		api.Op("ListUsers", s.listUsers),
		api.Op("TagUser", s.tagUser),
		api.Op("UntagUser", s.untagUser),
		api.Op("ListUserTags", s.listUserTags),
		api.Op("CreateAccessKey", s.createAccessKey),
		api.Op("ListAccessKeys", s.listAccessKeys),
		api.Op("UpdateAccessKey", s.updateAccessKey),
		api.Op("DeleteAccessKey", s.deleteAccessKey),
		api.Op("GetAccessKeyLastUsed", s.getAccessKeyLastUsed),
	}
}

func shownBoundary(e *iam.Entity) *AttachedBoundary {
	if e.Boundary == "" {
		return nil
	}
	return &AttachedBoundary{"PermissionsBoundaryPolicy", e.Boundary}
}

func shownUser(e *iam.Entity) *User {
	u := listedUser(e)
	u.PermissionsBoundary = shownBoundary(e)
	if len(e.Tags) > 0 {
		u.Tags = entity.ShownTags(e.Tags)
	}
	return &u
}

func listedUser(e *iam.Entity) User {
	return User{Path: e.Path, UserName: e.Name, UserId: e.ID, Arn: e.ARN(), CreateDate: api.TimeOf(e.Created)}
}

func (s *Service) createUser(_ context.Context, call *api.Call, in *CreateUserInput) (*UserOutput, error) {
	if err := checkBoundary(in.PermissionsBoundary); err != nil {
		return nil, err
	}
	tags, err := entity.ReadTags(in.Tags)
	if err != nil {
		return nil, err
	}
	id := iam.NewID(iam.PrefixUser, call.Account, identity.NewRandom())
	e, err := s.entities.Create(call.Account, &iam.Entity{Kind: iam.User, Path: entity.PathOf(in.Path), Name: *in.UserName, ID: id, Tags: tags, Boundary: api.Deref(in.PermissionsBoundary)})
	if err != nil {
		return nil, err
	}
	return &UserOutput{shownUser(e)}, nil
}

// userName is the user's name in a request, or, if absent, that of the caller.
func (s *Service) userName(call *api.Call, name *string) (string, error) {
	if name != nil {
		return *name, nil
	}
	if c := call.Caller; c.Kind == caller.User {
		return c.Name, nil
	}
	return "", check.Invalid("Must specify userName when calling with non-User credentials")
}

func (s *Service) getUser(_ context.Context, call *api.Call, in *MaybeUserInput) (*UserOutput, error) {
	if c := call.Caller; in.UserName == nil && c.Kind == caller.Root {
		return &UserOutput{&User{Path: "/", UserName: "root", UserId: call.Account, Arn: c.ARN, CreateDate: api.TimeOf(call.Time.Truncate(time.Second))}}, nil
	}
	name, err := s.userName(call, in.UserName)
	if err != nil {
		return nil, err
	}
	e, err := s.entities.Find(call.Account, iam.User, name)
	if err != nil {
		return nil, err
	}
	return &UserOutput{shownUser(e)}, nil
}

func (s *Service) updateUser(_ context.Context, call *api.Call, in *UpdateUserInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error {
		return a.Rename(iam.User, *in.UserName, api.Deref(in.NewUserName), api.Deref(in.NewPath))
	})
}

func (s *Service) deleteUser(_ context.Context, call *api.Call, in *UserInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Delete(iam.User, *in.UserName) })
}

func (s *Service) listUsers(_ context.Context, call *api.Call, in *ListInput) (*ListUsersOutput, error) {
	all, err := s.entities.List(call, iam.User, in.PathPrefix)
	if err != nil {
		return nil, err
	}
	cut, truncated, next, err := check.Page("users", all, entity.NameOf, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	out := &ListUsersOutput{Users: make([]User, 0, len(cut)), IsTruncated: truncated, Marker: next}
	for _, e := range cut {
		out.Users = append(out.Users, listedUser(e))
	}
	return out, nil
}

func (s *Service) tagUser(_ context.Context, call *api.Call, in *TagUserInput) (*Empty, error) {
	return s.entities.Tag(call, iam.User, *in.UserName, in.Tags)
}

func (s *Service) untagUser(_ context.Context, call *api.Call, in *UntagUserInput) (*Empty, error) {
	return s.entities.Untag(call, iam.User, *in.UserName, in.TagKeys)
}

func (s *Service) listUserTags(_ context.Context, call *api.Call, in *UserListInput) (*TagsOutput, error) {
	return s.entities.Tags(call, iam.User, *in.UserName, in.Marker, in.MaxItems)
}

const active, inactive = "Active", "Inactive"

func status(k *iam.AccessKey) string {
	if k.Active {
		return active
	}
	return inactive
}

// randomOf is the random part of an id; for a call with Once it is derived from that.
func randomOf(call *api.Call) iam.Random {
	if call.Once == "" {
		return identity.NewRandom()
	}
	sum := sha256.Sum256([]byte("iam\x00" + call.Account + "\x00" + call.Once))
	return iam.Random(sum[:len(iam.Random{})])
}

func (s *Service) createAccessKey(_ context.Context, call *api.Call, in *MaybeUserInput) (*CreateAccessKeyOutput, error) {
	name, err := s.userName(call, in.UserName)
	if err != nil {
		return nil, err
	}
	id, secret := iam.NewID(iam.PrefixKey, call.Account, randomOf(call)), identity.NewSecret()
	sealed, err := s.engine.Seal(id, secret)
	if err != nil {
		return nil, err
	}
	out := &AccessKey{UserName: name, AccessKeyId: id, Status: active, SecretAccessKey: string(secret)}
	err = s.engine.Run(call.Account, func(a *iam.Account, now time.Time) error {
		if call.Once != "" { // a retry: no client has received the secret of the first attempt
			if k, ok := a.Renew(name, id, sealed); ok {
				out.CreateDate, out.Status = api.TimeOf(k.Created), status(k)
				return nil
			}
		}
		now = now.Truncate(time.Second)
		out.CreateDate = api.TimeOf(now)
		return a.CreateKey(name, &iam.AccessKey{ID: id, Active: true, Created: now, Secret: sealed})
	})
	if err != nil {
		return nil, err
	}
	return &CreateAccessKeyOutput{out}, nil
}

func (s *Service) listAccessKeys(_ context.Context, call *api.Call, in *MaybeUserListInput) (*ListAccessKeysOutput, error) {
	name, err := s.userName(call, in.UserName)
	if err != nil {
		return nil, err
	}
	out := &ListAccessKeysOutput{AccessKeyMetadata: []AccessKeyMetadata{}}
	err = s.engine.Read(call.Account, func(a *iam.Account) error {
		u, err := a.Find(iam.User, name)
		if err != nil {
			return err
		}
		for _, k := range a.Keys(u) {
			out.AccessKeyMetadata = append(out.AccessKeyMetadata, AccessKeyMetadata{u.Name, k.ID, status(k), api.TimeOf(k.Created)})
		}
		return nil
	})
	return out, err
}

func (s *Service) updateAccessKey(_ context.Context, call *api.Call, in *UpdateAccessKeyInput) (*Empty, error) {
	name, err := s.userName(call, in.UserName)
	if err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.SetKey(name, *in.AccessKeyId, *in.Status == active) })
}

func (s *Service) deleteAccessKey(_ context.Context, call *api.Call, in *AccessKeyInput) (*Empty, error) {
	name, err := s.userName(call, in.UserName)
	if err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.DeleteKey(name, *in.AccessKeyId) })
}

// getAccessKeyLastUsed answers GetAccessKeyLastUsed. A key of another account is unknown.
func (s *Service) getAccessKeyLastUsed(_ context.Context, call *api.Call, in *AccessKeyIDInput) (*GetAccessKeyLastUsedOutput, error) {
	out := &GetAccessKeyLastUsedOutput{AccessKeyLastUsed: &AccessKeyLastUsed{ServiceName: "N/A", Region: "N/A"}}
	err := s.engine.Read(call.Account, func(a *iam.Account) error {
		k := a.Key(*in.AccessKeyId)
		if k == nil {
			return fault.Newf(fault.AccessDenied, "User: %s is not authorized to perform iam:GetAccessKeyLastUsed on resource: access key %s", call.Principal(), *in.AccessKeyId)
		}
		if u := a.ByID(k.User); u != nil {
			out.UserName = u.Name
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if use, ok := s.engine.LastUse(*in.AccessKeyId); ok {
		at := api.TimeOf(use.At)
		out.AccessKeyLastUsed = &AccessKeyLastUsed{&at, use.Service, use.Region}
	}
	return out, nil
}
