package sdk_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// What Terraform's provider asks for, in its order, when its resources are made, read,
// changed and destroyed; and that what it reads is what it has written, as it compares
// it.

func TestTerraformRole(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	policyARN := must(c.CreatePolicy(ctx, &iam.CreatePolicyInput{
		PolicyName: new("p"), Path: new("/"), PolicyDocument: new(allowSend), Description: new("what p is"), Tags: []iamtypes.Tag{{Key: new("a"), Value: new("1")}},
	}))(t).Policy.Arn
	// aws_iam_role
	made := must(c.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: new("r"), Path: new("/"), AssumeRolePolicyDocument: new(trustRoot), Description: new("what r is"), MaxSessionDuration: new(int32(3600)),
		PermissionsBoundary: policyARN, Tags: []iamtypes.Tag{{Key: new("a"), Value: new("1")}},
	}))(t).Role
	role := must(c.GetRole(ctx, &iam.GetRoleInput{RoleName: made.RoleName}))(t).Role
	equal(t, "trust", trustRoot, document(t, role.AssumeRolePolicyDocument))
	role.AssumeRolePolicyDocument = nil
	equal(t, "the role", &iamtypes.Role{
		Arn: new("arn:aws:iam::000000000000:role/r"), CreateDate: made.CreateDate, Description: new("what r is"), MaxSessionDuration: new(int32(3600)), Path: new("/"),
		PermissionsBoundary: &iamtypes.AttachedPermissionsBoundary{PermissionsBoundaryArn: policyARN, PermissionsBoundaryType: iamtypes.PermissionsBoundaryAttachmentTypePolicy},
		RoleId:              made.RoleId, RoleName: new("r"), RoleLastUsed: &iamtypes.RoleLastUsed{}, Tags: []iamtypes.Tag{{Key: new("a"), Value: new("1")}},
	}, role)
	equal(t, "no inline policies", []string{}, must(c.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: new("r")}))(t).PolicyNames)
	equal(t, "no managed policies", []iamtypes.AttachedPolicy{}, must(c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: new("r")}))(t).AttachedPolicies)
	// aws_iam_role_policy and aws_iam_role_policy_attachment
	must(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: new("r"), PolicyName: new("in"), PolicyDocument: new(allowSend)}))(t)
	inline := must(c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: new("r"), PolicyName: new("in")}))(t)
	equal(t, "inline", []string{"r", "in", allowSend}, []string{*inline.RoleName, *inline.PolicyName, document(t, inline.PolicyDocument)})
	must(c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: new("r"), PolicyArn: policyARN}))(t)
	basic := "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
	must(c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: new("r"), PolicyArn: &basic}))(t)
	equal(t, "attached", []iamtypes.AttachedPolicy{{PolicyArn: policyARN, PolicyName: new("p")}, {PolicyArn: &basic, PolicyName: new("AWSLambdaBasicExecutionRole")}},
		must(c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: new("r")}))(t).AttachedPolicies)
	// changes
	must(c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: new("r"), PolicyDocument: new(lambdaTrust)}))(t)
	must(c.UpdateRoleDescription(ctx, &iam.UpdateRoleDescriptionInput{RoleName: new("r"), Description: new("another")}))(t)
	must(c.UpdateRole(ctx, &iam.UpdateRoleInput{RoleName: new("r"), Description: new("another"), MaxSessionDuration: new(int32(7200))}))(t)
	must(c.DeleteRolePermissionsBoundary(ctx, &iam.DeleteRolePermissionsBoundaryInput{RoleName: new("r")}))(t)
	must(c.UntagRole(ctx, &iam.UntagRoleInput{RoleName: new("r"), TagKeys: []string{"a"}}))(t)
	must(c.TagRole(ctx, &iam.TagRoleInput{RoleName: new("r"), Tags: []iamtypes.Tag{{Key: new("b"), Value: new("")}}}))(t)
	role = must(c.GetRole(ctx, &iam.GetRoleInput{RoleName: new("r")}))(t).Role
	equal(t, "changed", []any{lambdaTrust, "another", int32(7200), (*iamtypes.AttachedPermissionsBoundary)(nil), []iamtypes.Tag{{Key: new("b"), Value: new("")}}},
		[]any{document(t, role.AssumeRolePolicyDocument), *role.Description, *role.MaxSessionDuration, role.PermissionsBoundary, role.Tags})
	// destruction
	_, err := c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: new("r")})
	refused(t, err, "DeleteConflict", http.StatusConflict, "Cannot delete entity, must detach all policies first.")
	for _, arn := range []*string{policyARN, &basic} {
		must(c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: new("r"), PolicyArn: arn}))(t)
	}
	_, err = c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: new("r"), PolicyArn: policyARN})
	refused(t, err, "NoSuchEntity", http.StatusNotFound, "Policy "+*policyARN+" was not found.")
	_, err = c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: new("r")})
	refused(t, err, "DeleteConflict", http.StatusConflict, "Cannot delete entity, must delete policies first.")
	must(c.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: new("r"), PolicyName: new("in")}))(t)
	_, err = c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: new("r"), PolicyName: new("in")})
	refused(t, err, "NoSuchEntity", http.StatusNotFound, "The role policy with name in cannot be found.")
	equal(t, "no instance profiles", []iamtypes.InstanceProfile{}, must(c.ListInstanceProfilesForRole(ctx, &iam.ListInstanceProfilesForRoleInput{RoleName: new("r")}))(t).InstanceProfiles)
	must(c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: new("r")}))(t)
	_, err = c.GetRole(ctx, &iam.GetRoleInput{RoleName: new("r")})
	refused(t, err, "NoSuchEntity", http.StatusNotFound, "The role with name r cannot be found.")
}

const lambdaTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

func TestTerraformPolicy(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	made := must(c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: new("p"), Path: new("/x/"), PolicyDocument: new(allowSend), Description: new("d")}))(t).Policy
	read := must(c.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: made.Arn}))(t).Policy
	equal(t, "the policy", &iamtypes.Policy{
		Arn: new("arn:aws:iam::000000000000:policy/x/p"), AttachmentCount: new(int32(0)), CreateDate: made.CreateDate, DefaultVersionId: new("v1"), Description: new("d"),
		IsAttachable: true, Path: new("/x/"), PermissionsBoundaryUsageCount: new(int32(0)), PolicyId: made.PolicyId, PolicyName: new("p"), Tags: []iamtypes.Tag{}, UpdateDate: made.CreateDate,
	}, read)
	version := must(c.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: made.Arn, VersionId: new("v1")}))(t).PolicyVersion
	equal(t, "v1", []any{allowSend, true}, []any{document(t, version.Document), version.IsDefaultVersion})
	another := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sns:*","Resource":"*"}]}`
	equal(t, "v2", "v2", *must(c.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{PolicyArn: made.Arn, PolicyDocument: &another, SetAsDefault: true}))(t).PolicyVersion.VersionId)
	var names []string
	for _, v := range must(c.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: made.Arn}))(t).Versions {
		names = append(names, *v.VersionId)
	}
	equal(t, "versions", []string{"v2", "v1"}, names)
	must(c.SetDefaultPolicyVersion(ctx, &iam.SetDefaultPolicyVersionInput{PolicyArn: made.Arn, VersionId: new("v1")}))(t)
	must(c.DeletePolicyVersion(ctx, &iam.DeletePolicyVersionInput{PolicyArn: made.Arn, VersionId: new("v2")}))(t)
	must(c.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: made.Arn, Tags: []iamtypes.Tag{{Key: new("k"), Value: new("v")}}}))(t)
	equal(t, "tags", []iamtypes.Tag{{Key: new("k"), Value: new("v")}}, must(c.ListPolicyTags(ctx, &iam.ListPolicyTagsInput{PolicyArn: made.Arn}))(t).Tags)
	must(c.UntagPolicy(ctx, &iam.UntagPolicyInput{PolicyArn: made.Arn, TagKeys: []string{"k"}}))(t)
	if listed := must(c.ListPolicies(ctx, &iam.ListPoliciesInput{Scope: iamtypes.PolicyScopeTypeLocal}))(t).Policies; len(listed) != 1 || *listed[0].PolicyName != "p" {
		t.Errorf("policies: %v", listed)
	}
	must(c.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: made.Arn}))(t)
	_, err := c.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: made.Arn})
	refused(t, err, "NoSuchEntity", http.StatusNotFound, "Policy arn:aws:iam::000000000000:policy/x/p was not found.")
	_, err = c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: new("p"), PolicyDocument: new(trustRoot)})
	refused(t, err, "MalformedPolicyDocument", http.StatusBadRequest, "Policy document should not specify a principal.")
}

func TestTerraformUserAndProvider(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	must(c.CreateUser(ctx, &iam.CreateUserInput{UserName: new("u"), Path: new("/")}))(t)
	must(c.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: new("g")}))(t)
	must(c.AddUserToGroup(ctx, &iam.AddUserToGroupInput{GroupName: new("g"), UserName: new("u")}))(t)
	admin := "arn:aws:iam::aws:policy/AdministratorAccess"
	must(c.AttachGroupPolicy(ctx, &iam.AttachGroupPolicyInput{GroupName: new("g"), PolicyArn: &admin}))(t)
	must(c.PutUserPermissionsBoundary(ctx, &iam.PutUserPermissionsBoundaryInput{UserName: new("u"), PermissionsBoundary: &admin}))(t)
	equal(t, "boundary", admin, *must(c.GetUser(ctx, &iam.GetUserInput{UserName: new("u")}))(t).User.PermissionsBoundary.PermissionsBoundaryArn)
	must(c.DeleteUserPermissionsBoundary(ctx, &iam.DeleteUserPermissionsBoundaryInput{UserName: new("u")}))(t)
	// what force_destroy asks for
	for _, g := range must(c.ListGroupsForUser(ctx, &iam.ListGroupsForUserInput{UserName: new("u")}))(t).Groups {
		must(c.RemoveUserFromGroup(ctx, &iam.RemoveUserFromGroupInput{GroupName: g.GroupName, UserName: new("u")}))(t)
	}
	_, err := c.DeleteLoginProfile(ctx, &iam.DeleteLoginProfileInput{UserName: new("u")})
	refused(t, err, "NoSuchEntity", http.StatusNotFound, "Login Profile for User u cannot be found.")
	lists := 0
	lists += len(must(c.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: new("u")}))(t).AccessKeyMetadata)
	lists += len(must(c.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: new("u")}))(t).MFADevices)
	lists += len(must(c.ListVirtualMFADevices(ctx, &iam.ListVirtualMFADevicesInput{}))(t).VirtualMFADevices)
	lists += len(must(c.ListSSHPublicKeys(ctx, &iam.ListSSHPublicKeysInput{UserName: new("u")}))(t).SSHPublicKeys)
	lists += len(must(c.ListSigningCertificates(ctx, &iam.ListSigningCertificatesInput{UserName: new("u")}))(t).Certificates)
	lists += len(must(c.ListServiceSpecificCredentials(ctx, &iam.ListServiceSpecificCredentialsInput{UserName: new("u")}))(t).ServiceSpecificCredentials)
	if lists != 0 {
		t.Errorf("%d things that nobody has made", lists)
	}
	must(c.DeleteUser(ctx, &iam.DeleteUserInput{UserName: new("u")}))(t)

	// aws_iam_openid_connect_provider
	print1, print2 := "9e99a48a9960b14926bb7f3b02e22da2b0ab7280", "1c58a3a8518e8759bf075b76b750d4f2df264fcd"
	arn := must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
		Url: new("https://token.actions.example.com/x"), ClientIDList: []string{"sts.amazonaws.com"}, ThumbprintList: []string{print1},
	}))(t).OpenIDConnectProviderArn
	must(c.UpdateOpenIDConnectProviderThumbprint(ctx, &iam.UpdateOpenIDConnectProviderThumbprintInput{OpenIDConnectProviderArn: arn, ThumbprintList: []string{print2}}))(t)
	must(c.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, ClientID: new("b")}))(t)
	must(c.RemoveClientIDFromOpenIDConnectProvider(ctx, &iam.RemoveClientIDFromOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, ClientID: new("sts.amazonaws.com")}))(t)
	must(c.TagOpenIDConnectProvider(ctx, &iam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, Tags: []iamtypes.Tag{{Key: new("k"), Value: new("v")}}}))(t)
	provider := must(c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn}))(t)
	equal(t, "the provider", []any{"token.actions.example.com/x", []string{"b"}, []string{print2}, []iamtypes.Tag{{Key: new("k"), Value: new("v")}}},
		[]any{aws.ToString(provider.Url), provider.ClientIDList, provider.ThumbprintList, provider.Tags})
	must(c.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn}))(t)
	_, err = c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn})
	refused(t, err, "NoSuchEntity", http.StatusNotFound, "OpenIDConnect Provider not found for arn "+*arn)

	// aws_iam_instance_profile
	must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: new(trustRoot)}))(t)
	must(c.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: new("i")}))(t)
	must(c.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: new("i"), RoleName: new("r")}))(t)
	if p := must(c.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: new("i")}))(t).InstanceProfile; len(p.Roles) != 1 || *p.Roles[0].RoleName != "r" {
		t.Errorf("the instance profile has %v", p.Roles)
	}
	details := must(c.GetAccountAuthorizationDetails(ctx, &iam.GetAccountAuthorizationDetailsInput{}))(t)
	if len(details.RoleDetailList) != 1 || len(details.RoleDetailList[0].InstanceProfileList) != 1 || len(details.GroupDetailList) != 1 || len(details.Policies) != 1 {
		t.Errorf("details: %+v", details)
	}
	summary := must(c.GetAccountSummary(ctx, &iam.GetAccountSummaryInput{}))(t).SummaryMap
	equal(t, "summary", []int32{0, 1, 1, 5000}, []int32{summary["Users"], summary["Groups"], summary["Roles"], summary["UsersQuota"]})
	must(c.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: new("i"), RoleName: new("r")}))(t)
	must(c.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: new("i")}))(t)
	must(c.CreateAccountAlias(ctx, &iam.CreateAccountAliasInput{AccountAlias: new("my-account")}))(t)
	equal(t, "aliases", []string{"my-account"}, must(c.ListAccountAliases(ctx, &iam.ListAccountAliasesInput{}))(t).AccountAliases)
}

// What a simulation says, and by which statement.
func TestSimulatePolicies(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	doc := "{\"Version\":\"2012-10-17\",\"Statement\":[\n {\"Effect\":\"Allow\",\"Action\":\"sqs:*\",\"Resource\":\"arn:aws:sqs:*:*:a\"},\n" +
		" {\"Effect\":\"Deny\",\"Action\":\"sqs:DeleteQueue\",\"Resource\":\"*\",\"Condition\":{\"Bool\":{\"aws:SecureTransport\":\"false\"}}}]}"
	queue := "arn:aws:sqs:us-east-1:000000000000:"
	simulate := func(context ...iamtypes.ContextEntry) (all []string) {
		out := must(c.SimulateCustomPolicy(ctx, &iam.SimulateCustomPolicyInput{
			PolicyInputList: []string{doc}, ActionNames: []string{"sqs:SendMessage", "sqs:DeleteQueue"}, ResourceArns: []string{queue + "a", queue + "b"}, ContextEntries: context,
		}))(t)
		for _, r := range out.EvaluationResults {
			all = append(all, *r.EvalActionName+" "+(*r.EvalResourceName)[len(queue):]+" "+string(r.EvalDecision))
		}
		return all
	}
	equal(t, "over TLS", []string{"sqs:SendMessage a allowed", "sqs:SendMessage b implicitDeny", "sqs:DeleteQueue a allowed", "sqs:DeleteQueue b implicitDeny"}, simulate())
	plain := iamtypes.ContextEntry{ContextKeyName: new("aws:SecureTransport"), ContextKeyType: iamtypes.ContextKeyTypeEnumBoolean, ContextKeyValues: []string{"false"}}
	equal(t, "in clear", []string{"sqs:SendMessage a allowed", "sqs:SendMessage b implicitDeny", "sqs:DeleteQueue a explicitDeny", "sqs:DeleteQueue b explicitDeny"}, simulate(plain))
	must(c.CreateUser(ctx, &iam.CreateUserInput{UserName: new("u")}))(t)
	must(c.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: new("u"), PolicyName: new("in"), PolicyDocument: &doc}))(t)
	out := must(c.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: new("arn:aws:iam::000000000000:user/u"), ActionNames: []string{"sqs:SendMessage"}, ResourceArns: []string{queue + "a"},
	}))(t).EvaluationResults
	if len(out) != 1 || out[0].EvalDecision != iamtypes.PolicyEvaluationDecisionTypeAllowed || len(out[0].MatchedStatements) != 1 ||
		*out[0].MatchedStatements[0].SourcePolicyId != "in" || out[0].MatchedStatements[0].StartPosition.Line != 2 {
		t.Errorf("the user: %+v", out)
	}
	equal(t, "keys", []string{"aws:SecureTransport"}, must(c.GetContextKeysForCustomPolicy(ctx, &iam.GetContextKeysForCustomPolicyInput{PolicyInputList: []string{doc}}))(t).ContextKeyNames)
	_, err := c.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: new("arn:aws:iam::000000000000:user/none"), ActionNames: []string{"sqs:SendMessage"}})
	refused(t, err, "NoSuchEntity", http.StatusNotFound, "The user with name none cannot be found.")
	_, err = c.SimulateCustomPolicy(ctx, &iam.SimulateCustomPolicyInput{PolicyInputList: []string{doc}, PermissionsBoundaryPolicyInputList: []string{doc, doc}, ActionNames: []string{"sqs:SendMessage"}})
	refused(t, err, "InvalidInput", http.StatusBadRequest, "Only one permissions boundary can be simulated.")
}

// TestManagedPolicies attaches those of AWS's policies that modules and templates name, as
// aws_iam_role_policy_attachment does, and asks what they allow.
func TestManagedPolicies(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	for _, test := range []struct {
		policy           string
		action, resource string
		decision         iamtypes.PolicyEvaluationDecisionType
	}{
		{"AWSXRayDaemonWriteAccess", "xray:PutTraceSegments", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"AWSXrayWriteOnlyAccess", "xray:PutTelemetryRecords", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"CloudWatchLambdaInsightsExecutionRolePolicy", "logs:PutLogEvents", "arn:aws:logs:us-east-1:000000000000:log-group:/aws/lambda-insights:log-stream:s", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"CloudWatchLambdaInsightsExecutionRolePolicy", "logs:PutLogEvents", "arn:aws:logs:us-east-1:000000000000:log-group:/aws/lambda/f:log-stream:s", iamtypes.PolicyEvaluationDecisionTypeImplicitDeny},
		{"AWSCloudFormationFullAccess", "cloudformation:CreateStack", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"AWSCloudFormationReadOnlyAccess", "cloudformation:DetectStackDrift", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"AWSCloudFormationReadOnlyAccess", "cloudformation:DeleteStack", "*", iamtypes.PolicyEvaluationDecisionTypeImplicitDeny},
		{"AmazonKinesisFirehoseFullAccess", "firehose:PutRecord", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"AmazonKinesisFirehoseReadOnlyAccess", "firehose:ListDeliveryStreams", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"AmazonKinesisFirehoseReadOnlyAccess", "firehose:PutRecord", "*", iamtypes.PolicyEvaluationDecisionTypeImplicitDeny},
		{"ReadOnlyAccess", "cloudformation:DescribeStacks", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"ReadOnlyAccess", "firehose:DescribeDeliveryStream", "*", iamtypes.PolicyEvaluationDecisionTypeAllowed},
		{"ReadOnlyAccess", "firehose:PutRecord", "*", iamtypes.PolicyEvaluationDecisionTypeImplicitDeny},
	} {
		arn := "arn:aws:iam::aws:policy/" + test.policy
		must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: new(lambdaTrust)}))(t)
		must(c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: new("r"), PolicyArn: &arn}))(t)
		out := must(c.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
			PolicySourceArn: new("arn:aws:iam::000000000000:role/r"), ActionNames: []string{test.action}, ResourceArns: []string{test.resource},
		}))(t).EvaluationResults
		equal(t, test.policy+" "+test.action, []iamtypes.PolicyEvaluationDecisionType{test.decision}, []iamtypes.PolicyEvaluationDecisionType{out[0].EvalDecision})
		must(c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: new("r"), PolicyArn: &arn}))(t)
		must(c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: new("r")}))(t)
	}
}
