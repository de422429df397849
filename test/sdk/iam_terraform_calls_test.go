package sdk_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/config"
)

// TestTerraformsIdentityCalls is TestTerraformsCalls of what IAM, STS and KMS have, as the
// provider was seen to call them.
func TestTerraformsIdentityCalls(t *testing.T) {
	for name, enforced := range map[string]bool{"enforced": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			endpoint := startWith(t, func(c *config.Config) { c.Enforce = enforced })
			s := &identities{
				iam: iamClient(endpoint), kms: newKMS(t, endpoint, "test"), sts: stsClientOf(endpoint, "test", secretOf("test"), ""),
				keys: map[string]string{}, ids: map[string]string{},
			}
			s.account(t, enforced)
			lifeCycle(t, []resource{
				s.policy("cap", "/caps/", sendOf("sqs:*"), sendOf("sqs:*")), s.policy("send", "/", sendOf("sqs:SendMessage"), sendOf("sqs:*")),
				s.user("ann", "ann.b"), s.user("bob", "bob"), s.accessKey("bob"), s.userPolicy("bob"), s.userAttachment("bob"),
				s.group("clerks", "clerks-b"), s.group("plain", "plain"), s.membership("plain"), s.groupPolicy("plain"), s.groupAttachment("plain"),
				s.provider(), s.role("plain", false), s.role("worker", true), s.rolePolicy("worker"),
				s.attachment("worker", "arn:aws:iam::"+account+":policy/send"), s.attachment("worker", basicExecution), s.profile(),
				s.key("plain", kmstypes.KeySpecSymmetricDefault, nil), s.key("orders", kmstypes.KeySpecSymmetricDefault, s.keyPolicy),
				s.key("sign", kmstypes.KeySpecEccNistP256, nil), s.key("mac", kmstypes.KeySpecHmac256, nil), s.keyAlias(), s.grant(),
			})
		})
	}
}

const basicExecution = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"

// sendOf is a policy as the provider writes one.
func sendOf(action string) string {
	return `{"Statement":[{"Action":"` + action + `","Effect":"Allow","Resource":"arn:aws:sqs:*:` + account + `:orders-${aws:username}","Sid":"Send"},` +
		`{"Action":"sqs:*","Condition":{"Bool":{"aws:SecureTransport":"false"},"NotIpAddress":{"aws:SourceIp":["10.0.0.0/8","127.0.0.1/32"]}},` +
		`"Effect":"Deny","Resource":"*"}],"Version":"2012-10-17"}`
}

type identities struct {
	iam  *iam.Client
	kms  *kms.Client
	sts  *sts.Client
	keys map[string]string // ids of KMS's keys, by name
	ids  map[string]string // of grants, access keys and users, by name
}

// account is a data source aws_caller_identity, and how the provider is configured.
func (s *identities) account(t *testing.T, enforced bool) {
	t.Helper()
	who := "user/test"
	if enforced {
		who = "root"
	}
	me := must(s.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}))(t)
	equal(t, "me", []string{account, "arn:aws:iam::" + account + ":" + who}, []string{*me.Account, *me.Arn})
}

// team are the tags of all resources, as made and as changed.
var team = [2][]iamtypes.Tag{
	{{Key: new("project"), Value: new("rental")}, {Key: new("team"), Value: new("a")}},
	{{Key: new("more"), Value: new("")}, {Key: new("project"), Value: new("rental")}, {Key: new("team"), Value: new("b")}},
}

// retag is what the provider adds to the tags.
var retag = []iamtypes.Tag{{Key: new("more"), Value: new("")}, {Key: new("team"), Value: new("b")}}

func tagged(tags []iamtypes.Tag) string {
	all := make([]string, 0, len(tags))
	for _, tag := range tags {
		all = append(all, *tag.Key+"="+*tag.Value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// ended gives up what was there, once; a second time, and a read, find nothing.
func ended[In, Out any](t *testing.T, call func(context.Context, *In, ...func(*iam.Options)) (*Out, error), in *In) {
	t.Helper()
	must(call(t.Context(), in))(t)
	_, err := call(t.Context(), in)
	gone(t, err, "NoSuchEntity")
}

// policy is an aws_iam_policy.
func (s *identities) policy(name, path, first, second string) resource {
	arn := "arn:aws:iam::" + account + ":policy" + path + name
	want := func(n int, doc string) fields {
		return fields{"arn": arn, "path": path, "name": name, "description": "what it is", "document": said(doc), "tags": tagged(team[n])}
	}
	r := resource{
		name: "policy " + name, want: [2]fields{want(0, first), want(0, first)},
		create: func(t *testing.T) {
			must(s.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: &name, Path: &path, PolicyDocument: &first, Description: new("what it is"), Tags: team[0]}))(t)
		},
		read: func(t *testing.T) fields {
			p := must(s.iam.GetPolicy(t.Context(), &iam.GetPolicyInput{PolicyArn: &arn}))(t).Policy
			v := must(s.iam.GetPolicyVersion(t.Context(), &iam.GetPolicyVersionInput{PolicyArn: &arn, VersionId: p.DefaultVersionId}))(t).PolicyVersion
			return fields{"arn": *p.Arn, "path": *p.Path, "name": *p.PolicyName, "description": *p.Description, "document": said(document(t, v.Document)), "tags": tagged(p.Tags)}
		},
		destroy: func(t *testing.T) {
			for _, v := range must(s.iam.ListPolicyVersions(t.Context(), &iam.ListPolicyVersionsInput{PolicyArn: &arn}))(t).Versions {
				if !v.IsDefaultVersion {
					ended(t, s.iam.DeletePolicyVersion, &iam.DeletePolicyVersionInput{PolicyArn: &arn, VersionId: v.VersionId})
				}
			}
			ended(t, s.iam.DeletePolicy, &iam.DeletePolicyInput{PolicyArn: &arn})
		},
	}
	if first != second {
		r.want[1] = want(1, second)
		r.change = func(t *testing.T) {
			equal(t, "versions", 1, len(must(s.iam.ListPolicyVersions(t.Context(), &iam.ListPolicyVersionsInput{PolicyArn: &arn}))(t).Versions))
			must(s.iam.CreatePolicyVersion(t.Context(), &iam.CreatePolicyVersionInput{PolicyArn: &arn, PolicyDocument: &second, SetAsDefault: true}))(t)
			must(s.iam.TagPolicy(t.Context(), &iam.TagPolicyInput{PolicyArn: &arn, Tags: retag}))(t)
			equal(t, "listed tags", tagged(team[1]), tagged(must(s.iam.ListPolicyTags(t.Context(), &iam.ListPolicyTagsInput{PolicyArn: &arn}))(t).Tags))
		}
	}
	return r
}

// user is an aws_iam_user with force_destroy. Its name, path and boundary change in place.
func (s *identities) user(name, renamed string) resource {
	now := name
	boundary := "arn:aws:iam::" + account + ":policy/caps/cap"
	return resource{
		name: "user " + name,
		want: [2]fields{
			{"arn": "arn:aws:iam::" + account + ":user/people/" + name, "path": "/people/", "name": name, "boundary": "", "tags": tagged(team[0])},
			{"arn": "arn:aws:iam::" + account + ":user/people/b/" + renamed, "path": "/people/b/", "name": renamed, "boundary": boundary, "tags": tagged(team[1])},
		},
		create: func(t *testing.T) {
			made := must(s.iam.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name, Path: new("/people/"), Tags: team[0]}))(t).User
			s.ids["user "+name] = *made.UserId
		},
		change: func(t *testing.T) {
			must(s.iam.UpdateUser(t.Context(), &iam.UpdateUserInput{UserName: &name, NewUserName: &renamed, NewPath: new("/people/b/")}))(t)
			now = renamed
			must(s.iam.PutUserPermissionsBoundary(t.Context(), &iam.PutUserPermissionsBoundaryInput{UserName: &now, PermissionsBoundary: &boundary}))(t)
			must(s.iam.TagUser(t.Context(), &iam.TagUserInput{UserName: &now, Tags: retag}))(t)
			equal(t, "listed tags", tagged(team[1]), tagged(must(s.iam.ListUserTags(t.Context(), &iam.ListUserTagsInput{UserName: &now}))(t).Tags))
		},
		read: func(t *testing.T) fields {
			u := must(s.iam.GetUser(t.Context(), &iam.GetUserInput{UserName: &now}))(t).User
			equal(t, "unique id", s.ids["user "+name], *u.UserId)
			all := fields{"arn": *u.Arn, "path": *u.Path, "name": *u.UserName, "boundary": "", "tags": tagged(u.Tags)}
			if u.PermissionsBoundary != nil {
				all["boundary"] = *u.PermissionsBoundary.PermissionsBoundaryArn
			}
			return all
		},
		destroy: func(t *testing.T) {
			ctx := t.Context()
			left := len(must(s.iam.ListGroupsForUser(ctx, &iam.ListGroupsForUserInput{UserName: &now}))(t).Groups) +
				len(must(s.iam.ListUserPolicies(ctx, &iam.ListUserPoliciesInput{UserName: &now}))(t).PolicyNames) +
				len(must(s.iam.ListAttachedUserPolicies(ctx, &iam.ListAttachedUserPoliciesInput{UserName: &now}))(t).AttachedPolicies) +
				len(must(s.iam.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: &now}))(t).AccessKeyMetadata) +
				len(must(s.iam.ListSSHPublicKeys(ctx, &iam.ListSSHPublicKeysInput{UserName: &now}))(t).SSHPublicKeys) +
				len(must(s.iam.ListVirtualMFADevices(ctx, &iam.ListVirtualMFADevicesInput{AssignmentStatus: iamtypes.AssignmentStatusTypeAssigned}))(t).VirtualMFADevices) +
				len(must(s.iam.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: &now}))(t).MFADevices) +
				len(must(s.iam.ListSigningCertificates(ctx, &iam.ListSigningCertificatesInput{UserName: &now}))(t).Certificates) +
				len(must(s.iam.ListServiceSpecificCredentials(ctx, &iam.ListServiceSpecificCredentialsInput{UserName: &now}))(t).ServiceSpecificCredentials)
			equal(t, "what is left of the user", 0, left)
			_, err := s.iam.DeleteLoginProfile(ctx, &iam.DeleteLoginProfileInput{UserName: &now})
			gone(t, err, "NoSuchEntity")
			ended(t, s.iam.DeleteUser, &iam.DeleteUserInput{UserName: &now})
			_, err = s.iam.GetUser(ctx, &iam.GetUserInput{UserName: &now})
			gone(t, err, "NoSuchEntity")
		},
	}
}

// accessKey is an aws_iam_access_key.
func (s *identities) accessKey(user string) resource {
	return resource{
		name: "access key of " + user, want: [2]fields{{"user": user, "status": "Active"}, {"user": user, "status": "Inactive"}},
		create: func(t *testing.T) {
			key := must(s.iam.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &user}))(t).AccessKey
			s.ids["key"] = *key.AccessKeyId
			equal(t, "the secret's length", 40, len(*key.SecretAccessKey))
		},
		change: func(t *testing.T) {
			must(s.iam.UpdateAccessKey(t.Context(), &iam.UpdateAccessKeyInput{UserName: &user, AccessKeyId: new(s.ids["key"]), Status: iamtypes.StatusTypeInactive}))(t)
		},
		read: func(t *testing.T) fields {
			listed := must(s.iam.ListAccessKeys(t.Context(), &iam.ListAccessKeysInput{UserName: &user}))(t).AccessKeyMetadata
			if len(listed) != 1 || *listed[0].AccessKeyId != s.ids["key"] || listed[0].CreateDate == nil {
				t.Fatalf("keys: %+v", listed)
			}
			return fields{"user": *listed[0].UserName, "status": string(listed[0].Status)}
		},
		destroy: func(t *testing.T) {
			ended(t, s.iam.DeleteAccessKey, &iam.DeleteAccessKeyInput{UserName: &user, AccessKeyId: new(s.ids["key"])})
		},
	}
}

// inline is an aws_iam_user_policy, or the like of a group or a role.
func inline(of string, put func(t *testing.T, doc string), get func(t *testing.T) string, destroy func(t *testing.T)) resource {
	return resource{
		name: "policy in " + of, want: [2]fields{{"document": said(sendOf("sqs:SendMessage"))}, {"document": said(sendOf("sqs:*"))}},
		create: func(t *testing.T) { put(t, sendOf("sqs:SendMessage")) }, change: func(t *testing.T) { put(t, sendOf("sqs:*")) },
		read: func(t *testing.T) fields { return fields{"document": said(get(t))} }, destroy: destroy,
	}
}

func (s *identities) userPolicy(user string) resource {
	in := new("in")
	return inline("user "+user, func(t *testing.T, doc string) {
		must(s.iam.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &user, PolicyName: in, PolicyDocument: &doc}))(t)
	}, func(t *testing.T) string {
		return document(t, must(s.iam.GetUserPolicy(t.Context(), &iam.GetUserPolicyInput{UserName: &user, PolicyName: in}))(t).PolicyDocument)
	}, func(t *testing.T) {
		ended(t, s.iam.DeleteUserPolicy, &iam.DeleteUserPolicyInput{UserName: &user, PolicyName: in})
	})
}

func (s *identities) groupPolicy(group string) resource {
	in := new("in")
	return inline("group "+group, func(t *testing.T, doc string) {
		must(s.iam.PutGroupPolicy(t.Context(), &iam.PutGroupPolicyInput{GroupName: &group, PolicyName: in, PolicyDocument: &doc}))(t)
	}, func(t *testing.T) string {
		return document(t, must(s.iam.GetGroupPolicy(t.Context(), &iam.GetGroupPolicyInput{GroupName: &group, PolicyName: in}))(t).PolicyDocument)
	}, func(t *testing.T) {
		ended(t, s.iam.DeleteGroupPolicy, &iam.DeleteGroupPolicyInput{GroupName: &group, PolicyName: in})
	})
}

func (s *identities) rolePolicy(role string) resource {
	in := new("in")
	return inline("role "+role, func(t *testing.T, doc string) {
		must(s.iam.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: &role, PolicyName: in, PolicyDocument: &doc}))(t)
	}, func(t *testing.T) string {
		return document(t, must(s.iam.GetRolePolicy(t.Context(), &iam.GetRolePolicyInput{RoleName: &role, PolicyName: in}))(t).PolicyDocument)
	}, func(t *testing.T) {
		ended(t, s.iam.DeleteRolePolicy, &iam.DeleteRolePolicyInput{RoleName: &role, PolicyName: in})
	})
}

// attached is an attachment of a managed policy, which the provider looks for in a list.
func attached(of, arn string, attach func(t *testing.T), list func(t *testing.T) []iamtypes.AttachedPolicy, detach func(t *testing.T)) resource {
	want := fields{"policy": arn, "name": arn[strings.LastIndexByte(arn, '/')+1:]}
	return resource{
		name: arn + " of " + of, want: [2]fields{want, want}, create: attach, destroy: detach,
		read: func(t *testing.T) fields {
			for _, p := range list(t) {
				if *p.PolicyArn == arn {
					return fields{"policy": arn, "name": *p.PolicyName}
				}
			}
			return nil
		},
	}
}

func (s *identities) userAttachment(user string) resource {
	arn := new("arn:aws:iam::" + account + ":policy/send")
	return attached("user "+user, *arn, func(t *testing.T) {
		must(s.iam.AttachUserPolicy(t.Context(), &iam.AttachUserPolicyInput{UserName: &user, PolicyArn: arn}))(t)
	}, func(t *testing.T) []iamtypes.AttachedPolicy {
		return must(s.iam.ListAttachedUserPolicies(t.Context(), &iam.ListAttachedUserPoliciesInput{UserName: &user}))(t).AttachedPolicies
	}, func(t *testing.T) {
		ended(t, s.iam.DetachUserPolicy, &iam.DetachUserPolicyInput{UserName: &user, PolicyArn: arn})
	})
}

func (s *identities) groupAttachment(group string) resource {
	arn := new("arn:aws:iam::" + account + ":policy/send")
	return attached("group "+group, *arn, func(t *testing.T) {
		must(s.iam.AttachGroupPolicy(t.Context(), &iam.AttachGroupPolicyInput{GroupName: &group, PolicyArn: arn}))(t)
	}, func(t *testing.T) []iamtypes.AttachedPolicy {
		return must(s.iam.ListAttachedGroupPolicies(t.Context(), &iam.ListAttachedGroupPoliciesInput{GroupName: &group}))(t).AttachedPolicies
	}, func(t *testing.T) {
		ended(t, s.iam.DetachGroupPolicy, &iam.DetachGroupPolicyInput{GroupName: &group, PolicyArn: arn})
	})
}

// attachment is an aws_iam_role_policy_attachment.
func (s *identities) attachment(role, arn string) resource {
	return attached("role "+role, arn, func(t *testing.T) {
		must(s.iam.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: &role, PolicyArn: &arn}))(t)
	}, func(t *testing.T) []iamtypes.AttachedPolicy {
		return must(s.iam.ListAttachedRolePolicies(t.Context(), &iam.ListAttachedRolePoliciesInput{RoleName: &role}))(t).AttachedPolicies
	}, func(t *testing.T) {
		ended(t, s.iam.DetachRolePolicy, &iam.DetachRolePolicyInput{RoleName: &role, PolicyArn: &arn})
	})
}

// group is an aws_iam_group. Its name and path change in place.
func (s *identities) group(name, renamed string) resource {
	now := name
	want := func(name, path string) fields {
		return fields{"arn": "arn:aws:iam::" + account + ":group" + path + name, "path": path, "name": name}
	}
	return resource{
		name: "group " + name, want: [2]fields{want(name, "/"), want(renamed, "/staff/")},
		create: func(t *testing.T) {
			must(s.iam.CreateGroup(t.Context(), &iam.CreateGroupInput{GroupName: &name, Path: new("/")}))(t)
		},
		change: func(t *testing.T) {
			must(s.iam.UpdateGroup(t.Context(), &iam.UpdateGroupInput{GroupName: &name, NewGroupName: &renamed, NewPath: new("/staff/")}))(t)
			now = renamed
		},
		read: func(t *testing.T) fields {
			g := must(s.iam.GetGroup(t.Context(), &iam.GetGroupInput{GroupName: &now}))(t).Group
			return fields{"arn": *g.Arn, "path": *g.Path, "name": *g.GroupName}
		},
		destroy: func(t *testing.T) { ended(t, s.iam.DeleteGroup, &iam.DeleteGroupInput{GroupName: &now}) },
	}
}

// membership is an aws_iam_group_membership.
func (s *identities) membership(group string) resource {
	add := func(t *testing.T, user string) {
		t.Helper()
		must(s.iam.AddUserToGroup(t.Context(), &iam.AddUserToGroupInput{GroupName: &group, UserName: &user}))(t)
	}
	members := func(t *testing.T) string {
		t.Helper()
		var all []string
		for _, u := range must(s.iam.GetGroup(t.Context(), &iam.GetGroupInput{GroupName: &group}))(t).Users {
			all = append(all, *u.UserName)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	return resource{
		name: "members of " + group, want: [2]fields{{"users": "bob"}, {"users": "ann.b bob"}},
		create: func(t *testing.T) { add(t, "bob") }, change: func(t *testing.T) { add(t, "ann.b") },
		read: func(t *testing.T) fields { return fields{"users": members(t)} },
		destroy: func(t *testing.T) {
			for _, user := range []string{"ann.b", "bob"} {
				must(s.iam.RemoveUserFromGroup(t.Context(), &iam.RemoveUserFromGroupInput{GroupName: &group, UserName: &user}))(t)
			}
			equal(t, "after the end", "", members(t))
		},
	}
}
