package deploying

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// holder is who has policies.
type holder struct{ kind, name string }

// The kinds of holders.
const (
	aRole  = "role"
	aUser  = "user"
	aGroup = "group"
)

// change calls an operation of IAM that answers nothing.
func (w *work) change(ctx context.Context, operation string, in any) error {
	_, err := ask[iam.Empty](ctx, w, "iam", operation, w.Region, in)
	return err
}

// unlessGone takes it for done that what is to go is gone.
func unlessGone(err error) error {
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

func (w *work) putInline(ctx context.Context, h holder, policy, document string) error {
	switch h.kind {
	case aRole:
		return w.change(ctx, "PutRolePolicy", &iam.PutRolePolicyInput{RoleName: &h.name, PolicyName: &policy, PolicyDocument: &document})
	case aUser:
		return w.change(ctx, "PutUserPolicy", &iam.PutUserPolicyInput{UserName: &h.name, PolicyName: &policy, PolicyDocument: &document})
	default:
		return w.change(ctx, "PutGroupPolicy", &iam.PutGroupPolicyInput{GroupName: &h.name, PolicyName: &policy, PolicyDocument: &document})
	}
}

func (w *work) deleteInline(ctx context.Context, h holder, policy string) error {
	switch h.kind {
	case aRole:
		return unlessGone(w.change(ctx, "DeleteRolePolicy", &iam.RolePolicyInput{RoleName: &h.name, PolicyName: &policy}))
	case aUser:
		return unlessGone(w.change(ctx, "DeleteUserPolicy", &iam.UserPolicyInput{UserName: &h.name, PolicyName: &policy}))
	default:
		return unlessGone(w.change(ctx, "DeleteGroupPolicy", &iam.GroupPolicyInput{GroupName: &h.name, PolicyName: &policy}))
	}
}

func (w *work) attach(ctx context.Context, h holder, managed string) error {
	switch h.kind {
	case aRole:
		return w.change(ctx, "AttachRolePolicy", &iam.RolePolicyARNInput{RoleName: &h.name, PolicyArn: &managed})
	case aUser:
		return w.change(ctx, "AttachUserPolicy", &iam.UserPolicyARNInput{UserName: &h.name, PolicyArn: &managed})
	default:
		return w.change(ctx, "AttachGroupPolicy", &iam.GroupPolicyARNInput{GroupName: &h.name, PolicyArn: &managed})
	}
}

func (w *work) detach(ctx context.Context, h holder, managed string) error {
	switch h.kind {
	case aRole:
		return unlessGone(w.change(ctx, "DetachRolePolicy", &iam.RolePolicyARNInput{RoleName: &h.name, PolicyArn: &managed}))
	case aUser:
		return unlessGone(w.change(ctx, "DetachUserPolicy", &iam.UserPolicyARNInput{UserName: &h.name, PolicyArn: &managed}))
	default:
		return unlessGone(w.change(ctx, "DetachGroupPolicy", &iam.GroupPolicyARNInput{GroupName: &h.name, PolicyArn: &managed}))
	}
}

// inlines are the documents of a property of policies, by their names.
func inlines(value any) map[string]string {
	items, _ := value.([]any)
	found := map[string]string{}
	for _, item := range items {
		if policy, ok := item.(map[string]any); ok {
			found[text(policy["PolicyName"])] = text(policy["PolicyDocument"])
		}
	}
	return found
}

// equip gives a holder the policies that properties have, those that are not there already,
// and takes away what only the former properties have. With nil for now it takes away all.
func (w *work) equip(ctx context.Context, h holder, was, now map[string]any) error {
	had, has := list(was["ManagedPolicyArns"]), list(now["ManagedPolicyArns"])
	for _, managed := range has {
		if !slices.Contains(had, managed) {
			if err := w.attach(ctx, h, managed); err != nil {
				return err
			}
		}
	}
	for _, managed := range had {
		if !slices.Contains(has, managed) {
			if err := w.detach(ctx, h, managed); err != nil {
				return err
			}
		}
	}
	before, after := inlines(was["Policies"]), inlines(now["Policies"])
	for policy, document := range after {
		if before[policy] != document {
			if err := w.unclaimed(h, policy); err != nil {
				return err
			}
			if err := w.putInline(ctx, h, policy, document); err != nil {
				return err
			}
		}
	}
	for policy := range before {
		if _, ok := after[policy]; !ok {
			if err := w.withdraw(ctx, h, policy); err != nil {
				return err
			}
		}
	}
	return nil
}

// reequip is equip with all that an update changes.
func (w *work) reequip(ctx context.Context, h holder) error {
	// As of a policy of its own: see putPolicy.
	stays, former := inlines(w.Target.Properties["Policies"]), inlines(w.Former["Policies"])
	for policy := range inlines(w.Failed["Policies"]) {
		_, now := stays[policy]
		if _, before := former[policy]; !now && !before {
			if err := w.withdraw(ctx, h, policy); err != nil {
				return err
			}
		}
	}
	for _, was := range w.earlier() {
		if err := w.equip(ctx, h, was, w.Target.Properties); err != nil {
			return err
		}
	}
	return nil
}

// disarm takes all policies away from a holder that is to go.
func (w *work) disarm(ctx context.Context, h holder) error {
	for _, was := range append(w.earlier(), w.Target.Properties) {
		if err := w.equip(ctx, h, was, nil); err != nil {
			return err
		}
	}
	return nil
}

// earlier are the properties that an update changes, or that a deletion takes away beside those of its
// target: all of those that the resource may have in part.
func (w *work) earlier() (all []map[string]any) {
	if w.Action == stack.Create {
		return nil
	}
	all = append(all, w.Now) // which may be nil: there were no properties
	for _, properties := range []map[string]any{w.Failed, w.Former} {
		if properties != nil {
			all = append(all, properties)
		}
	}
	return all
}

// bound changes the permissions boundary of a role or user.
func (w *work) bound(ctx context.Context, h holder, was, now any) error {
	boundary := text(now)
	switch {
	case resource.Same(was, now):
		return nil
	case h.kind == aRole && now == nil:
		return unlessGone(w.change(ctx, "DeleteRolePermissionsBoundary", &iam.RoleInput{RoleName: &h.name}))
	case h.kind == aRole:
		return w.change(ctx, "PutRolePermissionsBoundary", &iam.RoleBoundaryInput{RoleName: &h.name, PermissionsBoundary: &boundary})
	case now == nil:
		return unlessGone(w.change(ctx, "DeleteUserPermissionsBoundary", &iam.UserInput{UserName: &h.name}))
	default:
		return w.change(ctx, "PutUserPermissionsBoundary", &iam.UserBoundaryInput{UserName: &h.name, PermissionsBoundary: &boundary})
	}
}

// iamTags are tags as IAM has them.
func iamTags(of map[string]string) (all []iam.Tag) {
	for key, value := range of {
		all = append(all, iam.Tag{Key: &key, Value: &value})
	}
	return all
}

// optional is the text of a property; nil: it has none.
func optional(value any) *string {
	if value == nil {
		return nil
	}
	s := text(value)
	return &s
}

// listed are the properties that list holders of a kind.
var listed = []struct{ property, kind string }{{"Roles", aRole}, {"Users", aUser}, {"Groups", aGroup}}

// carriers are those that an inline policy of its own is for.
func carriers(properties map[string]any) (all []holder) {
	for _, of := range listed {
		for _, name := range list(properties[of.property]) {
			all = append(all, holder{of.kind, name})
		}
	}
	return all
}

// inline is an inline policy of a holder.
func inline(h holder, policy string) stacks.Inline {
	p := stacks.Inline{Policy: policy, Holder: h.name}
	for _, of := range listed {
		if of.kind == h.kind {
			p.Property = of.property
		}
	}
	return p
}

// unclaimed refuses to give an inline policy that another resource of a stack has.
func (w *work) unclaimed(h holder, policy string) error {
	claims := w.worker.Giving(w.Task, inline(h, policy))
	if claims.Wait {
		return errUnderWay
	}
	return managed(claims.By)
}

// managed refuses what other resources have.
func managed(others []string) error {
	if len(others) == 0 {
		return nil
	}
	return &handlerError{text: "Policy resource was already managed by another stack or another resource in the current stack. Found stacks: [" + strings.Join(others, ", ") + "]"}
}

func putPolicy(ctx context.Context, w *work) (made, error) {
	is := made{w.Target.Physical, map[string]any{"Id": w.Target.Physical}}
	now, name := carriers(w.Target.Properties), text(w.Target.Properties["PolicyName"])
	if len(now) == 0 {
		return made{}, &handlerError{"At least one of [Groups,Roles,Users] must be non-empty.", "InvalidRequest"}
	}
	for _, h := range now {
		if err := w.unclaimed(h, name); err != nil {
			if w.Action == stack.Create {
				is = made{}
			}
			return is, err
		}
	}
	// What an update before this one has given and not completed goes first: if this one fails, too,
	// nobody knows of it any more.
	if err := w.withdrawAll(ctx, w.Failed, w.Target.Properties, w.Former); err != nil {
		return is, err
	}
	for _, h := range now {
		if err := w.putInline(ctx, h, name, text(w.Target.Properties["PolicyDocument"])); err != nil {
			return is, err
		}
	}
	for _, was := range w.earlier() {
		if err := w.withdrawAll(ctx, was, w.Target.Properties); err != nil {
			return is, err
		}
	}
	return is, nil
}

// withdrawAll takes the inline policy of properties away from all whom other properties do not give it.
func (w *work) withdrawAll(ctx context.Context, was map[string]any, but ...map[string]any) error {
	name := text(was["PolicyName"])
	for _, h := range carriers(was) {
		same := func(other holder) bool { return other.kind == h.kind && strings.EqualFold(other.name, h.name) } // as IAM compares names
		stays := slices.ContainsFunc(but, func(properties map[string]any) bool {
			return text(properties["PolicyName"]) == name && slices.ContainsFunc(carriers(properties), same)
		})
		if stays {
			continue
		}
		if err := w.withdraw(ctx, h, name); err != nil {
			return err
		}
	}
	return nil
}

// withdraw takes an inline policy away from a holder, unless it is another resource's.
func (w *work) withdraw(ctx context.Context, h holder, policy string) error {
	switch claims := w.worker.Taking(w.Task, inline(h, policy)); {
	case claims.Wait:
		return errUnderWay
	case len(claims.By) > 0:
		return nil
	}
	return w.deleteInline(ctx, h, policy)
}

// deletePolicy refuses what another stack has, too, as AWS does: it can be retained.
func deletePolicy(ctx context.Context, w *work) error {
	all := append(w.earlier(), w.Target.Properties)
	for _, properties := range all {
		for _, h := range carriers(properties) {
			if err := managed(w.worker.Taking(w.Task, inline(h, text(properties["PolicyName"]))).Shared); err != nil {
				return err
			}
		}
	}
	for _, properties := range all {
		if err := w.withdrawAll(ctx, properties); err != nil {
			return err
		}
	}
	return nil
}
