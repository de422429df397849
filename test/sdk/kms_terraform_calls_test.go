package sdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
)

// provider is an aws_iam_openid_connect_provider.
func (s *identities) provider() resource {
	arn := new("arn:aws:iam::" + account + ":oidc-provider/token.actions.example.com")
	first, second := "9e99a48a9960b14926bb7f3b02e22da2b0ab7280", "1c58a3a8518e8759bf075b76b750d4f2df264fcd"
	return resource{
		name: "OpenID Connect provider", want: [2]fields{
			{"url": "token.actions.example.com", "clients": "[sts.amazonaws.com]", "thumbprints": "[" + first + "]", "tags": tagged(team[0])},
			{"url": "token.actions.example.com", "clients": "[orders sts.amazonaws.com]", "thumbprints": "[" + second + "]", "tags": tagged(team[1])},
		},
		create: func(t *testing.T) {
			made := must(s.iam.CreateOpenIDConnectProvider(t.Context(), &iam.CreateOpenIDConnectProviderInput{
				Url: new("https://token.actions.example.com"), ClientIDList: []string{"sts.amazonaws.com"}, ThumbprintList: []string{first}, Tags: team[0],
			}))(t)
			equal(t, "ARN", *arn, *made.OpenIDConnectProviderArn)
		},
		change: func(t *testing.T) {
			must(s.iam.TagOpenIDConnectProvider(t.Context(), &iam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, Tags: retag}))(t)
			must(s.iam.UpdateOpenIDConnectProviderThumbprint(t.Context(), &iam.UpdateOpenIDConnectProviderThumbprintInput{OpenIDConnectProviderArn: arn, ThumbprintList: []string{second}}))(t)
			must(s.iam.AddClientIDToOpenIDConnectProvider(t.Context(), &iam.AddClientIDToOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, ClientID: new("orders")}))(t)
		},
		read: func(t *testing.T) fields {
			p := must(s.iam.GetOpenIDConnectProvider(t.Context(), &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn}))(t)
			slices.Sort(p.ClientIDList) // a set
			return fields{"url": *p.Url, "clients": fmt.Sprint(p.ClientIDList), "thumbprints": fmt.Sprint(p.ThumbprintList), "tags": tagged(p.Tags)}
		},
		destroy: func(t *testing.T) {
			must(s.iam.DeleteOpenIDConnectProvider(t.Context(), &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn}))(t)
			_, err := s.iam.GetOpenIDConnectProvider(t.Context(), &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn})
			gone(t, err, "NoSuchEntity")
		},
	}
}

// trustOf is a trust policy as the provider writes one.
func trustOf(services string) string {
	return `{"Statement":[{"Action":"sts:AssumeRole","Effect":"Allow","Principal":{"Service":` + services + `}},` +
		`{"Action":"sts:AssumeRole","Condition":{"StringEquals":{"sts:ExternalId":"orders"}},"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Sid":"people"}],` +
		`"Version":"2012-10-17"}`
}

// role is an aws_iam_role, with all that can change of one if full is set.
func (s *identities) role(name string, full bool) resource {
	boundary, one, two := "arn:aws:iam::"+account+":policy/caps/cap", trustOf(`"lambda.amazonaws.com"`), trustOf(`["lambda.amazonaws.com","events.amazonaws.com"]`)
	made := fields{
		"arn": "arn:aws:iam::" + account + ":role/orders/" + name, "path": "/orders/", "name": name, "description": "what it does", "trust": said(one),
		"longest": "3600", "boundary": boundary, "tags": tagged(team[0]),
	}
	r := resource{
		name: "role " + name, want: [2]fields{made, made},
		create: func(t *testing.T) {
			must(s.iam.CreateRole(t.Context(), &iam.CreateRoleInput{
				RoleName: &name, Path: new("/orders/"), AssumeRolePolicyDocument: &one, Description: new("what it does"), MaxSessionDuration: new(int32(3600)),
				PermissionsBoundary: &boundary, Tags: team[0],
			}))(t)
		},
		read: func(t *testing.T) fields {
			role := must(s.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: &name}))(t).Role
			// what it has of policies is computed: any is taken
			for _, in := range must(s.iam.ListRolePolicies(t.Context(), &iam.ListRolePoliciesInput{RoleName: &name}))(t).PolicyNames {
				must(s.iam.GetRolePolicy(t.Context(), &iam.GetRolePolicyInput{RoleName: &name, PolicyName: &in}))(t)
			}
			must(s.iam.ListAttachedRolePolicies(t.Context(), &iam.ListAttachedRolePoliciesInput{RoleName: &name}))(t)
			all := fields{
				"arn": *role.Arn, "path": *role.Path, "name": *role.RoleName, "description": aws.ToString(role.Description), "trust": said(document(t, role.AssumeRolePolicyDocument)),
				"longest": fmt.Sprint(*role.MaxSessionDuration), "boundary": "", "tags": tagged(role.Tags),
			}
			if role.PermissionsBoundary != nil {
				all["boundary"] = *role.PermissionsBoundary.PermissionsBoundaryArn
			}
			return all
		},
		destroy: func(t *testing.T) {
			equal(t, "profiles", 0, len(must(s.iam.ListInstanceProfilesForRole(t.Context(), &iam.ListInstanceProfilesForRoleInput{RoleName: &name}))(t).InstanceProfiles))
			equal(t, "attached", 0, len(must(s.iam.ListAttachedRolePolicies(t.Context(), &iam.ListAttachedRolePoliciesInput{RoleName: &name}))(t).AttachedPolicies))
			equal(t, "inline", 0, len(must(s.iam.ListRolePolicies(t.Context(), &iam.ListRolePoliciesInput{RoleName: &name}))(t).PolicyNames))
			ended(t, s.iam.DeleteRole, &iam.DeleteRoleInput{RoleName: &name})
			_, err := s.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: &name})
			gone(t, err, "NoSuchEntity")
		},
	}
	if full {
		r.want[1] = made.and(fields{"description": "", "trust": said(two), "longest": "7200", "boundary": "", "tags": tagged(team[1])})
		r.change = func(t *testing.T) {
			must(s.iam.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: &name, PolicyDocument: &two}))(t)
			must(s.iam.UpdateRoleDescription(t.Context(), &iam.UpdateRoleDescriptionInput{RoleName: &name, Description: new("")}))(t)
			must(s.iam.UpdateRole(t.Context(), &iam.UpdateRoleInput{RoleName: &name, MaxSessionDuration: new(int32(7200))}))(t)
			must(s.iam.DeleteRolePermissionsBoundary(t.Context(), &iam.DeleteRolePermissionsBoundaryInput{RoleName: &name}))(t)
			must(s.iam.TagRole(t.Context(), &iam.TagRoleInput{RoleName: &name, Tags: retag}))(t)
			equal(t, "listed tags", tagged(team[1]), tagged(must(s.iam.ListRoleTags(t.Context(), &iam.ListRoleTagsInput{RoleName: &name}))(t).Tags))
		}
	}
	return r
}

// profile is an aws_iam_instance_profile, whose role changes.
func (s *identities) profile() resource {
	name := new("worker")
	put := func(t *testing.T, role string) {
		t.Helper()
		must(s.iam.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: &role}))(t)
	}
	want := func(n int, role string) fields {
		return fields{"arn": "arn:aws:iam::" + account + ":instance-profile/worker", "path": "/", "role": role, "tags": tagged(team[n])}
	}
	return resource{
		name: "instance profile", want: [2]fields{want(0, "worker"), want(1, "plain")},
		create: func(t *testing.T) {
			must(s.iam.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: name, Path: new("/"), Tags: team[0]}))(t)
			put(t, "worker")
		},
		change: func(t *testing.T) {
			must(s.iam.TagInstanceProfile(t.Context(), &iam.TagInstanceProfileInput{InstanceProfileName: name, Tags: retag}))(t)
			must(s.iam.RemoveRoleFromInstanceProfile(t.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: new("worker")}))(t)
			put(t, "plain")
		},
		read: func(t *testing.T) fields {
			p := must(s.iam.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: name}))(t).InstanceProfile
			if len(p.Roles) != 1 {
				t.Fatalf("roles: %v", p.Roles)
			}
			must(s.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: p.Roles[0].RoleName}))(t)
			return fields{"arn": *p.Arn, "path": *p.Path, "role": *p.Roles[0].RoleName, "tags": tagged(p.Tags)}
		},
		destroy: func(t *testing.T) {
			must(s.iam.RemoveRoleFromInstanceProfile(t.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: new("plain")}))(t)
			ended(t, s.iam.DeleteInstanceProfile, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
		},
	}
}

// keyPolicy is a key's policy as the provider writes one, that lets a role do something.
func (s *identities) keyPolicy(actions string) string {
	return `{"Statement":[{"Action":"kms:*","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Resource":"*","Sid":"root"},` +
		`{"Action":` + actions + `,"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:role/orders/worker"},"Resource":"*","Sid":"worker"}],"Version":"2012-10-17"}`
}

// usages are what keys are for, by their kind.
var usages = map[kmstypes.KeySpec]kmstypes.KeyUsageType{
	kmstypes.KeySpecSymmetricDefault: kmstypes.KeyUsageTypeEncryptDecrypt, kmstypes.KeySpecEccNistP256: kmstypes.KeyUsageTypeSignVerify,
	kmstypes.KeySpecHmac256: kmstypes.KeyUsageTypeGenerateVerifyMac,
}

// key is an aws_kms_key. With a policy it is changed in place and gets rotation; a
// symmetric one without is disabled.
func (s *identities) key(name string, spec kmstypes.KeySpec, policy func(actions string) string) resource {
	id := func() *string { return aws.String(s.keys[name]) }
	made := fields{
		"description": name, "spec": string(spec), "usage": string(usages[spec]), "enabled": "true", "multi-Region": "false", "state": "Enabled", "manager": "CUSTOMER",
		"rotation": "false", "period": "0", "tags": "team=a",
	}
	in := &kms.CreateKeyInput{
		CustomerMasterKeySpec: kmstypes.CustomerMasterKeySpec(spec), //nolint:staticcheck // deprecated, and what the provider names
		Description:           &name, KeyUsage: usages[spec], Tags: []kmstypes.Tag{{TagKey: new("team"), TagValue: new("a")}},
	}
	put := func(t *testing.T, doc string) {
		t.Helper()
		ask(t, s.kms.PutKeyPolicy, &kms.PutKeyPolicyInput{KeyId: id(), PolicyName: new("default"), Policy: &doc})
	}
	r := resource{
		name: "key " + name, want: [2]fields{made, made},
		create: func(t *testing.T) { s.keys[name] = *makeKey(t, s.kms, in).KeyId },
		read: func(t *testing.T) fields {
			m := ask(t, s.kms.DescribeKey, &kms.DescribeKeyInput{KeyId: id()}).KeyMetadata
			equal(t, "ARN", "arn:aws:kms:"+region+":"+account+":key/"+*m.KeyId, *m.Arn)
			doc := *ask(t, s.kms.GetKeyPolicy, &kms.GetKeyPolicyInput{KeyId: id(), PolicyName: new("default")}).Policy
			rotation := ask(t, s.kms.GetKeyRotationStatus, &kms.GetKeyRotationStatusInput{KeyId: id()})
			all := fields{
				"description": *m.Description, "spec": string(m.KeySpec), "usage": string(m.KeyUsage), "enabled": fmt.Sprint(m.Enabled), "multi-Region": fmt.Sprint(*m.MultiRegion),
				"state": string(m.KeyState), "manager": string(m.KeyManager), "rotation": fmt.Sprint(rotation.KeyRotationEnabled), "period": fmt.Sprint(aws.ToInt32(rotation.RotationPeriodInDays)),
			}
			if policy != nil {
				all["policy"] = said(doc)
			}
			var tags []string
			for _, tag := range ask(t, s.kms.ListResourceTags, &kms.ListResourceTagsInput{KeyId: id()}).Tags {
				tags = append(tags, *tag.TagKey+"="+*tag.TagValue)
			}
			slices.Sort(tags)
			all["tags"] = strings.Join(tags, " ")
			return all
		},
		destroy: func(t *testing.T) {
			ask(t, s.kms.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: id(), PendingWindowInDays: new(int32(7))})
			m := ask(t, s.kms.DescribeKey, &kms.DescribeKeyInput{KeyId: id()}).KeyMetadata
			equal(t, "state", kmstypes.KeyStatePendingDeletion, m.KeyState)
		},
	}
	switch {
	case policy != nil:
		first, second := policy(`"kms:Decrypt"`), policy(`["kms:GenerateDataKey*","kms:Decrypt"]`)
		in.Policy = &first
		r.want[0] = made.and(fields{"policy": said(first)})
		r.want[1] = made.and(fields{"policy": said(second), "description": "more", "rotation": "true", "period": "180", "tags": "more= team=b"})
		r.change = func(t *testing.T) {
			ask(t, s.kms.EnableKeyRotation, &kms.EnableKeyRotationInput{KeyId: id(), RotationPeriodInDays: new(int32(180))})
			ask(t, s.kms.UpdateKeyDescription, &kms.UpdateKeyDescriptionInput{KeyId: id(), Description: new("more")})
			put(t, second)
			ask(t, s.kms.TagResource, &kms.TagResourceInput{KeyId: id(), Tags: []kmstypes.Tag{{TagKey: new("more"), TagValue: new("")}, {TagKey: new("team"), TagValue: new("b")}}})
		}
	case spec == kmstypes.KeySpecSymmetricDefault:
		r.want[1] = made.and(fields{"enabled": "false", "state": "Disabled"})
		r.change = func(t *testing.T) { ask(t, s.kms.DisableKey, &kms.DisableKeyInput{KeyId: id()}) }
	}
	return r
}

// keyAlias is an aws_kms_alias. The provider looks for it in the list of all.
func (s *identities) keyAlias() resource {
	name := new("alias/orders")
	find := func(t *testing.T) fields {
		t.Helper()
		for _, a := range ask(t, s.kms.ListAliases, &kms.ListAliasesInput{}).Aliases {
			if *a.AliasName == *name {
				target := "neither"
				for key, id := range s.keys {
					if id == *a.TargetKeyId {
						target = key
					}
				}
				return fields{"arn": *a.AliasArn, "target": target}
			}
		}
		return nil
	}
	want := fields{"arn": "arn:aws:kms:" + region + ":" + account + ":alias/orders", "target": "orders"}
	return resource{
		name: "alias", want: [2]fields{want, want.and(fields{"target": "plain"})}, read: find,
		create: func(t *testing.T) {
			ask(t, s.kms.CreateAlias, &kms.CreateAliasInput{AliasName: name, TargetKeyId: new(s.keys["orders"])})
		},
		change: func(t *testing.T) {
			ask(t, s.kms.UpdateAlias, &kms.UpdateAliasInput{AliasName: name, TargetKeyId: new(s.keys["plain"])})
		},
		destroy: func(t *testing.T) {
			ask(t, s.kms.DeleteAlias, &kms.DeleteAliasInput{AliasName: name})
			equal(t, "after the end", fields(nil), find(t))
		},
	}
}

// grant is an aws_kms_grant.
func (s *identities) grant() resource {
	key := func() *string { return aws.String(s.keys["orders"]) }
	worker := "arn:aws:iam::" + account + ":role/orders/worker"
	find := func(t *testing.T) fields {
		t.Helper()
		for _, g := range ask(t, s.kms.ListGrants, &kms.ListGrantsInput{KeyId: key(), Limit: new(int32(100))}).Grants {
			if *g.GrantId == s.ids["grant"] {
				slices.Sort(g.Operations) // a set
				return fields{
					"name": *g.Name, "grantee": *g.GranteePrincipal, "retiring": aws.ToString(g.RetiringPrincipal), "operations": fmt.Sprint(g.Operations),
					"subset": fmt.Sprint(g.Constraints.EncryptionContextSubset), "equals": fmt.Sprint(g.Constraints.EncryptionContextEquals),
				}
			}
		}
		return nil
	}
	want := fields{"name": "worker", "grantee": worker, "retiring": "", "operations": "[Decrypt Encrypt GenerateDataKey]", "subset": "map[queue:orders]", "equals": "map[]"}
	return resource{
		name: "grant", want: [2]fields{want, want}, read: find,
		create: func(t *testing.T) {
			s.ids["grant"] = *ask(t, s.kms.CreateGrant, &kms.CreateGrantInput{
				Name: new("worker"), KeyId: key(), GranteePrincipal: &worker,
				Operations:  []kmstypes.GrantOperation{kmstypes.GrantOperationGenerateDataKey, kmstypes.GrantOperationEncrypt, kmstypes.GrantOperationDecrypt},
				Constraints: &kmstypes.GrantConstraints{EncryptionContextSubset: map[string]string{"queue": "orders"}, EncryptionContextEquals: map[string]string{}},
			}).GrantId
		},
		destroy: func(t *testing.T) {
			ask(t, s.kms.RevokeGrant, &kms.RevokeGrantInput{KeyId: key(), GrantId: new(s.ids["grant"])})
			equal(t, "after the end", fields(nil), find(t))
		},
	}
}
