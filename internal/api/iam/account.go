package iam

import (
	"context"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

func (s *Service) accounts() []api.Operation {
	return []api.Operation{
		api.Op("CreateAccountAlias", s.createAccountAlias),
		api.Op("DeleteAccountAlias", s.deleteAccountAlias),
		api.Op("ListAccountAliases", s.listAccountAliases),
		api.Op("GetAccountSummary", s.getAccountSummary),
		api.Op("GetAccountPasswordPolicy", s.getAccountPasswordPolicy).WithResult(),
		api.Op("GetAccountAuthorizationDetails", s.getAccountAuthorizationDetails).Holding(8 << 20),
		api.Op("GetLoginProfile", s.noLoginProfile).WithResult(),
		api.Op("DeleteLoginProfile", s.noLoginProfile),
		api.Op("ListMFADevices", func(_ context.Context, call *api.Call, in *MaybeUserListInput) (*MFADevicesOutput, error) {
			return &MFADevicesOutput{MFADevices: []Empty{}}, s.isUser(call, in)
		}),
		api.Op("ListVirtualMFADevices", func(context.Context, *api.Call, *VirtualMFADevicesInput) (*VirtualMFADevicesOutput, error) {
			return &VirtualMFADevicesOutput{VirtualMFADevices: []Empty{}}, nil
		}),
		api.Op("ListSSHPublicKeys", func(_ context.Context, call *api.Call, in *MaybeUserListInput) (*SSHPublicKeysOutput, error) {
			return &SSHPublicKeysOutput{SSHPublicKeys: []Empty{}}, s.isUser(call, in)
		}),
		api.Op("ListSigningCertificates", func(_ context.Context, call *api.Call, in *MaybeUserListInput) (*CertificatesOutput, error) {
			return &CertificatesOutput{Certificates: []Empty{}}, s.isUser(call, in)
		}),
		api.Op("ListServiceSpecificCredentials", func(_ context.Context, call *api.Call, in *MaybeUserListInput) (*ServiceCredentialsOutput, error) {
			return &ServiceCredentialsOutput{ServiceSpecificCredentials: []Empty{}}, s.isUser(call, in)
		}),
		api.Op("ListServerCertificates", func(context.Context, *api.Call, *ListInput) (*ServerCertificatesOutput, error) {
			return &ServerCertificatesOutput{ServerCertificateMetadataList: []Empty{}}, nil
		}),
		api.Op("ListSAMLProviders", func(context.Context, *api.Call, *NoInput) (*SAMLProvidersOutput, error) {
			return &SAMLProvidersOutput{SAMLProviderList: []Empty{}}, nil
		}),
	}
}

// isUser refuses an unknown user.
func (s *Service) isUser(call *api.Call, in *MaybeUserListInput) error {
	name, err := s.userName(call, in.UserName)
	if err != nil {
		return err
	}
	_, err = s.entities.Find(call.Account, iam.User, name)
	return err
}

// noLoginProfile is the error for login profiles, which are not implemented: users have no
// password.
func (s *Service) noLoginProfile(_ context.Context, call *api.Call, in *UserInput) (*Empty, error) {
	if _, err := s.entities.Find(call.Account, iam.User, *in.UserName); err != nil {
		return nil, err
	}
	return nil, fault.Newf(fault.NoSuchEntity, "Login Profile for User %s cannot be found.", *in.UserName)
}

func (s *Service) getAccountPasswordPolicy(_ context.Context, call *api.Call, _ *NoInput) (*Empty, error) {
	return nil, fault.Newf(fault.NoSuchEntity, "The Password Policy with domain name %s cannot be found.", call.Account)
}

func (s *Service) createAccountAlias(_ context.Context, call *api.Call, in *AliasInput) (*Empty, error) {
	alias := *in.AccountAlias
	return s.entities.Change(call.Account, func(a *iam.Account, now time.Time) error {
		for _, before := range a.List(iam.Alias, "") { // a new alias replaces the old one
			if err := a.Delete(iam.Alias, before.Name); err != nil {
				return err
			}
		}
		return a.Create(&iam.Entity{Kind: iam.Alias, Name: alias, Created: now.Truncate(time.Second)})
	})
}

func (s *Service) deleteAccountAlias(_ context.Context, call *api.Call, in *AliasInput) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Alias, *in.AccountAlias) })
}

func (s *Service) listAccountAliases(_ context.Context, call *api.Call, _ *ListInput) (*ListAccountAliasesOutput, error) {
	all, err := s.entities.List(call, iam.Alias, nil)
	if err != nil {
		return nil, err
	}
	out := &ListAccountAliasesOutput{AccountAliases: []string{}}
	for _, e := range all {
		out.AccountAliases = append(out.AccountAliases, e.Name)
	}
	return out, nil
}

func (s *Service) getAccountSummary(_ context.Context, call *api.Call, _ *NoInput) (*GetAccountSummaryOutput, error) {
	counts := map[string]int{
		"UserPolicySizeQuota": 2_048, "GroupPolicySizeQuota": 5_120, "RolePolicySizeQuota": 10_240, "AssumeRolePolicySizeQuota": iam.MaxTrust,
		"PolicySizeQuota": iam.MaxManaged, "VersionsPerPolicyQuota": iam.MaxVersions, "PolicyVersionsInUseQuota": 10_000,
		"GroupsPerUserQuota": iam.MaxGroups, "AccessKeysPerUserQuota": iam.MaxKeys, "SigningCertificatesPerUserQuota": 2,
		"AttachedPoliciesPerUserQuota": iam.MaxAttached, "AttachedPoliciesPerGroupQuota": iam.MaxAttached, "AttachedPoliciesPerRoleQuota": iam.MaxAttached,
		"ServerCertificates": 0, "ServerCertificatesQuota": 20, "MFADevices": 0, "MFADevicesInUse": 0, "AccountMFAEnabled": 0,
		"AccountAccessKeysPresent": 0, "AccountPasswordPresent": 0, "AccountSigningCertificatesPresent": 0, "GlobalEndpointTokenVersion": 2,
	}
	err := s.engine.Read(call.Account, func(a *iam.Account) error {
		for name, kind := range map[string]iam.Kind{"Users": iam.User, "Groups": iam.Group, "Roles": iam.Role, "Policies": iam.Policy, "InstanceProfiles": iam.Profile} {
			counts[name], counts[name+"Quota"] = a.Count(kind), iam.Quota(kind)
		}
		counts["Providers"] = a.Count(iam.Provider)
		for _, p := range a.List(iam.Policy, "") {
			counts["PolicyVersionsInUse"] += len(p.Policy.Versions)
		}
		return nil
	})
	return &GetAccountSummaryOutput{counts}, err
}

func inlinePolicies(e *iam.Entity) []InlinePolicy {
	all := make([]InlinePolicy, 0, len(e.Inline))
	for _, p := range e.Inline {
		all = append(all, InlinePolicy{p.Name, encoded(p.Document)})
	}
	return all
}

// details is an entity of GetAccountAuthorizationDetails, with its related entities.
type details struct {
	entity   *iam.Entity
	attached []AttachedPolicy
	groups   []string
	profiles []*iam.Entity
	policy   Policy
}

func (s *Service) getAccountAuthorizationDetails(_ context.Context, call *api.Call, in *AuthorizationDetailsInput) (*AuthorizationDetailsOutput, error) {
	var all []details
	err := s.engine.Read(call.Account, func(a *iam.Account) error {
		all = collect(a, in.Filter)
		return nil
	})
	if err != nil {
		return nil, err
	}
	byARN := func(d *details) string { return d.entity.ARN() }
	slices.SortFunc(all, func(x, y details) int { return strings.Compare(byARN(&x), byARN(&y)) })
	cut, truncated, next, err := check.Page("details", all, byARN, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	out := &AuthorizationDetailsOutput{
		UserDetailList: []UserDetail{}, GroupDetailList: []GroupDetail{}, RoleDetailList: []RoleDetail{}, Policies: []PolicyDetails{}, IsTruncated: truncated, Marker: next,
	}
	for i := range cut {
		s.addDetail(out, &cut[i])
	}
	return out, nil
}

func collect(a *iam.Account, filter []string) (all []details) {
	wanted := func(name string) bool { return len(filter) == 0 || slices.Contains(filter, name) }
	for name, kind := range map[string]iam.Kind{"User": iam.User, "Role": iam.Role, "Group": iam.Group} {
		if !wanted(name) {
			continue
		}
		for _, e := range a.List(kind, "") {
			d := details{entity: e, attached: attachedTo(a, e, ""), groups: []string{}, profiles: a.ProfilesOf(e.ID)}
			for _, g := range a.GroupsOf(e) {
				d.groups = append(d.groups, g.Name)
			}
			all = append(all, d)
		}
	}
	add := func(e *iam.Entity) { all = append(all, details{entity: e, policy: listedPolicy(a, e)}) }
	if wanted("LocalManagedPolicy") {
		for _, e := range a.List(iam.Policy, "") {
			add(e)
		}
	}
	if wanted("AWSManagedPolicy") {
		iam.EachAWSManaged(func(e *iam.Entity) {
			if attached, boundaries := a.Attachments(e.ARN()); attached+boundaries > 0 { // AWS only shows policies that are attached
				add(e)
			}
		})
	}
	return all
}

func (s *Service) addDetail(out *AuthorizationDetailsOutput, d *details) {
	e := d.entity
	switch e.Kind {
	case iam.User:
		out.UserDetailList = append(out.UserDetailList, UserDetail{
			e.Path, e.Name, e.ID, e.ARN(), api.TimeOf(e.Created), inlinePolicies(e), d.groups, d.attached, shownBoundary(e), entity.ShownTags(e.Tags),
		})
	case iam.Group:
		out.GroupDetailList = append(out.GroupDetailList, GroupDetail{e.Path, e.Name, e.ID, e.ARN(), api.TimeOf(e.Created), inlinePolicies(e), d.attached})
	case iam.Role:
		shown := RoleDetail{
			Path: e.Path, RoleName: e.Name, RoleId: e.ID, Arn: e.ARN(), CreateDate: api.TimeOf(e.Created), AssumeRolePolicyDocument: encoded(s.engine.ShowPolicy(e.Role.Trust)),
			InstanceProfileList: []InstanceProfile{}, RolePolicyList: inlinePolicies(e), AttachedManagedPolicies: d.attached,
			PermissionsBoundary: shownBoundary(e), Tags: entity.ShownTags(e.Tags), RoleLastUsed: s.shownRole(e).RoleLastUsed,
		}
		for _, p := range d.profiles {
			shown.InstanceProfileList = append(shown.InstanceProfileList, s.shownProfile(p, e))
		}
		out.RoleDetailList = append(out.RoleDetailList, shown)
	default:
		p := d.policy
		shown := PolicyDetails{
			p.PolicyName, p.PolicyId, p.Arn, p.Path, p.DefaultVersionId, p.AttachmentCount, p.PermissionsBoundaryUsageCount, true,
			e.Description, p.CreateDate, p.UpdateDate, nil,
		}
		for i := range e.Policy.Versions {
			v := shownVersion(e, &e.Policy.Versions[i])
			v.Document = encoded(e.Policy.Versions[i].Document)
			shown.PolicyVersionList = append(shown.PolicyVersionList, v)
		}
		out.Policies = append(out.Policies, shown)
	}
}
