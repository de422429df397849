package deploying

import (
	"context"
	"slices"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/server/deploying/holder"
	"godwit.dev/godwit/internal/stack/resource"
)

// ownSince reports that something which was made at a time, known to the second, may be what
// this very step made before it was interrupted.
func (w *work) ownSince(at api.Time) bool {
	second := time.Second.Milliseconds()
	return w.Again && int64(at)/second >= w.Began/second
}

const defaultSession = 3600 // seconds

func sessionOf(properties map[string]any) (*int, error) {
	value, ok := properties["MaxSessionDuration"]
	if !ok {
		n := defaultSession
		return &n, nil
	}
	n, err := strconv.Atoi(text(value))
	return &n, err
}

func createRole(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	session, err := sessionOf(properties)
	if err != nil {
		return made{}, &handlerError{"MaxSessionDuration is no number", "InvalidRequest"}
	}
	out, err := ask[iam.RoleOutput](ctx, w, "iam", "CreateRole", w.Region, &iam.CreateRoleInput{
		Path: optional(properties["Path"]), RoleName: &name, AssumeRolePolicyDocument: optional(properties["AssumeRolePolicyDocument"]),
		Description: optional(properties["Description"]), MaxSessionDuration: session,
		PermissionsBoundary: optional(properties["PermissionsBoundary"]), Tags: iamTags(tags(properties["Tags"])),
	})
	if exists(err) {
		found, other := ask[iam.RoleOutput](ctx, w, "iam", "GetRole", w.Region, &iam.RoleInput{RoleName: &name})
		if other != nil {
			return made{}, other
		}
		if !w.ownSince(found.Role.CreateDate) {
			return made{}, w.taken(name)
		}
		out, err = found, nil
	}
	if err != nil {
		return made{}, err
	}
	is := made{name, map[string]any{"Arn": out.Role.Arn, "RoleId": out.Role.RoleId}}
	return is, w.equip(ctx, holder.Holder{Kind: holder.Role, Name: name}, nil, properties)
}

func updateRole(ctx context.Context, w *work) (made, error) {
	is := made{w.Target.Physical, w.Target.Attributes}
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	if before, after := was["AssumeRolePolicyDocument"], now["AssumeRolePolicyDocument"]; !resource.Same(before, after) {
		if err := w.change(ctx, "UpdateAssumeRolePolicy", &iam.UpdateAssumeRolePolicyInput{RoleName: &name, PolicyDocument: optional(after)}); err != nil {
			return is, err
		}
	}
	if !resource.Same(was["Description"], now["Description"]) || !resource.Same(was["MaxSessionDuration"], now["MaxSessionDuration"]) {
		session, err := sessionOf(now)
		if err != nil {
			return is, &handlerError{"MaxSessionDuration is no number", "InvalidRequest"}
		}
		description := text(now["Description"])
		if err := w.change(ctx, "UpdateRole", &iam.UpdateRoleInput{RoleName: &name, Description: &description, MaxSessionDuration: session}); err != nil {
			return is, err
		}
	}
	h := holder.Holder{Kind: holder.Role, Name: name}
	if err := w.bound(ctx, h, was["PermissionsBoundary"], now["PermissionsBoundary"]); err != nil {
		return is, err
	}
	set, gone := retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := w.change(ctx, "UntagRole", &iam.UntagRoleInput{RoleName: &name, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := w.change(ctx, "TagRole", &iam.TagRoleInput{RoleName: &name, Tags: iamTags(set)}); err != nil {
			return is, err
		}
	}
	return is, w.reequip(ctx, h)
}

func deleteRole(ctx context.Context, w *work) error {
	name := w.Target.Physical
	if err := w.disarm(ctx, holder.Holder{Kind: holder.Role, Name: name}); err != nil {
		return err
	}
	return unlessGone(w.change(ctx, "DeleteRole", &iam.RoleInput{RoleName: &name}))
}

func createGroup(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := ask[iam.GroupOutput](ctx, w, "iam", "CreateGroup", w.Region, &iam.CreateGroupInput{GroupName: &name, Path: optional(properties["Path"])})
	var group *iam.Group
	switch {
	case exists(err):
		found, other := ask[iam.GetGroupOutput](ctx, w, "iam", "GetGroup", w.Region, &iam.GroupListInput{GroupName: &name})
		if other != nil {
			return made{}, other
		}
		if group = found.Group; !w.ownSince(group.CreateDate) {
			return made{}, w.taken(name)
		}
	case err != nil:
		return made{}, err
	default:
		group = out.Group
	}
	return made{name, map[string]any{"Arn": group.Arn}}, w.equip(ctx, holder.Holder{Kind: holder.Group, Name: name}, nil, properties)
}

// pathOf is where something is by its properties.
func pathOf(properties map[string]any) string {
	if path, ok := properties["Path"]; ok {
		return text(path)
	}
	return "/"
}

func updateGroup(ctx context.Context, w *work) (made, error) {
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := made{name, w.Target.Attributes}
	if path := pathOf(now); path != pathOf(was) {
		if err := w.change(ctx, "UpdateGroup", &iam.UpdateGroupInput{GroupName: &name, NewPath: &path}); err != nil {
			return is, err
		}
		found, err := ask[iam.GetGroupOutput](ctx, w, "iam", "GetGroup", w.Region, &iam.GroupListInput{GroupName: &name})
		if err != nil {
			return is, err
		}
		is.attributes = map[string]any{"Arn": found.Group.Arn}
	}
	return is, w.reequip(ctx, holder.Holder{Kind: holder.Group, Name: name})
}

func deleteGroup(ctx context.Context, w *work) error {
	name := w.Target.Physical
	if err := w.disarm(ctx, holder.Holder{Kind: holder.Group, Name: name}); err != nil {
		return err
	}
	return unlessGone(w.change(ctx, "DeleteGroup", &iam.GroupInput{GroupName: &name}))
}

// join puts a user into the groups that properties have, and out of what only the former have.
func (w *work) join(ctx context.Context, user string, was, now map[string]any) error {
	had, has := list(was["Groups"]), list(now["Groups"])
	for _, group := range has {
		if !slices.Contains(had, group) {
			if err := w.change(ctx, "AddUserToGroup", &iam.MemberInput{GroupName: &group, UserName: &user}); err != nil {
				return err
			}
		}
	}
	for _, group := range had {
		if !slices.Contains(has, group) {
			if err := unlessGone(w.change(ctx, "RemoveUserFromGroup", &iam.MemberInput{GroupName: &group, UserName: &user})); err != nil {
				return err
			}
		}
	}
	return nil
}

func createUser(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := ask[iam.UserOutput](ctx, w, "iam", "CreateUser", w.Region, &iam.CreateUserInput{
		Path: optional(properties["Path"]), UserName: &name, PermissionsBoundary: optional(properties["PermissionsBoundary"]),
		Tags: iamTags(tags(properties["Tags"])),
	})
	if exists(err) {
		found, other := ask[iam.UserOutput](ctx, w, "iam", "GetUser", w.Region, &iam.MaybeUserInput{UserName: &name})
		if other != nil {
			return made{}, other
		}
		if !w.ownSince(found.User.CreateDate) {
			return made{}, w.taken(name)
		}
		out, err = found, nil
	}
	if err != nil {
		return made{}, err
	}
	is := made{name, map[string]any{"Arn": out.User.Arn}}
	if err := w.equip(ctx, holder.Holder{Kind: holder.User, Name: name}, nil, properties); err != nil {
		return is, err
	}
	return is, w.join(ctx, name, nil, properties)
}

func updateUser(ctx context.Context, w *work) (made, error) {
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := made{name, w.Target.Attributes}
	if path := pathOf(now); path != pathOf(was) {
		if err := w.change(ctx, "UpdateUser", &iam.UpdateUserInput{UserName: &name, NewPath: &path}); err != nil {
			return is, err
		}
		found, err := ask[iam.UserOutput](ctx, w, "iam", "GetUser", w.Region, &iam.MaybeUserInput{UserName: &name})
		if err != nil {
			return is, err
		}
		is.attributes = map[string]any{"Arn": found.User.Arn}
	}
	h := holder.Holder{Kind: holder.User, Name: name}
	if err := w.bound(ctx, h, was["PermissionsBoundary"], now["PermissionsBoundary"]); err != nil {
		return is, err
	}
	set, gone := retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := w.change(ctx, "UntagUser", &iam.UntagUserInput{UserName: &name, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := w.change(ctx, "TagUser", &iam.TagUserInput{UserName: &name, Tags: iamTags(set)}); err != nil {
			return is, err
		}
	}
	if err := w.reequip(ctx, h); err != nil {
		return is, err
	}
	for _, was := range w.earlier() {
		if err := w.join(ctx, name, was, now); err != nil {
			return is, err
		}
	}
	return is, nil
}

func deleteUser(ctx context.Context, w *work) error {
	name := w.Target.Physical
	for _, was := range append(w.earlier(), w.Target.Properties) {
		if err := w.join(ctx, name, was, nil); err != nil {
			return err
		}
	}
	if err := w.disarm(ctx, holder.Holder{Kind: holder.User, Name: name}); err != nil {
		return err
	}
	return unlessGone(w.change(ctx, "DeleteUser", &iam.UserInput{UserName: &name}))
}
