package drifting

import (
	"context"
	"net/url"
	"slices"

	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/shard/stacks"
)

func unescaped(document string) string {
	if text, err := url.QueryUnescape(document); err == nil {
		return text
	}
	return document
}

func (r *reading) iamTags(tags []iam.Tag) {
	all := map[string]string{}
	for _, t := range tags {
		all[*t.Key] = *t.Value
	}
	r.tagged(all)
}

func (r *reading) boundary(b *iam.AttachedBoundary) {
	delete(r.actual, "PermissionsBoundary")
	if b != nil {
		r.actual["PermissionsBoundary"] = b.PermissionsBoundaryArn
	}
}

// attached sets the managed policies that are attached.
func (r *reading) attached(ctx context.Context, operation string, in func(marker *string) any) error {
	if r.Properties["ManagedPolicyArns"] == nil {
		return nil
	}
	var all []string
	for marker := (*string)(nil); ; {
		page, err := ask[iam.AttachedPoliciesOutput](ctx, r, "iam", operation, r.Region, in(marker))
		if err != nil {
			return err
		}
		for _, p := range page.AttachedPolicies {
			all = append(all, p.PolicyArn)
		}
		if !page.IsTruncated {
			break
		}
		marker = &page.Marker
	}
	r.texts("ManagedPolicyArns", all)
	return nil
}

// inline sets the inline policies that the template has, as they are now. Those of resources
// of their own are none of this one's.
func (r *reading) inline(read func(policy string) (string, error)) error {
	items, _ := r.Properties["Policies"].([]any)
	if items == nil {
		return nil
	}
	now := []any{}
	for _, item := range items {
		object, _ := item.(map[string]any)
		name, _ := object["PolicyName"].(string)
		document, err := read(name)
		if stacks.IsGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		now = append(now, map[string]any{"PolicyName": name, "PolicyDocument": parsed(unescaped(document))})
	}
	r.actual["Policies"] = now
	return nil
}

func (r *reading) ofRole(ctx context.Context, name string) func(policy string) (string, error) {
	return func(policy string) (string, error) {
		out, err := ask[iam.GetRolePolicyOutput](ctx, r, "iam", "GetRolePolicy", r.Region, &iam.RolePolicyInput{RoleName: &name, PolicyName: &policy})
		if err != nil {
			return "", err
		}
		return out.PolicyDocument, nil
	}
}

func (r *reading) ofUser(ctx context.Context, name string) func(policy string) (string, error) {
	return func(policy string) (string, error) {
		out, err := ask[iam.GetUserPolicyOutput](ctx, r, "iam", "GetUserPolicy", r.Region, &iam.UserPolicyInput{UserName: &name, PolicyName: &policy})
		if err != nil {
			return "", err
		}
		return out.PolicyDocument, nil
	}
}

func (r *reading) ofGroup(ctx context.Context, name string) func(policy string) (string, error) {
	return func(policy string) (string, error) {
		out, err := ask[iam.GetGroupPolicyOutput](ctx, r, "iam", "GetGroupPolicy", r.Region, &iam.GroupPolicyInput{GroupName: &name, PolicyName: &policy})
		if err != nil {
			return "", err
		}
		return out.PolicyDocument, nil
	}
}

func role(ctx context.Context, r *reading) error {
	out, err := ask[iam.RoleOutput](ctx, r, "iam", "GetRole", r.Region, &iam.RoleInput{RoleName: &r.Physical})
	if err != nil {
		return err
	}
	r.members(out.Role, "Description", "MaxSessionDuration", "Path")
	r.document("AssumeRolePolicyDocument", unescaped(out.Role.AssumeRolePolicyDocument))
	r.boundary(out.Role.PermissionsBoundary)
	r.iamTags(out.Role.Tags)
	if err := r.attached(ctx, "ListAttachedRolePolicies", func(marker *string) any {
		return &iam.ListAttachedRolePoliciesInput{RoleName: &r.Physical, Marker: marker}
	}); err != nil {
		return err
	}
	return r.inline(r.ofRole(ctx, r.Physical))
}

func user(ctx context.Context, r *reading) error {
	out, err := ask[iam.UserOutput](ctx, r, "iam", "GetUser", r.Region, &iam.MaybeUserInput{UserName: &r.Physical})
	if err != nil {
		return err
	}
	r.members(out.User, "Path")
	r.boundary(out.User.PermissionsBoundary)
	r.iamTags(out.User.Tags)
	if err := r.attached(ctx, "ListAttachedUserPolicies", func(marker *string) any {
		return &iam.ListAttachedUserPoliciesInput{UserName: &r.Physical, Marker: marker}
	}); err != nil {
		return err
	}
	if r.Properties["Groups"] != nil {
		var names []string
		for marker := (*string)(nil); ; {
			page, err := ask[iam.GroupsOutput](ctx, r, "iam", "ListGroupsForUser", r.Region, &iam.UserListInput{UserName: &r.Physical, Marker: marker})
			if err != nil {
				return err
			}
			for i := range page.Groups {
				names = append(names, page.Groups[i].GroupName)
			}
			if !page.IsTruncated {
				break
			}
			marker = &page.Marker
		}
		r.texts("Groups", names)
	}
	return r.inline(r.ofUser(ctx, r.Physical))
}

func group(ctx context.Context, r *reading) error {
	out, err := ask[iam.GetGroupOutput](ctx, r, "iam", "GetGroup", r.Region, &iam.GroupListInput{GroupName: &r.Physical})
	if err != nil {
		return err
	}
	r.members(out.Group, "Path")
	if err := r.attached(ctx, "ListAttachedGroupPolicies", func(marker *string) any {
		return &iam.ListAttachedGroupPoliciesInput{GroupName: &r.Physical, Marker: marker}
	}); err != nil {
		return err
	}
	return r.inline(r.ofGroup(ctx, r.Physical))
}

func inlinePolicy(ctx context.Context, r *reading) error {
	name := r.text("PolicyName")
	var of []func(policy string) (string, error)
	for _, holder := range r.list("Roles") {
		of = append(of, r.ofRole(ctx, holder))
	}
	for _, holder := range r.list("Users") {
		of = append(of, r.ofUser(ctx, holder))
	}
	for _, holder := range r.list("Groups") {
		of = append(of, r.ofGroup(ctx, holder))
	}
	keys := make([]string, len(of))
	next := 0
	return r.policies(keys, func(string) (string, error) {
		next++
		document, err := of[next-1](name)
		return unescaped(document), err
	})
}

func managedPolicy(ctx context.Context, r *reading) error {
	out, err := ask[iam.PolicyOutput](ctx, r, "iam", "GetPolicy", r.Region, &iam.PolicyInput{PolicyArn: &r.Physical})
	if err != nil {
		return err
	}
	version, err := ask[iam.PolicyVersionOutput](ctx, r, "iam", "GetPolicyVersion", r.Region, &iam.PolicyVersionInput{PolicyArn: &r.Physical, VersionId: &out.Policy.DefaultVersionId})
	if err != nil {
		return err
	}
	r.document("PolicyDocument", unescaped(version.PolicyVersion.Document))
	held := map[string][]string{}
	for marker := (*string)(nil); ; {
		page, err := ask[iam.ListEntitiesForPolicyOutput](ctx, r, "iam", "ListEntitiesForPolicy", r.Region, &iam.ListEntitiesForPolicyInput{PolicyArn: &r.Physical, Marker: marker})
		if err != nil {
			return err
		}
		for _, h := range page.PolicyRoles {
			held["Roles"] = append(held["Roles"], h.RoleName)
		}
		for _, h := range page.PolicyUsers {
			held["Users"] = append(held["Users"], h.UserName)
		}
		for _, h := range page.PolicyGroups {
			held["Groups"] = append(held["Groups"], h.GroupName)
		}
		if !page.IsTruncated {
			break
		}
		marker = &page.Marker
	}
	for _, kind := range []string{"Roles", "Users", "Groups"} {
		want := r.list(kind) // what the policy is attached to beside the template's is others' doing
		r.texts(kind, slices.DeleteFunc(held[kind], func(name string) bool { return !slices.Contains(want, name) }))
	}
	return nil
}

func instanceProfile(ctx context.Context, r *reading) error {
	out, err := ask[iam.ProfileOutput](ctx, r, "iam", "GetInstanceProfile", r.Region, &iam.ProfileInput{InstanceProfileName: &r.Physical})
	if err != nil {
		return err
	}
	var names []string
	for i := range out.InstanceProfile.Roles {
		names = append(names, out.InstanceProfile.Roles[i].RoleName)
	}
	r.texts("Roles", names)
	return nil
}
