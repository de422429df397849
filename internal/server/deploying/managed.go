package deploying

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/server/deploying/holder"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack/resource"
)

// mostVersions is how many versions IAM keeps of a managed policy.
const mostVersions = 5

// shownPolicy is what GetAtt gives of a managed policy.
func shownPolicy(p *iam.Policy) map[string]any {
	return map[string]any{
		"CreateDate": p.CreateDate.Std().Format(time.RFC3339), "DefaultVersionId": p.DefaultVersionId, "PolicyArn": p.Arn, "PolicyId": p.PolicyId,
		"UpdateDate": p.UpdateDate.Std().Format(time.RFC3339),
	}
}

func (w *work) policyNow(ctx context.Context, own string) (*iam.Policy, error) {
	found, err := ask[iam.PolicyOutput](ctx, w, "iam", "GetPolicy", w.Region, &iam.PolicyInput{PolicyArn: &own})
	if err != nil {
		return nil, err
	}
	return found.Policy, nil
}

// currentDocument is the document of a policy's default version.
func (w *work) currentDocument(ctx context.Context, own string) (any, error) {
	policy, err := w.policyNow(ctx, own)
	if err != nil {
		return nil, err
	}
	found, err := ask[iam.PolicyVersionOutput](ctx, w, "iam", "GetPolicyVersion", w.Region, &iam.PolicyVersionInput{PolicyArn: &own, VersionId: &policy.DefaultVersionId})
	if err != nil {
		return nil, err
	}
	plain, err := url.QueryUnescape(found.PolicyVersion.Document)
	if err != nil {
		return nil, err
	}
	var document any
	d := json.NewDecoder(strings.NewReader(plain))
	d.UseNumber()
	err = d.Decode(&document)
	return document, err
}

func createManaged(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := ask[iam.PolicyOutput](ctx, w, "iam", "CreatePolicy", w.Region, &iam.CreatePolicyInput{
		PolicyName: &name, Path: optional(properties["Path"]), PolicyDocument: optional(properties["PolicyDocument"]), Description: optional(properties["Description"]),
	})
	var policy *iam.Policy
	switch {
	case exists(err):
		own := arn.ARN{Service: "iam", Account: w.Account, Resource: "policy" + pathOf(properties) + name}.String()
		if policy, err = w.policyNow(ctx, own); stacks.IsGone(err) || err == nil && !w.ownSince(policy.CreateDate) {
			return made{}, w.taken(own)
		}
		if err != nil {
			return made{}, err
		}
	case err != nil:
		return made{}, err
	default:
		policy = out.Policy
	}
	is := made{policy.Arn, shownPolicy(policy)}
	for _, h := range holder.In(properties) {
		if err := w.give(ctx, h.Attach(policy.Arn)); err != nil {
			return is, err
		}
	}
	return is, nil
}

// versions are those of a managed policy, the newest first.
func (w *work) versions(ctx context.Context, own string) ([]iam.PolicyVersion, error) {
	found, err := ask[iam.ListPolicyVersionsOutput](ctx, w, "iam", "ListPolicyVersions", w.Region, &iam.PolicyListInput{PolicyArn: &own})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found.Versions, func(a, b iam.PolicyVersion) int {
		if order := len(b.VersionId) - len(a.VersionId); order != 0 {
			return order
		}
		return strings.Compare(b.VersionId, a.VersionId)
	})
	return found.Versions, nil
}

func (w *work) deleteVersion(ctx context.Context, own, version string) error {
	return unlessGone(w.change(ctx, "DeletePolicyVersion", &iam.PolicyVersionInput{PolicyArn: &own, VersionId: &version}))
}

func updateManaged(ctx context.Context, w *work) (made, error) {
	own, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := made{own, w.Target.Attributes}
	done := resource.Same(was["PolicyDocument"], now["PolicyDocument"])
	if !done && w.Again { // an interrupted update may have made the version
		current, err := w.currentDocument(ctx, own)
		if err != nil {
			return is, err
		}
		done = resource.Same(current, now["PolicyDocument"])
	}
	if !done {
		all, err := w.versions(ctx, own)
		if err != nil {
			return is, err
		}
		for i := len(all) - 1; i >= 0 && len(all) >= mostVersions; i-- { // the oldest is deleted first
			if !all[i].IsDefaultVersion {
				if err := w.deleteVersion(ctx, own, all[i].VersionId); err != nil {
					return is, err
				}
				break
			}
		}
		in := &iam.CreatePolicyVersionInput{PolicyArn: &own, PolicyDocument: optional(now["PolicyDocument"]), SetAsDefault: new(true)}
		if _, err := ask[iam.PolicyVersionOutput](ctx, w, "iam", "CreatePolicyVersion", w.Region, in); err != nil {
			return is, err
		}
	}
	policy, err := w.policyNow(ctx, own)
	if err != nil {
		return is, err
	}
	is.attributes = shownPolicy(policy)
	var had []holder.Holder
	for _, properties := range w.earlier() {
		had = append(had, holder.In(properties)...)
	}
	has := holder.In(now)
	for _, h := range has {
		if !slices.Contains(had, h) {
			if err := w.give(ctx, h.Attach(own)); err != nil {
				return is, err
			}
		}
	}
	for _, h := range had {
		if !slices.Contains(has, h) {
			if err := w.take(ctx, h.Detach(own)); err != nil {
				return is, err
			}
		}
	}
	return is, nil
}

func deleteManaged(ctx context.Context, w *work) error {
	own := w.Target.Physical
	for _, h := range append(holder.In(w.Target.Properties), holder.In(w.Now)...) {
		if err := w.take(ctx, h.Detach(own)); err != nil {
			return err
		}
	}
	all, err := w.versions(ctx, own)
	if err != nil {
		return unlessGone(err)
	}
	for i := range all {
		if !all[i].IsDefaultVersion {
			if err := w.deleteVersion(ctx, own, all[i].VersionId); err != nil {
				return err
			}
		}
	}
	return unlessGone(w.change(ctx, "DeletePolicy", &iam.PolicyInput{PolicyArn: &own}))
}

func createProfile(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := ask[iam.ProfileOutput](ctx, w, "iam", "CreateInstanceProfile", w.Region, &iam.CreateInstanceProfileInput{
		InstanceProfileName: &name, Path: optional(properties["Path"]),
	})
	var had []string
	if exists(err) {
		found, other := ask[iam.ProfileOutput](ctx, w, "iam", "GetInstanceProfile", w.Region, &iam.ProfileInput{InstanceProfileName: &name})
		if other != nil {
			return made{}, other
		}
		if !w.ownSince(found.InstanceProfile.CreateDate) {
			return made{}, w.taken(name)
		}
		for i := range found.InstanceProfile.Roles {
			had = append(had, found.InstanceProfile.Roles[i].RoleName)
		}
		out, err = found, nil
	}
	if err != nil {
		return made{}, err
	}
	return made{name, map[string]any{"Arn": out.InstanceProfile.Arn}}, w.enrol(ctx, had, list(properties["Roles"]))
}

// enrol changes the roles of an instance profile, which can have one.
func (w *work) enrol(ctx context.Context, had, has []string) error {
	name := w.Target.Physical
	for _, role := range had {
		if !slices.Contains(has, role) {
			if err := unlessGone(w.change(ctx, "RemoveRoleFromInstanceProfile", &iam.ProfileRoleInput{InstanceProfileName: &name, RoleName: &role})); err != nil {
				return err
			}
		}
	}
	for _, role := range has {
		if !slices.Contains(had, role) {
			if err := w.change(ctx, "AddRoleToInstanceProfile", &iam.ProfileRoleInput{InstanceProfileName: &name, RoleName: &role}); err != nil {
				return err
			}
		}
	}
	return nil
}

func updateProfile(ctx context.Context, w *work) (made, error) {
	is := made{w.Target.Physical, w.Target.Attributes}
	found, err := ask[iam.ProfileOutput](ctx, w, "iam", "GetInstanceProfile", w.Region, &iam.ProfileInput{InstanceProfileName: &w.Target.Physical})
	if err != nil {
		return is, err
	}
	var had []string
	for i := range found.InstanceProfile.Roles {
		had = append(had, found.InstanceProfile.Roles[i].RoleName)
	}
	return is, w.enrol(ctx, had, list(w.Target.Properties["Roles"]))
}

func deleteProfile(ctx context.Context, w *work) error {
	if err := w.enrol(ctx, list(w.Target.Properties["Roles"]), nil); err != nil {
		return err
	}
	return unlessGone(w.change(ctx, "DeleteInstanceProfile", &iam.ProfileInput{InstanceProfileName: &w.Target.Physical}))
}
