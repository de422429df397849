// Package holder names the operations of IAM by which roles, users and groups are given policies and
// lose them, and finds those that the properties of resources list.
package holder

import (
	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack/resource"
)

// Holder is who has policies.
type Holder struct{ Kind, Name string }

// The kinds of holders.
const (
	Role  = "role"
	User  = "user"
	Group = "group"
)

// Change is an operation of IAM that answers nothing, and its input.
type Change struct {
	Operation string
	In        any
}

// Put gives a holder an inline policy.
func (h Holder) Put(policy, document string) Change {
	switch h.Kind {
	case Role:
		return Change{"PutRolePolicy", &iam.PutRolePolicyInput{RoleName: &h.Name, PolicyName: &policy, PolicyDocument: &document}}
	case User:
		return Change{"PutUserPolicy", &iam.PutUserPolicyInput{UserName: &h.Name, PolicyName: &policy, PolicyDocument: &document}}
	default:
		return Change{"PutGroupPolicy", &iam.PutGroupPolicyInput{GroupName: &h.Name, PolicyName: &policy, PolicyDocument: &document}}
	}
}

// Delete takes an inline policy away.
func (h Holder) Delete(policy string) Change {
	switch h.Kind {
	case Role:
		return Change{"DeleteRolePolicy", &iam.RolePolicyInput{RoleName: &h.Name, PolicyName: &policy}}
	case User:
		return Change{"DeleteUserPolicy", &iam.UserPolicyInput{UserName: &h.Name, PolicyName: &policy}}
	default:
		return Change{"DeleteGroupPolicy", &iam.GroupPolicyInput{GroupName: &h.Name, PolicyName: &policy}}
	}
}

// Attach gives a holder a managed policy, by its ARN.
func (h Holder) Attach(managed string) Change {
	switch h.Kind {
	case Role:
		return Change{"AttachRolePolicy", &iam.RolePolicyARNInput{RoleName: &h.Name, PolicyArn: &managed}}
	case User:
		return Change{"AttachUserPolicy", &iam.UserPolicyARNInput{UserName: &h.Name, PolicyArn: &managed}}
	default:
		return Change{"AttachGroupPolicy", &iam.GroupPolicyARNInput{GroupName: &h.Name, PolicyArn: &managed}}
	}
}

// Detach takes a managed policy away.
func (h Holder) Detach(managed string) Change {
	switch h.Kind {
	case Role:
		return Change{"DetachRolePolicy", &iam.RolePolicyARNInput{RoleName: &h.Name, PolicyArn: &managed}}
	case User:
		return Change{"DetachUserPolicy", &iam.UserPolicyARNInput{UserName: &h.Name, PolicyArn: &managed}}
	default:
		return Change{"DetachGroupPolicy", &iam.GroupPolicyARNInput{GroupName: &h.Name, PolicyArn: &managed}}
	}
}

// Bound sets the permissions boundary of a role or user.
func (h Holder) Bound(boundary string) Change {
	if h.Kind == Role {
		return Change{"PutRolePermissionsBoundary", &iam.RoleBoundaryInput{RoleName: &h.Name, PermissionsBoundary: &boundary}}
	}
	return Change{"PutUserPermissionsBoundary", &iam.UserBoundaryInput{UserName: &h.Name, PermissionsBoundary: &boundary}}
}

// Unbound takes the permissions boundary of a role or user away.
func (h Holder) Unbound() Change {
	if h.Kind == Role {
		return Change{"DeleteRolePermissionsBoundary", &iam.RoleInput{RoleName: &h.Name}}
	}
	return Change{"DeleteUserPermissionsBoundary", &iam.UserInput{UserName: &h.Name}}
}

// listed are the properties that list holders of a kind.
var listed = []struct{ property, kind string }{{"Roles", Role}, {"Users", User}, {"Groups", Group}}

// In are the holders that the properties of a policy list.
func In(properties map[string]any) (all []Holder) {
	for _, of := range listed {
		names, _ := properties[of.property].([]any)
		for _, name := range names {
			text, _ := resource.Scalar(name)
			all = append(all, Holder{of.kind, text})
		}
	}
	return all
}

// Inline is an inline policy of a holder, as stacks compare them.
func (h Holder) Inline(policy string) stacks.Inline {
	p := stacks.Inline{Policy: policy, Holder: h.Name}
	for _, of := range listed {
		if of.kind == h.Kind {
			p.Property = of.property
		}
	}
	return p
}
