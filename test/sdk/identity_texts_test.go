package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"
)

// refusal is what a call is refused with: code and text.
type refusal struct{ what, code, text string }

// asked runs a call that is to be refused.
func asked[In, Out, Options any](t *testing.T, want refusal, call func(context.Context, *In, ...func(*Options)) (*Out, error), in *In) {
	t.Helper()
	_, err := call(t.Context(), in)
	got, ok := errors.AsType[smithy.APIError](err)
	if !ok || got.ErrorCode() != want.code || got.ErrorMessage() != want.text {
		t.Errorf("%s:\ngot  %v\nwant %s: %s", want.what, err, want.code, want.text)
	}
}

// IAM refuses in AWS's words, which were recorded.
func TestIAMTexts(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	const (
		trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
		none  = "arn:aws:iam::000000000000:policy/none"
		odd   = "arn:aws:iam::000000000000:not_a_policy/invalid"
		own   = "arn:aws:iam::000000000000:policy/p"
	)
	must(c.CreateUser(ctx, &iam.CreateUserInput{UserName: aws.String("u")}))(t)
	must(c.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: aws.String("g")}))(t)
	must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(trust)}))(t)
	must(c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String("p"), PolicyDocument: aws.String(allowSend)}))(t)
	must(c.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("i")}))(t)
	provider := must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: aws.String("https://idp.example.com")}))(t).OpenIDConnectProviderArn

	missing := func(what, text string) refusal { return refusal{what, "NoSuchEntity", text} }
	taken := func(what, text string) refusal { return refusal{what, "EntityAlreadyExists", text} }
	input := func(what, text string) refusal { return refusal{what, "InvalidInput", text} }
	full := func(what, text string) refusal { return refusal{what, "LimitExceeded", text} }
	malformed := func(what, text string) refusal { return refusal{what, "MalformedPolicyDocument", text} }
	invalid := func(what, text string) refusal { return refusal{what, "ValidationError", text} }
	conflict := func(what, text string) refusal { return refusal{what, "DeleteConflict", text} }

	asked(t, missing("GetUser", "The user with name x cannot be found."), c.GetUser, &iam.GetUserInput{UserName: aws.String("x")})
	asked(t, missing("GetGroup", "The group with name x cannot be found."), c.GetGroup, &iam.GetGroupInput{GroupName: aws.String("x")})
	asked(t, missing("GetRole", "The role with name x cannot be found."), c.GetRole, &iam.GetRoleInput{RoleName: aws.String("x")})
	asked(t, missing("GetPolicy", "Policy "+none+" was not found."), c.GetPolicy, &iam.GetPolicyInput{PolicyArn: aws.String(none)})
	asked(t, missing("GetInstanceProfile", "Instance Profile x cannot be found."), c.GetInstanceProfile, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("x")})
	asked(t, missing("GetRolePolicy", "The role policy with name x cannot be found."), c.GetRolePolicy, &iam.GetRolePolicyInput{RoleName: aws.String("r"), PolicyName: aws.String("x")})
	asked(t, missing("GetGroupPolicy", "The group policy with name x cannot be found."), c.GetGroupPolicy, &iam.GetGroupPolicyInput{GroupName: aws.String("g"), PolicyName: aws.String("x")})
	asked(t, missing("DeleteUserPolicy", "The user policy with name x cannot be found."), c.DeleteUserPolicy, &iam.DeleteUserPolicyInput{UserName: aws.String("u"), PolicyName: aws.String("x")})
	asked(t, missing("GetLoginProfile", "Login Profile for User u cannot be found."), c.GetLoginProfile, &iam.GetLoginProfileInput{UserName: aws.String("u")})
	asked(t, missing("UpdateAccessKey", "The Access Key with id AKIAIOSFODNN7EXAMPLE cannot be found."), c.UpdateAccessKey, &iam.UpdateAccessKeyInput{
		UserName: aws.String("u"), AccessKeyId: aws.String("AKIAIOSFODNN7EXAMPLE"), Status: iamtypes.StatusTypeInactive,
	})
	asked(t, refusal{"GetAccessKeyLastUsed", "AccessDenied", "User: arn:aws:iam::000000000000:root is not authorized to perform iam:GetAccessKeyLastUsed on resource: access key AKIAIOSFODNN7EXAMPLE"},
		c.GetAccessKeyLastUsed, &iam.GetAccessKeyLastUsedInput{AccessKeyId: aws.String("AKIAIOSFODNN7EXAMPLE")})
	asked(t, missing("RemoveUserFromGroup, neither", "The user with name x cannot be found."), c.RemoveUserFromGroup, &iam.RemoveUserFromGroupInput{UserName: aws.String("x"), GroupName: aws.String("x")})
	asked(t, missing("RemoveUserFromGroup, no group", "The group with name x cannot be found."), c.RemoveUserFromGroup, &iam.RemoveUserFromGroupInput{UserName: aws.String("u"), GroupName: aws.String("x")})
	asked(t, missing("RemoveRoleFromInstanceProfile", "Role r in Instance Profile i cannot be found."), c.RemoveRoleFromInstanceProfile, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String("i"), RoleName: aws.String("r")})

	asked(t, taken("CreateUser", "User with name u already exists."), c.CreateUser, &iam.CreateUserInput{UserName: aws.String("u")})
	asked(t, taken("CreateGroup", "Group with name g already exists."), c.CreateGroup, &iam.CreateGroupInput{GroupName: aws.String("g")})
	asked(t, taken("CreateRole", "Role with name r already exists."), c.CreateRole, &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(trust)})
	asked(t, taken("CreatePolicy", "A policy called p already exists. Duplicate names are not allowed."), c.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("p"), PolicyDocument: aws.String(allowSend)})
	asked(t, taken("CreateInstanceProfile", "Instance Profile i already exists."), c.CreateInstanceProfile, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("i")})
	asked(t, taken("CreateOpenIDConnectProvider", "Provider with url https://idp.example.com already exists."), c.CreateOpenIDConnectProvider, &iam.CreateOpenIDConnectProviderInput{Url: aws.String("https://idp.example.com")})

	// Managed policies, attached and as boundaries.
	asked(t, input("AttachRolePolicy, no ARN", "ARN longpolicynamebutnoarn is not valid."), c.AttachRolePolicy, &iam.AttachRolePolicyInput{RoleName: aws.String("r"), PolicyArn: aws.String("longpolicynamebutnoarn")})
	asked(t, missing("AttachUserPolicy", "Policy "+none+" does not exist or is not attachable."), c.AttachUserPolicy, &iam.AttachUserPolicyInput{UserName: aws.String("u"), PolicyArn: aws.String(none)})
	asked(t, missing("DetachGroupPolicy", "Policy "+own+" was not found."), c.DetachGroupPolicy, &iam.DetachGroupPolicyInput{GroupName: aws.String("g"), PolicyArn: aws.String(own)})
	asked(t, input("PutRolePermissionsBoundary, odd", "ARN "+odd+" is not valid."), c.PutRolePermissionsBoundary, &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String("r"), PermissionsBoundary: aws.String(odd)})
	asked(t, missing("PutRolePermissionsBoundary", "Scope ARN: "+none+" does not exist or is not attachable."), c.PutRolePermissionsBoundary, &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String("r"), PermissionsBoundary: aws.String(none)})
	asked(t, input("CreateRole, odd boundary", "ARN "+odd+" is not valid."), c.CreateRole, &iam.CreateRoleInput{RoleName: aws.String("s"), AssumeRolePolicyDocument: aws.String(trust), PermissionsBoundary: aws.String(odd)})
	asked(t, missing("CreateRole, no boundary", "Scope ARN: "+none+" does not exist or is not attachable."), c.CreateRole, &iam.CreateRoleInput{RoleName: aws.String("s"), AssumeRolePolicyDocument: aws.String(trust), PermissionsBoundary: aws.String(none)})
	asked(t, missing("PutRolePermissionsBoundary, no role", "The role with name x cannot be found."), c.PutRolePermissionsBoundary, &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String("x"), PermissionsBoundary: aws.String(own)})

	// Versions.
	asked(t, missing("GetPolicyVersion, no policy", "Policy "+none+" version v1 does not exist or is not attachable."), c.GetPolicyVersion, &iam.GetPolicyVersionInput{PolicyArn: aws.String(none), VersionId: aws.String("v1")})
	asked(t, missing("GetPolicyVersion", "Policy "+own+" version v9 does not exist or is not attachable."), c.GetPolicyVersion, &iam.GetPolicyVersionInput{PolicyArn: aws.String(own), VersionId: aws.String("v9")})
	asked(t, missing("DeletePolicyVersion", "Policy "+own+" version v9 does not exist or is not attachable."), c.DeletePolicyVersion, &iam.DeletePolicyVersionInput{PolicyArn: aws.String(own), VersionId: aws.String("v9")})
	asked(t, missing("SetDefaultPolicyVersion, no policy", "Policy "+none+" version v1 does not exist or is not attachable."), c.SetDefaultPolicyVersion, &iam.SetDefaultPolicyVersionInput{PolicyArn: aws.String(none), VersionId: aws.String("v1")})
	asked(t, invalid("SetDefaultPolicyVersion, no version", `1 validation error detected: Value at 'versionId' failed to satisfy constraint: Member must satisfy regular expression pattern: v[1-9][0-9]*(\.[A-Za-z0-9-]*)?`),
		c.SetDefaultPolicyVersion, &iam.SetDefaultPolicyVersionInput{PolicyArn: aws.String(own), VersionId: aws.String("1")})
	asked(t, conflict("DeletePolicyVersion, default", "Cannot delete the default version of a policy."), c.DeletePolicyVersion, &iam.DeletePolicyVersionInput{PolicyArn: aws.String(own), VersionId: aws.String("v1")})
	for range 4 {
		must(c.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{PolicyArn: aws.String(own), PolicyDocument: aws.String(allowSend)}))(t)
	}
	asked(t, full("CreatePolicyVersion", "A managed policy can have up to 5 versions. Before you create a new version, you must delete an existing version."), c.CreatePolicyVersion, &iam.CreatePolicyVersionInput{PolicyArn: aws.String(own), PolicyDocument: aws.String(allowSend)})

	// Documents.
	asked(t, malformed("CreatePolicy, text", "Syntax errors in policy."), c.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("q"), PolicyDocument: aws.String("This is not a json document")})
	asked(t, malformed("CreatePolicy, version", "Policy document must be version 2012-10-17 or greater."), c.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("q"), PolicyDocument: aws.String(strings.Replace(allowSend, "2012", "2008", 1))})
	asked(t, malformed("CreatePolicy, operator", "Syntax errors in policy."), c.CreatePolicy, &iam.CreatePolicyInput{PolicyName: aws.String("q"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:ListBucket","Resource":"*","Condition":{"ForAnyValue::StringEqualsIfExists":{"a":"asf"}}}}`)})
	asked(t, malformed("UpdateAssumeRolePolicy, text", "This policy contains invalid Json"), c.UpdateAssumeRolePolicy, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("r"), PolicyDocument: aws.String("HERE IS NO JSON")})
	asked(t, malformed("UpdateAssumeRolePolicy, action", "AssumeRole policy may only specify STS AssumeRole actions."), c.UpdateAssumeRolePolicy, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("r"), PolicyDocument: aws.String(strings.Replace(trust, "sts:AssumeRole", "s3:GetObject", 1))})
	asked(t, malformed("UpdateAssumeRolePolicy, resource", "Has prohibited field Resource"), c.UpdateAssumeRolePolicy, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("r"), PolicyDocument: aws.String(strings.Replace(trust, `"Action"`, `"Resource":"*","Action"`, 1))})

	// Tags.
	twice := []iamtypes.Tag{{Key: aws.String("a"), Value: aws.String("")}, {Key: aws.String("A"), Value: aws.String("")}}
	same := []iamtypes.Tag{twice[0], twice[0]}
	asked(t, input("TagRole", "Duplicate tag keys found. Please note that Tag keys are case insensitive."), c.TagRole, &iam.TagRoleInput{RoleName: aws.String("r"), Tags: twice})
	asked(t, input("TagPolicy", "Duplicate tag keys found."), c.TagPolicy, &iam.TagPolicyInput{PolicyArn: aws.String(own), Tags: same})
	must(c.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: aws.String(own), Tags: twice}))(t)
	if tags := must(c.ListPolicyTags(ctx, &iam.ListPolicyTagsInput{PolicyArn: aws.String(own)}))(t).Tags; len(tags) != 2 {
		t.Errorf("tags: %v", tags)
	}
	many := make([]iamtypes.Tag, 51)
	for i := range many {
		many[i] = iamtypes.Tag{Key: aws.String(fmt.Sprint(i)), Value: aws.String("")}
	}
	asked(t, invalid("TagUser", "1 validation error detected: Value at 'tags' failed to satisfy constraint: Member must have length less than or equal to 50"), c.TagUser, &iam.TagUserInput{UserName: aws.String("u"), Tags: many})
	must(c.TagOpenIDConnectProvider(ctx, &iam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: provider, Tags: many[:50]}))(t)
	asked(t, full("TagOpenIDConnectProvider", "The number of tags has reached the maximum limit."), c.TagOpenIDConnectProvider, &iam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: provider, Tags: many[50:]})

	// Identity providers.
	asked(t, invalid("CreateOpenIDConnectProvider, no URL", "Invalid Open ID Connect Provider URL"), c.CreateOpenIDConnectProvider, &iam.CreateOpenIDConnectProviderInput{Url: aws.String("no-url")})
	asked(t, input("CreateOpenIDConnectProvider, thumbprints", "Thumbprint list must contain fewer than 5 entries."), c.CreateOpenIDConnectProvider, &iam.CreateOpenIDConnectProviderInput{
		Url: aws.String("https://other.example.com"), ThumbprintList: strings.Fields(strings.Repeat(strings.Repeat("a", 40)+" ", 6)),
	})
	clients := make([]string, 101)
	for i := range clients {
		clients[i] = fmt.Sprint(i)
	}
	asked(t, full("CreateOpenIDConnectProvider, clients", "Cannot exceed quota for ClientIdsPerOpenIdConnectProvider: 100"), c.CreateOpenIDConnectProvider, &iam.CreateOpenIDConnectProviderInput{Url: aws.String("https://other.example.com"), ClientIDList: clients})
	must(c.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: provider}))(t)
	asked(t, missing("GetOpenIDConnectProvider", "OpenIDConnect Provider not found for arn "+*provider), c.GetOpenIDConnectProvider, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: provider})
	asked(t, missing("DeleteOpenIDConnectProvider", "OpenId connect Provider "+*provider+" cannot be found."), c.DeleteOpenIDConnectProvider, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: provider})

	// What is in the way.
	must(c.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("i"), RoleName: aws.String("r")}))(t)
	asked(t, full("AddRoleToInstanceProfile", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1"), c.AddRoleToInstanceProfile, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("i"), RoleName: aws.String("r")})
	asked(t, conflict("DeleteInstanceProfile", "Cannot delete entity, must remove roles from instance profile first."), c.DeleteInstanceProfile, &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String("i")})
	must(c.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: aws.String("u"), PolicyArn: aws.String(own)}))(t)
	asked(t, conflict("DeleteUser", "Cannot delete entity, must detach all policies first."), c.DeleteUser, &iam.DeleteUserInput{UserName: aws.String("u")})
	must(c.PutGroupPolicy(ctx, &iam.PutGroupPolicyInput{GroupName: aws.String("g"), PolicyName: aws.String("in"), PolicyDocument: aws.String(allowSend)}))(t)
	asked(t, conflict("DeleteGroup", "Cannot delete entity, must delete policies first."), c.DeleteGroup, &iam.DeleteGroupInput{GroupName: aws.String("g")})
}

// STS refuses in AWS's words, which were recorded.
func TestSTSTexts(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	for _, name := range []string{"first", "second"} {
		must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"000000000000"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`)}))(t)
		must(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: aws.String("chain"), PolicyDocument: aws.String(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:*","Resource":"*"}]}`)}))(t)
	}
	s := stsAs(endpoint, makeUser(t, endpoint, "ann", statement("Allow", `"sts:*"`, "*")))
	role := func(name string) *string { return aws.String("arn:aws:iam::000000000000:role/" + name) }
	tag := func(name string) ststypes.Tag { return ststypes.Tag{Key: &name, Value: aws.String("v")} }
	for _, arn := range []string{"nothing-valid-in-here", "arn::b:::something/test-role", "arn:a::::something/test-role", "arn:a:::something/test-role", "arn:a:a::aaaaaaaaaa:"} {
		asked(t, refusal{arn, "ValidationError", arn + " is invalid"}, s.AssumeRole, &sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: aws.String("session")})
	}
	asked(t, refusal{"name", "ValidationError", `1 validation error detected: Value 'Session1:2' at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\w+=,.@-]*`},
		s.AssumeRole, &sts.AssumeRoleInput{RoleArn: role("first"), RoleSessionName: aws.String("Session1:2")})
	asked(t, refusal{"length", "ValidationError", "1 validation error detected: Value '" + strings.Repeat("s", 65) + "' at 'roleSessionName' failed to satisfy constraint: Member must have length less than or equal to 64"},
		s.AssumeRole, &sts.AssumeRoleInput{RoleArn: role("first"), RoleSessionName: aws.String(strings.Repeat("s", 65))})
	asked(t, refusal{"transitive", "InvalidParameterValue", "The specified transitive tag key must be included in the requested tags."},
		s.AssumeRole, &sts.AssumeRoleInput{RoleArn: role("first"), RoleSessionName: aws.String("session"), Tags: []ststypes.Tag{tag("a")}, TransitiveTagKeys: []string{"b"}})
	asked(t, refusal{"twice", "InvalidParameterValue", "Duplicate tag keys found. Please note that Tag keys are case insensitive."},
		s.AssumeRole, &sts.AssumeRoleInput{RoleArn: role("first"), RoleSessionName: aws.String("session"), Tags: []ststypes.Tag{tag("a"), tag("A")}})
	asked(t, refusal{"duration", "ValidationError", "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."},
		s.AssumeRole, &sts.AssumeRoleInput{RoleArn: role("first"), RoleSessionName: aws.String("session"), DurationSeconds: aws.Int32(7200)})
	first := must(s.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: role("first"), RoleSessionName: aws.String("session"), Tags: []ststypes.Tag{tag("a")}, TransitiveTagKeys: []string{"a"}}))(t).Credentials
	chained := stsClientOf(endpoint, *first.AccessKeyId, *first.SecretAccessKey, *first.SessionToken)
	for _, name := range []string{"a", "A"} {
		asked(t, refusal{name, "InvalidParameterValue", "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session."},
			chained.AssumeRole, &sts.AssumeRoleInput{RoleArn: role("second"), RoleSessionName: aws.String("session"), Tags: []ststypes.Tag{tag(name)}})
	}
}

// KMS refuses in AWS's words, which were recorded, and with status 400 whatever it is.
func TestKMSTexts(t *testing.T) {
	c, ctx := newKMS(t, start(t), account), t.Context()
	key := makeKey(t, c, &kms.CreateKeyInput{})
	signer := makeKey(t, c, &kms.CreateKeyInput{KeySpec: kmstypes.KeySpecEccNistP256, KeyUsage: kmstypes.KeyUsageTypeSignVerify})
	mac := makeKey(t, c, &kms.CreateKeyInput{KeySpec: kmstypes.KeySpecHmac224, KeyUsage: kmstypes.KeyUsageTypeGenerateVerifyMac})
	invalid := func(what, text string) refusal { return refusal{what, "ValidationException", text} }
	missing := func(what, text string) refusal { return refusal{what, "NotFoundException", text} }
	of := func(what, value, member, rule string) refusal {
		return invalid(what, "1 validation error detected: Value '"+value+"' at '"+member+"' failed to satisfy constraint: "+rule)
	}
	const unknown = "134f2428-cec1-4b25-a1ae-9048164dba47"
	asked(t, invalid("GenerateRandom", "NumberOfBytes is required."), c.GenerateRandom, &kms.GenerateRandomInput{})
	asked(t, of("GenerateRandom, 0", "0", "numberOfBytes", "Member must have value greater than or equal to 1"), c.GenerateRandom, &kms.GenerateRandomInput{NumberOfBytes: aws.Int32(0)})
	asked(t, of("GenerateRandom, 1025", "1025", "numberOfBytes", "Member must have value less than or equal to 1024"), c.GenerateRandom, &kms.GenerateRandomInput{NumberOfBytes: aws.Int32(1025)})
	asked(t, missing("DescribeKey", "Key 'arn:aws:kms:us-east-1:000000000000:key/"+unknown+"' does not exist"), c.DescribeKey, &kms.DescribeKeyInput{KeyId: aws.String(unknown)})
	asked(t, missing("DescribeKey, name", "Invalid keyId 'fake-key-id'"), c.DescribeKey, &kms.DescribeKeyInput{KeyId: aws.String("fake-key-id")})
	asked(t, missing("DescribeKey, digits", "Invalid keyId '134f2428cec14b25a1ae9048164dba47'"), c.DescribeKey, &kms.DescribeKeyInput{KeyId: aws.String("134f2428cec14b25a1ae9048164dba47")})
	asked(t, missing("DescribeKey, region", "Invalid arn ap-southeast-1"), c.DescribeKey, &kms.DescribeKeyInput{KeyId: aws.String(strings.Replace(*key.Arn, "us-east-1", "ap-southeast-1", 1))})
	asked(t, of("DescribeKey, empty", "", "keyId", "Member must have length greater than or equal to 1"), c.DescribeKey, &kms.DescribeKeyInput{KeyId: aws.String("")})
	asked(t, invalid("CreateKey, HMAC", "You must specify a KeyUsage value for all KMS keys except for symmetric encryption keys."), c.CreateKey, &kms.CreateKeyInput{KeySpec: kmstypes.KeySpecHmac256})
	asked(t, of("CreateKey, usage", "RANDOM", "keyUsage", "Member must satisfy enum value set: [SIGN_VERIFY, ENCRYPT_DECRYPT, GENERATE_VERIFY_MAC, KEY_AGREEMENT]"), c.CreateKey, &kms.CreateKeyInput{KeyUsage: "RANDOM"})
	asked(t, of("GenerateMac, algorithm", "INVALID", "macAlgorithm", "Member must satisfy enum value set: [HMAC_SHA_384, HMAC_SHA_256, HMAC_SHA_224, HMAC_SHA_512]"),
		c.GenerateMac, &kms.GenerateMacInput{KeyId: mac.KeyId, MacAlgorithm: "INVALID", Message: []byte("m")})
	asked(t, refusal{"GenerateMac", "InvalidKeyUsageException", "Algorithm HMAC_SHA_256 is incompatible with key spec HMAC_224."},
		c.GenerateMac, &kms.GenerateMacInput{KeyId: mac.KeyId, MacAlgorithm: kmstypes.MacAlgorithmSpecHmacSha256, Message: []byte("m")})
	asked(t, refusal{"GenerateMac, key", "InvalidKeyUsageException", *key.Arn + " key usage is ENCRYPT_DECRYPT which is not valid for GenerateMac."},
		c.GenerateMac, &kms.GenerateMacInput{KeyId: key.KeyId, MacAlgorithm: kmstypes.MacAlgorithmSpecHmacSha256, Message: []byte("m")})
	code := ask(t, c.GenerateMac, &kms.GenerateMacInput{KeyId: mac.KeyId, MacAlgorithm: kmstypes.MacAlgorithmSpecHmacSha224, Message: []byte("m")}).Mac
	asked(t, refusal{"VerifyMac", "KMSInvalidMacException", ""}, c.VerifyMac, &kms.VerifyMacInput{KeyId: mac.KeyId, MacAlgorithm: kmstypes.MacAlgorithmSpecHmacSha224, Message: []byte("other"), Mac: code})
	asked(t, invalid("Sign", "Digest is invalid length for algorithm ECDSA_SHA_256."), c.Sign, &kms.SignInput{
		KeyId: signer.KeyId, Message: []byte("short"), MessageType: kmstypes.MessageTypeDigest, SigningAlgorithm: kmstypes.SigningAlgorithmSpecEcdsaSha256,
	})
	asked(t, refusal{"Verify", "KMSInvalidSignatureException", ""}, c.Verify, &kms.VerifyInput{KeyId: signer.KeyId, Message: []byte("m"), Signature: []byte("no signature"), SigningAlgorithm: kmstypes.SigningAlgorithmSpecEcdsaSha256})
	asked(t, invalid("Encrypt", "1 validation error detected: Value at 'plaintext' failed to satisfy constraint: Member must have length less than or equal to 4096"), c.Encrypt, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: make([]byte, 4097)})
	asked(t, invalid("CreateAlias, prefix", `Alias must start with the prefix "alias/". Please see https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html`), c.CreateAlias, &kms.CreateAliasInput{AliasName: aws.String("a"), TargetKeyId: key.KeyId})
	asked(t, invalid("CreateAlias, characters", "alias/Service:Test contains invalid characters for an alias"), c.CreateAlias, &kms.CreateAliasInput{AliasName: aws.String("alias/Service:Test"), TargetKeyId: key.KeyId})
	asked(t, invalid("ScheduleKeyDeletion", "PendingWindowInDays must be between 7 and 30"), c.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId, PendingWindowInDays: aws.Int32(6)})
	asked(t, of("EnableKeyRotation", "89", "rotationPeriodInDays", "Member must have value greater than or equal to 90"), c.EnableKeyRotation, &kms.EnableKeyRotationInput{KeyId: key.KeyId, RotationPeriodInDays: aws.Int32(89)})
	blob := ask(t, c.Encrypt, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: []byte("p"), EncryptionContext: map[string]string{"a": "b"}}).CiphertextBlob
	asked(t, refusal{"Decrypt, context", "InvalidCiphertextException", ""}, c.Decrypt, &kms.DecryptInput{CiphertextBlob: blob})
	other := makeKey(t, c, &kms.CreateKeyInput{})
	asked(t, refusal{"Decrypt, key", "IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation."},
		c.Decrypt, &kms.DecryptInput{CiphertextBlob: blob, KeyId: other.KeyId, EncryptionContext: map[string]string{"a": "b"}})
	must(c.DisableKey(ctx, &kms.DisableKeyInput{KeyId: other.KeyId}))(t)
	asked(t, refusal{"Encrypt, disabled", "DisabledException", *other.Arn + " is disabled."}, c.Encrypt, &kms.EncryptInput{KeyId: other.KeyId, Plaintext: []byte("p")})
	must(c.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: other.KeyId}))(t)
	asked(t, refusal{"Encrypt, going", "KMSInvalidStateException", *other.Arn + " is pending deletion."}, c.Encrypt, &kms.EncryptInput{KeyId: other.KeyId, Plaintext: []byte("p")})
	_, err := c.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: aws.String(unknown)})
	refused(t, err, "NotFoundException", http.StatusBadRequest, "Key 'arn:aws:kms:us-east-1:000000000000:key/"+unknown+"' does not exist")
}
