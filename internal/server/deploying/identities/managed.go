package identities

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
	"godwit.dev/godwit/internal/server/deploying/step"
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

func policyNow(ctx context.Context, w *step.Work, own string) (*iam.Policy, error) {
	found, err := step.Ask[iam.PolicyOutput](ctx, w, "iam", "GetPolicy", w.Region, &iam.PolicyInput{PolicyArn: &own})
	if err != nil {
		return nil, err
	}
	return found.Policy, nil
}

// currentDocument is the document of a policy's default version.
func currentDocument(ctx context.Context, w *step.Work, own string) (any, error) {
	policy, err := policyNow(ctx, w, own)
	if err != nil {
		return nil, err
	}
	found, err := step.Ask[iam.PolicyVersionOutput](ctx, w, "iam", "GetPolicyVersion", w.Region, &iam.PolicyVersionInput{PolicyArn: &own, VersionId: &policy.DefaultVersionId})
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

func createManaged(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := step.Ask[iam.PolicyOutput](ctx, w, "iam", "CreatePolicy", w.Region, &iam.CreatePolicyInput{
		PolicyName: &name, Path: step.Optional(properties["Path"]), PolicyDocument: step.Optional(properties["PolicyDocument"]), Description: step.Optional(properties["Description"]),
	})
	var policy *iam.Policy
	switch {
	case step.Exists(err):
		own := arn.ARN{Service: "iam", Account: w.Account, Resource: "policy" + pathOf(properties) + name}.String()
		if policy, err = policyNow(ctx, w, own); stacks.IsGone(err) || err == nil && !w.OwnSince(policy.CreateDate) {
			return step.Made{}, w.Taken(own)
		}
		if err != nil {
			return step.Made{}, err
		}
	case err != nil:
		return step.Made{}, err
	default:
		policy = out.Policy
	}
	is := step.Made{Physical: policy.Arn, Attributes: shownPolicy(policy)}
	for _, h := range holder.In(properties) {
		if err := give(ctx, w, h.Attach(policy.Arn)); err != nil {
			return is, err
		}
	}
	return is, nil
}

// versions are those of a managed policy, the newest first.
func versions(ctx context.Context, w *step.Work, own string) ([]iam.PolicyVersion, error) {
	found, err := step.Ask[iam.ListPolicyVersionsOutput](ctx, w, "iam", "ListPolicyVersions", w.Region, &iam.PolicyListInput{PolicyArn: &own})
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

func deleteVersion(ctx context.Context, w *step.Work, own, version string) error {
	return step.UnlessGone(change(ctx, w, "DeletePolicyVersion", &iam.PolicyVersionInput{PolicyArn: &own, VersionId: &version}))
}

func updateManaged(ctx context.Context, w *step.Work) (step.Made, error) {
	own, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := step.Made{Physical: own, Attributes: w.Target.Attributes}
	done := resource.Same(was["PolicyDocument"], now["PolicyDocument"])
	if !done && w.Again { // an interrupted update may have made the version
		current, err := currentDocument(ctx, w, own)
		if err != nil {
			return is, err
		}
		done = resource.Same(current, now["PolicyDocument"])
	}
	if !done {
		all, err := versions(ctx, w, own)
		if err != nil {
			return is, err
		}
		for i := len(all) - 1; i >= 0 && len(all) >= mostVersions; i-- { // the oldest is deleted first
			if !all[i].IsDefaultVersion {
				if err := deleteVersion(ctx, w, own, all[i].VersionId); err != nil {
					return is, err
				}
				break
			}
		}
		in := &iam.CreatePolicyVersionInput{PolicyArn: &own, PolicyDocument: step.Optional(now["PolicyDocument"]), SetAsDefault: new(true)}
		if _, err := step.Ask[iam.PolicyVersionOutput](ctx, w, "iam", "CreatePolicyVersion", w.Region, in); err != nil {
			return is, err
		}
	}
	policy, err := policyNow(ctx, w, own)
	if err != nil {
		return is, err
	}
	is.Attributes = shownPolicy(policy)
	var had []holder.Holder
	for _, properties := range w.Earlier() {
		had = append(had, holder.In(properties)...)
	}
	has := holder.In(now)
	for _, h := range has {
		if !slices.Contains(had, h) {
			if err := give(ctx, w, h.Attach(own)); err != nil {
				return is, err
			}
		}
	}
	for _, h := range had {
		if !slices.Contains(has, h) {
			if err := take(ctx, w, h.Detach(own)); err != nil {
				return is, err
			}
		}
	}
	return is, nil
}

func deleteManaged(ctx context.Context, w *step.Work) error {
	own := w.Target.Physical
	for _, h := range append(holder.In(w.Target.Properties), holder.In(w.Now)...) {
		if err := take(ctx, w, h.Detach(own)); err != nil {
			return err
		}
	}
	all, err := versions(ctx, w, own)
	if err != nil {
		return step.UnlessGone(err)
	}
	for i := range all {
		if !all[i].IsDefaultVersion {
			if err := deleteVersion(ctx, w, own, all[i].VersionId); err != nil {
				return err
			}
		}
	}
	return step.UnlessGone(change(ctx, w, "DeletePolicy", &iam.PolicyInput{PolicyArn: &own}))
}

func createProfile(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	out, err := step.Ask[iam.ProfileOutput](ctx, w, "iam", "CreateInstanceProfile", w.Region, &iam.CreateInstanceProfileInput{
		InstanceProfileName: &name, Path: step.Optional(properties["Path"]),
	})
	var had []string
	if step.Exists(err) {
		found, other := step.Ask[iam.ProfileOutput](ctx, w, "iam", "GetInstanceProfile", w.Region, &iam.ProfileInput{InstanceProfileName: &name})
		if other != nil {
			return step.Made{}, other
		}
		if !w.OwnSince(found.InstanceProfile.CreateDate) {
			return step.Made{}, w.Taken(name)
		}
		for i := range found.InstanceProfile.Roles {
			had = append(had, found.InstanceProfile.Roles[i].RoleName)
		}
		out, err = found, nil
	}
	if err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: name, Attributes: map[string]any{"Arn": out.InstanceProfile.Arn}}, enrol(ctx, w, had, step.List(properties["Roles"]))
}

// enrol changes the roles of an instance profile, which can have one.
func enrol(ctx context.Context, w *step.Work, had, has []string) error {
	name := w.Target.Physical
	for _, role := range had {
		if !slices.Contains(has, role) {
			if err := step.UnlessGone(change(ctx, w, "RemoveRoleFromInstanceProfile", &iam.ProfileRoleInput{InstanceProfileName: &name, RoleName: &role})); err != nil {
				return err
			}
		}
	}
	for _, role := range has {
		if !slices.Contains(had, role) {
			if err := change(ctx, w, "AddRoleToInstanceProfile", &iam.ProfileRoleInput{InstanceProfileName: &name, RoleName: &role}); err != nil {
				return err
			}
		}
	}
	return nil
}

func updateProfile(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	found, err := step.Ask[iam.ProfileOutput](ctx, w, "iam", "GetInstanceProfile", w.Region, &iam.ProfileInput{InstanceProfileName: &w.Target.Physical})
	if err != nil {
		return is, err
	}
	var had []string
	for i := range found.InstanceProfile.Roles {
		had = append(had, found.InstanceProfile.Roles[i].RoleName)
	}
	return is, enrol(ctx, w, had, step.List(w.Target.Properties["Roles"]))
}

func deleteProfile(ctx context.Context, w *step.Work) error {
	if err := enrol(ctx, w, step.List(w.Target.Properties["Roles"]), nil); err != nil {
		return err
	}
	return step.UnlessGone(change(ctx, w, "DeleteInstanceProfile", &iam.ProfileInput{InstanceProfileName: &w.Target.Physical}))
}
