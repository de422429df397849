package identities

import (
	"context"
	"slices"
	"strconv"

	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/server/deploying/holder"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/stack/resource"
)

const defaultSession = 3600 // seconds

func sessionOf(properties map[string]any) (*int, error) {
	value, ok := properties["MaxSessionDuration"]
	if !ok {
		n := defaultSession
		return &n, nil
	}
	n, err := strconv.Atoi(step.Text(value))
	return &n, err
}

func createRole(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	session, err := sessionOf(properties)
	if err != nil {
		return step.Made{}, &step.Error{Text: "MaxSessionDuration is no number", Code: "InvalidRequest"}
	}
	out, err := step.Ask[iam.RoleOutput](ctx, w, "iam", "CreateRole", w.Region, &iam.CreateRoleInput{
		Path: step.Optional(properties["Path"]), RoleName: &name, AssumeRolePolicyDocument: step.Optional(properties["AssumeRolePolicyDocument"]),
		Description: step.Optional(properties["Description"]), MaxSessionDuration: session,
		PermissionsBoundary: step.Optional(properties["PermissionsBoundary"]), Tags: iamTags(step.Tags(properties["Tags"])),
	})
	if step.Exists(err) {
		found, other := step.Ask[iam.RoleOutput](ctx, w, "iam", "GetRole", w.Region, &iam.RoleInput{RoleName: &name})
		if other != nil {
			return step.Made{}, other
		}
		if !w.OwnSince(found.Role.CreateDate) {
			return step.Made{}, w.Taken(name)
		}
		out, err = found, nil
	}
	if err != nil {
		return step.Made{}, err
	}
	is := step.Made{Physical: name, Attributes: map[string]any{"Arn": out.Role.Arn, "RoleId": out.Role.RoleId}}
	return is, equip(ctx, w, holder.Holder{Kind: holder.Role, Name: name}, nil, properties)
}

func updateRole(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	if before, after := was["AssumeRolePolicyDocument"], now["AssumeRolePolicyDocument"]; !resource.Same(before, after) {
		if err := change(ctx, w, "UpdateAssumeRolePolicy", &iam.UpdateAssumeRolePolicyInput{RoleName: &name, PolicyDocument: step.Optional(after)}); err != nil {
			return is, err
		}
	}
	if !resource.Same(was["Description"], now["Description"]) || !resource.Same(was["MaxSessionDuration"], now["MaxSessionDuration"]) {
		session, err := sessionOf(now)
		if err != nil {
			return is, &step.Error{Text: "MaxSessionDuration is no number", Code: "InvalidRequest"}
		}
		description := step.Text(now["Description"])
		if err := change(ctx, w, "UpdateRole", &iam.UpdateRoleInput{RoleName: &name, Description: &description, MaxSessionDuration: session}); err != nil {
			return is, err
		}
	}
	h := holder.Holder{Kind: holder.Role, Name: name}
	if err := bound(ctx, w, h, was["PermissionsBoundary"], now["PermissionsBoundary"]); err != nil {
		return is, err
	}
	set, gone := step.Retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := change(ctx, w, "UntagRole", &iam.UntagRoleInput{RoleName: &name, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := change(ctx, w, "TagRole", &iam.TagRoleInput{RoleName: &name, Tags: iamTags(set)}); err != nil {
			return is, err
		}
	}
	return is, reequip(ctx, w, h)
}

func deleteRole(ctx context.Context, w *step.Work) error {
	name := w.Target.Physical
	if err := disarm(ctx, w, holder.Holder{Kind: holder.Role, Name: name}); err != nil {
		return err
	}
	return step.UnlessGone(change(ctx, w, "DeleteRole", &iam.RoleInput{RoleName: &name}))
}

func createGroup(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := step.Ask[iam.GroupOutput](ctx, w, "iam", "CreateGroup", w.Region, &iam.CreateGroupInput{GroupName: &name, Path: step.Optional(properties["Path"])})
	var group *iam.Group
	switch {
	case step.Exists(err):
		found, other := step.Ask[iam.GetGroupOutput](ctx, w, "iam", "GetGroup", w.Region, &iam.GroupListInput{GroupName: &name})
		if other != nil {
			return step.Made{}, other
		}
		if group = found.Group; !w.OwnSince(group.CreateDate) {
			return step.Made{}, w.Taken(name)
		}
	case err != nil:
		return step.Made{}, err
	default:
		group = out.Group
	}
	return step.Made{Physical: name, Attributes: map[string]any{"Arn": group.Arn}}, equip(ctx, w, holder.Holder{Kind: holder.Group, Name: name}, nil, properties)
}

// pathOf is where something is by its properties.
func pathOf(properties map[string]any) string {
	if path, ok := properties["Path"]; ok {
		return step.Text(path)
	}
	return "/"
}

func updateGroup(ctx context.Context, w *step.Work) (step.Made, error) {
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := step.Made{Physical: name, Attributes: w.Target.Attributes}
	if path := pathOf(now); path != pathOf(was) {
		if err := change(ctx, w, "UpdateGroup", &iam.UpdateGroupInput{GroupName: &name, NewPath: &path}); err != nil {
			return is, err
		}
		found, err := step.Ask[iam.GetGroupOutput](ctx, w, "iam", "GetGroup", w.Region, &iam.GroupListInput{GroupName: &name})
		if err != nil {
			return is, err
		}
		is.Attributes = map[string]any{"Arn": found.Group.Arn}
	}
	return is, reequip(ctx, w, holder.Holder{Kind: holder.Group, Name: name})
}

func deleteGroup(ctx context.Context, w *step.Work) error {
	name := w.Target.Physical
	if err := disarm(ctx, w, holder.Holder{Kind: holder.Group, Name: name}); err != nil {
		return err
	}
	return step.UnlessGone(change(ctx, w, "DeleteGroup", &iam.GroupInput{GroupName: &name}))
}

// join puts a user into the groups that properties have, and out of what only the former have.
func join(ctx context.Context, w *step.Work, user string, was, now map[string]any) error {
	had, has := step.List(was["Groups"]), step.List(now["Groups"])
	for _, group := range has {
		if !slices.Contains(had, group) {
			if err := change(ctx, w, "AddUserToGroup", &iam.MemberInput{GroupName: &group, UserName: &user}); err != nil {
				return err
			}
		}
	}
	for _, group := range had {
		if !slices.Contains(has, group) {
			if err := step.UnlessGone(change(ctx, w, "RemoveUserFromGroup", &iam.MemberInput{GroupName: &group, UserName: &user})); err != nil {
				return err
			}
		}
	}
	return nil
}

func createUser(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := step.Ask[iam.UserOutput](ctx, w, "iam", "CreateUser", w.Region, &iam.CreateUserInput{
		Path: step.Optional(properties["Path"]), UserName: &name, PermissionsBoundary: step.Optional(properties["PermissionsBoundary"]),
		Tags: iamTags(step.Tags(properties["Tags"])),
	})
	if step.Exists(err) {
		found, other := step.Ask[iam.UserOutput](ctx, w, "iam", "GetUser", w.Region, &iam.MaybeUserInput{UserName: &name})
		if other != nil {
			return step.Made{}, other
		}
		if !w.OwnSince(found.User.CreateDate) {
			return step.Made{}, w.Taken(name)
		}
		out, err = found, nil
	}
	if err != nil {
		return step.Made{}, err
	}
	is := step.Made{Physical: name, Attributes: map[string]any{"Arn": out.User.Arn}}
	if err := equip(ctx, w, holder.Holder{Kind: holder.User, Name: name}, nil, properties); err != nil {
		return is, err
	}
	return is, join(ctx, w, name, nil, properties)
}

func updateUser(ctx context.Context, w *step.Work) (step.Made, error) {
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := step.Made{Physical: name, Attributes: w.Target.Attributes}
	if path := pathOf(now); path != pathOf(was) {
		if err := change(ctx, w, "UpdateUser", &iam.UpdateUserInput{UserName: &name, NewPath: &path}); err != nil {
			return is, err
		}
		found, err := step.Ask[iam.UserOutput](ctx, w, "iam", "GetUser", w.Region, &iam.MaybeUserInput{UserName: &name})
		if err != nil {
			return is, err
		}
		is.Attributes = map[string]any{"Arn": found.User.Arn}
	}
	h := holder.Holder{Kind: holder.User, Name: name}
	if err := bound(ctx, w, h, was["PermissionsBoundary"], now["PermissionsBoundary"]); err != nil {
		return is, err
	}
	set, gone := step.Retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := change(ctx, w, "UntagUser", &iam.UntagUserInput{UserName: &name, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := change(ctx, w, "TagUser", &iam.TagUserInput{UserName: &name, Tags: iamTags(set)}); err != nil {
			return is, err
		}
	}
	if err := reequip(ctx, w, h); err != nil {
		return is, err
	}
	for _, was := range w.Earlier() {
		if err := join(ctx, w, name, was, now); err != nil {
			return is, err
		}
	}
	return is, nil
}

func deleteUser(ctx context.Context, w *step.Work) error {
	name := w.Target.Physical
	for _, was := range append(w.Earlier(), w.Target.Properties) {
		if err := join(ctx, w, name, was, nil); err != nil {
			return err
		}
	}
	if err := disarm(ctx, w, holder.Holder{Kind: holder.User, Name: name}); err != nil {
		return err
	}
	return step.UnlessGone(change(ctx, w, "DeleteUser", &iam.UserInput{UserName: &name}))
}
