package iam

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

func (s *Service) policies() []api.Operation {
	return []api.Operation{
		api.Op("CreatePolicy", s.createPolicy),
		api.Op("GetPolicy", s.getPolicy),
		api.Op("DeletePolicy", s.deletePolicy),
		api.Op("ListPolicies", s.listPolicies),
		api.Op("CreatePolicyVersion", s.createPolicyVersion),
		api.Op("GetPolicyVersion", s.getPolicyVersion),
		api.Op("DeletePolicyVersion", s.deletePolicyVersion),
		api.Op("ListPolicyVersions", s.listPolicyVersions),
		api.Op("SetDefaultPolicyVersion", s.setDefaultPolicyVersion),
		api.Op("ListEntitiesForPolicy", s.listEntitiesForPolicy),
		api.Op("TagPolicy", s.tagPolicy),
		api.Op("UntagPolicy", s.untagPolicy),
		api.Op("ListPolicyTags", s.listPolicyTags),
	}
}

func versionName(number int) string { return "v" + strconv.Itoa(number) }

// readVersion parses a version's name, which was validated; a name with a suffix, as v1.beta,
// is 0: no such version exists.
func readVersion(name string) int {
	number, _ := strconv.Atoi(strings.TrimPrefix(name, "v"))
	return number
}

// listedPolicy is a policy in a list. Its caller holds the account's lock.
func listedPolicy(a *iam.Account, e *iam.Entity) Policy {
	attached, boundaries := a.Attachments(policyARN(e))
	return Policy{
		PolicyName: e.Name, PolicyId: e.ID, Arn: policyARN(e), Path: e.Path, DefaultVersionId: versionName(e.Policy.Default),
		AttachmentCount: attached, PermissionsBoundaryUsageCount: boundaries, IsAttachable: true,
		CreateDate: api.TimeOf(e.Created), UpdateDate: api.TimeOf(e.Policy.Updated),
	}
}

func policyARN(e *iam.Entity) string { return e.ARN() }

func shownPolicy(a *iam.Account, e *iam.Entity) *Policy {
	p := listedPolicy(a, e)
	p.Description, p.Tags = e.Description, entity.ShownTags(e.Tags)
	return &p
}

func (s *Service) createPolicy(_ context.Context, call *api.Call, in *CreatePolicyInput) (*PolicyOutput, error) {
	tags, err := entity.ReadTags(in.Tags)
	if err != nil {
		return nil, err
	}
	if err := checkDocument(iam.Managed, *in.PolicyDocument); err != nil {
		return nil, err
	}
	id := iam.NewID(iam.PrefixPolicy, call.Account, identity.NewRandom())
	e, err := s.entities.Create(call.Account, &iam.Entity{
		Kind: iam.Policy, Path: entity.PathOf(in.Path), Name: *in.PolicyName, ID: id, Description: api.Deref(in.Description), Tags: tags,
		Policy: &iam.PolicyPart{Versions: []iam.Version{{Number: 1, Document: *in.PolicyDocument}}, Default: 1, Latest: 1},
	})
	if err != nil {
		return nil, err
	}
	return &PolicyOutput{shownPolicy(iam.NewAccount(call.Account), e)}, nil
}

// managed reads a managed policy of the account or of AWS.
func (s *Service) managed(call *api.Call, arn string, look func(a *iam.Account, e *iam.Entity) error) error {
	if err := checkPolicyARN(arn); err != nil {
		return err
	}
	return s.engine.Read(call.Account, func(a *iam.Account) error {
		e, err := a.Managed(arn)
		if err != nil {
			return err
		}
		return look(a, e)
	})
}

func (s *Service) getPolicy(_ context.Context, call *api.Call, in *PolicyInput) (*PolicyOutput, error) {
	out := &PolicyOutput{}
	return out, s.managed(call, *in.PolicyArn, func(a *iam.Account, e *iam.Entity) error {
		out.Policy = shownPolicy(a, e)
		return nil
	})
}

// changePolicy runs a command on a managed policy of the account.
func (s *Service) changePolicy(call *api.Call, arn string, command func(a *iam.Account, now time.Time, e *iam.Entity) error) (*Empty, error) {
	if err := checkPolicyARN(arn); err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, now time.Time) error {
		e, err := a.OwnPolicy(arn)
		if err != nil {
			return err
		}
		return command(a, now.Truncate(time.Second), e)
	})
}

func (s *Service) deletePolicy(_ context.Context, call *api.Call, in *PolicyInput) (*Empty, error) {
	return s.changePolicy(call, *in.PolicyArn, func(a *iam.Account, _ time.Time, e *iam.Entity) error { return a.Delete(iam.Policy, e.Name) })
}

func (s *Service) listPolicies(_ context.Context, call *api.Call, in *ListPoliciesInput) (*ListPoliciesOutput, error) {
	scope, usage := api.Deref(in.Scope), api.Deref(in.PolicyUsageFilter)
	var all []Policy
	err := s.engine.Read(call.Account, func(a *iam.Account) error {
		add := func(e *iam.Entity) {
			p := listedPolicy(a, e)
			used := p.AttachmentCount + p.PermissionsBoundaryUsageCount
			switch usage {
			case usageBoundary:
				used = p.PermissionsBoundaryUsageCount
			case usagePermissions:
				used = p.AttachmentCount
			}
			if strings.HasPrefix(e.Path, api.Deref(in.PathPrefix)) && (used > 0 || (in.OnlyAttached == nil || !*in.OnlyAttached) && usage == "") {
				all = append(all, p)
			}
		}
		if scope != "AWS" {
			for _, e := range a.List(iam.Policy, "") {
				add(e)
			}
		}
		if scope != "Local" {
			iam.EachAWSManaged(add)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y Policy) int { return strings.Compare(x.Arn, y.Arn) })
	cut, truncated, next, err := check.Page("policies", all, func(p *Policy) string { return p.Arn }, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	return &ListPoliciesOutput{cut, truncated, next}, nil
}

const usageBoundary, usagePermissions = "PermissionsBoundary", "PermissionsPolicy"

func shownVersion(e *iam.Entity, v *iam.Version) PolicyVersion {
	return PolicyVersion{VersionId: versionName(v.Number), IsDefaultVersion: v.Number == e.Policy.Default, CreateDate: api.TimeOf(v.Created)}
}

func (s *Service) createPolicyVersion(_ context.Context, call *api.Call, in *CreatePolicyVersionInput) (*PolicyVersionOutput, error) {
	if err := checkDocument(iam.Managed, *in.PolicyDocument); err != nil {
		return nil, err
	}
	var v PolicyVersion
	_, err := s.changePolicy(call, *in.PolicyArn, func(a *iam.Account, now time.Time, _ *iam.Entity) error {
		number, err := a.AddVersion(*in.PolicyArn, *in.PolicyDocument, in.SetAsDefault != nil && *in.SetAsDefault, now)
		if err != nil {
			return err
		}
		e, err := a.Managed(*in.PolicyArn)
		if err == nil {
			v = shownVersion(e, e.Version(number))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &PolicyVersionOutput{&v}, nil
}

func (s *Service) getPolicyVersion(_ context.Context, call *api.Call, in *PolicyVersionInput) (*PolicyVersionOutput, error) {
	number := readVersion(*in.VersionId)
	out := &PolicyVersionOutput{}
	return out, ofVersion(in, s.managed(call, *in.PolicyArn, func(_ *iam.Account, e *iam.Entity) error {
		found := e.Version(number)
		if found == nil {
			return iam.ErrNoVersion.With(*in.PolicyArn, *in.VersionId)
		}
		v := shownVersion(e, found)
		v.Document = encoded(found.Document)
		out.PolicyVersion = &v
		return nil
	}))
}

// ofVersion replaces the error of an unknown policy by that of an unknown version.
func ofVersion(in *PolicyVersionInput, err error) error {
	if errors.Is(err, iam.ErrNoPolicy) {
		return iam.ErrNoVersion.With(*in.PolicyArn, *in.VersionId)
	}
	return err
}

func (s *Service) deletePolicyVersion(_ context.Context, call *api.Call, in *PolicyVersionInput) (*Empty, error) {
	number := readVersion(*in.VersionId)
	out, err := s.changePolicy(call, *in.PolicyArn, func(a *iam.Account, _ time.Time, _ *iam.Entity) error {
		return a.DeleteVersion(*in.PolicyArn, *in.VersionId, number)
	})
	return out, ofVersion(in, err)
}

func (s *Service) listPolicyVersions(_ context.Context, call *api.Call, in *PolicyListInput) (*ListPolicyVersionsOutput, error) {
	var all []PolicyVersion
	err := s.managed(call, *in.PolicyArn, func(_ *iam.Account, e *iam.Entity) error {
		for i := len(e.Policy.Versions) - 1; i >= 0; i-- { // latest first
			all = append(all, shownVersion(e, &e.Policy.Versions[i]))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	const widest = 1 << 30
	cut, truncated, next, err := check.Page("versions", all, func(v *PolicyVersion) string {
		number, _ := strconv.Atoi(v.VersionId[1:])
		return strconv.Itoa(widest - number)
	}, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	return &ListPolicyVersionsOutput{cut, truncated, next}, nil
}

func (s *Service) setDefaultPolicyVersion(_ context.Context, call *api.Call, in *PolicyVersionInput) (*Empty, error) {
	number := readVersion(*in.VersionId)
	out, err := s.changePolicy(call, *in.PolicyArn, func(a *iam.Account, now time.Time, _ *iam.Entity) error {
		return a.SetDefault(*in.PolicyArn, *in.VersionId, number, now)
	})
	return out, ofVersion(in, err)
}

func (s *Service) listEntitiesForPolicy(_ context.Context, call *api.Call, in *ListEntitiesForPolicyInput) (*ListEntitiesForPolicyOutput, error) {
	filter, usage := api.Deref(in.EntityFilter), api.Deref(in.PolicyUsageFilter)
	var all []*iam.Entity
	err := s.managed(call, *in.PolicyArn, func(a *iam.Account, _ *iam.Entity) error {
		for kind, name := range map[iam.Kind]string{iam.Group: "Group", iam.User: "User", iam.Role: "Role"} {
			if filter != "" && filter != name {
				continue
			}
			for _, e := range a.List(kind, api.Deref(in.PathPrefix)) {
				if usage != usageBoundary && slices.Contains(e.Attached, *in.PolicyArn) || usage != usagePermissions && e.Boundary == *in.PolicyArn {
					all = append(all, e)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	byARN := func(e **iam.Entity) string { return (*e).ARN() }
	slices.SortFunc(all, func(x, y *iam.Entity) int { return strings.Compare(byARN(&x), byARN(&y)) })
	cut, truncated, next, err := check.Page("entities", all, byARN, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	out := &ListEntitiesForPolicyOutput{PolicyGroups: []PolicyGroup{}, PolicyUsers: []PolicyUser{}, PolicyRoles: []PolicyRole{}, IsTruncated: truncated, Marker: next}
	for _, e := range cut {
		switch e.Kind {
		case iam.Group:
			out.PolicyGroups = append(out.PolicyGroups, PolicyGroup{e.Name, e.ID})
		case iam.User:
			out.PolicyUsers = append(out.PolicyUsers, PolicyUser{e.Name, e.ID})
		default:
			out.PolicyRoles = append(out.PolicyRoles, PolicyRole{e.Name, e.ID})
		}
	}
	return out, nil
}

func (s *Service) tagPolicy(_ context.Context, call *api.Call, in *TagPolicyInput) (*Empty, error) {
	tags, err := entity.ReadTags(in.Tags)
	if err != nil {
		return nil, err
	}
	return s.changePolicy(call, *in.PolicyArn, func(a *iam.Account, _ time.Time, e *iam.Entity) error { return a.Tag(iam.Policy, e.Name, tags) })
}

func (s *Service) untagPolicy(_ context.Context, call *api.Call, in *UntagPolicyInput) (*Empty, error) {
	return s.changePolicy(call, *in.PolicyArn, func(a *iam.Account, _ time.Time, e *iam.Entity) error {
		return a.Untag(iam.Policy, e.Name, in.TagKeys)
	})
}

func (s *Service) listPolicyTags(_ context.Context, call *api.Call, in *PolicyListInput) (*TagsOutput, error) {
	var found *iam.Entity
	err := s.managed(call, *in.PolicyArn, func(_ *iam.Account, e *iam.Entity) error {
		found = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entity.TagsOf(found, in.Marker, in.MaxItems)
}
